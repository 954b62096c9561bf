"""Fitting how judgements are weighed: hand-worked figures, a known law that is found again, and real runs."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import dspy
import pytest

from polyhop.eval.folder import read_records
from polyhop.eval.run import evaluate
from polyhop.optimizers.confidence import Judgement, fit, judgements, misjudged, misjudged_if_fitted
from polyhop.optimizers.optimize import optimize
from polyhop.optimizers.settings import OptimizationSettings, Splits
from polyhop.programs.confidence import Confidence
from polyhop.programs.prediction import conclude
from polyhop.programs.program import Program
from polyhop.programs.run import record
from polyhop.programs.trace import Trace, Weighed

from .tiny import examples


def judged(hops: int, accuracy: float, credibility: float, right: bool) -> Judgement:
    return Judgement(float(hops), accuracy, credibility, right)


def test_the_share_of_misjudged_answers_by_hand() -> None:
    part = Confidence(adaptive=False, least_accuracy=0.0, least_credibility=0.0)  # alpha 0.5, threshold 0.75
    two = [judged(2, 1.0, 1.0, True), judged(2, 0.9, 0.5, True), judged(2, 0.2, 1.0, False)]  # 1.0, 0.7, 0.6
    three = [judged(3, 1.0, 0.8, False)]  # 0.9: passes, and is wrong
    assert misjudged(part, [*two, *three]) == 0.5
    assert misjudged(part, two) == pytest.approx(1 / 3)


def world(count: int, seed: int = 0) -> list[Judgement]:
    """Accuracy tells what is right for one hop, credibility for four; the other judge guesses."""
    dice = random.Random(seed)
    answers = []
    for n in range(count):
        right, hops = dice.random() < 0.5, (1, 4)[n % 2]
        tells = dice.betavariate(8, 2) if right else dice.betavariate(2, 8)
        guess = dice.random()
        answers.append(judged(hops, *((tells, guess) if hops == 1 else (guess, tells)), right))
    return answers


def test_a_law_is_found_that_holds_for_other_questions() -> None:
    start = Confidence(adaptive=False, least_accuracy=0.0, least_credibility=0.0)
    values = fit(start, world(200))
    assert values.keys() == {"threshold", "least_accuracy", "least_credibility", "adaptive", "midpoint", "slope"}
    fresh = world(400, seed=1)
    before = misjudged(start, fresh)
    for name, value in values.items():
        getattr(start, name).value = value
    assert start.alpha(1) > 0.75 > 0.25 > start.alpha(4)
    assert misjudged(start, fresh) < min(0.1, before - 0.1)
    promised = misjudged_if_fitted(Confidence(adaptive=False, least_accuracy=0.0, least_credibility=0.0), world(200))
    assert promised == pytest.approx(misjudged(start, fresh), abs=0.05)


def test_noise_is_not_fitted() -> None:
    dice = random.Random(3)
    noise = [judged(2, dice.random(), dice.random(), dice.random() < 0.5) for _ in range(200)]
    assert 0.45 < misjudged_if_fitted(Confidence(), noise) < 0.55  # on what the fit has seen it is 0.41


def test_present_values_win_ties() -> None:
    perfect = [judged(2, 1.0, 1.0, True), judged(2, 0.0, 0.001, False)] * 30
    values = fit(Confidence(threshold=0.6), perfect)
    assert (values["threshold"], values["midpoint"], values["slope"]) == (0.6, 2.5, 1.0)


def test_the_last_judgement_of_the_given_answer_counts(tmp_path: Path) -> None:
    steps = [
        Weighed(0.5, 0.2, False, 2.0, 0.2, 0.2, "Rome"),  # of a step of the plan
        Weighed(0.5, 0.8, True, 2.0, 0.8, 0.8, "Rome"),
        Weighed(0.5, 0.1, False, 2.0, 0.1, 0.1, "Oslo"),  # a repair that was not taken
    ]
    answers = {"One?": "Rome", "Two?": "unknown", "Three?": "Paris"}  # the last one was not judged
    program = dspy.Module()
    program.forward = lambda question: dspy.Prediction(answer=answers[question], trace=Trace([*steps]))
    asked = [dspy.Example(question=question, answers=["Rome"]).with_inputs("question") for question in answers]
    evaluate(program, asked, tmp_path / "run")
    assert list(judgements(read_records(tmp_path / "run"))) == [Judgement(2.0, 0.8, 0.8, True)]


class Weighing(Program):
    """Its drafts are right for even numbers: credibility tells, accuracy says 1. What does not pass is corrected."""

    def __init__(self) -> None:
        super().__init__()
        self.confidence = Confidence(adaptive=False, threshold=0.5, least_credibility=0.0)

    def forward(self, question: str) -> dspy.Prediction:
        n = int(question.split()[-1].strip("?"))
        draft, right = (str(n + 1), True) if n % 2 == 0 else ("0", False)
        record(weighed := self.confidence.weigh(2, 1.0, 0.8 if right else 0.2, draft))
        if not weighed.passed:
            record(self.confidence.weigh(2, 1.0, 0.9, draft := str(n + 1)))
        return conclude(draft, 0.9, stop="answered")


def test_the_stage_keeps_what_answers_better(tmp_path: Path) -> None:
    splits = Splits(examples(0, 60), examples(100, 40), examples(200, 20))
    settings = OptimizationSettings(metric="answer_em", stages=("confidence",))
    summary = optimize(Weighing(), splits, tmp_path / "run", settings)
    start, fitted = summary.stages
    assert (start.score, fitted.score, fitted.kept) == (0.5, 1.0, True)
    assert fitted.note == "60 judged answers, 50.0% misjudged, 0.0% with fitted values"
    assert summary.test
    assert summary.test.best.mean == 1.0
    few = replace(splits, train=examples(0, 20))
    short = optimize(Weighing(), few, tmp_path / "few", settings).stages[1]
    assert (short.why, short.note[:40]) == ("no candidate", "20 judged answers, 10 of them right, are")
