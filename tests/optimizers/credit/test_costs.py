"""What an agent costs: the gain if it gave the reply that the annotations ask for."""

from __future__ import annotations

import dspy
import pytest

from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.eval.metrics import answer_f1, evidence_f1
from polyhop.optimizers.credit import RETRIEVAL, Diagnosis, QuestionCosts, diagnose
from polyhop.optimizers.credit.costs import BATCH
from polyhop.programs import Prism

from ...programs.scripted import Request, Script, answer, lm
from ..prompts.world import questions
from .world import GOLD, example, prism

METRICS = (answer_f1, evidence_f1)


def costs(program: dspy.Module, asked: dspy.Example | None = None, **options: object) -> dict[str, tuple[float, float]]:
    (one,) = diagnose(program, [asked or example()], METRICS, **options).questions  # type: ignore[arg-type]
    return {role: (change["answer_f1"], change["evidence_f1"]) for role, change in one.changes.items()}


def test_without_a_fault_nothing_costs_anything() -> None:
    program, script = prism()
    assert set(costs(program).values()) == {(0.0, 0.0)}
    assert len(script.order) == 6  # nothing was asked twice


def test_the_agent_that_errs_costs_the_points() -> None:
    program, _ = prism(selector={"keep": ["1s2"]}, adder={"add": []})
    found = costs(program)
    assert found["selector"] == pytest.approx((1.0, 1 / 3))
    assert found["adder"] == (0.0, 0.0)  # nothing is left to add
    assert (found["analyzer"], found["answerer"]) == ((0.0, 0.0), (0.0, 0.0))  # the answer was not in the evidence


def test_a_question_on_which_a_run_fails_tells_nothing() -> None:
    def fails(request: Request) -> dict[str, object]:
        if "born in" in request.inputs["evidence"]:
            raise RuntimeError("the model is gone")
        return answer("unknown", 0.9)

    for keep in (["1s2"], GOLD):  # with the reply of the annotations, and in the run as it is
        program, _ = prism(selector={"keep": keep}, adder={"add": []}, answerer=fails)
        (one,) = diagnose(program, [example()], METRICS).questions
        assert "the model is gone" in one.error
        assert (one.changes, one.corrected) == ({}, {})


def test_every_call_of_a_model_counts_once() -> None:
    program, script = prism(selector={"keep": ["1s2"]}, adder={"add": []})
    (one,) = diagnose(program, [example()], METRICS).questions
    assert one.asked == len(script.order)


def test_only_some_roles_are_replaced() -> None:
    program, _ = prism(selector={"keep": ["3s1"]}, adder={"add": []}, answerer=answer("Paris"))
    assert costs(program, among=["answerer"]) == {"answerer": (1.0, 0.0)}  # as after the Selector
    assert costs(program, among=["selector", "adder"]) == {"selector": (0.0, 1.0), "adder": (0.0, 0.0)}
    assert costs(program, among=["answerer"], alone=True) == {"answerer": (0.0, 0.0)}


def test_the_calls_that_are_corrected_are_known() -> None:
    program, _ = prism(selector={"keep": ["1s2"]}, adder={"add": []})
    (one,) = diagnose(program, [example()], METRICS).questions
    (call, better) = one.corrected["selector"][0]
    assert (call.fields, better.keep) == ({"keep": ["1s2"]}, GOLD)
    assert not one.corrected["analyzer"]


def test_agents_that_cost_less_are_left_out_until_one_is_left() -> None:
    program, _ = prism(answerer=answer("Paris"))
    found = diagnose(program, [example()] * 3 * BATCH, [answer_f1], until_clear=True)
    assert len(found.questions) == BATCH
    assert (found.ranked("answer_f1")[0], found.leading("answer_f1", found.roles)) == ("answerer", ["answerer"])
    program, _ = prism()  # nobody errs: no agent costs more than another
    found = diagnose(program, [example()] * (BATCH + 1), [answer_f1], until_clear=True)
    assert {found.asked(role) for role in found.roles} == {BATCH + 1}


def test_who_is_left_out_comes_after_those_that_are_not() -> None:
    half = [{"analyzer": {"m": 0.0}, "selector": {"m": 1.0}, "adder": {"m": 1.0}}] * 20
    rest = [{"selector": {"m": 0.0}, "adder": {"m": 0.2}}] * 200
    found = Diagnosis([QuestionCosts("", None, None, {}, one, {}, 0) for one in (*half, *rest)], [], [*half[0]])
    assert found.ranked("m") == ["adder", "selector", "analyzer"]
    assert found.leading("m", ["selector", "adder"]) == ["adder"]


def test_any_dspy_metric_has_costs() -> None:
    def right(gold: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
        return float(prediction.answer == gold.answers[0])

    program, _ = prism(answerer=answer("Paris"))
    found = diagnose(program, [example()], [right]).costs("answerer", "right")
    assert found is not None
    assert found.mean == 1.0


def test_alone_each_agent_that_could_repair_a_fault_costs_it() -> None:
    program, _ = prism(selector={"keep": ["1s2"]}, adder={"add": []})
    found = costs(program, alone=True)
    assert found["selector"] == found["adder"] == pytest.approx((1.0, 1 / 3))


def test_costs_add_up_to_what_better_agents_gain_in_all() -> None:
    program, _ = prism(selector={"keep": ["3s1"]}, adder={"add": []}, answerer=answer("Paris"))
    found = costs(program)
    assert [found[role] for role in ("analyzer", "selector", "adder", "answerer")] == [
        (0.0, 0.0),
        (0.0, 1.0),
        (0.0, 0.0),
        (1.0, 0.0),
    ]


def test_an_answerer_is_to_blame_where_it_had_the_evidence() -> None:
    program, _ = prism(answerer=answer("Paris"))
    assert costs(program)["answerer"] == (1.0, 0.0)


def test_searches_cost_what_they_do_not_find() -> None:
    program, _ = prism()
    program.search.k.value = 1
    found = costs(program)
    assert found[RETRIEVAL] == (0.0, 0.0)  # one passage is not enough for two hops, whichever it is
    program.search.k.value = 2
    lost = example().copy(question="Stones, stones: where was the author born?")
    assert costs(program, lost)[RETRIEVAL][1] > 0


def test_what_the_annotations_do_not_tell_is_unknown() -> None:
    plain = dspy.Example(question=example().question, pool=example().pool, answers=("Aldea",))
    program, _ = prism()
    found = diagnose(program, [plain.with_inputs("question", "pool")], [answer_f1])
    assert found.costs("selector", "answer_f1") is None
    assert found.ranked("answer_f1") == ["answerer"]


def test_an_absent_agent_and_another_model() -> None:
    program, _ = prism(selector={"keep": ["1s2"]}, adder={"add": ["2s1"]})
    assert costs(program, against="absent")["adder"] == pytest.approx((-1.0, -1 / 3))
    better, _ = prism()
    assert costs(prism(selector={"keep": ["1s2"]})[0], against=better.selector.lm)["selector"][0] == 1.0
    with pytest.raises(ValueError, match="'gold' or 'absent' or a language model"):
        costs(program, against="nothing")


def test_costs_are_grouped_and_ranked() -> None:
    asked = [one.copy(hops=hops) for one, hops in zip(questions(2, 0), (2, 3), strict=True)]
    script = Script({**prism()[1].replies, "answerer": [answer("Aldea")]})
    program = Prism()
    program.set_lm(lm(script))
    found = diagnose(program, asked, [answer_f1])
    assert found.ranked("answer_f1")[0] == "answerer"
    assert {name: len(group) for name, group in found.groups("hops").items()} == {"2": 1, "3": 1}
    by_hops = {name: found.costs("answerer", "answer_f1", group) for name, group in found.groups("hops").items()}
    assert by_hops["2"] is not None
    assert by_hops["3"] is not None
    assert (by_hops["2"].mean, by_hops["3"].mean) == (0.0, 1.0)


def test_a_spent_budget_stops_at_once() -> None:
    program, script = prism(answerer=answer("Paris"))
    Budget(calls=3).meter_program(program)
    with pytest.raises(BudgetSpent):
        diagnose(program, [example()], METRICS)
    assert len(script.order) == 3
