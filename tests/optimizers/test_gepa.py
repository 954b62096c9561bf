"""Parts for `dspy.GEPA`: what a component selector chooses, and a run of GEPA itself with all of them."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.eval.metrics import joint_f1
from polyhop.optimizers.gepa import MostFaults, feedback_metric
from polyhop.programs import PolyHop

from ..programs.scripted import answer, lm, scripted
from . import towns


def test_any_metric_becomes_one_that_gepa_calls() -> None:
    def own(gold: Any, pred: Any, trace: Any, pred_name: Any, pred_trace: Any) -> float:
        return 1.0

    assert feedback_metric(own) is own
    assert feedback_metric(lambda example, prediction: 0.5)(None, None, None, "respond", None) == 0.5


def test_where_a_new_instruction_does_not_help_the_next_agent_has_its_turn() -> None:
    question = towns.question(1, "hard")
    script = scripted(
        planner={"route": "plan", "sub_questions": ["Who wrote the book?", "Where was #1 born?"]},
        gatherer={"answers": ["Writer 1", "Brunn"], "keep": ["1s2", "2s1"], "required": []},
        answerer=answer("somewhere", 0.3) | {"citations": ["1s2", "2s1"]},
        verifier={"attribution": "contradictory", "accuracy": 0.1, "correction": "nowhere"},
    )
    program = PolyHop()
    program.set_lm(lm(script))
    with dspy.context(trace=[], adapter=dspy.ChatAdapter()):
        prediction = program(**question.inputs())
        trajectory = {"example": question, "prediction": prediction, "score": 0.0, "trace": dspy.settings.trace}
    select, names = MostFaults(program), {name: "" for name, _ in program.named_predictors()}
    chosen = [select(None, [trajectory], [0.0], 0, names) for _ in range(3)]
    assert chosen == [["answerer"], ["verifier"], ["answerer"]]
    assert select(None, [trajectory], [0.0], 1, names) == ["answerer"]  # of another candidate


@pytest.mark.parametrize(("reply", "chosen"), [("no", "judge"), ("yes", "scout")])
def test_examples_need_no_question(reply: str, chosen: str) -> None:
    scout, judge = dspy.Predict("claim -> query"), dspy.Predict("claim, notes -> answer")
    program = dspy.Module()
    program.scout, program.judge = scout, judge
    example = dspy.Example(claim="Ada is older than Bo.", answer="yes").with_inputs("claim")
    prediction = dspy.Prediction(answer=reply)
    trace = [
        (scout, {"claim": example.claim}, dspy.Prediction(query="Ada")),
        (judge, {"claim": example.claim, "notes": "Ada is 9, Bo is 8."}, prediction),
    ]
    trajectory = {"example": example, "prediction": prediction, "score": 0.0, "trace": trace}
    assert MostFaults(program)(None, [trajectory], [0.0], 0, {"scout": "", "judge": ""}) == [chosen]


def test_a_planted_fault_is_found_in_half_the_calls_of_round_robin() -> None:
    calls = dict[bool, int]()
    for credit in (False, True):
        program = towns.program(towns.players())  # only the answerer errs, the last of four agents
        gepa = dspy.GEPA(
            metric=feedback_metric(joint_f1),
            component_selector=MostFaults(program) if credit else "round_robin",
            reflection_lm=lm(towns.writer()),
            reflection_minibatch_size=6,
            max_metric_calls=100,
            use_merge=False,
            track_stats=True,
            num_threads=1,
            seed=0,
        )
        with dspy.context(adapter=dspy.ChatAdapter()):
            tuned = gepa.compile(program, trainset=towns.questions(6, 6), valset=towns.questions(4, 4))
        found = tuned.detailed_results
        assert found.val_aggregate_scores[found.best_idx] > found.val_aggregate_scores[0]
        assert towns.MAGIC in towns.instructions(tuned)["answerer"]
        calls[credit] = found.discovery_eval_counts[found.best_idx] - 8  # less those of the start
    assert calls[True] <= calls[False] / 2
