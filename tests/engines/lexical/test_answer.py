"""The lexical engine as PAR-RAG's agents, on a small world in which the right thing to do is plain."""

from __future__ import annotations

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.programs.candidates import Candidates
from polyhop.signatures import (
    AnswerDirectly,
    AnswerFromTrajectory,
    AnswerStep,
    JudgeAccuracy,
    JudgeAttribution,
    NumberedPassages,
    PlanSteps,
    RefineQuestion,
    ReviseAnswer,
)

WORLD = Candidates(
    [
        Passage.of("Solaris", sentences=["Solaris is a long film.", "Solaris was directed by Andrei Tarkovsky."]),
        Passage.of("Andrei Tarkovsky", sentences=["He was a director.", "Andrei Tarkovsky was born in Zavrazhye."]),
        Passage.of("Vertigo", sentences=["Vertigo was directed by Alfred Hitchcock."]),
        Passage.of("Zavrazhye", sentences=["Zavrazhye is a village on the Volga."]),
        Passage.of("Alfred Hitchcock", sentences=["Alfred Hitchcock was born in Leytonstone in 1899."]),
    ]
)
DIRECTOR = "Who directed Solaris?"


def lines(*ids: str) -> NumberedPassages:
    return WORLD.show(WORLD.resolve(ids)[0])


def pages(*numbers: int) -> NumberedPassages:
    return lines(*map(str, numbers))


pytestmark = pytest.mark.usefixtures("lexical")


def test_a_plan_says_what_each_step_needs() -> None:
    steps = dspy.Predict(PlanSteps)(question="Who was born first, the director of Solaris or the director of Vertigo?")
    assert [step["thought"] for step in steps.steps] == [
        "Needs nothing before it.",
        "Needs nothing before it.",
        "Needs the answer of step 1.",
        "Needs the answer of step 2.",
    ]
    assert "Solaris" in steps.steps[0]["question"]
    assert "#1" in steps.steps[2]["question"]


def test_known_answers_take_the_place_of_references() -> None:
    reply = dspy.Predict(RefineQuestion)(
        question="Q?",
        trajectory=["#1 Who directed Solaris? -> Andrei Tarkovsky", "#2 Who sang it? -> unknown"],
        next_question="Is #1 older than #2?",
    )
    assert reply.refined_question == "Is Andrei Tarkovsky older than #2?"


@pytest.mark.parametrize(
    ("question", "answer", "cited"),
    [
        (DIRECTOR, "Andrei Tarkovsky", ["1"]),
        ("Where was Andrei Tarkovsky born?", "Zavrazhye", ["2"]),
        ("Who directed Stalker?", "unknown", []),
    ],
)
def test_a_step_is_answered_and_cites_its_line(question: str, answer: str, cited: list[str]) -> None:
    reply = dspy.Predict(AnswerStep)(question=question, sources=pages(1, 2, 3, 4))
    assert (reply.answer, reply.cited) == (answer, cited)


def test_the_accuracy_of_what_another_reading_gives_is_higher() -> None:
    judge = dspy.Predict(JudgeAccuracy)
    right, wrong, absent = (
        judge(question=DIRECTOR, evidence=pages(1, 2, 3), answer=answer).accuracy
        for answer in ("Andrei Tarkovsky", "Alfred Hitchcock", "Nobody Known")
    )
    assert right > 0.4 > wrong >= absent == 0.0


@pytest.mark.parametrize(
    ("evidence", "answer", "verdict"),
    [
        (("1s2",), "Andrei Tarkovsky", "attributable"),
        (("1s2",), "Steven Soderbergh", "contradictory"),
        (("1s1",), "Andrei Tarkovsky", "extrapolatory"),
        (("2s1", "2s2"), "Andrei Tarkovsky", "extrapolatory"),
    ],
)
def test_attribution(evidence: tuple[str, ...], answer: str, verdict: str) -> None:
    reply = dspy.Predict(JudgeAttribution)(question=DIRECTOR, evidence=lines(*evidence), answer=answer)
    assert reply.attribution == verdict


@pytest.mark.parametrize(
    ("numbers", "draft", "decision", "answer"),
    [
        ((3, 1), "unknown", "revised", "Andrei Tarkovsky"),  # a source was missing
        ((3, 1), "Alfred Hitchcock", "revised", "Andrei Tarkovsky"),  # another reading is clearly surer
        ((3, 1), "Andrei Tarkovsky", "unconfident", "Andrei Tarkovsky"),  # it stands
        ((3, 4), "Alfred Hitchcock", "unconfident", "Alfred Hitchcock"),  # nothing better
    ],
)
def test_a_draft_is_revised_where_the_sources_tell_better(
    numbers: tuple[int, ...], draft: str, decision: str, answer: str
) -> None:
    reply = dspy.Predict(ReviseAnswer)(question=DIRECTOR, sources=pages(*numbers), draft=draft)
    assert (reply.decision, reply.answer) == (decision, answer)
    assert reply.cited == (["1"] if decision == "revised" else [])


@pytest.mark.parametrize(
    ("question", "trajectory", "evidence", "answer"),
    [
        (
            "Were the directors of Solaris and Vertigo born in the same place?",
            ["#1 Where was Andrei Tarkovsky born? -> Zavrazhye", "#2 Where was Alfred Hitchcock born? -> Leytonstone"],
            ("2s2", "5s1"),
            "no",
        ),
        ("Where was Napoleon born?", ["#1 Where was Napoleon born? -> unknown"], (), "unknown"),
    ],
)
def test_the_answer_is_concluded_from_the_steps(
    question: str, trajectory: list[str], evidence: tuple[str, ...], answer: str
) -> None:
    reply = dspy.Predict(AnswerFromTrajectory)(question=question, trajectory=trajectory, evidence=lines(*evidence))
    assert reply.answer == answer
    assert all(step.partition(" ")[2].split(" -> ")[0] in reply.reasoning for step in trajectory)


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Okay, thank you so much for your help!", "You are welcome."),
        ("good morning everyone", "Hello!"),
        ("see you later", "Goodbye!"),
        ("How are you?", "I am well, thank you."),
        ("Who wrote the song Thank You?", "unknown"),
        ("Hello, who directed Vertigo?", "unknown"),
        ("Good Night, and Good Luck", "unknown"),
    ],
)
def test_small_talk_is_answered_and_of_the_world_nothing_is_known(text: str, reply: str) -> None:
    said = dspy.Predict(AnswerDirectly)(question=text)
    assert (said.answer, said.confidence) == (reply, float(reply != "unknown"))
