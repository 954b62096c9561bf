"""Dense search is exact, in any thread and any copy."""

from __future__ import annotations

import pytest

from polyhop.data import dense
from polyhop.data.dense import DenseIndex

from .hashing import ranked


@pytest.mark.parametrize("block", [1, 7, 999, 4096])
def test_search_is_exact(index: DenseIndex, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(dense, "_BLOCK", block)
    for query in ("moon river", "the castle", "Title 3. singer coast city"):
        expected = ranked(index, query)
        for k, offset in ((1, 0), (10, 0), (10, 10), (5, 998), (5, 1000), (5, 10**9), (10**9, 990)):
            hits = index.search(query, k, offset)
            ids = [id for id, _ in expected[offset : offset + k]]
            assert [hit.passage.id for hit in hits] == ids
            assert [hit.score for hit in hits] == pytest.approx([s for _, s in expected[offset : offset + k]], abs=1e-6)
            assert [hit.rank for hit in hits] == list(range(offset + 1, offset + 1 + len(hits)))
