"""Rank fusion: the paper's sum, ties in a fixed order, pages as slices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.fusion import FusedRetriever
from polyhop.data.passages import Hit, Passage


class Fixed:
    """A retriever that finds the same for every query."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = tuple(ids)

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        found = [Hit(Passage(id, id, ""), 1.0 / rank, rank) for rank, id in enumerate(self.ids, 1)]
        return found[offset : offset + k]


def ids(hits: list[Hit]) -> str:
    return "".join(hit.passage.id for hit in hits)


def test_ties_go_to_the_first_retriever() -> None:
    assert ids(FusedRetriever([Fixed("ab"), Fixed("xy")]).search("q", 9)) == "axby"
    assert ids(FusedRetriever([Fixed("xy"), Fixed("ab")]).search("q", 9)) == "xayb"
    # Each passage has the ranks 1, 2 and 3: added up in the order of the retrievers, these differ in the last digit.
    hits = FusedRetriever([Fixed("abc"), Fixed("bca"), Fixed("cab")]).search("q", 9)
    assert ids(hits) == "abc"
    assert len({hit.score for hit in hits}) == 1


def test_depth_and_pages() -> None:
    fused = FusedRetriever([Fixed("abcdef"), Fixed("fedcba")], depth=2)
    whole = fused.search("q", 100)
    assert ids(whole) == "afbe"
    for offset, k in ((0, 1), (1, 2), (3, 5), (4, 1), (100, 3)):
        assert fused.search("q", k, offset) == whole[offset : offset + k]


RANKINGS = st.lists(st.permutations("abcdefgh").map(lambda order: order[:5]), min_size=1, max_size=4)


@given(RANKINGS, st.integers(0, 100))
def test_it_is_the_exact_order(rankings: list[list[str]], k: int) -> None:
    exact: dict[str, Fraction] = {}
    for ranking in rankings:
        for rank, id in enumerate(ranking, 1):
            exact[id] = exact.get(id, Fraction(0)) + Fraction(1, k + rank)
    expected = sorted(exact, key=lambda id: -exact[id])  # a stable sort: the first retriever's first
    hits = FusedRetriever([Fixed(ranking) for ranking in rankings], k).search("q", 99)
    assert sorted(ids(hits)) == sorted(expected)
    assert [exact[hit.passage.id] for hit in hits] == [exact[id] for id in expected]
    assert [hit.score for hit in hits] == pytest.approx([float(exact[id]) for id in expected], rel=1e-15)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert ids(FusedRetriever([Fixed(rankings[0])], k).search("q", 9)) == "".join(rankings[0])
