"""The chain retriever as a retriever: long pages, other processes; its settings."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from polyhop.data.chain import ChainRetriever, ChainWeights
from polyhop.data.errors import PolyhopError
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool

from .searching import QUESTIONS, ids, over
from .world import WORLD


def test_pages_are_slices_of_a_long_whole_too() -> None:
    places = [f"{a}{b}" for a in "Anna Bert Carl Dora Emil Fritz Gerd".split() for b in "berg feld haus thal".split()]
    chain = over(
        *(
            Passage.of(f"{place} {n}", f"The film of {places[n * 5 % 28]} and {places[n * 3 % 28]}. Film {n}." + end)
            for n, place in enumerate(places * 5)
            for end in (" Its director is old.", "")
        )
    )
    whole = ids(chain.search("Who is the director of the film of Annaberg?", 1000))
    assert len(whole) == 280
    for k, offset in ((5, 0), (50, 0), (60, 0), (100, 0), (20, 40), (20, 60), (100, 100)):
        assert (
            ids(chain.search("Who is the director of the film of Annaberg?", k, offset)) == whole[offset : offset + k]
        )


def test_another_process_finds_the_same(tmp_path: Path, printed: Callable[[str], set[str]]) -> None:
    """Whatever the order of sets there; and a pickle keeps what was set."""
    chain = ChainRetriever(PassagePool(WORLD).with_bm25(1.2, 0.7), ChainWeights(link=1.0), adaptive=True)
    expected = [[[hit.passage.id, hit.score] for hit in chain.search(question, 10)] for question in QUESTIONS]
    pickled = tmp_path / "chain.pickle"
    pickled.write_bytes(pickle.dumps((chain, QUESTIONS)))
    code = (
        "import json, pickle\n"
        f"chain, questions = pickle.load(open({str(pickled)!r}, 'rb'))\n"
        "print(json.dumps([[[h.passage.id, h.score] for h in chain.search(q, 10)] for q in questions]))"
    )
    (found,) = printed(code)
    assert json.loads(found) == expected
    again = pickle.loads(pickle.dumps(chain))
    assert (again.k1, again.b, again.weights, again.adaptive) == (1.2, 0.7, chain.weights, True)


# --- settings --------------------------------------------------------------------------------------------------------


def test_settings_of_bm25_reach_the_source_and_leave_the_original_alone(retriever: ChainRetriever) -> None:
    before = retriever.search(QUESTIONS[0], 5)
    view = retriever.with_bm25(k1=3.0, b=1.0)
    assert (view.k1, view.b) == (3.0, 1.0)
    assert (retriever.k1, retriever.b) == (0.9, 0.4)
    assert retriever.with_bm25(b=0.1).k1 == 0.9
    assert view.search(QUESTIONS[0], 5) != before
    assert view.search(QUESTIONS[0], 5) == ChainRetriever(view.source).search(QUESTIONS[0], 5)
    other = retriever.with_weights(ChainWeights(link=0, back=0, shared=0), adaptive=True)
    assert (other.weights.link, other.adaptive) == (0, True)
    assert (retriever.weights, retriever.adaptive) == (ChainWeights(), False)
    assert retriever.search(QUESTIONS[0], 5) == before


def test_with_bm25_alone_the_ranking_is_bm25s(source: BM25Index | PassagePool) -> None:
    """But for the order of equals."""
    nothing = {weight.name: 0.0 for weight in fields(ChainWeights) if weight.name != "in_title"}
    alone = ChainWeights(**{**nothing, "bm25": 1.0})
    for question in QUESTIONS:
        theirs = source.search(question, 50)
        ours = ChainRetriever(source, alone).search(question, 7)
        assert [hit.score for hit in ours] == pytest.approx([hit.score / theirs[0].score for hit in theirs[:7]])
        better = {hit.passage.id for hit in theirs if hit.score > theirs[6].score}
        assert better <= set(ids(ours)) <= {hit.passage.id for hit in theirs if hit.score >= theirs[6].score}


def test_without_anything_to_search_the_message_says_what_to_do() -> None:
    with pytest.raises(PolyhopError, match="nothing to search: give ChainRetriever an index, or each question its own"):
        ChainRetriever().search("moon", 1)
    chain = ChainRetriever(None, ChainWeights(link=2.5), adaptive=True).over(PassagePool(WORLD))
    assert sorted(ids(chain.with_weights(ChainWeights(), adaptive=False).search("moon", 1000))) == sorted(
        passage.id for passage in WORLD
    )
    assert (chain.weights, chain.adaptive, copy.deepcopy(chain)) == (ChainWeights(link=2.5), True, chain)
    assert (ChainRetriever().k1, ChainRetriever().b) == (0.9, 0.4)


def test_weights_have_a_range() -> None:
    for weight in fields(ChainWeights):
        low, high = weight.metadata["low"], weight.metadata["high"]
        assert getattr(ChainWeights(**{weight.name: high}), weight.name) == high
        for value in (low - 0.01, high + 0.01, float("nan")):
            with pytest.raises(ValueError, match=f"{weight.name} must be in {low}..{high}, got {value}"):
                ChainWeights(**{weight.name: value})
