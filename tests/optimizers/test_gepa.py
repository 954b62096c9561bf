"""Parts for `dspy.GEPA`: whose turn it is, and a run of GEPA itself with all of them."""

from __future__ import annotations

import dspy

from polyhop.eval.metrics import joint_f1
from polyhop.optimizers.gepa import MostFaults, feedback_metric
from polyhop.programs import PolyHop

from ..programs.scripted import answer, lm, scripted
from . import towns


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
