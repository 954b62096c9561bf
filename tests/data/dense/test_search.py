"""Dense search is exact, in any thread and any copy."""

from __future__ import annotations

import numpy as np
import pytest

from polyhop.data import dense
from polyhop.data.dense import DenseIndex

from .hashing import found, ranked


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


def test_similarities_and_rows(index: DenseIndex) -> None:
    scores = dict(found(index.search("moon river", 1000)))
    documents = [5, 0, 999, 5]
    passages = index._lucene.stored(documents)
    assert index.similarities("moon river", documents).tolist() == [scores[passage.id] for passage in passages]
    rows = index.rows(documents)
    assert rows.shape == (4, 16)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-3)
    assert index.rows([]).shape == (0, 16)
    assert index.similarities("moon", []).shape == (0,)
    with pytest.raises(IndexError):
        index.rows([1000])
