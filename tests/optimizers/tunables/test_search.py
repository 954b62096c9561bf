"""The teleprompter: better values for any program; a resumed search ends like an uninterrupted one."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15

from polyhop.data.errors import PolyhopError
from polyhop.eval.workers import Processes
from polyhop.optimizers.tunables import StudyResult, TrialProgress, TunableSearch
from polyhop.optimizers.tunables.sampling import SAMPLERS
from polyhop.programs.tunable import integer, real, tunables

from .world import Costly, Hill, Parts, height, numbered

SMALL: dict[str, Any] = {"trials": 12, "storage": None}


def values(program: dspy.Module) -> dict[str, Any]:
    return {name: tunable.value for name, tunable in tunables(program).items()}


def result(search: TunableSearch) -> StudyResult:
    assert search.result is not None
    return search.result


def facts(search: TunableSearch) -> list[Any]:
    """All trials, without their costs, which include seconds."""
    return [(trial.model_dump(exclude={"costs"}), trial.scores) for trial in result(search).trials]


# --- what it finds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_better_values_are_found_and_the_student_is_unchanged(sampler: str) -> None:
    student = deepcopy(Hill())
    search = TunableSearch(height, trials=40, sampler=sampler, storage=None)
    tuned = search.compile(student, trainset=numbered(5), valset=numbered(30))
    found = result(search)
    assert values(student) == values(Hill())
    assert isinstance(tuned, Hill)
    assert values(tuned) == found.best.values
    assert (found.best.score or 0) > (found.default.score or 1) + 0.3
    assert found.trials[0].values == values(student)
    assert set(found.best.scores) == set(range(30))  # of the valset, in full
    assert sum(found.states.values()) == 40
    assert found.importances["width"] > 10 * found.importances["style"]


def test_frozen_tunables_keep_their_values() -> None:
    search = TunableSearch(height, freeze=["width", "st*"], ranges={"rounds": (1, 3)}, **SMALL)
    tuned = values(search.compile(Hill(), trainset=numbered(10)))
    assert (tuned["width"], tuned["rounds"], tuned["style"]) == (0.1, 3, "fancy")
    assert len(result(search).best.scores) == 10  # without a valset the trainset


def test_a_search_begins_with_the_best_trials_of_an_earlier_one() -> None:
    earlier = TunableSearch(height, trials=40, storage=None)
    earlier.compile(Hill(), valset=numbered(30))
    leading = result(earlier).leading
    assert leading[0] == result(earlier).best.values
    assert len(leading) == 5
    search = TunableSearch(height, trials=7, freeze=["style"], start=[*leading, {"gone": 1}], seed=9, storage=None)
    search.compile(Hill(), valset=numbered(10))
    tried = [trial.values for trial in result(search).trials]
    inside = [{name: values[name] for name in ("width", "rounds")} for values in leading]  # "style" is frozen
    assert tried[: 1 + len(inside)] == [{"width": 0.1, "rounds": 2}, *inside]
    assert (result(search).best.score or 0) > (result(search).default.score or 1) + 0.3


def test_importances_by_part_of_the_program() -> None:
    search = TunableSearch(height, trials=30, storage=None)
    search.compile(Parts(), valset=numbered(20))
    shares, found = result(search).by_module, result(search).importances
    assert list(shares) == ["hill", ""]
    assert shares == pytest.approx({"hill": sum(found.values()) - found["lift"], "": found["lift"]})


def test_the_defaults_are_kept_if_no_trial_is_better() -> None:
    search = TunableSearch(lambda example, prediction: 1.0, **SMALL)
    assert values(search.compile(Hill(), valset=numbered(10))) == values(Hill())
    assert result(search).importances == {}


def test_a_grid_ends_with_its_last_point() -> None:
    search = TunableSearch(height, sampler="grid", freeze=["width"], points=6, storage=None)
    search.compile(Hill(), valset=numbered(10))
    tried = [tuple(trial.values.values()) for trial in result(search).trials]
    assert len(tried) == len(set(tried)) == 6 * 2
    search = TunableSearch(height, sampler="grid", freeze=["width"], points=6, start=[{"rounds": 5}], storage=None)
    search.compile(Hill(), valset=numbered(10))
    tried = [tuple(trial.values.values()) for trial in result(search).trials]
    assert tried[1] == (5, "fancy")
    assert len(tried) == 2 + 6 * 2 - 1  # the first two, and the grid without the defaults
    assert len(set(tried)) == 6 * 2


def test_bad_trials_are_pruned_whatever_the_threads() -> None:
    asked: list[str] = []
    search = TunableSearch(height, trials=30, storage=None)
    search.compile(Hill(asked.append), valset=numbered(60))
    pruned = [trial for trial in result(search).trials if trial.state == "pruned"]
    assert pruned
    assert all(20 <= trial.questions < 60 and trial.questions % 10 == 0 for trial in pruned)
    assert len(asked) == sum(trial.questions for trial in result(search).trials)
    assert len({frozenset(trial.scores) for trial in pruned}) > 1  # each trial has an order of its own
    threaded = TunableSearch(height, trials=30, threads=4, storage=None)
    threaded.compile(Hill(), valset=numbered(60))
    assert facts(threaded) == facts(search)
    unpruned = TunableSearch(height, trials=30, prune=False, storage=None)
    unpruned.compile(Hill(), valset=numbered(60))
    assert result(unpruned).states["pruned"] == 0


# --- costs -----------------------------------------------------------------------------------------------------------


def test_a_cost_gives_a_front_whose_cheapest_good_trial_is_chosen() -> None:
    search = TunableSearch(height, trials=40, cost="lm_calls", storage=None)
    tuned = search.compile(Costly(), valset=numbered(40))
    found = result(search)
    calls = [trial.costs["lm_calls"] for trial in found.front]
    scores = [trial.score for trial in found.front]
    assert calls == sorted(set(calls))
    assert scores == sorted(scores, key=lambda score: score or 0)
    assert {1.0, 2.0, 3.0, 4.0} <= set(calls)
    assert values(tuned)["rounds"] == 4  # 5 and 6 are better by less than a standard error
    assert found.best in found.front
    assert found.states["pruned"] == 0


def test_limits_are_kept() -> None:
    search = TunableSearch(height, trials=20, at_most={"lm_calls": 3.5, "searches": 0}, storage=None)
    tuned = search.compile(Costly(), valset=numbered(30))
    assert values(tuned)["rounds"] == 3
    assert any(trial.costs["lm_calls"] > 3.5 and (trial.score or 0) > 0.8 for trial in result(search).trials)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"at_most": {"lm_calls": 0.5}}, "within the limits {'lm_calls': 0.5}; the lowest .* {'lm_calls': '1'}"),
        ({"cost": "euros"}, "no cost 'euros'; it has .*lm_calls.*seconds"),
        ({"metric": lambda *_: float("nan")}, "the metric failed on '.*ValueError: it returned nan, which is not"),
        ({"trials": 0}, "trials must be at least 1, got 0"),
        ({"executor": Processes(0)}, "workers and threads must be positive, got 0 and 1"),
        ({"sampler": "best"}, "no sampler 'best'"),
        ({"sampler": "cmaes", "cost": "lm_calls"}, "cmaes maximizes the score alone"),
        ({"freeze": ["depth"]}, "no tunable 'depth'"),
    ],
)
def test_invalid_searches(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        TunableSearch(**{"metric": height, **SMALL, **settings}).compile(Costly(), valset=numbered(10))


def test_a_search_needs_questions() -> None:
    with pytest.raises(PolyhopError, match="no questions to tune on"):
        TunableSearch(height, **SMALL).compile(Hill(), valset=[])
    with pytest.raises(PolyhopError, match="call compile first"):
        TunableSearch(height).tuned(Hill())


# --- failures --------------------------------------------------------------------------------------------------------


def failing(question: str) -> None:
    if int(question) % 4 == 1:
        raise RuntimeError("bad luck")


def test_a_failed_question_scores_0() -> None:
    search = TunableSearch(height, **SMALL)
    search.compile(Hill(failing), valset=numbered(12))
    best = result(search).best
    assert (best.failures, best.scores[1], best.failure) == (3, 0.0, "RuntimeError: bad luck")
    assert (best.score or 0) > 0.6


def test_when_every_question_fails_the_search_stops_and_can_be_resumed(tmp_path: Path) -> None:
    down = [False]

    def sometimes(question: str) -> None:
        if down[0]:
            raise ConnectionError("the model is down")

    def stop(progress: TrialProgress) -> None:
        down[0] = progress.done == 3

    search = TunableSearch(height, trials=6, storage=tmp_path / "study.journal", on_trial=stop)
    with pytest.raises(PolyhopError, match="every question of trial 3 .* failed: ConnectionError: the model is down"):
        search.compile(Hill(sometimes), valset=numbered(8))
    down[0] = False
    search.compile(Hill(sometimes), valset=numbered(8))
    assert result(search).states == {"complete": 6, "pruned": 0, "failed": 0}


class Picky(Hill):
    """Refuses some values."""

    def deepcopy(self) -> Picky:
        copy: Picky = super().deepcopy()
        copy.rounds.high = 4
        return copy


def test_values_that_a_program_refuses_are_a_failed_trial() -> None:
    search = TunableSearch(height, trials=20, sampler="random", storage=None)
    search.compile(Picky(), valset=numbered(8))
    failed = [trial for trial in result(search).trials if trial.state == "failed"]
    assert failed
    assert all(trial.values["rounds"] > 4 and "must be an integer in 1..4" in str(trial.error) for trial in failed)
    assert result(search).best.values["rounds"] <= 4


# --- interrupted and resumed -----------------------------------------------------------------------------------------


class Spent(BaseException):
    """What a budget raises."""


def after(count: int) -> Callable[[str], None]:
    left = [count]

    def ask(question: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Spent

    return ask


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_resumed_search_ends_like_an_uninterrupted_one(sampler: str, tmp_path: Path) -> None:
    def search(storage: Path | None) -> TunableSearch:
        return TunableSearch(height, trials=25, sampler=sampler, storage=storage, seed=5)

    whole = search(None)
    whole.compile(Hill(), valset=numbered(30))
    stopped = 0
    while True:
        part = search(tmp_path / "study.journal")
        try:
            part.compile(Hill(after(83 + 50 * stopped)), valset=numbered(30))
        except Spent:
            stopped += 1
        else:
            break
    assert stopped >= 2
    assert facts(part) == facts(whole)
    assert result(part).best.values == result(whole).best.values
    assert result(part).importances == result(whole).importances


def test_a_search_with_a_cost_resumes_in_a_database(tmp_path: Path) -> None:
    def search(storage: Path | str | None, trials: int = 14) -> TunableSearch:
        search = TunableSearch(height, trials=trials, cost="lm_calls", at_most={"searches": 2}, storage=storage)
        search.compile(Costly(), valset=numbered(10))
        return search

    database = f"sqlite:///{tmp_path}/study.db"
    search(database, 11)
    assert facts(search(database)) == facts(search(None))


def test_a_finished_search_asks_nothing(tmp_path: Path) -> None:
    asked: list[str] = []
    search = TunableSearch(height, trials=4, storage=tmp_path / "study.journal", executor=Processes(2))
    first = TunableSearch(height, trials=4, storage=tmp_path / "study.journal").compile(Hill(), valset=numbered(8))
    again = search.compile(Hill(asked.append), valset=numbered(8))
    assert asked == []
    assert values(first) == values(again)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, "seed: 0 before, 1 now"),
        ({"metric": lambda example, prediction: 1.0}, "metric: height before, <lambda> now"),
        ({"freeze": ["width"]}, "space.width: .* before, nothing now"),
        ({"sampler": "random"}, "sampler: tpe before, random now"),
        ({"start": [{"rounds": 5}]}, "start: "),
    ],
)
def test_another_search_in_the_same_storage_is_refused(other: dict[str, Any], message: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"metric": height, "trials": 3, "storage": tmp_path / "study.journal"}
    TunableSearch(**settings).compile(Hill(), valset=numbered(8))
    with pytest.raises(PolyhopError, match=f"was started with other settings:\n  {message}"):
        TunableSearch(**{**settings, **other}).compile(Hill(), valset=numbered(8))


def test_another_program_or_other_questions_are_refused(tmp_path: Path) -> None:
    search = TunableSearch(height, trials=3, storage=tmp_path / "study.journal")
    search.compile(Hill(), valset=numbered(8))
    changed = Hill()
    changed.rounds.value = 3
    with pytest.raises(PolyhopError, match="program.state_hash: .*\n  program.tunables.rounds: 2 before, 3 now"):
        search.compile(changed, valset=numbered(8))
    with pytest.raises(PolyhopError, match="questions.count: 8 before, 7 now"):
        search.compile(Hill(), valset=numbered(7))


def test_by_default_every_search_has_a_journal_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1, 1):
        TunableSearch(height, trials=2, seed=seed).compile(Hill(), valset=numbered(4))
    assert len(list((tmp_path / "runs" / "tuning").glob("*.journal"))) == 2


def test_progress_and_result(tmp_path: Path) -> None:
    for start, end in ((0, 6), (6, 9)):
        heard: list[TrialProgress] = []
        search = TunableSearch(height, trials=end, storage=tmp_path / "study.journal", on_trial=heard.append)
        search.compile(Hill(), valset=numbered(30))
        assert [progress.number for progress in heard] == list(range(start, end))
        assert [progress.done for progress in heard] == list(range(start + 1, end + 1))
        assert heard[-1].trials == end
        assert heard[-1].best == result(search).best.score
    written = json.loads(result(search).model_dump_json())
    assert written["best"]["values"] == result(search).best.values
    assert written["default"]["number"] == 0
    assert set(written["settings"]["versions"]) == {"polyhop", "dspy", "optuna", "cmaes"}
    assert StudyResult.model_validate(written).best.number == result(search).best.number


# --- DSPy's cache ----------------------------------------------------------------------------------------------------


class Counter:
    """An engine that counts its requests."""

    def __init__(self) -> None:
        self.calls = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Counter:
        return self

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.calls += 1
        message = lm15.Message.assistant("[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]")
        usage = lm15.Usage(input_tokens=1, output_tokens=1)
        return lm15.Response(id="c", model=request.model, message=message, usage=usage, finish_reason="stop")


class Hinted(dspy.Module):
    """Only ``hints`` changes the prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.hints = integer(0, 0, 3)
        self.threshold = real(0.5, 0.0, 1.0)
        self.answerer = dspy.Predict("question, hints -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        answer = self.answerer(question=question, hints=str(self.hints.value)).answer
        return dspy.Prediction(height=self.threshold.value + (answer == "yes"))


def test_unchanged_calls_are_answered_by_the_cache() -> None:
    engine = Counter()
    program = Hinted()
    program.set_lm(dspy.LM("counter", engine=engine, cache=True))
    TunableSearch(height, trials=10, freeze=["hints"], storage=None).compile(program, valset=numbered(6))
    assert engine.calls == 6  # of 60: the threshold does not reach the model
    search = TunableSearch(height, trials=8, sampler="grid", freeze=["threshold"], storage=None)
    search.compile(program, valset=numbered(6))
    assert len(result(search).trials) == 4
    assert engine.calls == 6 * 4  # every other number of hints is another prompt
