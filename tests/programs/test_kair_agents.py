"""KAIR's competing agents, replies that are none, and the embedded engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.engines.lexical import LexicalEngine
from polyhop.programs import Kair
from polyhop.programs.kair import ALONE, ROLES
from polyhop.programs.trace import Parallel, Searched

from .kair_script import BORN, DIRECTED, FILM_SPAN, MAN_SPAN, POOL, known, play
from .scripted import QUESTION, Request, Script, scripted, steps

# --- several agents --------------------------------------------------------------------------------------------------


def by_focus(**replies: dict[str, Any]) -> Callable[[Request], dict[str, Any]]:
    """A reply for each focus, by its first word."""
    return lambda request: replies[request.inputs["focus"].split(":")[0]]


COMPETE: dict[str, Any] = {"agents": 2, "roles": True, "k": 1}


def compete(settings: dict[str, Any] | None = None, **replies: Any) -> tuple[Script, dspy.Prediction]:
    common: dict[str, Any] = {
        "querier": by_focus(entities={"queries": ["Leytonstone"]}, relations={"queries": ["Alfred Hitchcock"]}),
        "updater": by_focus(
            entities={"new_facts": [f"{DIRECTED} (1s2)"], "gaps": ["Who?", "Where?"]},
            relations={"new_facts": [f"{BORN} (2s2)"], "gaps": ["Where?"]},
        ),
        "filterer": {"spans": [MAN_SPAN, FILM_SPAN]},
    }
    return play(settings=COMPETE | (settings or {}), **(common | replies))


def test_of_competing_agents_the_one_with_the_fewest_gaps_writes_the_context() -> None:
    script, prediction = compete({"steps": 1})
    assert script.order[0] == "querier"  # the first asks the question; the second would only repeat it
    assert script.asked("querier")[0].inputs["focus"] == ROLES[1]
    assert script.asked("querier")[0].inputs["earlier"] == json.dumps([QUESTION])
    assert {step.query for step in steps(prediction, Searched)} == {QUESTION, "Alfred Hitchcock"}
    assert len(script.asked("updater")) == len(script.asked("checker")) == 2
    (request,) = script.asked("filterer")
    assert request.inputs["known"] == json.dumps([BORN])
    assert request.inputs["required"] == json.dumps(["Where?"])
    assert request.inputs["passages"].startswith("[2] Alfred Hitchcock")  # D_new is what the winner found
    assert "[1] " not in request.inputs["passages"]
    assert known(script) == [BORN]
    assert prediction.trace.lm_calls == 7
    assert prediction.trace.lm_calls_critical_path == 5  # querier, updater, checker, filterer, answerer
    assert sum(isinstance(step, Parallel) for step in prediction.trace.steps) == 2


def test_competing_agents_know_their_own_and_share_the_context() -> None:
    script, _ = compete({"steps": 2})
    seen = {
        request.inputs["focus"]: request.inputs
        for request in script.asked("querier")
        if request.inputs["known"] != "[]"
    }
    assert set(seen) == set(ROLES[:2])
    assert seen[ROLES[0]]["known"] == json.dumps([DIRECTED])
    assert seen[ROLES[0]]["earlier"] == json.dumps([QUESTION])
    assert seen[ROLES[0]]["required"] == json.dumps(["Who?", "Where?"])
    assert seen[ROLES[1]]["known"] == json.dumps([BORN])
    assert seen[ROLES[1]]["earlier"] == json.dumps([QUESTION, "Alfred Hitchcock"])
    assert seen[ROLES[0]]["evidence"] == seen[ROLES[1]]["evidence"] != "(none)"


def test_without_roles_all_agents_are_told_the_same_and_share_no_cached_reply() -> None:
    script = scripted(querier=[{"queries": ["album"], "diversity": 0.5}, {"queries": ["Hitchcock"], "diversity": 0.5}])
    program = Kair(k=1, agents=3, steps=1)
    with dspy.context(lm=dspy.LM("scripted-without-roles", engine=script), adapter=dspy.ChatAdapter()):
        program(question=QUESTION, pool=POOL)
        again = program(question=QUESTION, pool=POOL)  # all from DSPy's cache
    second, third = (request.inputs for request in script.asked("querier"))
    assert second == third
    assert second["focus"] == ALONE
    assert {step.query for step in steps(again, Searched)} == {QUESTION, "album", "Hitchcock"}


# --- replies that are none -------------------------------------------------------------------------------------------


# --- with the embedded engine ----------------------------------------------------------------------------------------

WORLD = [
    Passage.of("Solaris (1972 film)", sentences=["Solaris is a film directed by Andrei Tarkovsky.", "It is long."]),
    Passage.of("Andrei Tarkovsky", sentences=["Andrei Tarkovsky was a director.", "He was born in Zavrazhye."]),
    Passage.of("Zavrazhye", sentences=["Zavrazhye is a village on the Volga."]),
    Passage.of("Lake Solaris", sentences=["Lake Solaris is a lake where a director of parks was born in Canada."]),
    Passage.of("Volga", sentences=["The Volga flows through Russia."]),
]


def lexical(program: Kair) -> dspy.Prediction:
    with dspy.context(lm=dspy.LM("lexical", engine=LexicalEngine(), cache=False)):
        return program(question="Where was the director of Solaris (1972 film) born?", pool=WORLD)


@pytest.mark.parametrize("k", [1, 10])
@pytest.mark.parametrize("agents", [1, 3])
def test_the_lexical_engine_plays_all_agents(k: int, agents: int) -> None:
    program = Kair(k=k, agents=agents)
    program.moderated.value = True
    prediction = lexical(program)
    assert prediction.answer == "Zavrazhye"
    assert prediction.stop_reason == "complete"
    assert {item.text for item in prediction.evidence} >= {WORLD[0].sentences[0], WORLD[1].sentences[1]}
    assert "Lake Solaris" not in {item.passage.title for item in prediction.evidence}
    assert prediction.trace.searches >= (2 if k == 1 else 1)
