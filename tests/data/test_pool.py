"""The pool of a question: BM25 by hand, order, pages, views."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Passage, Retriever
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


def test_a_repeated_query_term_counts_twice() -> None:
    pool = PassagePool([CATS, BIRD, LONG])
    assert scores(pool, "cat cat")["cats"] == pytest.approx(2 * scores(pool, "cat")["cats"])


def test_k1_and_b() -> None:
    texts = ("hop", "hop hop hop", "hop and seven more words stand here")
    one, three, padded = (Passage.of("", text, id=text) for text in texts)
    rare = Passage.of("", "else", id="else")
    pool = PassagePool([one, three, padded, rare])
    flat = scores(pool.with_bm25(k1=1e-9, b=0.0), "hop")
    assert flat[one.id] == pytest.approx(flat[three.id]) == pytest.approx(flat[padded.id])  # presence alone
    steep = scores(pool.with_bm25(k1=3.0, b=0.0), "hop")
    assert steep[three.id] > steep[one.id] == pytest.approx(steep[padded.id])  # frequency counts, length does not
    fair = scores(pool.with_bm25(k1=0.9, b=1.0), "hop")
    assert fair[one.id] > fair[padded.id]  # length counts


def test_views_do_not_disturb_each_other() -> None:
    pool = PassagePool([CATS, BIRD, LONG])
    before = scores(pool, "cat dog")
    view = pool.with_bm25(k1=2.0)
    assert (view.k1, view.b) == (2.0, pool.b)
    other = view.with_bm25(b=1.0)
    assert (other.k1, other.b) == (2.0, 1.0)
    assert scores(view, "cat dog") != before
    assert scores(other, "cat dog") != scores(view, "cat dog")
    assert scores(pool, "cat dog") == before
    assert (pool.k1, pool.b) == (0.9, 0.4)
    views = [pool.with_bm25(k1=0.1 + n / 10) for n in range(20)]
    expected = [scores(view, "cat dog") for view in views]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda view: [scores(view, "cat dog") for _ in range(50)], views))
    assert all(run == [truth] * 50 for run, truth in zip(found, expected, strict=True))


def test_all_passages_come_best_first_ties_and_misses_in_their_given_order() -> None:
    twins = [Passage.of("", "cat", id=f"twin{n}") for n in range(3)]
    pool = PassagePool([BIRD, *twins, CATS, LONG])
    hits = pool.search("cat", 10)
    assert [hit.passage.id for hit in hits][-2:] == ["bird", "long"]
    assert [hit.passage.id for hit in hits if hit.passage in twins] == ["twin0", "twin1", "twin2"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5, 6]


def test_titles_count() -> None:
    pool = PassagePool([Passage.of("Dog", "It barks.", id="a"), Passage.of("Cat", "It purrs.", id="b")])
    assert pool.search("cat", 1)[0].passage.id == "b"


@given(st.integers(1, 9), st.integers(0, 12))
def test_pages_are_slices_of_the_whole(k: int, offset: int) -> None:
    pool = PassagePool([Passage.of("", "cat " * n + "dog", id=str(n)) for n in range(9)])
    whole = pool.search("cat", 9)
    assert pool.search("cat", k, offset) == whole[offset : offset + k]


@pytest.mark.parametrize(("k", "offset"), [(0, 0), (-1, 0), (1, -1)])
def test_impossible_pages(k: int, offset: int) -> None:
    with pytest.raises(ValueError, match=f"k={k}, offset={offset}"):
        PassagePool([CATS]).search("cat", k, offset)


def test_of_passages_with_the_same_id_the_first_counts() -> None:
    pool = PassagePool([CATS, BIRD, Passage.of("", "another text", id="cats")])
    assert [passage.id for passage in pool.passages] == ["cats", "bird"]
    assert len(pool) == 2
    assert scores(pool, "another") == {"cats": 0.0, "bird": 0.0}


@pytest.mark.parametrize("query", ["", "   ", "the of and", "?!", "zebra", "\ud800", "\x00"])
def test_a_query_without_a_match_gives_the_pool_in_its_order(query: str) -> None:
    hits = PassagePool([CATS, BIRD, LONG]).search(query, 2)
    assert [(hit.passage.id, hit.score, hit.rank) for hit in hits] == [("cats", 0.0, 1), ("bird", 0.0, 2)]


@pytest.mark.parametrize("passages", [[], [Passage.of("", "", id="empty")], [Passage.of("", "the of", id="stop")]])
def test_pools_without_words(passages: list[Passage]) -> None:
    assert [hit.score for hit in PassagePool(passages).search("cat", 5)] == [0.0] * len(passages)


def test_search_many_keeps_the_order_of_the_queries() -> None:
    pool = PassagePool([CATS, BIRD, LONG])
    assert pool.search_many(["bird", "", "fish"], 1) == [pool.search(query, 1) for query in ("bird", "", "fish")]
    assert pool.search_many([], 3) == []


def test_it_is_a_retriever() -> None:
    assert isinstance(PassagePool([CATS]), Retriever)
    assert isinstance(PassagePool([CATS]).with_bm25(b=0.1), Retriever)


def test_a_very_long_query() -> None:
    pool = PassagePool([CATS, BIRD, LONG])
    query = " ".join(f"word{n}" for n in range(10_000)) + " bird"
    assert pool.search(query, 1)[0].passage is BIRD


# --- what chains ask -------------------------------------------------------------------------------------------------

TITLED = [
    Passage.of("Help! (film)", "Help! is a film with the Beatles.", id="a"),
    Passage.of("Help!", "Help is assistance; the Beatles' film.", id="b"),
    Passage.of("Besançon", "A city on the Doubs.", id="c"),
    Passage.of("", "A passage without a title, about cities and films.", id="d"),
    Passage.of("help", "Films, films, films.", id="e"),
    Passage.of("!!!", "A band from Sacramento.", id="f"),
    Passage.of("Only a Title", "", id="g"),
    Passage.of("東京", "東京は日本の首都です。", id="h"),
]


def test_hits_of_a_pool_have_no_number() -> None:
    assert {hit.document for hit in PassagePool(TITLED).search("film", 9)} == {None}


def test_views_read_the_passages_once() -> None:
    pool = PassagePool([Passage.of("Solaris", "Solaris was directed by Andrei Tarkovsky.")])
    assert pool.with_bm25(1.2).store is pool.with_bm25(2.0).store is pool.store
