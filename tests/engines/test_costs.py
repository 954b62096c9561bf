"""Costs by agent, prices, and what happened on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import dspy
import pytest

from polyhop.engines.costs import OTHER, Abandoned, Ledger, pause, price

MODEL = "openai/gpt-4o-mini"


def acting_as(agent: str) -> Any:
    """Inside, DSPy is calling a predictor with this role, in others and in modules without one."""
    others = [dspy.Module(), SimpleNamespace(role="outer")]
    return dspy.context(caller_modules=[*others, SimpleNamespace(role=agent), dspy.Module()])


def used(given: int = 10, taken: int = 5, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": given, "completion_tokens": taken, **more}


def test_costs_by_agent_add_up() -> None:
    ledger = Ledger()
    for agent, given in (("selector", 100), ("adder", 20), ("selector", 3)):
        with acting_as(agent):
            ledger.add_usage(MODEL, used(given, 1))
    ledger.add_usage(MODEL, used(1, 1))
    by_agent = ledger.by_agent()
    assert list(by_agent) == ["selector", "adder", OTHER]
    assert by_agent["selector"] == {
        "lm_calls": 2,
        "tokens_in": 103,
        "tokens_out": 2,
        "tokens": 105,
        "cost_usd": pytest.approx(price(MODEL, 103, 2)),
    }
    assert {name: sum(each[name] for each in by_agent.values()) for name in ledger.costs()} == pytest.approx(
        ledger.costs()
    )


@pytest.mark.parametrize(
    ("lm", "usage", "cost"),
    [
        # $0.15 in, $0.075 in from the provider's cache and $0.60 out for a million tokens
        (MODEL, used(1000, 100), (1000 * 0.15 + 100 * 0.6) / 1e6),
        (MODEL, used(1000, 100, prompt_tokens_details={"cached_tokens": 400}), (600 * 0.15 + 400 * 0.075 + 60) / 1e6),
        (MODEL, used(1000, 100, cost=0.5), 0.5),  # the provider knows best
        (MODEL, used(1000, 100, cost="free"), (1000 * 0.15 + 100 * 0.6) / 1e6),
        ("openai/gpt-4o", used(1000, 100), (1000 * 2.5 + 100 * 10) / 1e6),
        ("other/gpt-4o", used(1000, 100), None),
        (MODEL, {}, 0.0),
        (MODEL, {"prompt_tokens": None, "completion_tokens": None}, 0.0),
        ("lexical", used(1000, 100, cost=0.5), 0.0),
        ("made/up", used(), None),
    ],
)
def test_dollars(lm: str, usage: dict[str, Any], cost: float | None) -> None:
    """One price that nobody knows makes no sum."""
    ledger = Ledger()
    ledger.add_usage(lm, usage)
    with acting_as("b"):
        ledger.add_usage(MODEL, used(0, 0))
    assert ledger.costs().get("cost_usd") == (None if cost is None else pytest.approx(cost))
    assert ledger.by_agent()["b"]["cost_usd"] == 0


def test_who_is_given_up_is_told_at_the_next_call() -> None:
    ledger = Ledger()
    ledger.abandoned.set()
    with pytest.raises(Abandoned):
        ledger.add_usage(MODEL, used())
    with dspy.context(usage_tracker=ledger), pytest.raises(Abandoned):
        pause(0.0)


NO_NET = """
import socket

def refuse(*address):
    raise SystemExit(f"asked {address}")  # no error that could be taken for a net that is down

socket.socket.connect = socket.getaddrinfo = refuse
"""
LITELLM = """
import dspy
import polyhop.engines
import litellm
print(litellm.model_cost["gpt-4o-mini"]["input_cost_per_token"])
"""


@pytest.mark.slow
def test_no_list_of_prices_is_fetched_where_nobody_says_a_word_about_it() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM_")}
    command = [sys.executable, "-c", NO_NET + LITELLM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("1.5e-07\n", "", 0)
