"""IRCoT step by step: what is searched for, what the reasoner sees, which sentence counts, when the chain ends."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.programs import IRCoT
from polyhop.programs.trace import Decided, Searched

from .scripted import (
    ADAPTERS,
    ALBUM,
    FILM,
    MAN,
    QUESTION,
    Reply,
    Request,
    Script,
    answer,
    playing,
    scripted,
    steps,
    whole_passages,
)

POOL = [
    FILM,
    MAN,
    ALBUM,
    Passage.of("Leytonstone", sentences=["Leytonstone is an area."], id="place"),
    Passage.of("Dan", sentences=["Dan sings."], id="dan"),
]
DIRECTOR = "The director of Vertigo is Alfred Hitchcock."
BIRTH = "Hitchcock came from Leytonstone."
DONE = "So the answer is: Leytonstone."


def play(
    *thoughts: str | Reply, adapter: Any = None, pool: Any = None, answerer: Any = None, **settings: Any
) -> tuple[Script, dspy.Prediction]:
    said: list[Reply] = [{"next_thought": thought} if isinstance(thought, str) else thought for thought in thoughts]
    script = scripted(reasoner=said, answerer=answerer or answer("Leytonstone"))
    with playing(script, adapter):
        prediction = IRCoT(**{"k": 2} | settings)(question=QUESTION, pool=POOL if pool is None else pool)
    assert prediction.trace.lm_calls == len(script.requests)  # every call is a step
    return script, prediction


def collected(request: Request) -> list[str]:
    return [line.split(" ", 1)[1] for line in request.inputs["passages"].splitlines() if line.startswith("[")]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_step_by_step(adapter: Any) -> None:
    script, prediction = play(DIRECTOR, BIRTH, DONE, adapter=adapter)
    assert script.order == ["reasoner"] * 3 + ["answerer"]
    assert [step.query for step in steps(prediction, Searched)] == [QUESTION, DIRECTOR, BIRTH]
    first, second, third = script.asked("reasoner")
    assert first.inputs == {
        "question": QUESTION,
        "passages": "[1] Vertigo (film)\n1s1 Vertigo is a film.\n1s2 Its director was Alfred Hitchcock.\n"
        "[2] Vertigo (album)\n2s1 Vertigo is an album.\n2s2 It was produced by Dan.",
        "thoughts": "[]",
    }
    assert collected(second) == ["Vertigo (film)", "Vertigo (album)", "Alfred Hitchcock"]  # under the same numbers
    assert second.inputs["thoughts"] == json.dumps([DIRECTOR])
    assert collected(third)[3:] == ["Leytonstone"]
    assert third.inputs["thoughts"] == json.dumps([DIRECTOR, BIRTH])

    # A fresh reader: it sees what was collected and nothing of the chain.
    assert script.asked("answerer")[0].inputs == {"question": QUESTION, "passages": third.inputs["passages"]}
    assert whole_passages(prediction) == ["film", "album", "man", "place"]  # all that was collected, as found
    assert [passage.id for passage in prediction.ranking] == whole_passages(prediction)
    assert (prediction.answer, prediction.stop_reason) == ("Leytonstone", "answered")
    assert (prediction.trace.lm_calls, prediction.trace.lm_calls_critical_path, prediction.trace.searches) == (4, 4, 3)
    assert [record["step"] for record in prediction.trace.to_records()] == [
        "searched", "decided", "searched", "decided", "searched", "decided", "answered", "stopped",
    ]  # fmt: skip


def test_only_the_first_new_sentence_counts() -> None:
    script, prediction = play(f"{DIRECTOR} {BIRTH} {DONE}", f"{DIRECTOR} {BIRTH} {DONE}", DONE)
    assert steps(prediction, Decided) == [
        Decided("think", "", DIRECTOR, (BIRTH, DONE)),
        Decided("think", "", BIRTH, (DIRECTOR, DONE)),  # the first is not new any more
        Decided("think", "", DONE),
    ]
    assert prediction.trace.dropped == 4
    assert json.loads(script.asked("reasoner")[2].inputs["thoughts"]) == [DIRECTOR, BIRTH]


@pytest.mark.parametrize("again", [DIRECTOR, "the director of Vertigo is Alfred Hitchcock", "", "..."])
def test_a_reply_with_nothing_new_ends_the_chain(again: str) -> None:
    script, prediction = play(DIRECTOR, again)
    assert script.order == ["reasoner", "reasoner", "answerer"]
    assert prediction.stop_reason == "nothing new"
    assert steps(prediction, Decided)[1].thought == ""
    assert prediction.trace.searches == 2
