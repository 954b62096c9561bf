"""The chain retriever: what BM25 misses is found, with the right reason, over an index and over a pool alike."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.chain import ChainRetriever, ChainWeights
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.passages import Passage, Reason
from polyhop.data.pool import PassagePool
from polyhop.data.splitting import Document, Line, split

from .searching import GENERIC, QUESTIONS, Fixed, ids
from .world import CASES, WORLD, Case

# --- chains ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_whole_chain_is_found_where_bm25_misses_a_part(
    source: BM25Index | PassagePool, retriever: ChainRetriever, case: Case
) -> None:
    """The reason says what led there; a page about a common word of the question does not come first."""
    hits = retriever.search(case.question, 8)
    assert case.target not in ids(source.search(case.question, 5))
    assert set(case.gold) <= set(ids(hits[:5]))
    assert [hit.reason for hit in hits[:5] if hit.passage.id == case.target] == [case.reason]
    assert GENERIC.isdisjoint(ids(hits[:2]))
    assert hits[0].reason
    assert hits[0].reason.source is None
    for hit in hits:
        assert hit.reason
        assert (hit.reason.source is None) == (hit.reason.via in ("words", "named"))
        assert hit.reason.source is None or hit.reason.source in ids(hits[: hit.rank - 1])
        assert (hit.reason.name == "") == (hit.reason.via == "words")
        assert all(word in case.question for word in hit.reason.words)


def test_the_order_of_a_chain(retriever: ChainRetriever) -> None:
    """Both films before their directors, a mention in full before a part of it, the words of the question first."""
    for name, before, after in (
        ("comparison", ("harvest", "ferry"), ("aker", "lund")),
        ("several passages of a title", ("berg-2",), ("berg-1", "berg-3")),
        ("comma in a title", ("paris-texas",), ("paris",)),
    ):
        found = ids(retriever.search(CASES[name].question, 30))
        assert max(map(found.index, before)) < min(found.index(other) for other in after if other in found)
    reasons = {hit.passage.id: hit.reason for hit in retriever.search(CASES["comparison"].question, 5)}
    assert [reason and reason.source for reason in map(reasons.get, ("aker", "lund"))] == ["harvest", "ferry"]
    [hit] = retriever.search("What did the jury do in 1988?", 1)
    assert (hit.passage.id, hit.reason) == ("palette", Reason("words", "", None, ("jury", "1988")))


# --- as many passages as the chain needs -----------------------------------------------------------------------------


@pytest.mark.parametrize("question", [*QUESTIONS, "What did the jury do in 1988?", "moon"])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_an_adaptive_ranking_is_the_beginning_of_the_whole(retriever: ChainRetriever, question: str, k: int) -> None:
    whole = retriever.search(question, k)
    found = retriever.with_weights(retriever.weights, adaptive=True).search(question, k)
    assert found == whole[: len(found)]
    assert bool(found) == bool(whole)


def test_the_threshold_decides_how_far_the_chain_goes(retriever: ChainRetriever) -> None:
    question = CASES["comparison"].question
    lengths = [
        len(retriever.with_weights(ChainWeights(enough=enough), adaptive=True).search(question, 4))
        for enough in (0.0, 0.3, 1.0, 3.0)
    ]
    assert lengths == sorted(lengths, reverse=True)
    adaptive = retriever.with_weights(retriever.weights, adaptive=True)
    one, two = adaptive.search("What did the jury do in 1988?", 10), adaptive.search(question, 10)
    assert len(one) < len(two) < 10
    assert (lengths[0], lengths[-1]) == (4, 1)


# --- vectors ---------------------------------------------------------------------------------------------------------


def test_similar_vectors_count_as_much_as_their_weight(world: BM25Index) -> None:
    question = CASES["shared name"].question
    document = next(hit.document for hit in world.search(question, 9) if hit.passage.id == "cresthaven")
    assert document is not None
    vectors: Any = Fixed({document: 1.0}, world)
    for weight, changes in ((3.0, True), (0.0, False)):
        weights = ChainWeights(similarity=weight)
        found = ChainRetriever(world, weights, vectors=vectors).search(question, 9)
        plain = ChainRetriever(world, weights).search(question, 9)
        assert (ids(found) != ids(plain)) == changes
        assert (found[0].passage.id == "cresthaven") == changes
    assert {query for query, _ in vectors.asked} == {question}
    asked = [document for _, document in vectors.asked]
    assert len(set(asked)) == len(asked) // 2  # each once a search
    assert set(asked) <= set(range(len(world)))


def test_vectors_of_another_index_are_refused(world: BM25Index) -> None:
    vectors: Any = Fixed({}, world)
    with pytest.raises(ValueError, match="the vectors belong to another index"):
        ChainRetriever(PassagePool(WORLD), vectors=vectors)


# --- passages of documents -------------------------------------------------------------------------------------------


def test_a_name_leads_to_the_opening_passage_of_a_document() -> None:
    """All passages of a document have its title, which means the first of them rather than another."""
    life = ["Mira Holm was born in Dunburg in 1931.", *(f"She painted harbour number {n} then." for n in range(30))]
    first, *later = split(Document("holm.md", "Mira Holm", [Line(text) for text in life]), 20)
    film = Passage.of("The Ferry", "The Ferry is a film directed by Mira Holm.")
    pool = PassagePool([*later, first, film, *(Passage.of(f"Harbour {n}", f"It is harbour {n}.") for n in range(30))])
    question = "Where was the director of The Ferry from?"
    found = [ids(ChainRetriever(pool, weights).search(question, 2)) for weights in (None, ChainWeights(later=1.0))]
    assert found[0] == [film.id, first.id]
    assert found[1] != found[0]
