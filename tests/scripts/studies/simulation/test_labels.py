"""Whatever was simulated says so: in the manifest, in the summary, and in the title of the table."""

from __future__ import annotations

from pathlib import Path

from polyhop.engines.models import assign_models
from polyhop.eval.records import read_manifest, read_summary
from polyhop.eval.run import evaluate
from polyhop.programs import Prism
from polyhop.scripts.evaluation_view import summary_table
from polyhop.scripts.studies.simulation import Rates, simulated_lm

from .world import hotpotqa

NAME = "simulated/miss=0.2,false_keep=0,wrong_verdict=0,wrong_answer=0,lucky=0.1,wrong_plan=0,seed=3"
LABEL = {
    NAME: {
        "miss": 0.2,
        "false_keep": 0.0,
        "wrong_verdict": 0.0,
        "wrong_answer": 0.0,
        "lucky": 0.1,
        "wrong_plan": 0.0,
        "seed": 3,
    }
}


def test_a_run_with_a_simulated_model_is_labelled(tmp_path: Path) -> None:
    examples = hotpotqa(tmp_path, 2)
    program = Prism(k=20)
    program.set_lm(simulated_lm(examples, Rates(miss=0.2), seed=3))
    summary = evaluate(program, examples, tmp_path / "run")
    assert summary["simulation"] == LABEL
    assert read_summary(tmp_path / "run")["simulation"] == LABEL
    assert read_manifest(tmp_path / "run").simulation == LABEL
    assert read_manifest(tmp_path / "run").program.lms["adder"] == {"model": NAME}
    assert str(summary_table({"prism": summary}, "hotpotqa: 2 questions").title) == "hotpotqa: 2 questions (simulation)"


def test_other_runs_are_not_labelled(tmp_path: Path) -> None:
    program = Prism(k=20)
    assign_models(program)
    summary = evaluate(program, hotpotqa(tmp_path, 2), tmp_path / "run")
    assert "simulation" not in summary
    assert read_manifest(tmp_path / "run").simulation is None
    assert str(summary_table({"prism": summary}, "hotpotqa").title) == "hotpotqa"
