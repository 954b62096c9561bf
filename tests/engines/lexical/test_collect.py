"""KAIR's agents as the lexical engine plays them, one by one, on a small world."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.programs.candidates import Candidates
from polyhop.signatures import (
    AssessEvidence,
    CheckFacts,
    FilterSpans,
    ProposeQueries,
    UpdateKnowledge,
)

FILM = Passage.of("Solaris (1972 film)", sentences=["Solaris is a film directed by Andrei Tarkovsky.", "It is long."])
MAN = Passage.of("Andrei Tarkovsky", sentences=["Andrei Tarkovsky was a director.", "He was born in Zavrazhye."])
LAKE = Passage.of("Lake Solaris", sentences=["Lake Solaris is a lake in Canada where a park director was born."])
QUESTION = "Where was the director of Solaris (1972 film) born?"
WHO, WHERE = "Who is the director of Solaris (1972 film)?", "Where was Andrei Tarkovsky born?"
DIRECTED, BORN = f"{WHO} Andrei Tarkovsky.", f"{WHERE} Zavrazhye."


pytestmark = pytest.mark.usefixtures("lexical")


def shown(*passages: Passage) -> Any:
    return Candidates(passages).show()


def update(known: list[str], required: list[str], *passages: Passage) -> dspy.Prediction:
    return dspy.Predict(UpdateKnowledge)(
        question=QUESTION, focus="all", known=known, required=required, passages=shown(*passages)
    )


def test_what_is_answered_becomes_a_fact_and_the_rest_a_gap() -> None:
    reply = update([], [QUESTION], FILM, LAKE)
    assert reply.new_facts[0] == f"{DIRECTED} (1s1)"
    assert f"{FILM.sentences[0]} (1s1)" in reply.new_facts  # the lines of the chain as they stand
    assert reply.gaps == [WHERE]


def test_what_is_known_is_put_into_the_next_gap() -> None:
    reply = update([DIRECTED], [WHERE], MAN, LAKE)
    assert reply.new_facts[0] == f"{BORN} (1s2)"
    assert reply.gaps == []
    assert update([DIRECTED, BORN], [], MAN).gaps == []


def propose(focus: str = "all", earlier: list[str] | None = None, count: int = 3, **state: Any) -> list[str]:
    state = {"known": [DIRECTED], "required": [WHERE]} | state
    reply = dspy.Predict(ProposeQueries)(
        question=QUESTION, focus=focus, count=count, earlier=earlier or [QUESTION], evidence=shown(), **state
    )
    queries: list[str] = reply.queries
    return queries


def test_queries_aim_at_the_gaps() -> None:
    assert propose()[:2] == ["Where was Andrei Tarkovsky born", "Andrei Tarkovsky"]
    assert len(propose()) == 3
    assert len(propose(count=1)) == 1
    assert propose(required=[WHERE, "When was #1 built?"])[0] == "Where was Andrei Tarkovsky born"
    assert propose(required=["Where was #1 born?"])[0] == "Where was Andrei Tarkovsky born"  # by what is known


def test_queries_follow_the_focus_and_are_new() -> None:
    assert propose("entities: who")[0] == "Andrei Tarkovsky"
    assert propose("constraints: when")[0].startswith("Where was the director of Solaris")
    asked = [QUESTION, "born Andrei Tarkovsky", "Andrei Tarkovsky"]
    assert propose(earlier=asked) == [f"{QUESTION.rstrip('?')} Andrei Tarkovsky"]
    assert propose(earlier=[*asked, propose(earlier=asked)[0]]) == []


def test_facts_are_checked_against_lines() -> None:
    reply = dspy.Predict(CheckFacts)(
        required=[QUESTION],
        passages=shown(FILM, MAN),
        statements=[
            f"1. {DIRECTED}",
            f"2. {FILM.sentences[0]}",
            "3. Solaris is a novel written by Stanislaw Lem in Poland.",
            "4. It is long.",
            "5. ",
        ],
    )
    assert reply.supported == [1, 2, 4]
    assert set(reply.relevant) >= {1, 2}
    assert not {4, 5} & set(reply.relevant)


def test_the_filter_copies_the_lines_of_the_chain() -> None:
    reply = dspy.Predict(FilterSpans)(
        question=QUESTION, known=[DIRECTED], required=[WHERE], passages=shown(LAKE, FILM, MAN)
    )
    assert set(reply.spans) == {f"2s1 {FILM.sentences[0]}", f"3s2 {MAN.sentences[1]}"}
    assert reply.supported == ["2s1"]


@pytest.mark.parametrize(
    ("passages", "sufficiency"), [((FILM, MAN), 1.0), ((FILM,), 0.5), ((), 0.0)], ids=["all", "half", "none"]
)
def test_the_moderator_counts_answered_sub_questions(passages: tuple[Passage, ...], sufficiency: float) -> None:
    reply = dspy.Predict(AssessEvidence)(question=QUESTION, evidence=shown(*passages))
    assert reply.sufficiency == pytest.approx(sufficiency)
