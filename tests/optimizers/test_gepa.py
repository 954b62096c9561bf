"""Parts for `dspy.GEPA`: what a paired test accepts, and a run of GEPA itself with all of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dspy
import pytest

from polyhop.eval.metrics import joint_f1
from polyhop.optimizers.gepa import MostFaults, PairedAcceptance, feedback_metric
from polyhop.programs import PolyHop

from ..programs.scripted import answer, lm, scripted
from . import towns

STATE: Any = SimpleNamespace(program_candidates=[{"respond": "Answer."}])


def proposal(before: list[float], after: list[float], text: str = "Answer well.") -> Any:
    candidate = {"respond": text}
    scores = {"subsample_scores_before": before, "subsample_scores_after": after}
    return SimpleNamespace(candidate=candidate, parent_program_ids=[0], **scores)


@pytest.mark.parametrize(
    ("gains", "p"),
    [
        ([1, 1, 1], 1 / 8),
        ([1, 1, 1, 1, 0, 0], 1 / 16),
        ([1, 1, 1, -1], 5 / 16),  # all but the sums of +4 and of the four +2
        ([1, 0.5, -0.5], 3 / 8),  # sums of 1 or more: 2, 1, 1
    ],
)
def test_the_paired_test_is_exact_and_one_sided(gains: list[float], p: float) -> None:
    made = proposal([0.0] * len(gains), gains)
    assert PairedAcceptance(level=p).should_accept(made, STATE)
    assert not PairedAcceptance(level=p - 1e-6).should_accept(made, STATE)


def test_what_is_refused_without_a_test() -> None:
    for after in ([0.5, 0.5], [0.0, 1.0], [0.0, 0.5]):
        assert not PairedAcceptance(level=1.0).should_accept(proposal([0.5, 0.5], after), STATE)
    better = proposal([0.0] * 8, [1.0] * 8, "Answer. " * 100)
    assert PairedAcceptance().should_accept(better, STATE)
    assert "has 800 characters, more than 400" in PairedAcceptance(longest=400).reject_reason(better, STATE)
    inherited: Any = SimpleNamespace(program_candidates=[{"respond": "Answer. " * 100}])
    assert PairedAcceptance(longest=400).should_accept(better, inherited)


def test_where_a_new_instruction_does_not_help_the_next_agent_has_its_turn() -> None:
    question = towns.question(1, "hard")
    script = scripted(
        reader=answer("somewhere", 0.3) | {"citations": ["1s2", "2s1"]},
        verifier={"answer": "nowhere", "attribution": "contradictory"},
    )
    program = PolyHop(rounds=1)
    program.set_lm(lm(script))
    with dspy.context(trace=[], adapter=dspy.ChatAdapter()):
        prediction = program(**question.inputs())
        trajectory = {"example": question, "prediction": prediction, "score": 0.0, "trace": dspy.settings.trace}
    select, names = MostFaults(program), {name: "" for name, _ in program.named_predictors()}
    chosen = [select(None, [trajectory], [0.0], 0, names) for _ in range(3)]
    assert chosen == [["reader"], ["verifier"], ["reader"]]
    assert select(None, [trajectory], [0.0], 1, names) == ["reader"]  # of another candidate


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
        results = tuned.detailed_results
        assert results.val_aggregate_scores[results.best_idx] > results.val_aggregate_scores[0]
        assert towns.MAGIC in towns.instructions(tuned)["answerer"]
        calls[credit] = results.discovery_eval_counts[results.best_idx] - 8  # less those of the start
    assert calls[True] <= calls[False] / 2
