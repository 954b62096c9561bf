"""polyhop's own program: the cheap paths, the rounds and why they end, the review, the confidence."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import PolyHop, tunables
from polyhop.programs.trace import Decomposed, Judged, Replaced, Required, Selected, Weighed

from .scripted import ADAPTERS, ALBUM, FILM, MAN, QUESTION, Script, answer, facts, playing, queries, scripted, steps

SUB_QUESTIONS = ["Who directed Vertigo?", "Where was #1 born?"]
PLAN = {"route": "plan", "sub_questions": SUB_QUESTIONS}
TOWN = Passage.of("Leytonstone", sentences=["Leytonstone lies in London."], id="town")
POOL = [FILM, ALBUM, MAN, TOWN]


def play(
    adapter: Any = None,
    *,
    question: str = QUESTION,
    pool: list[Passage] | None = None,
    k: int = 20,
    settings: dict[str, Any] | None = None,
    **replies: Any,
) -> tuple[Script, dspy.Prediction]:
    """One question, with exact numbers of candidates: 1 film, 2 album, then what is found later."""
    program = PolyHop(PassagePool(POOL if pool is None else pool), k=k)
    program.exemplars.mode.value = "none"
    program.easy.value = 1.0
    known = tunables(program)
    known["least_gain"].value = 0.2
    for name, value in (settings or {}).items():
        known[name].value = value
    replies = {"planner": PLAN, "answerer": cited("Leytonstone")} | replies
    with playing(scripted(**replies), adapter) as script:
        return script, program(question=question)


def cited(text: str, confidence: float = 0.9, ids: tuple[str, ...] = ("1s2", "3s2")) -> dict[str, Any]:
    return answer(text, confidence) | {"citations": list(ids)}


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


def test_a_second_look_without_new_passages_asks_the_adder_only() -> None:
    script, prediction = play(
        selector={"keep": ["1s2"]},
        adder=[{"add": [], "required": ["Where was Hitchcock born?"]}, {"add": ["3s2"], "required": []}],
    )
    assert script.order == ["planner", "selector", "adder", "adder", "answerer"]
    assert facts(prediction) == [("film", 1), ("man", 1)]
    assert prediction.stop_reason == "complete"


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


def test_where_nothing_is_selected_the_first_passages_are_read() -> None:
    script, prediction = play(settings={"first": 1}, selector={"keep": []})
    asked = script.asked("answerer")[0].inputs
    assert asked["evidence"] == "(none)"
    assert asked["other_passages"].startswith("[1] Vertigo (film)")
    assert "[2]" not in asked["other_passages"]
    assert facts(prediction) == []


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


DOUBTFUL: dict[str, Any] = {"selector": {"keep": ["1s2", "3s2"]}, "answerer": cited("Leytonstone", 0.3)}


def verdict(attribution: str = "attributable", accuracy: Any = 0.9, correction: str = "Leytonstone") -> dict[str, Any]:
    return {"attribution": attribution, "accuracy": accuracy, "correction": correction}


def test_an_answer_in_doubt_is_verified() -> None:
    script, prediction = play(**DOUBTFUL, verifier=verdict())
    assert script.order == ["planner", "selector", "adder", "answerer", "verifier"]
    asked = script.asked("verifier")[0].inputs
    assert asked["proposed_answer"] == "Leytonstone"
    assert asked["evidence"] == script.asked("answerer")[0].inputs["evidence"]
    weighed = steps(prediction, Weighed)[0]
    assert weighed.passed
    assert prediction.confidence == pytest.approx(weighed.alpha * 0.9 + (1 - weighed.alpha) * 1.0)
    assert steps(prediction, Judged) == [Judged("verification", 0.9, "attributable")]


@pytest.mark.parametrize(
    ("review", "reply", "verified"),
    [
        ("doubt", cited("Leytonstone", 0.9), False),
        ("doubt", cited("yes", 0.9), False),
        ("doubt", cited("Atlantis", 0.9), True),  # not in the evidence
        ("doubt", cited("unknown", 0.9), True),
        ("always", cited("Leytonstone", 0.9), True),
        ("never", cited("Atlantis", 0.1), False),
    ],
)
def test_when_an_answer_is_verified(review: str, reply: dict[str, Any], verified: bool) -> None:
    script, _ = play(settings={"review": review}, selector={"keep": ["1s2", "3s2"]}, answerer=reply, verifier=verdict())
    assert bool(script.asked("verifier")) == verified


def test_the_verifier_may_correct_from_the_evidence() -> None:
    script, prediction = play(**DOUBTFUL, verifier=verdict("contradictory", 0.1, "Alfred Hitchcock"))
    assert script.order[-1] == "verifier"  # no further call
    assert prediction.answer == "Alfred Hitchcock"
    assert prediction.confidence == pytest.approx(0.7)  # (0.9 + 0.5) / 2: the correction was not judged
    assert steps(prediction, Replaced)[0].answer == "Alfred Hitchcock"


def test_who_does_not_know_after_all_looks_it_up() -> None:
    script, prediction = play(
        planner={"route": "direct", "sub_questions": []}, answerer=[answer("unknown", 0), cited("Leytonstone")],
        selector={"keep": ["3"]},
    )  # fmt: skip
    assert script.order == ["planner", "answerer", "selector", "adder", "answerer"]
    assert prediction.answer == "Leytonstone"


def test_an_answer_that_lacks_a_step_is_looked_for_again() -> None:
    """The answer is the query; what it finds completes the evidence, and the question is answered anew."""
    script, prediction = play(
        k=2, selector={"keep": ["1s2"]}, adder=[{"add": [], "required": []}, {"add": ["3s2"], "required": []}],
        answerer=[cited("Hitchcock", 0.3), cited("Leytonstone", 0.8)],
        verifier=verdict("extrapolatory", 0.2, "unknown"),
    )  # fmt: skip
    assert script.order == ["planner", "selector", "adder", "answerer", "verifier", "adder", "answerer"]
    assert [record["query"] for record in prediction.trace.to_records() if record["step"] == "searched"][
        -1
    ] == "Hitchcock"
    assert (prediction.answer, prediction.confidence) == ("Leytonstone", 0.8)
    assert facts(prediction) == [("film", 1), ("man", 1)]


def test_a_second_answer_must_be_surer() -> None:
    _, prediction = play(
        k=2, selector={"keep": ["1s2"]}, adder=[{"add": [], "required": []}, {"add": ["3s2"], "required": []}],
        answerer=[cited("Hitchcock", 0.3), cited("Dan", 0.2)], verifier=verdict("extrapolatory", 0.2, "unknown"),
    )  # fmt: skip
    assert prediction.answer == "Hitchcock"


def test_nothing_is_looked_for_where_nothing_is_missing_or_new() -> None:
    for attribution in ("attributable", "extrapolatory"):  # all four passages are candidates already
        script, prediction = play(**DOUBTFUL, verifier=verdict(attribution, 0.1, "unknown"))
        assert script.order[-1] == "verifier"
        assert prediction.answer == "Leytonstone"


def test_an_unreadable_verdict_speaks_against_the_answer() -> None:
    script, prediction = play(**DOUBTFUL, verifier="Well, who knows?")
    assert [request.as_json for request in script.asked("verifier")] == [False, True]
    assert steps(prediction, Judged)[0] == Judged("verification", 0.0, "", ("the verdict could not be read",))
    assert prediction.answer == "Leytonstone"
    assert prediction.confidence < 0.5


# --- confidence ------------------------------------------------------------------------------------------------------


def test_it_abstains_only_if_asked_to() -> None:
    for below, expected, stop in ((0.0, "Leytonstone", "complete"), (0.95, "unknown", "abstained")):
        _, prediction = play(settings={"abstain_below": below}, selector={"keep": ["1s2", "3s2"]})
        assert (prediction.answer, prediction.confidence, prediction.stop_reason) == (expected, 0.9, stop)
    assert steps(prediction, Replaced)[0].reason == "Leytonstone is not sure enough"


def test_confidence_is_calibrated_before_it_is_compared() -> None:
    settings = {"calibration.offset": -3.0, "abstain_below": 0.5}
    _, prediction = play(settings=settings, selector={"keep": ["1s2", "3s2"]})
    assert prediction.confidence == pytest.approx(0.309, abs=1e-3)  # sigmoid(logit(0.9) - 3)
    assert prediction.answer == "unknown"
