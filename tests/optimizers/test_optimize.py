"""The optimization of a program, with a model that every stage can help."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.errors import PolyhopError
from polyhop.eval.folder import RunError
from polyhop.optimizers.artifact import load, read
from polyhop.optimizers.optimize import OptimizationSummary, Progress, judge, optimize
from polyhop.optimizers.settings import OptimizationSettings, Splits, divide, read_settings

from ..eval.report.test_runs import line, write
from .tiny import Engine, Tiny, examples, make

SPLITS = Splits(examples(0, 16), examples(100, 40), examples(200, 8))
SETTINGS = OptimizationSettings(
    metric="answer_em", optimizer="dspy:BootstrapFewShot", trials=6, seed=3, ranges={"effort": (3, 7)}
)


@pytest.fixture(autouse=True)
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.optimizers.stages.EXEMPLAR_TRIALS", 5)


def changed(**more: Any) -> OptimizationSettings:
    return OptimizationSettings.model_validate({**SETTINGS.model_dump(), **more})


SEARCH = changed(stages=("tunables",))  # one comparison


def run(
    out: Path, settings: OptimizationSettings = SEARCH, engine: Engine | None = None, **more: Any
) -> OptimizationSummary:
    return optimize(make(engine or Engine()), SPLITS, out, settings, **more)


class Watching(Engine):
    """Notes the stages of the requests, and to which split (0, 1, 2) their questions belong."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[str] = []
        self.seen: dict[str, set[int]] = {}

    def watch(self, progress: Progress) -> None:
        self.stages.append(progress.stage if "validation" not in progress.detail else "validation")

    def complete(self, request: Any) -> Any:
        text = "".join(part.text for part in request.messages[-1].parts)
        number = int(text.partition("the number after ")[2].partition("?")[0])
        self.seen.setdefault(self.stages[-1] if self.stages else "", set()).add(number // 100)
        return super().complete(request)


def test_stages_are_kept_if_they_help(tmp_path: Path) -> None:
    engine = Watching()
    stages = ("prompts", "exemplars", "tunables")
    summary = run(tmp_path / "run", changed(stages=stages, budget_calls=20_000), engine, on_progress=engine.watch)
    assert summary.ended == "all stages ran"
    assert [(stage.stage, stage.kept) for stage in summary.stages] == [
        ("start", True),
        ("prompts", True),
        ("exemplars", False),  # it has demos, and plans do not help this program
        ("tunables", True),
    ]
    scores = [stage.score or 0.0 for stage in summary.stages]
    assert scores[0] < scores[1] < scores[3]
    assert summary.test
    assert summary.test.start.mean < summary.test.best.mean
    assert list(dict.fromkeys(engine.stages)) == ["validation", *stages, "test"]
    assert "plans added, of 16 gold and " in summary.stages[2].note
    assert "8 sets of demos from " in summary.stages[2].note
    assert 2 not in set().union(*(seen for stage, seen in engine.seen.items() if stage != "test"))
    assert 2 in engine.seen["test"]
    best = load(tmp_path / "run" / "best", program=Tiny())
    assert best.effort.value > Tiny().effort.value
    assert best.answerer.demos
    record = read(tmp_path / "run" / "best").provenance
    assert record.scores["test"]["answer_em"].mean == summary.test.best.mean
    assert record.splits["test"].count == 8


# --- the verdict -----------------------------------------------------------------------------------------------------


def evaluation(path: Path, right: Sequence[float], calls: float = 2.0) -> Path:
    """An evaluation with these scores."""
    costs = {"lm_calls": calls, "seconds": 0.1}
    lines = [line(n, scores={"answer_em": score}, costs=costs) for n, score in enumerate(right)]
    return write(path, lines, count=len(lines))


OLD = [0.0] * 10 + [1.0] * 10


@pytest.mark.parametrize(
    ("changes", "level", "kept", "why", "p"),
    [
        (6, 0.05, True, "better", 2 / 2**6),  # all of the changes are improvements
        (5, 0.05, False, "not significantly better", 2 / 2**5),  # one-sided it would be 0.031
        (5, 0.07, True, "better", 2 / 2**5),
        (5, 0.0625, False, "not significantly better", 2 / 2**5),  # p must be less than the level
        (0, 0.05, False, "not better", 1.0),
        (-8, 0.05, False, "not better", 2 / 2**8),  # worse, and that for sure
    ],
)
def test_a_candidate_must_be_significantly_better(
    changes: int, level: float, kept: bool, why: str, p: float, tmp_path: Path
) -> None:
    new = [*OLD]
    for n in range(abs(changes)):
        new[n if changes > 0 else 10 + n] = float(changes > 0)
    verdict = judge(
        evaluation(tmp_path / "new", new), evaluation(tmp_path / "old", OLD), changed(stages=("tunables",), level=level)
    )
    assert (verdict["kept"], verdict["why"]) == (kept, why)
    assert verdict["gain"] == pytest.approx(changes / 20)
    assert verdict["p"] == pytest.approx(p)


@pytest.mark.parametrize(
    ("right", "calls", "kept", "why"),
    [
        (10, 1.0, True, "cheaper and not worse"),
        (9, 1.0, False, "neither better nor cheaper"),  # one question lost
        (10, 2.0, False, "neither better nor cheaper"),
        (18, 3.0, True, "better"),  # quality first
    ],
)
def test_a_cheaper_candidate_is_kept_if_nothing_is_lost(
    right: int, calls: float, kept: bool, why: str, tmp_path: Path
) -> None:
    new = evaluation(tmp_path / "new", [0.0] * (20 - right) + [1.0] * right, calls)
    verdict = judge(new, evaluation(tmp_path / "old", OLD), changed(stages=("tunables",), cost="lm_calls"))
    assert (verdict["kept"], verdict["why"]) == (kept, why)
    assert verdict["saved"] == pytest.approx(2.0 - calls)


@pytest.mark.parametrize(
    ("more", "comparisons", "changes", "least"),  # p is 2 / 2 ** changes, and must be below 0.05 / comparisons
    [
        ({"stages": ("tunables",)}, 1, 6, 6),
        ({"stages": ("tunables",), "cost": "lm_calls"}, 2, 7, 7),
        ({}, 3, 7, 7),
        ({"stages": ("prompts", "tunables") * 4 + ("prompts",)}, 9, 9, 9),
        ({"stages": ("prompts", "tunables") * 3, "cost": "lm_calls"}, 12, 9, 9),
    ],
)
def test_each_test_has_its_share_of_the_level(
    more: dict[str, Any], comparisons: int, changes: int, least: int, tmp_path: Path
) -> None:
    settings = changed(**more)
    assert (settings.comparisons, settings.least_questions) == (comparisons, least)
    old = evaluation(tmp_path / "old", OLD)
    for better, kept in ((changes - 1, False), (changes, True)):
        new = evaluation(tmp_path / f"new{better}", [1.0] * better + OLD[better:])
        assert judge(new, old, settings)["kept"] == kept


def test_too_few_questions_are_told_before_anything_is_asked(tmp_path: Path) -> None:
    engine = Engine()
    few = replace(SPLITS, val=examples(100, 6))
    with (
        warnings.catch_warnings(action="error"),
        pytest.raises(UserWarning, match=r"p < 0.017 needs 7 validation questions or more, and there are 6"),
    ):
        optimize(make(engine), few, tmp_path / "run", SETTINGS)
    assert engine.calls == 0


# --- budgets ---------------------------------------------------------------------------------------------------------


def test_budgets_are_never_exceeded(tmp_path: Path) -> None:
    engine = Engine()
    with dspy.context(lm=dspy.LM("tiny/model", engine=engine, cache=False)):  # also that of a model of the context
        summary = optimize(Tiny(), SPLITS, tmp_path / "run", changed(budget_calls=300, threads=16))
    assert engine.calls <= 300
    assert summary.spent.calls == engine.calls
    assert "allows no further stage" in summary.ended


def test_the_final_measurement_is_reserved_from_the_start(tmp_path: Path) -> None:
    splits = Splits(examples(0, 16), examples(100, 12), examples(200, 24))
    settings = changed(stages=("tunables",), trials=20, budget_calls=200)
    summary = optimize(make(Engine()), splits, tmp_path / "run", settings)
    assert "allows no further stage" in summary.ended
    assert summary.test is not None


def test_a_search_that_the_budget_ends_proposes_its_best_trial(tmp_path: Path) -> None:
    engine = Engine()
    settings = {"stages": ("tunables", "prompts"), "trials": 40}
    summary = run(tmp_path / "run", changed(**settings, budget_calls=350), engine)
    assert engine.calls <= 350
    assert str(summary.stages[1].note).startswith("40 trials, ended by the budget after ")
    assert summary.stages[1].kept
    again = run(tmp_path / "run", changed(**settings, budget_calls=500))  # the search has ended as it did
    assert [stage.stage for stage in again.stages] == [stage.stage for stage in summary.stages]


# --- settings --------------------------------------------------------------------------------------------------------


def asked(text: str) -> dspy.Example:
    return dspy.Example(question=text, answers=["x"]).with_inputs("question")


def test_files_hold_settings(tmp_path: Path) -> None:
    toml = tmp_path / "mine.toml"
    toml.write_text('metric = "answer_f1"\nstages = ["tunables"]\ntrials = 7\n[ranges]\nrounds = [1, 3]\n')
    settings = OptimizationSettings.of(read_settings(toml))
    assert (settings.metric, settings.stages, settings.trials) == ("answer_f1", ("tunables",), 7)
    assert settings.ranges == {"rounds": (1, 3)}
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"settings": settings.model_dump(mode="json"), "program": {}}))
    assert OptimizationSettings.of(read_settings(manifest)) == settings
    for content in ("trials =", "settings = 3"):
        toml.write_text(content)
        with pytest.raises(PolyhopError, match="mine.toml is not a TOML or JSON file with settings"):
            read_settings(toml)
    with pytest.raises(PolyhopError, match="missing.toml is not"):
        read_settings(tmp_path / "missing.toml")


def test_splits_share_no_question() -> None:
    one, two, three = map(asked, ("One?", "Two?", "Three?"))
    Splits([one, one], [two], [three])
    with pytest.raises(PolyhopError, match="in both train and test: 'One\\?'"):
        Splits([one], [two], [three, asked("One?")])
    with pytest.raises(PolyhopError, match="no val questions"):
        Splits([one], [], [three])


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(0, 5))
def test_division_keeps_equal_questions_together(numbers: list[int], seed: int) -> None:
    questions = [asked(f"What is {number}?") for number in numbers]
    parts = divide(questions, (0.5, 0.25, 0.25), seed)
    assert sorted(map(id, questions)) == sorted(id(question) for part in parts for question in part)
    texts = [{question.question for question in part} for part in parts]
    assert not texts[0] & texts[1]
    assert not texts[0] & texts[2]
    assert not texts[1] & texts[2]
    assert [[q.question for q in part] for part in parts] == [
        [q.question for q in part] for part in divide(questions, (0.5, 0.25, 0.25), seed)
    ]


# --- interrupted and resumed -----------------------------------------------------------------------------------------


def test_a_run_resumes_after_ctrl_c_and_a_finished_one_asks_nothing(tmp_path: Path) -> None:
    class Impatient(Engine):
        def complete(self, request: Any) -> Any:
            if self.calls == 200:
                raise KeyboardInterrupt
            return super().complete(request)

    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", engine=Impatient())
    engine = Engine()
    summary = run(tmp_path / "run", engine=engine)
    assert engine.calls < whole.spent.calls
    assert summary.stages == whole.stages
    assert read(tmp_path / "run/best").state == read(tmp_path / "whole/best").state
    engine = Engine()
    again = run(tmp_path / "run", changed(stages=("tunables",), threads=2), engine)  # resources may change
    assert engine.calls == 0
    assert again.model_copy(update={"spent": summary.spent}) == summary
    with pytest.raises(RunError, match=r"settings.trials: 6 before, 9 now"):
        run(tmp_path / "run", changed(stages=("tunables",), trials=9))
    with pytest.raises(RunError, match=r"questions.train"):
        optimize(make(Engine()), replace(SPLITS, train=examples(300, 5)), tmp_path / "run", SEARCH)


# --- failures and secrets --------------------------------------------------------------------------------------------


def test_neither_keys_nor_error_messages_are_written(tmp_path: Path) -> None:
    class Leaking(Engine):
        def complete(self, request: Any) -> Any:
            if "after 3?" in str(request):
                raise RuntimeError("https://gpu7.example refused the key sk-live-1234")
            return super().complete(request)

    planted = {"api_key": "sk-planted", "headers": {"X": "sk-planted"}, "api_base": "http://sk-planted"}
    writer = dspy.LM("openai/gpt-4o-mini", **planted)
    run(tmp_path / "run", changed(stages=("tunables",), trials=2), Leaking(), prompt_model=writer)
    for file in (tmp_path / "run").rglob("*"):
        assert not file.is_file() or b"sk-planted" not in file.read_bytes(), file
    for file in (tmp_path / "run/best").rglob("*"):
        assert b"sk-live" not in file.read_bytes(), file
    assert json.loads((tmp_path / "run/manifest.json").read_bytes())["program"]["lms"]["answerer"]["model"]
