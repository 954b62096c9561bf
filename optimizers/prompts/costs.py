"""What a prompt optimizer will cost, before it starts: measured calls per question times the questions that it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import dspy

from ...data.errors import PolyhopError
from ...engines.costs import Ledger
from ..measure import Metric, measure

_PROPOSAL = (2000, 400)
"""Tokens of a prompt that asks for an instruction or a rule, and of its reply: a guess, for nothing measures it."""
_DEMO = 500
"""Tokens of a demo: of polyhop, prism and c3po on HotpotQA and MuSiQue 415 to 613 (bootstrapped, see `student`)."""


@dataclass(frozen=True)
class Cost:
    """What some calls cost. Whoever adds an unknown price to known ones does not know the sum."""

    lm_calls: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    cost_usd: float | None = 0.0

    def __add__(self, other: Cost) -> Cost:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Cost(
            self.lm_calls + other.lm_calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )

    def __mul__(self, times: float) -> Cost:
        dollars = None if self.cost_usd is None else self.cost_usd * times
        return Cost(self.lm_calls * times, self.tokens_in * times, self.tokens_out * times, dollars)


@dataclass(frozen=True)
class Probe:
    """What a program does on a few questions; make it with `Probe.of`.

    Attributes:
        question: What one question costs.
        success: The share of questions that are good enough to learn from.
        questions: How many were asked.
    """

    question: Cost
    success: float
    questions: int

    @classmethod
    def of(
        cls, program: dspy.Module, questions: Sequence[dspy.Example], metric: Metric, *, most: int = 5, threads: int = 1
    ) -> Probe:
        """Ask the first questions, at most ``most``.

        The metric is asked as teleprompters ask it, with a trace, whether a prediction is good enough. The share is
        moved a little towards one half, for a few questions do not make a certainty.

        Raises:
            PolyhopError: there are no questions, or the program failed on all of them.
        """
        asked = list(questions)[:most]
        successes: list[bool] = []

        def judged(example: dspy.Example, prediction: Any) -> Any:
            successes.append(bool(metric(example, prediction, [])))
            return metric(example, prediction)

        measured = measure(program, asked, judged, threads=threads)
        if len(measured.failures) == len(asked):
            raise PolyhopError(f"the program failed on every question: {next(iter(measured.failures.values()))}")
        known = all("cost_usd" in costs for costs in measured.costs.values())
        question = Cost(
            measured.cost("lm_calls"),
            measured.cost("tokens_in"),
            measured.cost("tokens_out"),
            measured.cost("cost_usd") if known else None,
        )
        return cls(question, (sum(successes) + 0.5) / (len(asked) + 1), len(asked))

    def asked(self, questions: float, demos: float = 0.0) -> Cost:
        """What it costs to ask so many questions of a program with so many demos an agent.

        A demo has some 500 tokens, and no more than a prompt and a reply have without demos.
        """
        one = self.question
        shown = demos * min(_DEMO * one.lm_calls, one.tokens_in + one.tokens_out)
        dollars = one.cost_usd
        if dollars and one.tokens_in + one.tokens_out:
            dollars *= 1 + shown / (one.tokens_in + one.tokens_out)  # at the mean price of a token: rather too much
        return Cost(one.lm_calls, one.tokens_in + shown, one.tokens_out, dollars) * questions

    def bootstrapped(self, successes: int, questions: int) -> float:
        """The questions that are asked, on the average, until so many are good enough, of at most ``questions``."""
        return sum(_fewer(successes, tries, self.success) for tries in range(questions))


def _fewer(successes: int, tries: int, share: float) -> float:
    """The probability of fewer successes than that in so many tries."""
    return sum(comb(tries, n) * share**n * (1 - share) ** (tries - n) for n in range(min(successes, tries + 1)))


def proposed(calls: float, prompt_model: dspy.LM | None) -> Cost:
    """What it costs to ask a prompt model so often, at its own price where that is known."""
    given, taken = _PROPOSAL
    dollars = None
    if prompt_model is not None:
        ledger = Ledger()
        ledger.add_usage(prompt_model.model, {"prompt_tokens": given, "completion_tokens": taken})
        dollars = ledger.costs().get("cost_usd")
    return Cost(1, given, taken, dollars) * calls if calls else Cost()


@dataclass(frozen=True)
class Estimate:
    """What an optimizer is expected to cost, by what it does.

    Attributes:
        bootstrapping: Running the program to collect demos.
        evaluating: Scoring candidates.
        proposing: Writing instructions.
        later: What each question costs with the result, in calls, where that is more than before.
    """

    bootstrapping: Cost = Cost()
    evaluating: Cost = Cost()
    proposing: Cost = Cost()
    later: float | None = None

    @property
    def total(self) -> Cost:
        return self.bootstrapping + self.evaluating + self.proposing

    @property
    def lm_calls(self) -> int:
        return round(self.total.lm_calls)

    @property
    def tokens_in(self) -> int:
        return round(self.total.tokens_in)

    @property
    def tokens_out(self) -> int:
        return round(self.total.tokens_out)

    @property
    def cost_usd(self) -> float | None:
        """None if a price is not known."""
        return self.total.cost_usd

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.bootstrapping + other.bootstrapping,
            self.evaluating + other.evaluating,
            self.proposing + other.proposing,
            self.later if other.later is None else other.later,
        )
