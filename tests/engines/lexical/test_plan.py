"""The planning skills: C-3PO's agents and IRCoT's reasoner."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.passages import Passage
from polyhop.programs.candidates import Candidates
from polyhop.signatures import (
    DecideNext,
    FilterForObjective,
    ReasonOn,
    RouteQuestion,
)

from .play import play

WORLD = [
    Passage.of(
        "Solaris (1972 film)", sentences=["Solaris is a Soviet film directed by Andrei Tarkovsky.", "It is long."]
    ),
    Passage.of(
        "Andrei Tarkovsky",
        sentences=["Andrei Tarkovsky (4 April 1932 – 29 December 1986) was a director.", "He was born in Zavrazhye."],
    ),
    Passage.of("Lake Baikal", sentences=["Lake Baikal is a lake in Siberia."]),
]
QUESTION = "Where was the director of Solaris (1972 film) born?"
ROADMAP = ["Who is the director of Solaris (1972 film)?", "Where was #1 born?"]


def show(*numbers: int) -> str:
    rendered = Candidates(WORLD).show().format()
    blocks = {n: f"[{n}]{block}" for n, block in enumerate(rendered.split("[")[1:], 1) for block in [block[2:]]}
    return "\n".join(blocks[n].strip() for n in numbers) or "(none)"


@pytest.mark.parametrize(
    ("question", "route"),
    [
        ("Thank you!", "direct"),
        ("When did Andrei Tarkovsky die?", "single"),
        ("who painted the starry night", "single"),
        (QUESTION, "plan"),
        ("Which film came out first, Solaris or Stalker?", "plan"),
        ("Who is the paternal grandfather of Andrei Tarkovsky?", "plan"),
        ("Who painted the ceiling of the chapel in which popes are elected by the cardinals?", "plan"),
    ],
)
def test_routes(question: str, route: str) -> None:
    reply = play(RouteQuestion, question=question)
    assert reply == {"route": route, "query": question if route == "single" else ""}


@pytest.mark.parametrize(
    ("goal", "shown", "useful"),
    [
        ("Where was Andrei Tarkovsky born?", (1, 2, 3), ["2"]),
        ("Who is the director of Solaris (1972 film)?", (1, 2, 3), ["1"]),
        ("Where was Andrei Tarkovsky born?", (3,), []),
        ("Where was Andrei Tarkovsky born?", (), []),
    ],
)
def test_the_filter_keeps_the_passage_of_a_sub_goal(goal: str, shown: tuple[int, ...], useful: list[str]) -> None:
    reply = play(FilterForObjective, question=QUESTION, objective=goal, passages=show(*shown))
    assert reply["useful"] == useful


def decide(shown: tuple[int, ...], *queries: str) -> dict[str, Any]:
    return play(DecideNext, question=QUESTION, roadmap=ROADMAP, passages=show(*shown), queries=list(queries))


def test_the_decision_maker_asks_the_question_and_then_each_open_sub_goal_once() -> None:
    first = decide(())
    assert (first["action"], first["query"]) == ("retrieve", QUESTION)
    asked = f'"{QUESTION}" - nothing useful'
    second = decide((), asked)
    assert (second["action"], second["query"]) == ("retrieve", ROADMAP[0])
    assert second["thought"].endswith(ROADMAP[0])
    assert decide((), asked, f'"{ROADMAP[0]}" - no results')["action"] == "answer"
    assert decide((1, 2), asked) == {
        "thought": "All that can be found has been found.",
        "action": "answer",
        "query": "",
    }


def reason(shown: tuple[int, ...], *thoughts: str, question: str = QUESTION) -> str:
    said: str = play(ReasonOn, question=question, passages=show(*shown), thoughts=list(thoughts))["next_thought"]
    return said


def test_the_reasoner_states_one_answer_after_the_other() -> None:
    first = reason((1, 2, 3))
    assert first == "The director of Solaris (1972 film) is Andrei Tarkovsky."
    second = reason((1, 2, 3), first)
    assert second == "Andrei Tarkovsky was born in Zavrazhye."
    assert reason((1, 2, 3), first, second) == "So the answer is: Zavrazhye."
    missing = reason((3,))
    assert missing == "It is missing here: Who is the director of Solaris (1972 film)."
    assert reason((3,), missing).startswith("So the answer is: ")
