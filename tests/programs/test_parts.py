"""The thorough search: parts are searched for with the answers that earlier passages give."""

from __future__ import annotations

from collections.abc import Callable

import dspy
import numpy as np
import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Hit, Passage
from polyhop.data.pool import PassagePool
from polyhop.engines.lexical import LexicalEngine
from polyhop.engines.lexical.hops import Answer, Hop
from polyhop.programs import Naive
from polyhop.programs.parts import search_parts

from .scripted import answer, lm, scripted

QUESTION = "Where was the director of the film Kestrel born?"
FILM = Passage.of("Kestrel", sentences=["Kestrel is a film.", "It was directed by Ada Berg."], id="film")
WOMAN = Passage.of("Ada Berg", sentences=["Ada Berg was born in Aldea."], id="woman")
OTHERS = [Passage.of(f"Film {n}", sentences=[f"Film {n} is a film of a director."], id=f"other{n}") for n in range(12)]


def scripted_search(queries: list[str]) -> Callable[[str, int], list[Hit]]:
    """Finds what a query names; for the question itself the film, and others."""

    def search(query: str, count: int) -> list[Hit]:
        queries.append(query)
        found = [FILM, *OTHERS] if query == QUESTION else [WOMAN] if "Ada Berg" in query else [FILM]
        return [Hit(passage, 9.0, rank) for rank, passage in enumerate(found[:count], 1)]

    return search


def test_the_answer_of_a_part_is_put_into_the_next() -> None:
    queries = list[str]()
    hits = search_parts(scripted_search(queries), QUESTION, 5)
    assert queries[:2] == [QUESTION, "Who is the director of the film Kestrel?"]
    assert "Where was Ada Berg born?" in queries[2:]
    assert len(queries) == len(set(queries)) <= 5
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].passage == FILM
    (found,) = (hit for hit in hits if hit.passage == WOMAN)
    assert found.reason is not None
    assert found.reason.told({"film": "Kestrel"}) == "found for “Where was Ada Berg born?”, as Kestrel suggests"


def test_scores_are_reciprocal_ranks_weighed_by_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = (Answer("Ada Berg", 0.6), Answer("Otto Lind", 0.2))
    none = np.zeros(0, np.float32)
    hops = (Hop(none, none, answers), Hop(none, none, ()))
    monkeypatch.setattr("polyhop.programs.parts.read_hops", lambda parts, passages: hops)
    scores = {hit.passage.id: hit.score for hit in search_parts(scripted_search([]), QUESTION, 9)}
    assert scores["film"] == pytest.approx(1 + 0.35 + 0.35 * 0.2)  # of the question, its first part, and Otto Lind
    assert scores["other0"] == pytest.approx(1 / 2)
    assert scores["woman"] == pytest.approx(0.35 * 0.6)


@pytest.mark.parametrize("count", [1, 3, 13, 40])
def test_so_many_hits_as_the_search_has(count: int) -> None:
    hits = search_parts(scripted_search([]), QUESTION, count)
    assert len(hits) == min(count, 1 + len(OTHERS))
    assert len({hit.passage.id for hit in hits}) == len(hits)


def test_a_question_without_parts_is_searched_for_once() -> None:
    queries = list[str]()
    assert search_parts(scripted_search(queries), "Kestrel film", 2) == scripted_search([])("Kestrel film", 2)
    assert queries == ["Kestrel film"]


@pytest.mark.parametrize(
    ("effort", "beside_embedded", "beside_model"),
    [("auto", False, True), ("fast", False, False), ("thorough", True, True)],
)
def test_the_effort_follows_the_model_unless_it_is_set(
    effort: str, beside_embedded: bool, beside_model: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def decompose(question: str) -> list[str]:
        asked.append(question)
        return [question]

    monkeypatch.setattr("polyhop.programs.parts.decompose", decompose)
    program = Naive(ChainRetriever(PassagePool([FILM, WOMAN, *OTHERS])))
    program.search.effort.value = effort
    embedded = dspy.LM("lexical", engine=LexicalEngine(), cache=False)
    model = lm(scripted(answerer=answer("Aldea") | {"citations": []}))
    for each, expected in ((embedded, beside_embedded), (model, beside_model)):
        asked.clear()
        with dspy.context(lm=each):
            program(question=QUESTION)
        assert asked == [QUESTION] * expected
