"""Prices, of the list that comes with DSPy."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NO_NET = """
import socket

def refuse(*address):
    raise SystemExit(f"asked {address}")  # no error that could be taken for a net that is down

socket.socket.connect = socket.getaddrinfo = refuse
"""
PRICE = """
from polyhop.engines.costs import price
print(price("openai/gpt-4o-mini", 1_000_000, 0))
"""
LITELLM = """
import dspy
from polyhop.engines.endpoint import Endpoint
import litellm
print(litellm.model_cost["gpt-4o-mini"]["input_cost_per_token"])
"""


@pytest.mark.parametrize(("use", "printed"), [(PRICE, "0.15\n"), (LITELLM, "1.5e-07\n")], ids=["DSPy", "LiteLLM"])
def test_no_list_of_prices_is_fetched_where_nobody_says_a_word_about_it(use: str, printed: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM_")}
    command = [sys.executable, "-c", NO_NET + use]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)


def test_who_wants_the_newest_prices_may_have_them() -> None:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "False"}
    command = [sys.executable, "-c", NO_NET + PRICE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "raw.githubusercontent.com" in done.stderr
