"""KAIR: one question in two steps, with other replies of its agents, and several agents."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest

from polyhop.programs import Kair
from polyhop.programs.kair import ALONE, ROLES
from polyhop.programs.trace import Checked, Judged, Parallel, Proposed, Required, Searched

from .scripted import ADAPTERS, ALBUM, FILM, MAN, QUESTION, Script, answer, facts, playing, scripted, steps

POOL = [FILM, MAN, ALBUM]
DIRECTED, BORN = "Alfred Hitchcock directed Vertigo.", "Alfred Hitchcock came from Leytonstone."
GAP = "Where was Alfred Hitchcock born?"
WALK: dict[str, Any] = {
    "querier": {"queries": [QUESTION, "Vertigo album", "Alfred Hitchcock born", "Hitchcock", "Leytonstone"]},
    "updater": [
        {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": [GAP]},
        {"new_facts": [f"{BORN} (2s2)"], "gaps": []},
    ],
    "checker": {"supported": [1], "relevant": [1]},
    "filterer": [{"spans": ["1s2"]}, {"spans": ["2s2", "1s2"]}],
    "answerer": answer("Leytonstone"),
}


def play(
    adapter: Any = None,
    *,
    settings: dict[str, Any] | None = None,
    **replies: Any,
) -> tuple[Script, dspy.Prediction]:
    """The walk-through below, with other replies; one passage a search, so that the chain takes two steps."""
    program = Kair(k=1)
    for name, value in (settings or {}).items():
        getattr(program, name).value = value
    with playing(scripted(**(WALK | replies)), adapter) as script:
        prediction = program(question=QUESTION, pool=POOL)
    assert prediction.trace.lm_calls == len(script.requests)
    return script, prediction


def known(script: Script) -> list[str]:
    """What the filter of the last step was told is known."""
    texts: list[str] = json.loads(script.asked("filterer")[-1].inputs["known"])
    return texts


# --- the walk-through ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_two_steps_one_after_the_other(adapter: Any) -> None:
    script, prediction = play(adapter)
    read = ["updater", "checker", "filterer"]
    assert script.order == [*read, "querier", *read, "answerer"]

    film = "[1] Vertigo (film)\n1s1 Vertigo is a film.\n1s2 Its director was Alfred Hitchcock."
    man = "[2] Alfred Hitchcock\n2s1 Hitchcock made films.\n2s2 He came from Leytonstone."
    kept = "[1] Vertigo (film)\n1s2 Its director was Alfred Hitchcock."
    first, second = (request.inputs for request in script.asked("updater"))
    assert first == {
        "question": QUESTION,
        "focus": ALONE,
        "known": "[]",
        "required": json.dumps([QUESTION]),
        "passages": film,
    }
    assert second == first | {
        "known": json.dumps([DIRECTED]),
        "required": json.dumps([GAP]),
        "passages": f"{kept}\n{man}",
    }
    # Facts are checked against what they cite, with the gaps that were open before; DIRECTED is not like BORN.
    assert [request.inputs for request in script.asked("checker")] == [
        {"required": json.dumps([QUESTION]), "passages": film, "statements": json.dumps([f"1. {DIRECTED}"])},
        {"required": json.dumps([GAP]), "passages": man, "statements": json.dumps([f"1. {BORN}"])},
    ]
    # The filter goes by the new knowledge: g comes before h.
    first, second = (request.inputs for request in script.asked("filterer"))
    state = {"known": json.dumps([DIRECTED]), "required": json.dumps([GAP])}
    assert first == {"question": QUESTION, **state, "passages": film}
    assert second["known"] == json.dumps([DIRECTED, BORN])
    assert second["required"] == "[]"
    assert second["passages"] == f"{kept}\n{man}"
    assert script.asked("querier")[0].inputs == {
        "question": QUESTION,
        "focus": ALONE,
        **state,
        "earlier": json.dumps([QUESTION]),
        "evidence": kept,
    }
    assert script.asked("answerer")[0].inputs == {
        "question": QUESTION,
        "evidence": f"[2] Alfred Hitchcock\n2s2 He came from Leytonstone.\n{kept}",
    }
    assert (prediction.answer, prediction.confidence) == ("Leytonstone", 0.9)
    assert facts(prediction) == [("man", 1), ("film", 1)]
    assert [passage.id for passage in prediction.ranking] == ["man", "film"]
    assert prediction.stop_reason == "complete"
    kinds = [record["step"] for record in prediction.trace.to_records()]
    learned = ["searched", "required", "checked", "selected"]
    assert kinds == [*learned, "proposed", *learned, "answered", "stopped"]
    assert prediction.trace.lm_calls == prediction.trace.lm_calls_critical_path == 8


# --- f and rule (2): which query is asked ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "query"), [(0.5, "Alfred Hitchcock born"), (0.0, "Alfred Hitchcock born"), (1.0, "Dan")]
)
def test_the_query_that_is_most_diverse_and_most_relevant_is_asked(alpha: float, query: str) -> None:
    proposed = {"queries": ["director of Vertigo", "Dan", "Alfred Hitchcock born"]}
    _, prediction = play(querier=proposed | {"diversity": alpha})
    assert steps(prediction, Searched)[1].query == query
    (step,) = steps(prediction, Proposed)
    assert step.queries[0][0] == query
    assert [worth for _, worth in step.queries] == sorted((worth for _, worth in step.queries), reverse=True)
    assert step.invalid == ()


# --- g and rule (5): what enters K and R -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "entered", "unsupported", "irrelevant"),
    [
        ({"supported": [1, 2], "relevant": [1, 2]}, ["A.", "B."], (), ()),
        ({"supported": [2], "relevant": [1, 2]}, ["B."], ("A.",), ()),
        ({"supported": [1, 2], "relevant": [1]}, ["A."], (), ("B.",)),
        ({"supported": [1], "relevant": [2]}, [], ("B.",), ("A.",)),
        ({"supported": [], "relevant": []}, [], ("A.", "B."), ()),
    ],
)
def test_only_facts_that_are_supported_and_relevant_are_known(
    verdict: Any, entered: list[str], unsupported: tuple[str, ...], irrelevant: tuple[str, ...]
) -> None:
    updater = {"new_facts": ["A. (1s1)", "B. (1s2)", "a (1s2)"], "gaps": [GAP]}
    script, prediction = play(updater=updater, checker=verdict, settings={"steps": 1})
    assert known(script) == entered
    assert steps(prediction, Required) == [Required((GAP,), known=("A.", "B."), invalid=("a",))]
    assert steps(prediction, Checked) == [Checked(tuple(entered), unsupported, (), irrelevant)]


# --- what new passages contradict ------------------------------------------------------------------------------------

WRONG = "Dan directed Vertigo."
REVISED: dict[str, Any] = {
    "updater": [
        {"new_facts": [f"{WRONG} (1s2)"], "gaps": [GAP]},
        {"new_facts": [f"{DIRECTED} (2s1)"], "gaps": [GAP]},
    ],
    "settings": {"steps": 2},
}
FIRST = {"supported": [1], "relevant": [1]}


def test_a_contradicted_fact_is_revised() -> None:
    script, prediction = play(**REVISED, checker=[FIRST, FIRST | {"contradicted": [2]}])
    assert known(script) == [DIRECTED]
    request = script.asked("checker")[1]
    assert request.inputs["statements"] == json.dumps([f"1. {DIRECTED}", f"2. {WRONG}"])
    assert request.inputs["passages"].count("[") == 2  # what the new fact cites, and what the known one cites
    assert json.loads(script.asked("filterer")[1].inputs["known"]) == [DIRECTED]
    assert steps(prediction, Checked)[1] == Checked((DIRECTED,), (), (), (), (WRONG,))


@pytest.mark.parametrize(
    "verdict",
    [
        FIRST,
        FIRST | {"contradicted": [1]},  # only what was known is dropped
        FIRST | {"supported": [1, 2], "contradicted": [2]},  # of two verdicts the better one counts
    ],
)
def test_a_known_fact_stays_unless_the_passages_contradict_it(verdict: dict[str, Any]) -> None:
    script, _ = play(**REVISED, checker=[FIRST, verdict])
    assert known(script) == [WRONG, DIRECTED]


def test_gaps_stay_open_if_a_fact_is_dropped_and_nothing_takes_its_place() -> None:
    updater = [
        {"new_facts": [f"{WRONG} (1s2)"], "gaps": [GAP]},
        {"new_facts": [f"{DIRECTED} (2s1)"], "gaps": []},
    ]
    dropped = {"supported": [], "relevant": [], "contradicted": [2]}
    script, prediction = play(updater=updater, checker=[FIRST, dropped], settings={"steps": 2})
    assert known(script) == []
    assert json.loads(script.asked("filterer")[1].inputs["required"]) == [GAP]
    assert prediction.stop_reason == "steps"


# --- rule (1): when it stops -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 6])
def test_the_steps_are_limited(limit: int) -> None:
    turns = iter(range(1000))  # always something new
    script, prediction = play(
        querier=lambda request: {"queries": [f"{'Hitchcock album Dan'.split()[next(turns) % 3]} {next(turns)}"]},
        updater=lambda request: {"new_facts": [f"Hitchcock is number {next(turns)}. (1s2)"], "gaps": [GAP]},
        settings={"steps": limit},
    )
    assert len(script.asked("updater")) == limit
    assert prediction.stop_reason == "steps"
    assert prediction.trace.lm_calls == 3 * limit + (limit - 1) + 1
    assert prediction.trace.searches == prediction.trace.cost_units == limit


@pytest.mark.parametrize(
    ("score", "enough", "stop", "asked"),
    [
        (0.75, 0.75, "sufficient", 1),
        ("0.7", 0.75, "complete", 1),
        (80, 0.75, "sufficient", 1),
        (0.5, 0.4, "sufficient", 1),
        (0.8, 0.9, "complete", 1),
    ],
)
def test_the_moderator_may_stop_it(score: Any, enough: float, stop: str, asked: int) -> None:
    settings = {"moderated": True, "sufficiency": enough}
    script, prediction = play(moderator={"sufficiency": score}, settings=settings)
    assert prediction.stop_reason == stop
    assert len(script.asked("moderator")) == asked  # not where nothing is required any more
    kept = "[1] Vertigo (film)\n1s2 Its director was Alfred Hitchcock."
    assert script.asked("moderator")[0].inputs == {"question": QUESTION, "evidence": kept}
    assert [step.aspect for step in steps(prediction, Judged)] == ["sufficiency"]


# --- several agents --------------------------------------------------------------------------------------------------


def test_of_competing_agents_the_one_with_the_fewest_gaps_writes_the_context() -> None:
    learned = {
        "entities": {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": ["Who?", "Where?"]},
        "relations": {"new_facts": [f"{BORN} (2s2)"], "gaps": ["Where?"]},
    }
    script, prediction = play(
        settings={"agents": 2, "roles": True, "steps": 1},
        querier={"queries": ["Alfred Hitchcock"]},
        updater=lambda request: learned[request.inputs["focus"].split(":")[0]],
        filterer={"spans": ["2s2", "1s2"]},
    )
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
    assert prediction.trace.cost_units == 2  # one step of two agents
    assert prediction.trace.lm_calls_critical_path == 5  # querier, updater, checker, filterer, answerer
    assert sum(isinstance(step, Parallel) for step in prediction.trace.steps) == 2
