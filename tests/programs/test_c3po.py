"""C-3PO step by step: which route a question takes, what each agent sees, what is collected, when it answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.engines.models import assign_models, roles
from polyhop.engines.replies import ModelError
from polyhop.programs import C3PO
from polyhop.programs.trace import Decided, Searched, Selected, StepAnswered
from polyhop.programs.tunable import tunables

from .scripted import (
    ADAPTERS,
    ALBUM,
    FILM,
    MAN,
    QUESTION,
    Request,
    Script,
    answer,
    playing,
    scripted,
    steps,
    whole_passages,
)

ROADMAP = ["Who directed Vertigo?", "Where was #1 born?"]
POOL = [FILM, MAN, ALBUM]
FILM_SHOWN = "[1] Vertigo (film)\n1s1 Vertigo is a film.\n1s2 Its director was Alfred Hitchcock."
ENOUGH = {"thought": "All is known.", "action": "answer", "query": ""}


def search_for(query: str, thought: str = "") -> dict[str, Any]:
    return {"thought": thought or f"Find: {query}", "action": "retrieve", "query": query}


def keep(*ids: Any) -> dict[str, Any]:
    return {"thoughts": "1: tells.\n2: does not.", "useful": list(ids)}


def play(
    adapter: Any = None,
    *,
    question: str = QUESTION,
    pool: Any = None,
    tuned: Any = None,
    set: dict[str, Any] | None = None,
    **replies: Any,
) -> tuple[Script, dspy.Prediction]:
    replies = {"roadmap": {"roadmap": ROADMAP}, "answerer": answer("Leytonstone")} | replies
    program = C3PO(**tuned or {})
    for name, value in (set or {}).items():
        tunables(program)[name].value = value
    with playing(scripted(**replies), adapter) as script:
        prediction = program(question=question, pool=POOL if pool is None else pool)
    assert prediction.trace.lm_calls == len(script.requests)  # every call is a step
    return script, prediction


def queries(request: Request) -> list[str]:
    listed: list[str] = json.loads(request.inputs["queries"])
    return listed


# --- the three routes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_without_retrieval(adapter: Any) -> None:
    script, prediction = play(
        adapter, question="Thank you!", router={"route": "direct", "query": ""}, answerer=answer("You are welcome.", 1)
    )
    assert script.order == ["router", "answerer"]
    assert [request.inputs for request in script.requests] == [{"question": "Thank you!"}] * 2
    assert (prediction.answer, prediction.stop_reason) == ("You are welcome", "no retrieval")
    assert (prediction.evidence, prediction.ranking, prediction.trace.searches) == ((), (), 0)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_single_pass(adapter: Any) -> None:
    script, prediction = play(
        adapter, router={"route": "single", "query": "'director of Vertigo'"}, filter=keep("1"), tuned={"k": 2}
    )
    assert script.order == ["router", "filter", "answerer"]
    album = "\n[2] Vertigo (album)\n2s1 Vertigo is an album.\n2s2 It was produced by Dan."
    assert script.asked("filter")[0].inputs == {"question": QUESTION, "passages": FILM_SHOWN + album}  # no objective
    assert script.asked("answerer")[0].inputs == {"question": QUESTION, "passages": FILM_SHOWN, "notes": "[]"}
    assert whole_passages(prediction) == ["film"]
    assert [passage.id for passage in prediction.ranking] == ["film", "album"]
    assert (prediction.answer, prediction.stop_reason) == ("Leytonstone", "single pass")
    assert steps(prediction, Decided) == [Decided("single", "director of Vertigo")]
    assert steps(prediction, Searched)[0].query == "director of Vertigo"
    assert prediction.trace.lm_calls_critical_path == 3


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_planning_step_by_step(adapter: Any) -> None:
    script, prediction = play(
        adapter,
        router={"route": "plan", "query": ""},
        decider=[search_for("Vertigo director", "Who made it?"), search_for("Alfred Hitchcock", "His birth."), ENOUGH],
        filter=[keep("1"), keep("2")],
        tuned={"k": 1},
    )
    assert script.order == ["router", "roadmap", *["decider", "router", "filter"] * 2, "decider", "answerer"]
    assert [each.inputs["question"] for each in script.asked("router")[1:]] == ["Vertigo director", "Alfred Hitchcock"]
    assert script.asked("roadmap")[0].inputs == {"question": QUESTION}

    man = "[2] Alfred Hitchcock\n2s1 Hitchcock made films.\n2s2 He came from Leytonstone."
    task = {"question": QUESTION, "roadmap": json.dumps(ROADMAP)}
    first, second, third = script.asked("decider")
    assert first.inputs == {**task, "passages": "(none)", "queries": "[]"}
    assert second.inputs == {
        **task,
        "passages": FILM_SHOWN,
        "queries": json.dumps(['"Vertigo director" - kept Vertigo (film)']),
    }
    assert third.inputs["passages"] == f"{FILM_SHOWN}\n{man}"
    assert queries(third) == ['"Vertigo director" - kept Vertigo (film)', '"Alfred Hitchcock" - kept Alfred Hitchcock']

    # In planning mode the filter also sees the objective.
    assert [request.inputs for request in script.asked("filter")] == [
        {"question": QUESTION, "objective": "Who made it?", "passages": FILM_SHOWN},
        {"question": QUESTION, "objective": "His birth.", "passages": man},
    ]
    assert script.asked("answerer")[0].inputs["passages"] == f"{FILM_SHOWN}\n{man}"
    assert whole_passages(prediction) == ["film", "man"]
    assert prediction.stop_reason == "enough"
    assert [record["step"] for record in prediction.trace.to_records()] == [
        "decided", "decomposed", *["decided", "decided", "searched", "selected"] * 2, "decided", "answered", "stopped",
    ]  # fmt: skip
    assert [step.round for step in steps(prediction, Selected)] == [1, 2]
    assert steps(prediction, Decided)[1] == Decided("retrieve", "Vertigo director", "Who made it?")


DIRECT = {"route": "direct", "query": "ignored"}


def test_a_sub_goal_that_the_language_model_knows_is_not_searched_for() -> None:
    known = {"Country of Paris?": "France", "Vertigo?": "unknown"}
    script, prediction = play(
        router=[{"route": "plan", "query": ""}, DIRECT],
        decider=[*map(search_for, known), ENOUGH],
        answerer=lambda request: answer(known.get(request.inputs["question"], "done")),
    )
    assert script.order == [
        "router", "roadmap", *["decider", "router", "answerer"] * 2, "filter", "decider", "answerer",
    ]  # fmt: skip
    assert [step.query for step in steps(prediction, Searched)] == ["Vertigo?"]  # what it does not know is
    assert steps(prediction, StepAnswered) == [
        StepAnswered(1, "Country of Paris?", "France"),
        StepAnswered(2, "Vertigo?", "unknown"),
    ]
    assert queries(script.asked("decider")[1]) == ['"Country of Paris?" - known without a search: France']
    assert script.asked("answerer")[-1].inputs["notes"] == '["Country of Paris? - France"]'
    assert prediction.answer == "done"


def test_notes_are_enough_for_an_answer_and_say_where_it_comes_from() -> None:
    said = answer("Leytonstone")
    router = [{"route": "plan", "query": ""}, DIRECT, {"route": "single", "query": ""}]
    _, prediction = play(pool=[], router=router, decider=[search_for("a"), search_for("b"), ENOUGH], answerer=said)
    assert (prediction.answer, prediction.status, prediction.trace.searches) == ("Leytonstone", "model knowledge", 1)


# --- searching -------------------------------------------------------------------------------------------------------


def test_a_repeated_query_brings_the_next_page() -> None:
    asked = ["Who directed Vertigo?", "who  directed “Vertigo”", "WHO DIRECTED VERTIGO"]
    script, prediction = play(
        decider=[*map(search_for, asked), search_for("Leytonstone"), ENOUGH], filter=keep(), tuned={"k": 1}
    )
    found = [[id for id, _, _ in step.found] for step in steps(prediction, Searched)]
    assert found == [["album"], ["film"], ["man"], ["man"]]  # the last query is a new one: its first page
    assert [step.offset for step in steps(prediction, Searched)] == [0, 1, 2, 0]
    assert queries(script.asked("decider")[3])[1:] == [
        '"who directed “Vertigo”", page 2 - nothing useful',
        '"WHO DIRECTED VERTIGO", page 3 - nothing useful',
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_answering_is_forced_when_the_steps_are_used_up(count: int) -> None:
    script, prediction = play(
        decider=lambda request: search_for(f"query {len(queries(request))}"), tuned={"steps": count}
    )
    assert script.order == ["router", "roadmap", *["decider", "router", "filter"] * count, "answerer"]
    assert prediction.stop_reason == "steps"


# --- the evidence ----------------------------------------------------------------------------------------------------


def test_what_the_answer_cites_comes_first() -> None:
    said = answer("Leytonstone") | {"reasoning": "He came from there [3s2]. He made it [1s2, 9s9] [2]."}
    _, prediction = play(router={"route": "single", "query": ""}, filter=keep("1", "3"), answerer=said)
    assert whole_passages(prediction) == ["man", "film"]  # 2 was not kept, 9 does not exist


# --- as published ----------------------------------------------------------------------------------------------------


def test_an_answer_is_forced_above_the_number_of_passages_and_nothing_is_cut() -> None:
    many = [Passage.of(f"Vertigo {n}", f"Vertigo number {n}.", id=str(n)) for n in range(30)]
    script, prediction = play(
        pool=many,
        decider=[*[search_for("Vertigo")] * 3, ENOUGH],
        filter=[keep(*range(1, 6)), keep(*range(11, 16)), keep(*range(21, 26))],
    )
    assert [len(step.found) for step in steps(prediction, Searched)] == [10, 10, 10]
    assert (len(prediction.evidence), len(script.asked("decider"))) == (15, 3)
    assert prediction.stop_reason == "documents"
    assert prediction.trace.dropped == 0


@pytest.mark.parametrize(
    ("routes", "order"),
    [
        ("direct", ["answerer"]),
        ("single", ["filter", "answerer"]),
        ("plan", ["roadmap", "decider", "filter", "decider", "answerer"]),
        ("once", ["router", "roadmap", "decider", "filter", "decider", "answerer"]),
        ("routed", ["router", "roadmap", "decider", "router", "filter", "decider", "answerer"]),
    ],
)
def test_what_is_routed_is_a_tunable(routes: str, order: list[str]) -> None:
    script, _ = play(set={"routes": routes}, decider=[search_for("Vertigo"), ENOUGH])
    assert script.order == order


def test_the_proxy_plays_router_filters_and_decision_maker(tmp_path: Path) -> None:
    def played(*specs: str) -> dict[str, str]:
        program = C3PO()
        assign_models(program, specs)
        return {role: predictors[0].lm.model for role, predictors in roles(program).items()}

    proxy, llm = {"router", "filter", "step_filter", "decider"}, {"planner", "knower", "answerer"}
    expected = dict.fromkeys(proxy, "small/model") | dict.fromkeys(llm, "large/model")
    assert played("proxy=small/model", "large/model") == expected
    assert played("filter=lexical", "large/model", "proxy=small/model") == expected | {"filter": "lexical"}
    profile = tmp_path / "models.toml"
    profile.write_text('lm = "large/model"\n[roles]\nproxy = "small/model"')
    assert played(str(profile)) == expected
    with pytest.raises(ModelError, match=r"its roles are .*, proxy \(router, filter, step_filter, decider\)$"):
        played("proxi=small/model")
    assert all(set(members) <= set(roles(C3PO())) for members in C3PO.role_groups.values())
