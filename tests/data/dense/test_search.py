"""Dense search is exact, in any thread and any copy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data import dense
from polyhop.data.dense import DenseIndex

from .hashing import Hashing, found, ranked


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


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=40), st.integers(1, 45))
def test_ties_go_by_document_number(index: DenseIndex, rows: list[list[int]], count: int) -> None:
    """Among many equal vectors, in blocks of any size."""
    view = object.__new__(DenseIndex)
    view._rows = np.array(rows, np.float16)
    query = np.array([1, 2, 3], np.float32)
    scores = np.array(rows) @ [1, 2, 3]
    expected = sorted(range(len(rows)), key=lambda n: (-scores[n], n))[:count]
    with pytest.MonkeyPatch.context() as patch:
        for block in (1, 4, 64):
            patch.setattr(dense, "_BLOCK", block)
            order, similar = view._nearest(query)
            assert order[:count].tolist() == expected
            assert similar.tolist() == scores.tolist()


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


def test_a_query_is_encoded_once(built: Path) -> None:
    encoder = Hashing()
    with DenseIndex(built, encoder) as index:
        assert index.search("", 5) == index.search(" \n", 5) == []
        for page in range(3):
            index.search("moon", 5, 5 * page)
        index.similarities("moon", [1, 2])
    assert encoder.calls == [1]
