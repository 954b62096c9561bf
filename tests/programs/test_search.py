"""First-stage retrieval: the own pool before the retriever, parameters that arrive, copies that share the index."""

from __future__ import annotations

import copy
import threading
from dataclasses import asdict
from typing import Any

import pytest

from polyhop.data.chain import ChainRetriever, ChainWeights
from polyhop.data.passages import Hit, Passage, Place
from polyhop.data.pool import PassagePool
from polyhop.programs import Naive, Prism
from polyhop.programs.run import Run, running
from polyhop.programs.search import Search

PASSAGES = [Passage.of(f"T{n}", "hop " * n + "word " * (9 - n), id=f"p{n}") for n in range(1, 6)]


class Recorder:
    """A retriever with BM25 views that, like an index, cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.views: list[tuple[float | None, float | None]] = []
        self.searches: list[tuple[str, int, int]] = []

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> Recorder:
        self.views.append((k1, b))
        return self

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        self.searches.append((query, k, offset))
        return [Hit(PASSAGES[0], 1.0, offset + 1)]


def searched(search: Search, query: str, pool: Any) -> list[Hit]:
    """The hits of a search for a question with passages of its own."""
    with running(Run(pool=pool)):
        hits: list[Hit] = search(query)
    return hits


def test_k_k1_and_b_reach_the_retriever() -> None:
    retriever, run = Recorder(), Run()
    search = Search(retriever, k=7)
    search.k1.value, search.b.value = 1.7, 0.2
    with running(run):
        search("hop")
    assert retriever.views == [(1.7, 0.2)]
    assert retriever.searches == [("hop", 7, 0)]
    search.k.value = 3
    with running(run):
        search("hop", offset=3)
    assert retriever.searches[1] == ("hop", 3, 3)
    assert (run.trace.searches, [hit.rank for hit in run.seen]) == (2, [1, 4])


def test_one_hit_a_document() -> None:
    parts = [
        Passage(f"{n}#{m}", "", "hop " * (3 - n) + "on", place=Place(str(n), m)) for n in range(3) for m in range(3)
    ]
    search = Search(k=2)
    assert [hit.passage.document for hit in searched(search, "hop", parts)] == ["0", "0"]
    search.by_document.value = True
    assert [(hit.passage.document, hit.rank) for hit in searched(search, "hop", parts)] == [("0", 1), ("1", 2)]


@pytest.mark.parametrize(
    ("title", "text", "found"),
    [
        ("Kestrel", "Kestrel may refer to:", False),
        ("Kestrel > Hunting", "Hunting", False),
        ("Kestrel", "Kestrel", False),
        ("The kestrel hunts.", "The kestrel hunts.", True),  # a statement, although the title is the same
        ("Kestrel", "The kestrel hunts mice", True),
    ],
)
def test_what_states_nothing_is_left_out(title: str, text: str, found: bool) -> None:
    assert bool(searched(Search(), "kestrel hunting", [Passage.of(title, text)])) == found


def test_the_own_pool_goes_before_the_retriever() -> None:
    retriever = Recorder()
    search = Search(retriever)
    assert [hit.passage.id for hit in searched(search, "hop", PASSAGES[1:2])] == ["p2"]
    assert searched(search, "hop", []) == []
    assert retriever.searches == []


@pytest.mark.parametrize("program", [Search, Naive, Prism])
def test_copies_share_the_retriever_and_nothing_else(program: type[Search | Naive | Prism]) -> None:
    retriever = Recorder()
    one = program(retriever)
    for twin in (copy.deepcopy(one), one.deepcopy(), one.reset_copy()):
        search, other = (module if isinstance(module, Search) else module.search for module in (one, twin))
        assert other.retriever is retriever
        assert other is not search
        assert other.k is not search.k
        other.k.value = 3
        assert search.k.value != 3
        other("hop")
    assert len(retriever.searches) == 3


# --- chains ----------------------------------------------------------------------------------------------------------

CHAIN = [
    Passage.of("Solaris", "A film about an ocean. Its director was Andrei Tarkovsky.", id="film"),
    Passage.of("Andrei Tarkovsky", "He came into the world at Zavrazhye.", id="director"),
    *(
        Passage.of(f"{town}", f"The director of a film was born in {town}.", id=town)
        for town in "Ulm Bonn Kiel".split()
    ),
]
QUESTION = "Where was the director of Solaris born?"
NO_TIES = ChainWeights(link=0.0, shared=0.0)


def set_weights(search: Search, weights: ChainWeights) -> None:
    for name, value in asdict(weights).items():
        search.chain[name].value = value


def test_the_values_reach_the_chain() -> None:
    retriever = ChainRetriever(PassagePool(CHAIN))
    search = Search(retriever, k=2)
    assert [hit.passage.id for hit in search(QUESTION)] == ["film", "director"]
    set_weights(search, NO_TIES)
    search.k.value, search.k1.value, search.b.value = 4, 2.5, 0.9
    found = search(QUESTION)
    assert found == ChainRetriever(PassagePool(CHAIN, 2.5, 0.9), NO_TIES).search(QUESTION, 4)
    assert found != ChainRetriever(PassagePool(CHAIN), NO_TIES).search(QUESTION, 4)
    assert "director" not in [hit.passage.id for hit in found]
    assert (retriever.weights, retriever.adaptive) == (ChainWeights(), False)
