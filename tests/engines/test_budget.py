"""Budgets: what is counted, what is never exceeded, and what outlives a process."""

from __future__ import annotations

import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import LMAuthError, LMRateLimitError, lm15

from polyhop.data.errors import PolyhopError
from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.engines.costs import longest_reply, price

from ..faults.listening import Listening, says
from .guarded import ANSWER, Scripted, ask, limited, response

PRICED = "openai/gpt-4o-mini"


def model(engine: Any, name: str = "made/up", cache: bool = False) -> dspy.LM:
    return dspy.LM(name, engine=engine, cache=cache)


def test_replies_from_the_cache_are_free() -> None:
    budget, engine = Budget(calls=1), Scripted()
    lm = budget.meter(model(engine, "made/up-cached", cache=True))
    assert [ask(lm, f"Cached {id(engine)}?") for _ in range(5)] == ["42"] * 5
    assert engine.calls == 1


def test_every_attempt_is_paid_and_a_budget_ends_them() -> None:
    budget, engine = Budget(calls=3), Scripted([LMRateLimitError("slow down", retry_after=0.01)])
    lm = limited(engine)
    metered = budget.meter(lm)
    assert ask(metered) == "42"
    assert (engine.calls, budget.spent.calls, budget.spent.tokens_in) == (2, 2, 100)
    assert metered.engine.limit is lm.engine.limit
    assert budget.meter(metered) is metered
    with pytest.raises(PolyhopError, match="already has another budget"):
        Budget().meter(metered)
    engine.script += [LMRateLimitError("slow down", retry_after=0.01)] * 100
    with pytest.raises(BudgetSpent, match="3 LM calls"):
        ask(metered)
    assert (engine.calls, budget.spent.calls) == (3, 3)


def test_what_is_kept_back_is_there_later() -> None:
    budget = Budget(calls=3)
    lm = budget.meter(model(Scripted()))
    with budget.keeping_back(calls=2):
        ask(lm)
        with pytest.raises(BudgetSpent, match="3 LM calls"):
            ask(lm)
    with budget.keeping_back(seconds=60):
        ask(lm)
    ask(lm)
    with pytest.raises(BudgetSpent):
        ask(lm)


def test_dollars_are_set_aside_before_a_request() -> None:
    budget, engine = Budget(usd=0.011), Scripted()
    lm = budget.meter(model(engine, PRICED))
    with suppress(BudgetSpent):
        for _ in range(10_000):
            ask(lm)
    with pytest.raises(BudgetSpent, match=r"\$0.011"):
        ask(lm)
    assert budget.spent.usd == pytest.approx(engine.calls * (100 * 0.15 + 10 * 0.6) / 1e6)
    # What the longest reply could have cost is left.
    assert 0.011 - (price(PRICED, 2_000, longest_reply(PRICED)) or 0.0) < budget.spent.usd <= 0.011


def test_tokens_from_the_cache_of_the_provider_have_their_own_price() -> None:
    budget, usage = Budget(usd=1.0), lm15.Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=400)
    assert ask(budget.meter(limited(Scripted([response(usage=usage)]), PRICED))) == "42"
    assert budget.spent.usd == pytest.approx((600 * 0.15 + 400 * 0.075 + 100 * 0.6) / 1e6)


def test_dollars_are_exact_under_threads_and_failures() -> None:
    """Never beyond the limit, not even for a moment; in the end, what succeeded."""
    budget, lock, most = Budget(usd=0.1), threading.Lock(), 0.0
    failing = iter(range(10**6))

    def sometimes() -> lm15.Response:
        nonlocal most
        with lock:
            most = max(most, budget.spent.usd)
            fails = next(failing) % 3 == 0
        if fails:
            raise LMAuthError("no")
        return response()

    lm = budget.meter(limited(Scripted([sometimes] * 400), PRICED))

    def one(n: int) -> bool:
        with suppress(LMAuthError, BudgetSpent):
            return ask(lm, f"{n}?") == "42"
        return False

    with ThreadPoolExecutor(16) as pool:
        answered = sum(pool.map(one, range(400)))
    assert most <= 0.1
    assert budget.spent.usd == pytest.approx(answered * (100 * 0.15 + 10 * 0.6) / 1e6, abs=1e-9)


def test_unknown_prices_older_models_and_minutes() -> None:
    older = dspy.BaseLM("own")
    assert Budget().meter(older) is older
    with pytest.raises(PolyhopError, match="own is no dspy.LM: a budget cannot limit it"):
        Budget(calls=1).meter(older)
    with pytest.raises(PolyhopError, match="the prices of made/up are unknown"):
        Budget(usd=1.0).meter(model(Scripted()))
    with pytest.raises(BudgetSpent, match="0 minutes"):
        ask(Budget(minutes=0).meter(model(Scripted())))


def test_another_process_gets_the_same_limits_less_what_is_kept_back(tmp_path: Path) -> None:
    budget = Budget(calls=5, file=tmp_path / "spent.json")
    with budget.keeping_back(calls=3):
        sent = pickle.dumps(budget)
    again = pickle.loads(sent)
    again.pay()
    again.pay()
    with pytest.raises(BudgetSpent, match="5 LM calls"):
        again.pay()


def test_an_account_is_shared_by_all_that_have_its_file(tmp_path: Path) -> None:
    def spend(budget: Budget) -> int:
        made = 0
        with suppress(BudgetSpent):
            while True:
                budget.pay()
                budget.correct(tokens_in=2)
                made += 1
        budget.close()
        return made

    with ThreadPoolExecutor(2) as pool:  # as two processes would: each with a lock and a memory of its own
        made = pool.map(spend, [Budget(calls=200, file=tmp_path / "spent.json") for _ in range(2)])
    assert sum(made) == 200
    spent = Budget(file=tmp_path / "spent.json").spent
    assert (spent.calls, spent.tokens_in) == (200, 400)
    assert (
        0
        < json.loads((tmp_path / "spent.json").read_bytes())["seconds"]
        < Budget(file=tmp_path / "spent.json").spent.seconds
    )


@pytest.mark.parametrize(
    "content", ['{"questions": 3}', '{"calls": -1000}', '{"usd": NaN}', '{"calls": "1"}', '{"seconds": 1e999}', "[]"]
)
def test_a_file_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "spent.json").touch()  # of a process that was killed at once
    assert Budget(file=tmp_path / "spent.json").spent.calls == 0
    (tmp_path / "spent.json").write_text(content)
    with pytest.raises(PolyhopError, match="is not a record of spending"):
        Budget(file=tmp_path / "spent.json")


def test_copies_of_a_program_stay_on_the_account() -> None:
    budget = Budget()
    program = dspy.Predict("question -> answer")
    program.set_lm(model(Scripted()))
    budget.meter_program(program)
    for each in (program, deepcopy(program), program.reset_copy()):
        each.set_lm(program.predictors()[0].lm.copy(temperature=0.7))  # as optimizers do
        assert each(question="What?").answer == "42"
    assert budget.spent.calls == 3


# --- a real endpoint -------------------------------------------------------------------------------------------------


def test_a_metered_endpoint_gets_what_it_would_get_without_and_counts_each_use_once() -> None:
    with Listening(says(ANSWER)) as server:
        connection = {"api_base": server.url, "api_key": "sk-planted", "cache": False}
        plain = dspy.LM("openai/some-model", temperature=0.25, max_tokens=77, **connection)
        budget = Budget(calls=1)
        metered = budget.meter(plain)
        assert ask(plain) == "42"
        with dspy.context(lm=metered, track_usage=True):
            prediction = dspy.Predict("question -> answer")(question="What?")
        with pytest.raises(BudgetSpent):
            ask(metered)
    assert prediction.get_lm_usage()["openai/some-model"]["prompt_tokens"] == 7
    first, second = server.seen
    assert first == second
    assert (first["model"], first["temperature"], first["key"]) == ("some-model", 0.25, "Bearer sk-planted")
    assert (budget.spent.calls, budget.spent.tokens_in, budget.spent.tokens_out) == (1, 7, 3)
    assert "sk-planted" not in repr(metered.kwargs)


def test_a_call_is_guessed_to_cost_what_a_usual_one_does_until_one_was_paid() -> None:
    budget = Budget(usd=1.0)
    assert budget.usd_a_call == 0.0
    budget.meter(model(Scripted(), PRICED))
    assert budget.usd_a_call == (price(PRICED, 2_000, 400) or 0.0) > 0
    budget.pay(0.5)
    budget.pay(0.1)
    assert budget.usd_a_call == pytest.approx(0.3)


def test_an_account_in_a_file_is_shared_and_keeps_its_file(tmp_path: Path) -> None:
    budget = Budget(calls=2)
    budget.pay()
    budget.keep_in_file()
    assert budget.file is not None
    Budget(calls=2, file=budget.file).pay()  # as another process would
    with pytest.raises(BudgetSpent):
        budget.pay()
    own = Budget(file=tmp_path / "spent.json")
    own.keep_in_file()
    assert own.file == tmp_path / "spent.json"
