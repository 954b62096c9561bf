"""The joint run, on a model that every stage can help."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.eval.folder import RunError
from polyhop.optimizers.artifact import load, read
from polyhop.optimizers.joint.checkpoint import Checkpoint
from polyhop.optimizers.joint.plan import Plan, Splits
from polyhop.optimizers.joint.run import Told, optimize

from .tiny import Engine, Tiny, examples, make

SPLITS = Splits(examples(0, 24), examples(100, 60), examples(200, 16))
PLAN = Plan(metric="answer_em", optimizer="bootstrap", trials=8, seed=3)


def run(out: Path, plan: Plan = PLAN, engine: Engine | None = None, **more: Any) -> dict[str, Any]:
    engine = engine or Engine()
    return optimize(lambda: make(engine), SPLITS, out, plan=plan, **more)


def test_stages_are_kept_for_what_they_bring(tmp_path: Path) -> None:
    told: list[Told] = []
    summary = run(tmp_path / "run", on_told=told.append)
    assert [(line["stage"], line["kept"]) for line in summary["stages"]] == [
        ("start", True),
        ("exemplars", False),  # plans of other questions make nothing easier
        ("prompts", True),
        ("tunables", True),
    ]
    scores = [line["score"] for line in summary["stages"]]
    assert scores[0] == scores[1] < scores[2] < scores[3]
    assert summary["test"]["start"]["mean"] < summary["test"]["best"]["mean"]
    assert list(dict.fromkeys(each.stage for each in told)) == ["start", "exemplars", "prompts", "tunables", "test"]
    best = load(tmp_path / "run" / "best", program=Tiny())
    assert best.effort.value > Tiny().effort.value
    assert best.answerer.demos
    record = read(tmp_path / "run" / "best").manifest
    assert record.scores["test"]["answer_em"].mean == summary["test"]["best"]["mean"]
    assert record.splits["test"].count == 16


def test_the_result_is_measured_on_questions_that_no_stage_saw(tmp_path: Path) -> None:
    class Watching(Engine):
        def __init__(self) -> None:
            super().__init__()
            self.stage, self.seen = "", set[tuple[str, int]]()

        def complete(self, request: Any) -> Any:
            text = "".join(part.text for part in request.messages[-1].parts)
            number = int(text.partition("the number after ")[2].partition("?")[0])
            self.seen.add((self.stage, number // 100))
            return super().complete(request)

    engine = Watching()

    def told(each: Told) -> None:
        engine.stage = each.stage if "validation" not in each.report.detail else "validation"

    run(tmp_path / "run", engine=engine, on_told=told)
    asked = {stage: {part for name, part in engine.seen if name == stage} for stage, _ in engine.seen}
    assert 2 not in asked["exemplars"] | asked["prompts"] | asked["tunables"] | asked["validation"]
    assert 2 in asked["test"]


def test_calls_are_never_more_than_the_budget_under_sixteen_threads(tmp_path: Path) -> None:
    for calls in (400, 700):
        engine = Engine()
        summary = run(tmp_path / str(calls), engine=engine, budget=Budget(calls=calls), threads=16)
        assert engine.calls <= calls
        assert summary["spent"]["calls"] == engine.calls
        assert "allows no further stage" in summary["ended"]
        assert summary["test"] is not None  # what that needs was kept back


def test_a_search_that_is_cut_short_brings_what_it_has_found(tmp_path: Path) -> None:
    plan = replace(PLAN, stages=("tunables",), trials=40)
    engine = Engine()
    summary = run(tmp_path / "run", plan, engine, budget=Budget(calls=700))
    assert engine.calls <= 700
    assert summary["stages"][1]["note"].partition(", ")[2].startswith("tpe, cut short after ")
    assert summary["stages"][1]["kept"]


def test_a_run_that_ended_on_its_budget_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    short = run(tmp_path / "run", budget=Budget(calls=450))
    assert "allows no further stage" in short["ended"]
    whole = run(tmp_path / "run", budget=Budget(calls=20_000))
    assert whole["ended"] == "all stages are played"
    assert whole["test"]["best"]["mean"] > whole["test"]["start"]["mean"]
    assert read(tmp_path / "run/best").manifest.scores["test"]["answer_em"].mean == whole["test"]["best"]["mean"]


def test_a_stage_that_was_cut_short_is_so_after_a_kill_too(tmp_path: Path) -> None:
    plan = replace(PLAN, stages=("tunables", "prompts"), trials=40)
    whole = run(tmp_path / "run", plan, budget=Budget(calls=700))
    lines = (tmp_path / "run/stages.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run/stages.jsonl").write_text("".join(lines[:1]))  # killed before the verdict was written
    again = run(tmp_path / "run", plan, budget=Budget(calls=2_000))
    assert [line["stage"] for line in again["stages"]] == [line["stage"] for line in whole["stages"]]


def test_what_is_frozen_stays_so_in_every_stage(tmp_path: Path) -> None:
    plan = replace(PLAN, stages=("exemplars",), freeze=("exemplars.*",))
    summary = run(tmp_path / "run", plan)
    assert "frozen" in summary["stages"][1]["note"]
    plan = replace(PLAN, stages=("exemplars",), freeze=("*.mode", "effort"), ranges={"*.count": (2, 3)})
    run(tmp_path / "other", plan)
    study = json.loads((tmp_path / "other/1-exemplars/proposal.json").read_bytes())["study"]
    assert {name for trial in study["trials"] for name in trial["values"]} == {"exemplars.count"}
    assert {trial["values"]["exemplars.count"] for trial in study["trials"][1:]} <= {2, 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "fact_f1"}, "fact_f1 cannot be measured on the train questions"),
        ({"metric": "evidence_f1"}, "evidence_f1 cannot be measured on the train questions"),
        ({"cost": "money"}, "no cost 'money': choose from lm_calls"),
        ({"freeze": ("no.*",)}, "no tunable 'no.\\*'"),
        ({"sampler": "magic"}, "no sampler 'magic'"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_asked(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    engine = Engine()
    with pytest.raises(PolyhopError, match=message):
        run(tmp_path / "run", replace(PLAN, **change), engine)
    assert engine.calls == 0


def test_what_a_model_says_of_itself_in_an_error_is_not_kept(tmp_path: Path) -> None:
    class Leaking(Engine):
        def complete(self, request: Any) -> Any:
            if "after 3?" in str(request):
                raise RuntimeError("https://gpu7.example refused the key sk-live-1234")
            return super().complete(request)

    run(tmp_path / "run", replace(PLAN, stages=("tunables",), trials=3), Leaking())
    for file in (tmp_path / "run/best").rglob("*"):
        assert b"sk-live" not in file.read_bytes(), file


def test_a_budget_for_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BudgetSpent):
        run(tmp_path / "run", budget=Budget(calls=10))


def test_a_finished_run_is_not_played_again(tmp_path: Path) -> None:
    plan = replace(PLAN, stages=("tunables",))
    first = run(tmp_path / "run", plan)
    engine = Engine()
    again = run(tmp_path / "run", plan, engine)
    assert engine.calls == 0
    assert {**again, "spent": 0} == {**first, "spent": 0}


def test_a_run_goes_on_after_ctrl_c(tmp_path: Path) -> None:
    plan = replace(PLAN, stages=("tunables",))
    whole = run(tmp_path / "whole", plan)

    class Impatient(Engine):
        def complete(self, request: Any) -> Any:
            if self.calls == 300:
                raise KeyboardInterrupt
            return super().complete(request)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", plan, Impatient())
    engine = Engine()
    summary = run(tmp_path / "run", plan, engine)
    assert engine.calls < whole["spent"]["calls"]
    assert summary["stages"] == whole["stages"]
    assert (tmp_path / "run/best/state.json").read_bytes() == (tmp_path / "whole/best/state.json").read_bytes()


def test_other_settings_are_refused(tmp_path: Path) -> None:
    plan = replace(PLAN, stages=("tunables",))
    run(tmp_path / "run", plan)
    with pytest.raises(RunError, match=r"plan.trials: 8 before, 9 now"):
        run(tmp_path / "run", replace(plan, trials=9))
    with pytest.raises(RunError, match=r"questions.train"):
        optimize(lambda: make(Engine()), replace(SPLITS, train=examples(300, 5)), tmp_path / "run", plan=plan)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(RunError, match="holds thesis.txt"):
        run(tmp_path / "other", plan)


def test_a_second_round_is_played_only_if_the_first_one_helped(tmp_path: Path) -> None:
    plan = replace(PLAN, stages=("exemplars",), rounds=3)
    summary = run(tmp_path / "run", plan)
    assert len(summary["stages"]) == 2
    assert summary["ended"] == "no stage of a round helped"


def test_a_program_that_always_fails_is_an_error(tmp_path: Path) -> None:
    class Broken(Engine):
        def complete(self, request: Any) -> Any:
            raise RuntimeError("no model here")

    with pytest.raises(PolyhopError, match="failed on every validation question: .*no model here"):
        run(tmp_path / "run", engine=Broken())


def test_costs_that_a_cache_hides_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PolyhopError, match="tokens_in says nothing while replies come from DSPy's cache"):
        optimize(lambda: make(Engine(), cache=True), SPLITS, tmp_path / "run", plan=replace(PLAN, cost="tokens_in"))


def test_a_model_of_the_context_is_on_the_account_too(tmp_path: Path) -> None:
    engine = Engine()
    with dspy.context(lm=dspy.LM("tiny/model", engine=engine, cache=False)):
        summary = optimize(Tiny, SPLITS, tmp_path / "run", plan=replace(PLAN, stages=("tunables",), trials=2))
    assert summary["spent"]["calls"] == engine.calls


def test_nothing_of_a_key_is_in_the_folder(tmp_path: Path) -> None:
    writer = dspy.LM(
        "openai/gpt-4o-mini", api_key="sk-planted", headers={"X": "sk-planted"}, api_base="http://sk-planted"
    )
    run(tmp_path / "run", replace(PLAN, stages=("tunables",), trials=2), prompt_model=writer)
    for file in (tmp_path / "run").rglob("*"):
        assert not file.is_file() or b"sk-planted" not in file.read_bytes(), file
    assert json.loads((tmp_path / "run/manifest.json").read_bytes())["program"]["lms"]["answerer"]["model"]


def test_nothing_stays_in_a_folder_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(RunError):
        Checkpoint(tmp_path, {"plan": {}})
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]
