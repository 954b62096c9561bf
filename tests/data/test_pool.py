"""The pool of a question: BM25 by hand, order, pages, views."""

from __future__ import annotations

import math

import pytest

from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool

# Without titles and stop words: 3, 2 and 4 terms, 3 in the mean.
CATS = Passage.of("", "cat cat dog", id="cats")
BIRD = Passage.of("", "the bird sings", id="bird")
LONG = Passage.of("", "dog eats green fish", id="long")


def scores(pool: PassagePool, query: str) -> dict[str, float]:
    return {hit.passage.id: hit.score for hit in pool.search(query, len(pool))}


def test_scores_by_hand() -> None:
    pool = PassagePool([CATS, BIRD, LONG], k1=1.0, b=0.5)
    idf_cat, idf_dog = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)  # in 1 and in 2 of 3 passages
    # The norm is k1 * (1 - b + b * length / mean): 1 for 3 terms, 1/2 + 2/3 = 7/6 for 4.
    expected = {"cats": idf_cat * 2 / (2 + 1) + idf_dog * 1 / (1 + 1), "bird": 0.0, "long": idf_dog * 1 / (1 + 7 / 6)}
    assert scores(pool, "The CATS and dogs?") == pytest.approx(expected)
    assert [hit.passage.id for hit in pool.search("cat dog", 3)] == ["cats", "long", "bird"]
    assert scores(pool, "cat cat")["cats"] == pytest.approx(2 * idf_cat * 2 / (2 + 1))
    titled = PassagePool([Passage.of("Dog", "It barks.", id="a"), Passage.of("Cat", "It purrs.", id="b")])
    assert [(hit.passage.id, hit.document) for hit in titled.search("cat", 1)] == [("b", None)]


def test_all_passages_come_best_first_ties_and_misses_in_their_given_order() -> None:
    twins = [Passage.of("", "cat", id=f"twin{n}") for n in range(3)]
    pool = PassagePool([BIRD, *twins, CATS, LONG, Passage.of("", "of passages with the same id the first", id="cats")])
    hits = pool.search("cat", 10)
    assert [hit.passage.id for hit in hits][-2:] == ["bird", "long"]
    assert [hit.passage.id for hit in hits if hit.passage in twins] == ["twin0", "twin1", "twin2"]


@pytest.mark.parametrize("query", ["", "   ", "the of and", "?!", "zebra", "\ud800", "\x00"])
def test_a_query_without_a_match_gives_the_pool_in_its_order(query: str) -> None:
    hits = PassagePool([CATS, BIRD, LONG]).search(query, 2)
    assert PassagePool([]).search(query, 3) == []
    assert [hit.score for hit in PassagePool([Passage.of("", "the of")]).search(f"cat {query}", 3)] == [0.0]
    assert [(hit.passage.id, hit.score, hit.rank) for hit in hits] == [("cats", 0.0, 1), ("bird", 0.0, 2)]
