"""PRISM step by step: who is asked when, what each agent sees, how the evidence grows and shrinks, when it stops."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest

from polyhop.programs import Prism
from polyhop.programs.trace import Added, Selected

from .scripted import ADAPTERS, ALBUM, FILM, MAN, QUESTION, Script, answer, facts, playing, scripted, steps

SUB_QUESTIONS = ["Who directed Vertigo?", "Where was #1 born?"]
POOL = [FILM, MAN, ALBUM]
# BM25 puts the film first, then the album; the numbers in prompts follow that order.


def play(
    adapter: Any = None, *, rounds: int = 3, stop: str = "rounds", select: bool = True, **replies: Any
) -> tuple[Script, dspy.Prediction]:
    program = Prism(rounds=rounds)
    program.stop.value, program.select.value = stop, select
    replies = {"analyzer": {"sub_questions": SUB_QUESTIONS}, "answerer": answer("Leytonstone")} | replies
    with playing(scripted(**replies), adapter) as script:
        prediction = program(question=QUESTION, pool=POOL)
    return script, prediction


# --- the walk-through ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_two_rounds_step_by_step(adapter: Any) -> None:
    script, prediction = play(
        adapter,
        selector=[{"keep": ["1s2", "2s1"]}, {"keep": ["1s2", "3s2"]}],
        adder=[{"add": ["3s2"]}, {"add": []}],
        rounds=2,
    )
    assert script.order == ["analyzer", "selector", "adder", "selector", "adder", "answerer"]
    assert {request.as_json for request in script.requests} == {isinstance(adapter, dspy.JSONAdapter)}

    assert script.asked("analyzer")[0].inputs == {"question": QUESTION}

    candidates = (
        "[1] Vertigo (film)\n1s1 Vertigo is a film.\n1s2 Its director was Alfred Hitchcock.\n"
        "[2] Vertigo (album)\n2s1 Vertigo is an album.\n2s2 It was produced by Dan.\n"
        "[3] Alfred Hitchcock\n3s1 Hitchcock made films.\n3s2 He came from Leytonstone."
    )
    task = {"question": QUESTION, "sub_questions": json.dumps(SUB_QUESTIONS), "candidates": candidates}
    first, second = script.asked("selector")
    assert first.inputs == {**task, "selected": "[]"}
    # Both agents see all candidates in every round: the Adder also what the Selector rejected.
    assert script.asked("adder")[0].inputs == {**task, "selected": '["1s2", "2s1"]'}
    assert second.inputs == {**task, "selected": '["1s2", "2s1", "3s2"]'}
    assert script.asked("adder")[1].inputs == {**task, "selected": '["1s2", "3s2"]'}  # 2s1 was dropped

    assert script.asked("answerer")[0].inputs == {
        "question": QUESTION,
        "evidence": "[1] Vertigo (film)\n1s2 Its director was Alfred Hitchcock.\n"
        "[3] Alfred Hitchcock\n3s2 He came from Leytonstone.",
    }

    assert prediction.answer == "Leytonstone"
    assert facts(prediction) == [("film", 1), ("man", 1)]
    assert [passage.id for passage in prediction.ranking] == ["film", "man", "album"]
    assert prediction.stop_reason == "rounds"
    assert (prediction.trace.lm_calls, prediction.trace.searches) == (6, 1)
    assert [record["step"] for record in prediction.trace.to_records()] == [
        "decomposed", "searched", "selected", "added", "selected", "added", "answered", "stopped",
    ]  # fmt: skip
    assert steps(prediction, Selected)[0] == Selected(1, (("film", 1), ("album", 0)))  # type: ignore[arg-type]
    assert steps(prediction, Added)[0] == Added(1, (("man", 1),))  # type: ignore[arg-type]


# --- when it stops ---------------------------------------------------------------------------------------------------


SELECTED = [["1s2"], ["3s2"], ["2s1"], ["2s1"], ["2s1"]]
ADDED = [["3s2"], [], ["1s1"], ["1s1"], ["1s1"]]


@pytest.mark.parametrize(
    ("stop", "selected", "added", "rounds", "reason", "evidence"),
    [
        ("rounds", [["1s2"]], [["3s2"]], 5, "rounds", ["film", "man"]),  # as published, also if nothing changes
        ("stable", [["1s2"]], [["3s2"]], 2, "stable", ["film", "man"]),
        ("stable", [[]], [[]], 1, "stable", []),
        ("stable", SELECTED, ADDED, 4, "stable", ["album", "film"]),  # rounds 2 and 3 exchange evidence
        ("gain", [["1s2"]], [[]], 1, "no gain", ["film"]),  # the Adder finds nothing that lacks
        ("gain", [["1s2"], ["2s1"]], [["3s2"], ["1s1"], ["3s2"]], 3, "no gain", ["album", "man"]),  # 3s2 is not new
        ("gain", SELECTED, ADDED, 2, "no gain", ["man"]),
    ],
)
def test_when_it_stops(
    stop: str, selected: list[list[str]], added: list[list[str]], rounds: int, reason: str, evidence: list[str]
) -> None:
    script, prediction = play(
        rounds=5, stop=stop, selector=[{"keep": ids} for ids in selected], adder=[{"add": ids} for ids in added]
    )
    assert script.order == ["analyzer", *["selector", "adder"] * rounds, "answerer"]
    assert prediction.stop_reason == reason
    assert [name for name, _ in facts(prediction)] == evidence


# --- the ablations of the paper --------------------------------------------------------------------------------------


def test_without_the_selector_the_candidates_are_kept() -> None:
    script, prediction = play(rounds=2, select=False, adder=[{"add": ["3s2"]}, {"add": ["3s1"]}])
    assert script.order == ["analyzer", "adder", "adder", "answerer"]
    assert script.asked("adder")[0].inputs["selected"] == '["1", "2", "3"]'
    assert facts(prediction) == [("film", None), ("album", None), ("man", None)]
