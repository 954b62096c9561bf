"""The search over tunables: what it finds, what it draws, and that a killed one ends like an uninterrupted one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from polyhop.data.errors import PolyhopError
from polyhop.engines.budget import BudgetSpent
from polyhop.optimizers.tunables import StudyResult, TrialRecord, TunableSearch, choose, search_space
from polyhop.programs import Prism, tunables
from polyhop.programs.tunable import choice, integer, real


class Hill(dspy.Module):
    """Its answer is a height, highest at width 0.7, rounds 4 and style "plain".

    Args:
        on_question: Called with each question.
    """

    def __init__(self, on_question: Callable[[str], Any] = len) -> None:
        super().__init__()
        self.width = real(0.1, 0.0, 1.0)
        self.rounds = integer(2, 1, 6)
        self.style = choice("fancy", ("fancy", "plain"))
        self.on_question = on_question

    def forward(self, question: str) -> dspy.Prediction:
        self.on_question(question)
        height = 1.0 - (self.width.value - 0.7) ** 2 - 0.03 * abs(self.rounds.value - 4)
        height -= 0.05 * (self.style.value == "fancy")
        return dspy.Prediction(height=height * (1 - 0.1 * math.sin(float(question))))


class Costly(dspy.Module):
    """More rounds are better, with diminishing returns, and each round is a call."""

    def __init__(self, on_question: Callable[[str], Any] = len) -> None:
        super().__init__()
        self.rounds = integer(2, 1, 6)
        self.useless = real(0.5, 0.0, 1.0)
        self.on_question = on_question

    def forward(self, question: str) -> dspy.Prediction:
        self.on_question(question)
        rounds = self.rounds.value
        noise = 0.05 * math.sin(float(question) * (1 + rounds))
        gained = {1: 0.2, 2: 0.5, 3: 0.8, 4: 0.9, 5: 0.901, 6: 0.902}[rounds]
        return dspy.Prediction(trace=SimpleNamespace(lm_calls=rounds), height=gained + noise)


def height(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
    return float(prediction.height)


def numbered(count: int) -> list[dspy.Example]:
    return [dspy.Example(question=str(n)).with_inputs("question") for n in range(count)]


def values(program: dspy.Module) -> dict[str, Any]:
    return {name: tunable.value for name, tunable in tunables(program).items()}


def result(search: TunableSearch) -> StudyResult:
    assert search.result is not None
    return search.result


def facts(search: TunableSearch) -> list[Any]:
    """All trials, without their costs, which include seconds."""
    return [(trial.model_dump(exclude={"costs"}), trial.scores) for trial in result(search).trials]


# --- what it finds ---------------------------------------------------------------------------------------------------


def test_better_values_are_found_and_the_student_is_unchanged() -> None:
    student = deepcopy(Hill())
    search = TunableSearch(height, trials=40)
    tuned = search.compile(student, trainset=numbered(5), valset=numbered(30))
    study = result(search)
    assert values(student) == values(Hill())
    assert values(tuned) == study.best.values
    assert study.best.score > study.trials[0].score + 0.3
    assert study.trials[0].values == values(student)
    assert set(study.best.scores) == set(range(30))  # of the valset, in full


def test_a_cost_gives_a_front_whose_cheapest_good_trial_is_chosen() -> None:
    search = TunableSearch(height, trials=40, cost="lm_calls")
    tuned = search.compile(Costly(), valset=numbered(40))
    study = result(search)
    calls, scores = [trial.costs["lm_calls"] for trial in study.front], [trial.score for trial in study.front]
    assert calls == sorted(set(calls))
    assert scores == sorted(set(scores))
    assert values(tuned)["rounds"] == 4  # 5 and 6 are better by less than a standard error
    assert not any(trial.pruned for trial in study.trials)


def trial(number: int, scores: Sequence[float], cost: float = 1.0, pruned: bool = False) -> TrialRecord:
    mean = sum(scores) / len(scores)
    return TrialRecord(
        number=number, values={}, score=mean, costs={"x": cost}, scores=dict(enumerate(scores)), pruned=pruned
    )


@pytest.mark.parametrize(
    ("trials", "cost", "best", "front"),
    [
        ([trial(0, [0, 0, 1]), trial(1, [1, 1, 1]), trial(2, [1, 1, 1])], None, 1, [1]),  # the first of equals
        ([trial(0, [0, 1, 1]), trial(1, [1, 1, 1])], None, 0, [0]),  # mean 1/3, standard error 1/3
        ([trial(0, [0, 0, 0]), trial(1, [1], pruned=True)], None, 0, [0]),
        ([trial(0, [0, 0, 0], 3), trial(1, [1, 1, 1], 2), trial(2, [1, 1, 1], 4)], "x", 1, [1]),
        ([trial(0, [0, 0, 0], 1), trial(1, [1, 1, 1], 2)], "x", 1, [0, 1]),
        ([trial(0, [0, 1, 1], 1), trial(1, [1, 1, 1], 2)], "x", 0, [0, 1]),
    ],
)
def test_choice(trials: list[TrialRecord], cost: str | None, best: int, front: list[int]) -> None:
    chosen, actual = choose(trials, cost)
    assert (chosen.number, [one.number for one in actual]) == (best, front)


# --- what it draws ---------------------------------------------------------------------------------------------------


def test_frozen_tunables_and_ranges() -> None:
    program = Prism()
    space = search_space(program, ["search.k1"], {"rounds": (3, 4), "search.b": (), "add": (True, False)})
    assert space["rounds"] == IntDistribution(3, 4)
    assert space["add"] == CategoricalDistribution((True, False))
    assert space["search.b"] == FloatDistribution(0.0, 1.0)
    assert "search.k1" not in space
    program.search.k1.value = 25
    assert search_space(program)["search.k1"] == FloatDistribution(0.0, 25.0)  # its usual range, and its value
    assert search_space(program, ranges={"search.k1": ()})["search.k1"] == FloatDistribution(0.0, 40.0)
    assert list(search_space(Hill(), ranges={"rounds": (2, 2), "style": ("fancy",)})) == ["width"]
    assert list(search_space(Hill(), ["width"], {"w*": (0.1, 0.2)})) == ["rounds", "style"]  # frozen counts


@pytest.mark.parametrize(
    ("freeze", "ranges", "message"),
    [
        (["height"], {}, "the program has no tunable 'height'; it has width, rounds, style"),
        (["*"], {}, "no tunables to search: all are frozen"),
        ([], {"rounds": (0, 3)}, "range of rounds, .*: must be an integer in 1..6, got 0"),
        ([], {"rounds": (3, 1)}, "its lowest and highest value"),
        ([], {"rounds": (1.5, 3)}, "must be an integer"),
        ([], {"width": (0.5, float("nan"))}, "must be a number in 0.0..1.0"),
        ([], {"style": ("fancy", "odd")}, "must be one of"),
    ],
)
def test_invalid_spaces(freeze: list[str], ranges: dict[str, Any], message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        search_space(Hill(), freeze, ranges)


class Switched(dspy.Module):
    """``kind`` matters while ``mode`` is "on", and ``bend`` while ``kind`` matters and is "bent"."""

    def __init__(self) -> None:
        super().__init__()
        self.bend = real(0.5, 0.0, 1.0, needs=("kind", ("bent",)))
        self.kind = choice("straight", ("straight", "bent"), needs=("mode", ("on",)))
        self.mode = choice("on", ("on", "off"))
        self.plain = integer(1, 0, 3)

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(height=self.bend.value * (self.mode.value == "on"))


def test_what_does_not_matter_is_not_drawn() -> None:
    search = TunableSearch(height, trials=40)
    search.compile(Switched(), valset=numbered(2))
    drawn = {
        (record.values["mode"], record.values.get("kind"), "bend" in record.values) for record in result(search).trials
    }
    assert drawn == {("on", "straight", False), ("on", "bent", True), ("off", None, False)}
    program = Switched()
    program.mode.value = "off"
    search = TunableSearch(height, trials=5, freeze=["mode"])
    search.compile(program, valset=numbered(2))
    assert {name for record in result(search).trials for name in record.values} == {"plain"}


# --- pruning and failures --------------------------------------------------------------------------------------------


def test_bad_trials_are_pruned_whatever_the_threads() -> None:
    asked: list[str] = []
    search = TunableSearch(height, trials=30)
    search.compile(Hill(asked.append), valset=numbered(60))
    pruned = [record for record in result(search).trials if record.pruned]
    assert pruned
    first = result(search).trials[0]
    assert not first.pruned
    assert {len(record.scores) for record in pruned} <= {12, 24, 48}
    assert len(asked) == sum(len(record.scores) for record in result(search).trials) < 30 * 60
    order = [int(question) for question in asked[:60]]
    assert sorted(order) == list(range(60)) != order  # a file may be sorted
    mean = sum(first.scores.values()) / 60
    for record in pruned:  # half of the questions are failures of the first trial; the score is the gain on these
        assert sum(first.scores[n] < mean for n in record.scores) == len(record.scores) / 2
        gain = sum(score - first.scores[n] for n, score in record.scores.items()) / len(record.scores)
        assert record.score == pytest.approx(mean + gain)
    threaded = TunableSearch(height, trials=30, threads=4)
    threaded.compile(Hill(), valset=numbered(60))
    assert facts(threaded) == facts(search)


def test_a_search_ends_where_nothing_gains() -> None:
    best = Hill()
    best.width.value, best.rounds.value, best.style.value = 0.6, 4, "plain"  # 0.01 is left to gain
    search = TunableSearch(height, trials=30)
    search.compile(best, valset=numbered(20))
    assert (len(result(search).trials), result(search).headroom) == (13, False)
    search = TunableSearch(height, trials=14)
    search.compile(Hill(), valset=numbered(20))
    assert (len(result(search).trials), result(search).headroom) == (14, True)


def test_variants_are_tuned_with_the_tunables(tmp_path: Path) -> None:
    """A variant has another attribute here; of a program it has other demos."""

    class Varied(Hill):
        def __init__(self, more: float = 0.0) -> None:
            super().__init__()
            self.more = more

        def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(height=super().forward(question).height + self.more)

    variants = [Varied(-0.3), Varied(0.3), Varied(0.1)]
    search = TunableSearch(height, trials=16, variants=variants, storage=tmp_path / "study.journal")
    tuned = search.compile(Varied(), valset=numbered(8))
    assert (tuned.more, result(search).best.values["variant"]) == (0.3, 1)
    assert result(search).trials[0].values["variant"] is None
    only = TunableSearch(height, trials=9, variants=variants, freeze=["*"])
    assert only.compile(Varied(), valset=numbered(8)).more == 0.3
    assert {trial.values["variant"] for trial in result(only).trials} == {None, 0, 1, 2}
    assert len(result(only).trials) == 4  # nothing is tried twice
    again = TunableSearch(height, trials=16, variants=variants, storage=tmp_path / "study.journal")
    assert again.compile(Varied(), valset=numbered(8)).more == 0.3
    assert facts(again) == facts(search)


# --- interrupted and resumed -----------------------------------------------------------------------------------------


def after(count: int) -> Callable[[str], None]:
    left = [count]

    def ask(question: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise BudgetSpent

    return ask


@pytest.mark.parametrize("cost", [None, "lm_calls"])
def test_a_resumed_search_ends_like_an_uninterrupted_one(cost: str | None, tmp_path: Path) -> None:
    def search(storage: Path | None) -> TunableSearch:
        return TunableSearch(height, trials=16, cost=cost, storage=storage, seed=5)

    program = Costly if cost else Hill
    whole = search(None)
    whole.compile(program(), valset=numbered(12))
    stopped = 0
    while True:
        part = search(tmp_path / "study.journal")
        try:
            part.compile(program(after(7 + 60 * stopped)), valset=numbered(12))  # at first within trial 0
        except BudgetSpent:
            stopped += 1
            assert (part.result is None) == (stopped == 1)
            with (tmp_path / "study.journal").open("a") as file:
                file.write('{"op_code": 4, "half')  # as a kill leaves it
            (tmp_path / "study.journal.lock").touch()  # Optuna's
        else:
            break
    assert stopped >= 2
    assert facts(part) == facts(whole)
    assert result(part).best.values == result(whole).best.values


def test_a_finished_search_asks_nothing_and_more_trials_go_on(tmp_path: Path) -> None:
    asked: list[str] = []
    heard: list[int] = []
    first = TunableSearch(height, trials=4, storage=tmp_path / "study.journal").compile(Hill(), valset=numbered(8))
    search = TunableSearch(
        height, trials=4, storage=tmp_path / "study.journal", on_trial=lambda done: heard.append(len(done))
    )
    assert values(search.compile(Hill(asked.append), valset=numbered(8))) == values(first)
    assert not asked
    search.trials = 6
    search.compile(Hill(), valset=numbered(8))
    assert heard == [5, 6]
    assert StudyResult.model_validate_json(result(search).model_dump_json()).best.values == result(search).best.values
    study = optuna.load_study(
        study_name=None,
        storage=optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.journal"))
        ),
    )
    assert len(study.trials) == 6  # Optuna's own tools read it


@pytest.mark.parametrize("other", [{"metric": lambda example, prediction: 1.0}, {"freeze": ["width"]}, {}])
def test_another_search_in_the_same_storage_begins_anew(other: dict[str, Any], tmp_path: Path) -> None:
    def ask(settings: dict[str, Any], count: int) -> int:
        asked: list[str] = []
        TunableSearch(**settings, storage=tmp_path / "study.journal").compile(
            Hill(asked.append), valset=numbered(count)
        )
        return len(asked)

    settings: dict[str, Any] = {"metric": height, "trials": 3}
    assert ask(settings, 8) == 24
    assert ask({**settings, **other}, 8 if other else 7) == (24 if other else 21)
    assert ask(settings, 8) == 0


def test_failed_questions_score_0_and_a_search_of_nothing_else_stops_and_can_be_resumed(tmp_path: Path) -> None:
    down = [False]

    def sometimes(question: str) -> None:
        if down[0] or int(question) % 4 == 1:
            raise ConnectionError("the model is down")

    def stop(trials: Sequence[TrialRecord]) -> None:
        down[0] = len(trials) == 3

    search = TunableSearch(height, trials=6, storage=tmp_path / "study.journal", on_trial=stop)
    with pytest.raises(PolyhopError, match="every question of trial 3 .* failed: ConnectionError: the model is down"):
        search.compile(Hill(sometimes), valset=numbered(8))
    down[0] = False
    search.compile(Hill(sometimes), valset=numbered(8))
    assert len(result(search).trials) == 6
    best = result(search).best
    assert (best.failures, best.scores[1]) == (2, 0.0)
    assert best.score == pytest.approx(sum(best.scores.values()) / 8)
