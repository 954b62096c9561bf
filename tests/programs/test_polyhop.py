"""polyhop's own program step by step: the cheap paths, the rounds and why they end, the review, the confidence."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from polyhop.data.pool import PassagePool
from polyhop.programs import PolyHop
from polyhop.programs.trace import Decomposed, Recalled, Required, Searched, Selected

from .polyhop_script import (
    ADAPTERS,
    PLAN,
    POOL,
    QUESTION,
    SUB_QUESTIONS,
    cited,
    facts,
    play,
    queries,
    steps,
)
from .scripted import answer, playing, scripted

# --- one round is enough ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_common_case_takes_four_calls(adapter: Any) -> None:
    script, prediction = play(adapter, selector={"keep": ["1s2", "2s1"]}, adder={"add": ["3s2"], "required": []})
    assert script.order == ["planner", "selector", "adder", "answerer"]
    assert script.asked("planner")[0].inputs == {"question": QUESTION}
    task = {"question": QUESTION, "sub_questions": json.dumps(SUB_QUESTIONS)}
    selector, adder = script.asked("selector")[0].inputs, script.asked("adder")[0].inputs
    assert selector == {**task, "candidates": adder["candidates"], "selected": "[]"}
    assert adder["selected"] == '["1s2", "2s1"]'
    assert adder["open_questions"] == "[]"
    assert [line for line in adder["candidates"].splitlines() if line.startswith("[")] == [
        "[1] Vertigo (film)", "[2] Vertigo (album)", "[3] Alfred Hitchcock", "[4] Leytonstone",
    ]  # fmt: skip
    # The reader sees the evidence's passages whole, and what else came first.
    assert script.asked("answerer")[0].inputs == {
        **task,
        "evidence": "[1] Vertigo (film)\n1s1 Vertigo is a film.\n1s2 Its director was Alfred Hitchcock.\n"
        "[2] Vertigo (album)\n2s1 Vertigo is an album.\n2s2 It was produced by Dan.\n"
        "[3] Alfred Hitchcock\n3s1 Hitchcock made films.\n3s2 He came from Leytonstone.",
        "other_passages": "[4] Leytonstone\n4s1 Leytonstone lies in London.",
    }
    assert (prediction.answer, prediction.confidence, prediction.stop_reason) == ("Leytonstone", 0.9, "complete")
    assert facts(prediction) == [("film", 1), ("man", 1), ("album", 0)]  # what is cited first
    assert [passage.id for passage in prediction.ranking] == ["film", "man", "album", "town"]
    assert (prediction.trace.lm_calls, prediction.trace.searches) == (4, 1)
    assert [record["step"] for record in prediction.trace.to_records()] == [
        "estimated", "searched", "recalled", "decomposed", "selected", "added", "required", "answered", "stopped",
    ]  # fmt: skip


def test_evidence_by_sentence_if_so_set() -> None:
    script, _ = play(settings={"context": "sentence"}, selector={"keep": ["1s2"]}, adder={"add": [], "required": []})
    assert script.asked("answerer")[0].inputs["evidence"] == (
        "[1] Vertigo (film)\n1s2 Its director was Alfred Hitchcock."
    )


# --- the cheap paths -------------------------------------------------------------------------------------------------


def test_an_easy_question_takes_one_call() -> None:
    script, prediction = play(settings={"easy": 0.0}, answerer=cited("Leytonstone", ids=("3s2",)))
    assert script.order == ["answerer"]
    assert script.asked("answerer")[0].inputs["sub_questions"] == json.dumps([QUESTION])
    assert script.asked("answerer")[0].inputs["evidence"].count("[") == 4
    assert facts(prediction) == [("man", 1)]
    assert prediction.stop_reason == "single pass"


@pytest.mark.parametrize(
    "unsure",
    [cited("Leytonstone", 0.7), cited("Leytonstone", ids=()), cited("Leytonstone", ids=("99s1",)), cited("Atlantis")],
    ids=["low confidence", "no citation", "a citation of nothing", "not in what was read"],
)
def test_a_single_pass_that_is_not_certain_goes_on_to_the_plan(unsure: dict[str, Any]) -> None:
    script, prediction = play(settings={"easy": 0.0}, answerer=[unsure, cited("Leytonstone")], selector={"keep": ["3"]})
    assert script.order == ["answerer", "planner", "selector", "adder", "answerer"]
    assert facts(prediction) == [("man", None)]
    assert prediction.answer == "Leytonstone"


def test_the_first_passages_are_what_a_single_pass_reads() -> None:
    script, _ = play(settings={"easy": 0.0, "first": 2}, answerer=cited("film", ids=("1s1",)))
    assert "[2] " in script.asked("answerer")[0].inputs["evidence"]
    assert "[3] " not in script.asked("answerer")[0].inputs["evidence"]


def test_the_router_may_ask_for_a_single_pass() -> None:
    script, prediction = play(planner={"route": "single", "sub_questions": [QUESTION]})
    assert script.order == ["planner", "answerer"]
    assert prediction.stop_reason == "single pass"


def test_a_single_pass_is_not_made_twice() -> None:
    script, _ = play(
        settings={"easy": 0.0}, planner={"route": "single", "sub_questions": [QUESTION]},
        answerer=[cited("Leytonstone", 0.1), cited("Leytonstone")], selector={"keep": ["3"]},
    )  # fmt: skip
    assert script.order == ["answerer", "planner", "selector", "adder", "answerer"]


def test_what_needs_no_evidence_gets_none() -> None:
    script, prediction = play(
        question="Thank you!", planner={"route": "direct", "sub_questions": []}, answerer=answer("You are welcome.")
    )
    assert script.order == ["planner", "answerer"]
    assert "evidence" not in script.asked("answerer")[0].inputs
    assert (prediction.answer, prediction.evidence, prediction.stop_reason) == ("You are welcome.", (), "no retrieval")


def test_nothing_found_is_unknown() -> None:
    script, prediction = play(pool=[])
    assert script.order == ["planner"]
    assert (prediction.answer, prediction.confidence, prediction.stop_reason) == ("unknown", 0.0, "nothing found")


# --- rounds ----------------------------------------------------------------------------------------------------------


def test_what_is_required_is_searched_for_and_selected_from() -> None:
    """With two candidates a search, round 1 knows the film and the album, round 2 the man and his town."""
    script, prediction = play(
        k=2,
        selector=[{"keep": ["1s2"]}, {"keep": ["1s2", "3s2"]}],
        adder=[{"add": [], "required": ["Where was Alfred Hitchcock born?"]}, {"add": [], "required": []}],
    )
    assert script.order == ["planner", "selector", "adder", "selector", "adder", "answerer"]
    assert queries(prediction) == [QUESTION, "Where was Alfred Hitchcock born?"]
    first, second = (request.inputs["candidates"] for request in script.asked("selector"))
    assert first.count("[") == 2
    # What is new, and what was selected: the album was turned down.
    assert "[1] Vertigo (film)" in second
    assert "[2] Vertigo (album)" not in second
    assert "[3] Alfred Hitchcock" in second
    assert script.asked("selector")[1].inputs["selected"] == '["1s2"]'
    # The Adder sees all candidates, and what it could not find.
    assert "[2] Vertigo (album)" in script.asked("adder")[1].inputs["candidates"]
    assert script.asked("adder")[1].inputs["open_questions"] == '["Where was Alfred Hitchcock born?"]'
    assert facts(prediction) == [("film", 1), ("man", 1)]
    assert prediction.stop_reason == "complete"
    assert steps(prediction, Required) == [Required(("Where was Alfred Hitchcock born?",)), Required(())]


def test_a_repeated_query_gets_the_next_page() -> None:
    _, prediction = play(
        k=1, settings={"least_gain": 0.0}, selector={"keep": ["1s2"]},
        adder={"add": [], "required": [" where was the director of VERTIGO born"]},
    )  # fmt: skip
    searches = steps(prediction, Searched)
    assert [(step.offset, step.found[0][0]) for step in searches[:2]] == [(0, "film"), (1, "album")]


def test_a_second_look_without_new_passages_asks_the_adder_only() -> None:
    script, prediction = play(
        selector={"keep": ["1s2"]},
        adder=[{"add": [], "required": ["Where was Hitchcock born?"]}, {"add": ["3s2"], "required": []}],
    )
    assert script.order == ["planner", "selector", "adder", "adder", "answerer"]
    assert facts(prediction) == [("film", 1), ("man", 1)]
    assert prediction.stop_reason == "complete"


def test_a_look_that_changes_nothing_is_the_last() -> None:
    script, prediction = play(
        settings={"least_gain": 0.0, "rounds": 6},
        selector={"keep": ["1s2", "3s2"]},
        adder={"add": [], "required": ["Who?"]},
    )
    assert script.order == ["planner", "selector", "adder", "adder", "answerer"]
    assert prediction.stop_reason == "stable"


@pytest.mark.parametrize(
    ("least", "calls", "stop"),
    # One of two sub-questions stays open: 1/2 * (1+1)/(2+2) = 0.25 is expected after the first round, 1/2 * 2/5 = 0.2
    # after the second, when another look has failed.
    [(0.26, 1, "little to gain"), (0.25, 2, "little to gain"), (0.2, 3, "little to gain")],
)
def test_another_round_must_be_worth_it(least: float, calls: int, stop: str) -> None:
    turn = iter(range(100))
    script, prediction = play(
        settings={"least_gain": least}, selector={"keep": ["1s2"]},
        adder=lambda _: {"add": [], "required": [f"Where is place {next(turn)}?"]},
    )  # fmt: skip
    assert len(script.asked("adder")) == calls
    assert prediction.stop_reason == stop


def test_rounds_are_a_limit() -> None:
    turn = iter(range(100))
    script, prediction = play(
        settings={"least_gain": 0.0, "rounds": 2}, adder=lambda _: {"add": [], "required": [f"What is {next(turn)}?"]}
    )
    assert len(script.asked("adder")) == 2
    assert prediction.stop_reason == "rounds"
    assert prediction.trace.searches == 2  # none after the last round


def test_where_nothing_is_selected_the_first_passages_are_read() -> None:
    script, prediction = play(settings={"first": 1}, selector={"keep": []})
    asked = script.asked("answerer")[0].inputs
    assert asked["evidence"] == "(none)"
    assert asked["other_passages"].startswith("[1] Vertigo (film)")
    assert "[2]" not in asked["other_passages"]
    assert facts(prediction) == []


def test_evidence_counts_among_the_passages_that_are_read() -> None:
    script, _ = play(settings={"first": 2}, selector={"keep": ["1s2", "3s2"]})
    assert script.asked("answerer")[0].inputs["other_passages"] == "(none)"


def test_citations_from_other_passages_are_evidence_only_where_some_is_known_to_be_missing() -> None:
    question = "Who is the mother of the director of the film that Vertigo is based on?"  # more than one hop
    for required, expected in (([], [("film", 1)]), (["Where was he born?"], [("film", 1), ("man", 1)])):
        _, prediction = play(
            question=question,
            settings={"rounds": 1},
            selector={"keep": ["1s2"]},
            adder={"add": [], "required": required},
        )
        assert facts(prediction) == expected


# --- nonsense --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_nonsense_is_dropped_and_counted(adapter: Any) -> None:
    script, prediction = play(
        adapter,
        planner={"route": "[PLAN]", "sub_questions": ["", " Who? ", *["More?"] * 30]},
        selector={"keep": ["0", "9s1", "1s2", "1s2", "all of them"]},
        adder={"add": ["1s2", "3s9", 3.2], "required": ["", *[f"What is {n}?" for n in range(30)]]},
        answerer=cited("word " * 3000, ids=("77", "1s2", "x")),
        settings={"rounds": 1},
        verifier={"attribution": "Attributable!", "accuracy": "95%", "correction": ""},
    )
    assert steps(prediction, Decomposed)[0].route == "plan"
    assert len(steps(prediction, Decomposed)[0].sub_questions) == 10
    assert steps(prediction, Selected)[0].invalid == ("0", "9s1", "1s2", "all of them")
    assert len(steps(prediction, Required)[0].questions) == 10
    assert facts(prediction) == [("film", 1), ("man", 1)]
    assert len(prediction.answer) <= 400
    assert prediction.trace.dropped == 21 + 4 + 2 + 20 + 3
    assert prediction.trace.lm_calls == len(script.requests)


@pytest.mark.parametrize("agent", ["planner", "selector", "adder", "answerer"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_prose_is_an_error_never_an_answer(agent: str, adapter: Any) -> None:
    replies: dict[str, Any] = {agent: "I am sorry, but I cannot help with that."}
    with pytest.raises(AdapterParseError):
        play(adapter, **replies)


# --- exemplars, and the embedded engine ------------------------------------------------------------------------------


def test_the_planner_is_shown_plans_of_the_same_complexity() -> None:
    program = PolyHop(PassagePool(POOL))
    program.easy.value = 1.0
    with playing(scripted(planner=PLAN, answerer=cited("Leytonstone"), selector={"keep": ["3"]})) as script:
        prediction = program(question=QUESTION)
    shown = steps(prediction, Recalled)[0].questions
    assert len(shown) == program.exemplars.count.value == script.asked("planner")[0].demos
    assert all(any(text in message.text for message in script.asked("planner")[0].messages) for text in shown)
    assert script.asked("selector")[0].demos == 0


def test_with_the_embedded_engine() -> None:
    import polyhop

    with dspy.context(lm=polyhop.lm("lexical")):
        prediction = PolyHop(PassagePool(POOL))(question=QUESTION)
    assert prediction.answer == "Leytonstone"
    assert {"film", "man"} <= {item.passage.id for item in prediction.evidence}
    assert prediction.trace.lm_calls <= 6
