"""Error rates by role: every agent of four programs is simulated, and a role errs only where its rates say so."""

from __future__ import annotations

import json
from pathlib import Path

import dspy
import pytest
from typer.testing import CliRunner

from polyhop.engines.models import roles
from polyhop.eval.metrics import joint_f1
from polyhop.eval.run import evaluate
from polyhop.optimizers.credit import diagnose
from polyhop.programs import new_program
from polyhop.scripts.studies.simulation import PROFILES, Rates, simulate
from polyhop.scripts.studies.simulation.annotations import marked
from polyhop.scripts.studies.simulation.credit import PROGRAMS, app

from .world import hotpotqa, musique, write_hotpotqa


def simulated(name: str, asked: list[dspy.Example], **rates: Rates) -> dspy.Module:
    program = new_program(name)
    simulate(program, asked, rates, Rates())
    return program


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_errors_every_answer_is_right(name: str, tmp_path: Path) -> None:
    for read in (hotpotqa, musique):
        asked = [marked(example) for example in read(tmp_path, 3)]
        found = evaluate(simulated(name, asked), asked)
        assert found["counts"]["failed"] == 0, found["failures"]
        assert (found["metrics"]["answer_em"], found["metrics"]["evidence_recall"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *(("prism", role) for role in ("analyzer", "answerer")),
        *(("polyhop", role) for role in ("gatherer", "answerer")),
        *(("c3po", role) for role in ("planner", "step_filter", "decider", "answerer")),
    ],
)
def test_the_role_that_errs_costs_the_most_if_no_other_repairs_it(name: str, role: str, tmp_path: Path) -> None:
    asked = [marked(example) for example in musique(tmp_path, 4)]
    always = Rates(miss=1.0, wrong_answer=1.0, wrong_verdict=1.0, wrong_plan=1.0, lucky=0.0)
    found = diagnose(simulated(name, asked, **{role: always}), asked, [joint_f1])
    cost = found.costs(role, "joint_f1")
    assert not any(one.error for one in found.questions)
    assert cost is not None
    assert cost.mean > 0.2
    assert cost.mean == max(other.mean for r in found.roles if (other := found.costs(r, "joint_f1")) is not None)


@pytest.mark.parametrize(
    ("name", "role"), [("prism", "selector"), ("par_rag", "step_answerer"), ("par_rag", "answerer")]
)
def test_a_role_whose_errors_are_repaired_costs_nothing(name: str, role: str, tmp_path: Path) -> None:
    asked = [marked(example) for example in musique(tmp_path, 4)]
    program = simulated(name, asked, **{role: Rates(miss=1.0, wrong_answer=1.0, lucky=0.0)})
    cost = diagnose(program, asked, [joint_f1]).costs(role, "joint_f1")
    assert cost is not None
    assert cost.mean == 0.0


def test_rates_are_labelled_by_role_and_roles_are_checked(tmp_path: Path) -> None:
    asked = hotpotqa(tmp_path)
    program = simulated("prism", asked, selector=PROFILES["weak"])
    names = {role: predictors[0].lm.model for role, predictors in roles(program).items()}
    assert names["selector"].startswith("simulated/miss=0.3,")
    assert names["adder"].startswith("simulated/miss=0,")
    with pytest.raises(ValueError, match="no role reader: the roles are analyzer, selector"):
        simulate(program, asked, {"reader": Rates()}, Rates())


@pytest.mark.slow
def test_the_study_prints_what_was_found_and_resumes(tmp_path: Path) -> None:
    file, out = write_hotpotqa(tmp_path, 6), tmp_path / "out"
    options = ["--on", f"hotpotqa:{file}", "--out", str(out), "--program", "prism", "--limit", "3", "--seeds", "1"]
    first = CliRunner().invoke(app, options)
    assert first.exit_code == 0, first.output
    lines = (out / "cells.jsonl").read_text().splitlines()
    assert len(lines) == 4 * 3  # each role once, and its true costs twice
    assert all(min(json.loads(line)["asked"]) > 4 for line in lines)
    assert "\n| hotpotqa | prism | " in first.stdout
    assert first.stdout.splitlines()[-1].startswith("All conditions: the first role costs as much as any")
    assert "Simulation: " in first.stdout
    assert CliRunner().invoke(app, options).stdout == first.stdout
    assert (out / "cells.jsonl").read_text().splitlines() == lines
