"""First-stage retrieval: the own pool before the retriever, parameters that arrive, copies that share the index."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Hit, Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import Naive, Prism, Trace
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

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [self.search(query, k) for query in queries]


class Plain:
    """A retriever that knows nothing of BM25."""

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        return [Hit(passage, 1.0, rank) for rank, passage in enumerate(PASSAGES[offset : offset + k], offset + 1)]

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [self.search(query, k) for query in queries]


def test_k_k1_and_b_reach_the_retriever() -> None:
    retriever, trace = Recorder(), Trace()
    search = Search(retriever, k=7)
    search.k1.value, search.b.value = 1.7, 0.2
    search("hop", None, trace)
    assert retriever.views == [(1.7, 0.2)]
    assert retriever.searches == [("hop", 7, 0)]
    search.k.value = 3
    search("hop", None, trace)
    assert retriever.searches[1] == ("hop", 3, 0)
    assert trace.searches == 2


def test_k1_and_b_change_the_scores_of_an_own_pool() -> None:
    search, trace = Search(k=5), Trace()
    before = search("hop", PASSAGES, trace)
    search.k1.value, search.b.value = 2.9, 1.0
    after = search("hop", PASSAGES, trace)
    assert [hit.score for hit in before] == [hit.score for hit in PassagePool(PASSAGES).search("hop", 5)]
    assert [hit.score for hit in after] == [hit.score for hit in PassagePool(PASSAGES, 2.9, 1.0).search("hop", 5)]
    assert before != after


def test_any_retriever_will_do() -> None:
    assert [hit.passage.id for hit in Search(Plain(), k=2)("hop", None, Trace())] == ["p1", "p2"]


def test_the_own_pool_goes_before_the_retriever() -> None:
    retriever, trace = Recorder(), Trace()
    search = Search(retriever)
    assert [hit.passage.id for hit in search("hop", PASSAGES[1:2], trace)] == ["p2"]
    assert search("hop", [], trace) == []
    assert retriever.searches == []


def test_the_trace_tells_what_was_found() -> None:
    trace = Trace()
    hits = Search(k=2)("hop", PASSAGES, trace)
    assert trace.steps[0].found == tuple((hit.passage.id, hit.passage.title, hit.score) for hit in hits)  # type: ignore[union-attr]
    assert trace.steps[0].query == "hop"  # type: ignore[union-attr]


def test_without_anything_to_search_the_message_says_what_to_do() -> None:
    with pytest.raises(PolyhopError, match=r"pass the question's own passages as pool=\[\.\.\.\]"):
        Search()("hop", None, Trace())


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
        other("hop", None, Trace())
    assert len(retriever.searches) == 3


def test_the_retriever_is_no_state(tmp_path: Path) -> None:
    program = Prism(Recorder())
    program.save(tmp_path / "x.json")
    assert "retriever" not in (tmp_path / "x.json").read_text()
    other = Prism(PassagePool(PASSAGES))
    other.load(tmp_path / "x.json")
    assert isinstance(other.search.retriever, PassagePool)


def test_the_settings_of_the_retriever_are_where_the_tunables_start() -> None:
    program = Naive(PassagePool(PASSAGES, k1=2.5, b=1.0))
    assert (program.search.k1.value, program.search.b.value) == (2.5, 1.0)


def test_a_pool_may_be_a_pool() -> None:
    assert Search()("hop", PassagePool(PASSAGES), Trace())[0].passage == Search()("hop", PASSAGES, Trace())[0].passage


@pytest.mark.parametrize("pool", [["text"], [{"title": "T", "text": "t"}]])
def test_a_pool_of_something_else_says_how_to_make_passages(pool: list[object]) -> None:
    with pytest.raises(PolyhopError, match=r"Passage\.of"):
        Search()("hop", pool, Trace())
