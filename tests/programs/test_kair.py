"""KAIR step by step: who is asked when, what each agent sees, what may enter K and D, and when it stops."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from polyhop.programs.kair import ALONE, KairState, nearest
from polyhop.programs.trace import Checked, Judged, Proposed, Required, Searched, Selected

from .kair_script import BORN, DIRECTED, GAP, known, play
from .scripted import ADAPTERS, QUESTION, Request, facts, steps

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
    # The facts are held against the passages that they cite, with the gaps that were open before.
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
        "count": "3",
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


@pytest.mark.parametrize("queries", [[], [QUESTION], ["", "  "]])
def test_no_new_query_ends_the_loop(queries: list[str]) -> None:
    script, prediction = play(querier={"queries": queries})
    assert prediction.stop_reason == "no new query"
    assert script.order == ["updater", "checker", "filterer", "querier", "answerer"]
    assert facts(prediction) == [("film", 1)]  # what was kept until then


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
    updater = {"new_facts": ["A. (1s1)", "B. (1s2)"], "gaps": [GAP]}
    script, prediction = play(updater=updater, checker=verdict, settings={"steps": 1})
    assert known(script) == entered
    assert steps(prediction, Required) == [Required((GAP,), known=("A.", "B."))]
    assert steps(prediction, Checked) == [Checked(tuple(entered), unsupported, (), irrelevant)]


def test_gaps_stay_open_if_the_fact_that_closed_them_is_not_supported() -> None:
    wrong = {"supported": [], "relevant": [1]}
    updater = {"new_facts": [f"{DIRECTED} (1s2)"], "gaps": []}
    script, prediction = play(updater=updater, checker=wrong, settings={"steps": 1})
    assert json.loads(script.asked("filterer")[0].inputs["required"]) == [QUESTION]
    assert prediction.stop_reason == "steps"
    # A true fact that merely is of no use reopens nothing.
    _, prediction = play(updater=updater, checker={"supported": [1], "relevant": []})
    assert prediction.stop_reason == "complete"


def test_what_is_known_is_not_learned_again() -> None:
    updater = {"new_facts": [f"{DIRECTED} (1s2)", "alfred hitchcock directed vertigo"], "gaps": [GAP, GAP, ""]}
    script, prediction = play(updater=updater, settings={"steps": 2})
    assert known(script) == [DIRECTED]
    assert len(script.asked("checker")) == 1
    first, second = steps(prediction, Required)
    assert first == Required((GAP,), (), (DIRECTED,), ("alfred hitchcock directed vertigo",))
    assert second == Required((GAP,), (), (), (DIRECTED, "alfred hitchcock directed vertigo"))


# --- what new passages contradict ------------------------------------------------------------------------------------

WRONG = "Dan directed Vertigo."
REVISED: dict[str, Any] = {
    "updater": [
        {"new_facts": [f"{WRONG} (1s2)"], "gaps": [GAP]},
        {"new_facts": [f"{DIRECTED} (2s1)"], "contradicted": [WRONG], "gaps": [GAP]},
    ],
    "settings": {"steps": 2},
}
FIRST = {"supported": [1], "relevant": [1]}


def test_a_contradicted_fact_is_revised() -> None:
    script, prediction = play(**REVISED, checker=[FIRST, FIRST | {"contradicted": [2]}])
    assert known(script) == [DIRECTED]
    request = script.asked("checker")[1]
    assert request.inputs["statements"] == json.dumps([f"1. {DIRECTED}", f"2. {WRONG}"])
    assert request.inputs["passages"].count("[") == 2  # what was kept and what is new, not only what is cited
    assert json.loads(script.asked("filterer")[1].inputs["known"]) == [DIRECTED]
    assert steps(prediction, Checked)[1] == Checked((DIRECTED,), (), (), (), (WRONG,))


def test_a_disputed_fact_stays_unless_the_checker_agrees() -> None:
    script, _ = play(**REVISED, checker=FIRST)
    assert known(script) == [WRONG, DIRECTED]
    script, _ = play(**REVISED, checker=[FIRST, FIRST | {"contradicted": [1]}])  # only what was known is dropped
    assert known(script) == [WRONG, DIRECTED]


def test_gaps_stay_open_if_a_fact_is_dropped_and_nothing_takes_its_place() -> None:
    updater = [
        {"new_facts": [f"{WRONG} (1s2)"], "gaps": [GAP]},
        {"new_facts": [], "contradicted": [WRONG, "Never known."], "gaps": []},
    ]
    dropped = {"supported": [], "relevant": [], "contradicted": [1]}
    script, prediction = play(updater=updater, checker=[FIRST, dropped], settings={"steps": 2})
    assert known(script) == []
    assert json.loads(script.asked("filterer")[1].inputs["required"]) == [GAP]
    assert prediction.stop_reason == "steps"
    assert steps(prediction, Required)[1].invalid == ("Never known.",)


# --- what the paper leaves to the agents ------------------------------------------------------------------------------


def test_the_agent_judges_what_is_supported() -> None:
    settings = {"k": 3, "steps": 1}
    updater = {"new_facts": [], "gaps": [GAP]}
    spans = {"spans": ["3s1", "3s2"], "supported": ["3s2", "1s1"]}
    _, prediction = play(filterer=spans, updater=updater, settings=settings)
    assert facts(prediction) == [("man", 1), ("man", 0)]
    (step,) = steps(prediction, Selected)
    assert step.flagged == (("man", 0),)


# --- h and rules (3), (4): what enters D -----------------------------------------------------------------------------


# --- rule (1): when it stops -----------------------------------------------------------------------------------------


def forever(kind: str) -> Callable[[Request], dict[str, Any]]:
    """Always something new."""
    turns = iter(range(1000))
    if kind == "querier":
        return lambda request: {"queries": [f"{'Hitchcock album Dan'.split()[next(turns) % 3]} {next(turns)}"]}
    return lambda request: {"new_facts": [f"Hitchcock is number {next(turns)}. (1s2)"], "gaps": [GAP]}


@pytest.mark.parametrize("limit", [1, 2, 6])
def test_the_steps_are_limited(limit: int) -> None:
    script, prediction = play(querier=forever("querier"), updater=forever("updater"), settings={"steps": limit})
    assert len(script.asked("updater")) == limit
    assert prediction.stop_reason == "steps"
    assert prediction.trace.lm_calls == 3 * limit + (limit - 1) + 1
    assert prediction.trace.searches == limit


def test_a_step_that_finds_and_teaches_nothing_new_is_the_last() -> None:
    updater = {"new_facts": [], "gaps": [GAP]}
    script, prediction = play(updater=updater, querier=forever("querier"), settings={"k": 3})
    assert prediction.stop_reason == "stable"
    assert len(script.asked("updater")) == 2  # the first replaced the question by the gap


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


def test_the_cosine_of_topic_words() -> None:
    assert nearest("Ann Lee Cork", ["Cork"]) == pytest.approx(1 / math.sqrt(3))
    assert nearest("Ann Lee Cork", ["Cork", "the Lee of Ann", "Dust"]) == pytest.approx(2 / math.sqrt(6))
    assert nearest("lived in Cork", ["living in Cork"]) == pytest.approx(1.0)  # stems
    assert nearest("Cork", []) == 0.0
    assert nearest("who", ["which"]) == 0.0
    assert nearest("the who", ["The Who"]) == 1.0  # no topic word: alike or not


@pytest.mark.parametrize(
    ("query", "alpha", "worth"),
    [("Ann Lee", 1.0, 0.0), ("Cork", 0.0, 1.0), ("Dust", 0.5, 0.5), ("Ann Cork", 0.25, 0.125 + 0.75 / math.sqrt(2))],
)
def test_the_worth_of_a_query(query: str, alpha: float, worth: float) -> None:
    state = KairState("Who?", "all", required=["Where is Cork?"], queries=["Ann Lee"])
    assert state.score(query, alpha) == pytest.approx(worth)
