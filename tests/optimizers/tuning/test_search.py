"""The teleprompter: better values for any program, resumed as it would have gone on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tuning import Outcome, Progress, TunableSearch
from polyhop.optimizers.tuning.sampler import SAMPLERS
from polyhop.programs.trace import Answered, Trace
from polyhop.programs.tunable import integer, real, tunables

from .world import Hill, height, numbered, told

SMALL: dict[str, Any] = {"trials": 12, "storage": None}


def values(program: dspy.Module) -> dict[str, Any]:
    return {name: tunable.value for name, tunable in tunables(program).items()}


def outcome(search: TunableSearch) -> Outcome:
    assert search.outcome is not None
    return search.outcome


# --- what it finds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_it_finds_better_values_and_leaves_the_student_alone(sampler: str) -> None:
    student = deepcopy(Hill())
    search = TunableSearch(height, trials=40, sampler=sampler, storage=None)
    tuned = search.compile(student, trainset=numbered(5), valset=numbered(30))
    found = outcome(search)
    assert values(student) == values(Hill())
    assert isinstance(tuned, Hill)
    assert values(tuned) == found.best.values
    assert found.best.score > found.default.score + 0.3
    assert found.trials[0].values == values(student)
    assert set(found.best.scores) == set(range(30))  # of the valset, in full
    assert sum(found.states[state] for state in ("complete", "pruned")) == 40
    assert found.importances["width"] > 10 * found.importances["style"]


def test_without_a_valset_the_trainset_is_asked() -> None:
    search = TunableSearch(height, **SMALL)
    search.compile(Hill(), trainset=numbered(7))
    assert len(outcome(search).best.scores) == 7


def test_frozen_tunables_keep_their_values() -> None:
    search = TunableSearch(height, freeze=["width", "st*"], ranges={"rounds": (1, 3)}, **SMALL)
    tuned = values(search.compile(Hill(), valset=numbered(10)))
    assert (tuned["width"], tuned["rounds"], tuned["style"]) == (0.1, 3, "fancy")


def test_of_equal_trials_the_defaults_stay() -> None:
    search = TunableSearch(lambda example, prediction: 1.0, **SMALL)
    assert values(search.compile(Hill(), valset=numbered(10))) == values(Hill())
    assert outcome(search).importances == {}


def test_a_grid_ends_with_its_last_point() -> None:
    search = TunableSearch(height, sampler="grid", freeze=["width"], points=6, storage=None)
    search.compile(Hill(), valset=numbered(10))
    tried = [tuple(trial.values.values()) for trial in outcome(search).trials]
    assert len(tried) == len(set(tried)) == 6 * 2


def test_bad_trials_are_pruned_and_never_chosen() -> None:
    asked: list[str] = []
    search = TunableSearch(height, trials=30, storage=None)
    search.compile(Hill(asked.append), valset=numbered(60))
    pruned = [trial for trial in outcome(search).trials if trial.state == "pruned"]
    assert pruned
    assert all(20 <= len(trial.scores) < 60 and len(trial.scores) % 10 == 0 for trial in pruned)
    assert len(asked) == sum(len(trial.scores) for trial in outcome(search).trials)
    assert len({frozenset(trial.scores) for trial in pruned}) > 1  # each trial asks in its own order
    unpruned = TunableSearch(height, trials=30, prune=False, storage=None)
    unpruned.compile(Hill(), valset=numbered(60))
    assert outcome(unpruned).states["pruned"] == 0


def test_threads_change_nothing() -> None:
    searches = [TunableSearch(height, trials=15, threads=threads, storage=None) for threads in (1, 4)]
    for search in searches:
        search.compile(Hill(), valset=numbered(40))
    assert told(searches[0]) == told(searches[1])
    assert outcome(searches[0]).states["pruned"] > 0


# --- costs -----------------------------------------------------------------------------------------------------------


class Costly(dspy.Module):
    """More rounds are better, with less and less to gain, and each is a call."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = integer(2, 1, 6)
        self.useless = real(0.5, 0.0, 1.0)

    def forward(self, question: str) -> dspy.Prediction:
        trace, rounds = Trace(), self.rounds.value
        for _ in range(rounds):
            trace.add(Answered("", "a", 1.0))
        noise = 0.05 * math.sin(float(question) * (1 + rounds))
        gained = {1: 0.2, 2: 0.5, 3: 0.8, 4: 0.9, 5: 0.901, 6: 0.902}[rounds]
        return dspy.Prediction(trace=trace, height=gained + noise)


def test_a_cost_makes_a_front_of_which_the_cheapest_of_the_best_is_taken() -> None:
    search = TunableSearch(height, trials=40, cost="lm_calls", storage=None)
    tuned = search.compile(Costly(), valset=numbered(40))
    found = outcome(search)
    calls = [trial.costs["lm_calls"] for trial in found.front]
    scores = [trial.score for trial in found.front]
    assert calls == sorted(set(calls))
    assert scores == sorted(scores)
    assert {1.0, 2.0, 3.0, 4.0} <= set(calls)
    assert values(tuned)["rounds"] == 4  # 5 and 6 are better by less than a standard error
    assert found.best in found.front
    assert found.states["pruned"] == 0


def test_limits_are_kept() -> None:
    search = TunableSearch(height, trials=20, at_most={"lm_calls": 3.5, "searches": 0}, storage=None)
    tuned = search.compile(Costly(), valset=numbered(30))
    assert values(tuned)["rounds"] == 3
    assert any(trial.costs["lm_calls"] > 3.5 and trial.score > 0.8 for trial in outcome(search).trials)


def test_limits_that_nothing_keeps_are_an_error() -> None:
    search = TunableSearch(height, trials=5, at_most={"lm_calls": 0.5}, storage=None)
    with pytest.raises(
        PolyhopError, match="none is within the limits {'lm_calls': 0.5}; the least .* {'lm_calls': '1'}"
    ):
        search.compile(Costly(), valset=numbered(10))


def test_a_cost_that_is_not_known_is_an_error() -> None:
    with pytest.raises(PolyhopError, match="no cost 'euros'; it has .*lm_calls.*seconds"):
        TunableSearch(height, cost="euros", **SMALL).compile(Costly(), valset=numbered(3))


# --- failures --------------------------------------------------------------------------------------------------------


def failing(question: str) -> None:
    if int(question) % 4 == 1:
        raise RuntimeError("no luck")


def test_a_failed_question_counts_nothing_and_is_told_of() -> None:
    search = TunableSearch(height, **SMALL)
    search.compile(Hill(failing), valset=numbered(12))
    best = outcome(search).best
    assert (best.failures, best.scores[1], best.error) == (3, 0.0, "RuntimeError: no luck")
    assert best.score > 0.6


def test_when_every_question_fails_the_search_stops_and_can_be_continued(tmp_path: Path) -> None:
    down = [False]

    def sometimes(question: str) -> None:
        if down[0]:
            raise ConnectionError("the model is down")

    def stop(progress: Progress) -> None:
        down[0] = progress.done == 3

    search = TunableSearch(height, trials=6, storage=tmp_path / "study.journal", on_trial=stop)
    with pytest.raises(PolyhopError, match="every question of trial 3 .* fails: ConnectionError: the model is down"):
        search.compile(Hill(sometimes), valset=numbered(8))
    down[0] = False
    search.compile(Hill(sometimes), valset=numbered(8))
    assert outcome(search).states == {"complete": 6, "pruned": 0, "failed": 0, "retried": 1}


class Picky(Hill):
    """Does not bear every combination of values."""

    def deepcopy(self) -> Picky:
        copy: Picky = super().deepcopy()
        kind = type(copy.rounds)

        class Refusing(kind):  # type: ignore[misc, valid-type]
            def __setattr__(self, name: str, value: Any) -> None:
                if name == "value" and value > 4:
                    raise PolyhopError("too many rounds")
                super().__setattr__(name, value)

        copy.rounds.__class__ = Refusing
        return copy


def test_values_that_a_program_refuses_are_a_failed_trial() -> None:
    search = TunableSearch(height, trials=20, sampler="random", storage=None)
    search.compile(Picky(), valset=numbered(8))
    failed = [trial for trial in outcome(search).trials if trial.state == "failed"]
    assert failed
    assert all(trial.values["rounds"] > 4 and trial.error == "too many rounds" for trial in failed)
    assert outcome(search).best.values["rounds"] <= 4


def test_a_broken_metric_is_an_error() -> None:
    with pytest.raises(PolyhopError, match="the metric failed on '.*ValueError: it returns nan, which is no score"):
        TunableSearch(lambda example, prediction: float("nan"), **SMALL).compile(Hill(), valset=numbered(3))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trials": 0}, "at least one trial, got 0"),
        ({"sampler": "best"}, "no sampler 'best'"),
        ({"sampler": "cmaes", "cost": "lm_calls"}, "cmaes goes by the score alone"),
        ({"freeze": ["depth"]}, "no tunable 'depth'"),
    ],
)
def test_wrong_settings_are_errors(given: dict[str, Any], said: str) -> None:
    with pytest.raises(PolyhopError, match=said):
        TunableSearch(height, **{**SMALL, **given}).compile(Hill(), valset=numbered(3))


def test_no_questions_are_an_error() -> None:
    with pytest.raises(PolyhopError, match="no questions to tune on"):
        TunableSearch(height, **SMALL).compile(Hill(), valset=[])


# --- stopped and taken up again --------------------------------------------------------------------------------------


class Spent(BaseException):
    """What a budget raises."""


def after(count: int, error: type[BaseException]) -> Callable[[str], None]:
    left = [count]

    def ask(question: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise error

    return ask


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("prune", [True, False])
def test_a_search_that_was_stopped_ends_as_it_would_have(sampler: str, prune: bool, tmp_path: Path) -> None:
    def search(storage: Path | None) -> TunableSearch:
        return TunableSearch(height, trials=25, sampler=sampler, prune=prune, storage=storage, seed=5)

    whole = search(None)
    whole.compile(Hill(), valset=numbered(30))
    stopped = 0
    while True:
        part = search(tmp_path / "study.journal")
        try:
            part.compile(Hill(after(83 + 50 * stopped, Spent)), valset=numbered(30))
        except Spent:
            stopped += 1
        else:
            break
    assert stopped >= 2
    assert told(part) == told(whole)
    assert outcome(part).best.values == outcome(whole).best.values
    assert outcome(part).importances == outcome(whole).importances
    assert outcome(part).states["retried"] == stopped


def test_two_objectives_are_continued_alike(tmp_path: Path) -> None:
    def search(storage: Path | str | None, trials: int = 14) -> TunableSearch:
        return TunableSearch(height, trials=trials, cost="lm_calls", at_most={"searches": 2}, storage=storage)

    whole, database = search(None), f"sqlite:///{tmp_path}/study.db"
    whole.compile(Costly(), valset=numbered(10))
    search(database, 11).compile(Costly(), valset=numbered(10))
    part = search(database)
    part.compile(Costly(), valset=numbered(10))
    assert told(part) == told(whole)


def test_a_finished_search_asks_nothing_more(tmp_path: Path) -> None:
    asked: list[str] = []
    search = TunableSearch(height, trials=4, storage=tmp_path / "study.journal")
    first = search.compile(Hill(), valset=numbered(8))
    again = search.compile(Hill(asked.append), valset=numbered(8))
    assert asked == []
    assert values(first) == values(again)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"seed": 1}, "seed: 0 before, 1 now"),
        ({"metric": lambda example, prediction: 1.0}, "metric: height before, <lambda> now"),
        ({"freeze": ["width"]}, "space.width: .* before, nothing now"),
        ({"sampler": "random"}, "sampler: tpe before, random now"),
    ],
)
def test_another_search_on_the_same_storage_is_refused(other: dict[str, Any], said: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"metric": height, "trials": 3, "storage": tmp_path / "study.journal"}
    TunableSearch(**given).compile(Hill(), valset=numbered(8))
    with pytest.raises(PolyhopError, match=f"started with other settings:\n  {said}"):
        TunableSearch(**{**given, **other}).compile(Hill(), valset=numbered(8))


def test_other_questions_and_another_program_are_another_search(tmp_path: Path) -> None:
    search = TunableSearch(height, trials=2, storage=tmp_path / "study.journal")
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


# --- what it tells ---------------------------------------------------------------------------------------------------


def test_progress_is_told_trial_by_trial(tmp_path: Path) -> None:
    for start, end in ((0, 6), (6, 9)):
        heard: list[Progress] = []
        search = TunableSearch(height, trials=end, storage=tmp_path / "study.journal", on_trial=heard.append)
        search.compile(Hill(), valset=numbered(30))
        assert [progress.slot for progress in heard] == list(range(start, end))
        assert [progress.done for progress in heard] == list(range(start + 1, end + 1))
        assert heard[-1].trials == end
        assert heard[-1].best == outcome(search).best.score


def test_the_outcome_is_json() -> None:
    search = TunableSearch(height, trials=15, cost="seconds", storage=None)
    search.compile(Hill(), valset=numbered(6))
    told = json.loads(json.dumps(outcome(search).as_json(), allow_nan=False))
    assert told["best"]["values"] == outcome(search).best.values
    assert told["default"]["slot"] == 0
    assert told["states"] == {"complete": 15, "pruned": 0, "failed": 0, "retried": 0}
    assert told["settings"]["sampler"] == "tpe"
    assert told["settings"]["seed"] == 0
    assert set(told["settings"]["versions"]) == {"polyhop", "dspy", "optuna", "cmaes"}
    assert {"settings", "front", "importances", "trials"} < set(told)


# --- DSPy's cache ----------------------------------------------------------------------------------------------------


class Counter:
    """An engine that counts what it is really asked."""

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
    search = TunableSearch(height, trials=10, freeze=["hints"], storage=None)
    search.compile(program, valset=numbered(6))
    assert engine.calls == 6  # of 60: the threshold does not reach the model
    search = TunableSearch(height, trials=8, sampler="grid", freeze=["threshold"], storage=None)
    search.compile(program, valset=numbered(6))
    assert len(outcome(search).trials) == 4
    assert engine.calls == 6 * 4  # every other number of hints is another prompt
