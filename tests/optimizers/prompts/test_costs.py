"""Probes, and the arithmetic of estimates."""

from __future__ import annotations

import random

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.eval import objectives
from polyhop.optimizers.prompts import Cost, Estimate, Probe
from polyhop.optimizers.prompts.costs import proposed

from ...programs.scripted import lm
from .world import players, program, questions, writer

METRIC = objectives.answer_em


def test_a_probe_asks_the_first_questions_and_tells_their_calls_and_successes() -> None:
    script = players()
    probe = Probe.of(program(script), questions(3, 1), METRIC, most=4)
    assert len(script.requests) == 4 * 4
    given = sum(len(text) for each in script.requests for text in (each.system, *(said for _, said in each.messages)))
    assert (probe.questions, probe.success) == (4, (3 + 0.5) / (4 + 1))
    assert (probe.question.lm_calls, probe.question.cost_usd) == (4, None)
    assert probe.question.tokens_in == pytest.approx(given / 4 / 4, rel=0.01)  # four characters a token, four questions


def test_a_probe_that_fails_on_every_question_is_told() -> None:
    script = players()
    script.replies["selector"] = [RuntimeError("out of order")]
    with pytest.raises(PolyhopError, match="every question: .*out of order"):
        Probe.of(program(script), questions(2, 0), METRIC)


def test_a_failed_question_counts_with_what_it_cost() -> None:
    script = players()
    script.replies["selector"] = [RuntimeError("out of order"), {"keep": ["1"]}]
    probe = Probe.of(program(script), questions(2, 0), METRIC)
    assert probe.question.lm_calls == (1 + 4) / 2
    assert probe.success == (1 + 0.5) / (2 + 1)


@pytest.mark.parametrize(("wanted", "there", "share"), [(2, 20, 0.5), (3, 10, 0.3), (1, 5, 0.9), (4, 3, 0.5)])
def test_the_questions_of_a_bootstrap_are_those_that_it_takes_on_the_average(
    wanted: int, there: int, share: float
) -> None:
    draw = random.Random(7)

    def asked() -> int:
        successes = 0
        for n in range(there):
            if successes == wanted:
                return n
            successes += draw.random() < share
        return there

    mean = sum(asked() for _ in range(20_000)) / 20_000
    assert Probe(Cost(), share, 9).bootstrapped(wanted, there) == pytest.approx(mean, rel=0.02)


def test_demos_make_prompts_longer_and_dearer() -> None:
    probe = Probe(Cost(5, 900, 100, 0.01), 0.5, 4)
    assert probe.asked(10) == Cost(50, 9000, 1000, 0.1)
    shown = probe.asked(10, demos=2)
    assert (shown.lm_calls, shown.tokens_in, shown.tokens_out) == (50, 29_000, 1000)
    assert shown.cost_usd == pytest.approx(0.3)
    assert Probe(Cost(5, 9000, 100, 0.0), 0.5, 4).asked(1, demos=2).tokens_in == 9000 + 2 * 5 * 500
    assert Probe(Cost(5, 900, 100, None), 0.5, 4).asked(10, demos=2).cost_usd is None


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    known, unknown = Cost(1, 10, 1, 0.5), Cost(1, 10, 1, None)
    estimate = Estimate(evaluating=known)
    assert estimate.cost_usd == 0.5
    assert (estimate + Estimate(proposing=unknown)).cost_usd is None
    assert (estimate + Estimate(bootstrapping=known)).cost_usd == 1.0
    assert (estimate + Estimate(proposing=unknown)).lm_calls == 2


def test_proposals_are_counted_at_the_price_of_the_prompt_model() -> None:
    assert proposed(0, None) == Cost()
    assert proposed(3, lm(writer())).cost_usd is None
    assert proposed(3, lm(writer())).lm_calls == 3
