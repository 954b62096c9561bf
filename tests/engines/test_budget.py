"""Budgets: what is counted, what is never exceeded, and what outlives a process."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15

from polyhop.data.errors import PolyhopError
from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.engines.costs import longest_reply, price
from polyhop.engines.diagnosis import RefusedError
from polyhop.engines.endpoint import Endpoint

PRICED = "openai/gpt-4o-mini"


class Counting:
    """Answers, and counts how often it was asked; fails at first if told to."""

    def __init__(self, fail: int = 0) -> None:
        self.calls, self.fail, self._lock = 0, fail, threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        with self._lock:
            self.calls += 1
            if self.calls <= self.fail:
                raise lm15.RateLimitError("slow down")
        return lm15.Response(
            id="1",
            model=request.model,
            message=lm15.Message.assistant("[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]"),
            usage=lm15.Usage(input_tokens=100, output_tokens=10),
            finish_reason="stop",
        )


def model(engine: Any, name: str = "made/up", cache: bool = False) -> dspy.LM:
    return dspy.LM(name, engine=engine, cache=cache)


def ask(lm: dspy.LM, question: str = "What?") -> str:
    with dspy.context(lm=lm):
        return str(dspy.Predict("question -> answer")(question=question).answer)


def test_every_request_is_booked() -> None:
    budget, engine = Budget(), Counting()
    lm = budget.meter(model(engine))
    assert [ask(lm), ask(lm)] == ["42", "42"]
    assert (budget.spent.calls, budget.spent.tokens_in, budget.spent.tokens_out) == (2, 200, 20)
    assert budget.meter(lm) is lm


def test_sixteen_threads_make_as_many_calls_as_there_are_and_no_more() -> None:
    budget, engine = Budget(calls=100), Counting()
    lm = budget.meter(model(engine))

    def one(n: int) -> bool:
        with suppress(BudgetSpent):
            return ask(lm, f"Question {n}?") == "42"
        return False

    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(one, range(400)))
    assert (sum(done), engine.calls, budget.spent.calls) == (100, 100, 100)


def test_replies_from_the_cache_are_free() -> None:
    budget, engine = Budget(calls=1), Counting()
    lm = budget.meter(model(engine, "made/up-cached", cache=True))
    assert [ask(lm, f"Cached {id(engine)}?") for _ in range(5)] == ["42"] * 5
    assert engine.calls == 1


def test_a_request_that_is_repeated_counts_again() -> None:
    budget, engine = Budget(), Counting(fail=1)
    assert ask(budget.meter(model(engine))) == "42"
    assert (engine.calls, budget.spent.calls, budget.spent.tokens_in) == (2, 2, 100)


def test_every_attempt_of_an_endpoint_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.engines.endpoint._FIRST_WAIT", 0.001)
    budget, engine = Budget(), Counting(fail=1)
    lm = Endpoint().guard(model(engine))
    metered = budget.meter(lm)
    assert ask(metered) == "42"
    assert (engine.calls, budget.spent.calls, budget.spent.tokens_in) == (2, 2, 100)
    assert metered.engine.endpoint is lm.engine.endpoint
    assert budget.meter(metered) is metered
    with pytest.raises(PolyhopError, match="already has another budget"):
        Budget().meter(metered)


def test_a_budget_ends_the_patience_of_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.engines.endpoint._FIRST_WAIT", 0.001)
    budget, engine = Budget(calls=3), Counting(fail=100)
    lm = budget.meter(Endpoint().guard(model(engine)))
    with pytest.raises(BudgetSpent, match="3 LM calls"):
        ask(lm)
    assert (engine.calls, budget.spent.calls) == (3, 3)


def test_a_reply_that_cannot_be_used_is_paid() -> None:
    class Refusing(Counting):
        def complete(self, request: lm15.Request) -> lm15.Response:
            return replace(super().complete(request), finish_reason="content_filter")

    budget = Budget()
    lm = budget.meter(Endpoint().guard(model(Refusing())))
    with pytest.raises(RefusedError):
        ask(lm)
    assert (budget.spent.calls, budget.spent.tokens_in) == (1, 100)


def test_what_is_kept_back_is_there_later() -> None:
    budget = Budget(calls=3)
    lm = budget.meter(model(Counting()))
    with budget.keeping_back(calls=2):
        ask(lm)
        with pytest.raises(BudgetSpent, match="3 LM calls"):
            ask(lm)
    ask(lm)
    ask(lm)
    with pytest.raises(BudgetSpent):
        ask(lm)


def test_dollars_are_set_aside_before_a_request() -> None:
    budget, engine = Budget(usd=0.03), Counting()
    lm = budget.meter(model(engine, PRICED))
    with suppress(BudgetSpent):
        for _ in range(10_000):
            ask(lm)
    with pytest.raises(BudgetSpent, match=r"\$0.03"):
        ask(lm)
    paid = price(PRICED, 100, 10)
    assert paid is not None
    assert budget.spent.usd == pytest.approx(engine.calls * paid)
    # What the longest reply could have cost is left.
    assert 0.03 - (price(PRICED, 2_000, longest_reply(PRICED)) or 0.0) < budget.spent.usd <= 0.03


def test_dollars_for_a_model_without_a_price_are_refused() -> None:
    with pytest.raises(PolyhopError, match="the prices of made/up are unknown"):
        Budget(usd=1.0).meter(model(Counting()))


def test_minutes() -> None:
    lm = Budget(minutes=0).meter(model(Counting()))
    with pytest.raises(BudgetSpent, match="0 minutes"):
        ask(lm)


def test_the_lexical_engine_is_free() -> None:
    assert price("lexical", 10**6, 10**6) == 0.0


def test_minutes_are_kept_back() -> None:
    budget = Budget(minutes=1)
    lm = budget.meter(model(Counting()))
    with budget.keeping_back(seconds=60), pytest.raises(BudgetSpent, match="1 minutes"):
        ask(lm)
    assert ask(lm) == "42"


def test_another_process_gets_the_same_limits_less_what_is_kept_back(tmp_path: Path) -> None:
    budget = Budget(calls=5, file=tmp_path / "spent.json")
    with budget.keeping_back(calls=3):
        sent = pickle.dumps(budget)
    again = pickle.loads(sent)
    again.pay()
    again.pay()
    with pytest.raises(BudgetSpent, match="5 LM calls"):
        again.pay()


def test_an_account_that_was_killed_at_its_birth_is_empty(tmp_path: Path) -> None:
    (tmp_path / "spent.json").touch()
    assert Budget(file=tmp_path / "spent.json").spent.calls == 0


def test_an_account_outlives_its_process(tmp_path: Path) -> None:
    file = tmp_path / "spent.json"
    lm = Budget(calls=3, file=file).meter(model(Counting()))
    ask(lm)
    ask(lm)
    again = Budget(calls=3, file=file)
    assert again.spent.calls == 2
    lm = again.meter(model(Counting()))
    ask(lm)
    with pytest.raises(BudgetSpent):
        ask(lm)
    again.close()
    assert json.loads(file.read_bytes())["calls"] == 3
    assert 0 < json.loads(file.read_bytes())["seconds"] < Budget(file=file).spent.seconds


def test_an_account_is_shared_by_processes(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from polyhop.engines.budget import Budget, BudgetSpent\n"
        "budget, made = Budget(calls=1000, file=pathlib.Path(sys.argv[1])), 0\n"
        "try:\n"
        "    while True:\n"
        "        budget.pay(); made += 1; budget.correct(tokens_in=2)\n"
        "except BudgetSpent:\n"
        "    budget.close(); print(made)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "spent.json")]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    made = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    assert sum(made) == 1000
    spent = Budget(file=tmp_path / "spent.json").spent
    assert (spent.calls, spent.tokens_in) == (1000, 2000)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spent.json").write_text('{"questions": 3}')
    with pytest.raises(PolyhopError, match="is not a record of spending"):
        Budget(file=tmp_path / "spent.json")


def test_copies_of_a_program_stay_on_the_account() -> None:
    budget = Budget()
    program = dspy.Predict("question -> answer")
    program.set_lm(model(Counting()))
    budget.meter_program(program)
    for each in (program, deepcopy(program), program.reset_copy()):
        each.set_lm(program.predictors()[0].lm.copy(temperature=0.7))  # as optimizers do
        assert each(question="What?").answer == "42"
    assert budget.spent.calls == 3


# --- a real endpoint -------------------------------------------------------------------------------------------------


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An OpenAI-compatible server on loopback, and the requests that it got."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append({"key": self.headers["Authorization"], **body})
            reply = {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": "[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]"},
                    }
                ],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
            }
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", seen
    server.shutdown()
    server.server_close()


def test_a_metered_endpoint_gets_what_it_would_get_without(endpoint: tuple[str, list[dict[str, Any]]]) -> None:
    url, seen = endpoint
    plain = dspy.LM(
        "openai/some-model", api_base=url, api_key="sk-planted", cache=False, temperature=0.25, max_tokens=77
    )
    budget = Budget(calls=1)
    metered = budget.meter(plain)
    assert [ask(plain), ask(metered)] == ["42", "42"]
    assert seen[0] == seen[1]
    assert (seen[1]["model"], seen[1]["temperature"], seen[1]["key"]) == ("some-model", 0.25, "Bearer sk-planted")
    assert (budget.spent.calls, budget.spent.tokens_in, budget.spent.tokens_out) == (1, 7, 3)
    with pytest.raises(BudgetSpent):
        ask(metered)
    assert "sk-planted" not in repr(metered.kwargs)


@pytest.mark.parametrize("settings", [{"stop": ["X"]}, {"presence_penalty": 0.5}, {"reasoning_effort": "high"}])
def test_every_setting_of_a_model_reaches_it(
    endpoint: tuple[str, list[dict[str, Any]]], settings: dict[str, Any]
) -> None:
    url, seen = endpoint
    plain = dspy.LM("openai/gpt-4o-mini", api_base=url, api_key="x", cache=False, **settings)
    ask(plain)
    ask(Budget().meter(plain))
    assert seen[0] == seen[1]
    assert all(name in seen[1] for name in settings)


def test_models_that_reason_can_be_metered() -> None:
    metered = Budget(usd=1.0).meter(dspy.LM("openai/gpt-5-mini", max_tokens=20_000))
    assert metered.kwargs["max_completion_tokens"] == 20_000


def test_a_metered_endpoint_counts_each_use_once(endpoint: tuple[str, list[dict[str, Any]]]) -> None:
    url, _ = endpoint
    metered = Budget().meter(dspy.LM("openai/some-model", api_base=url, api_key="x", cache=False))
    with dspy.context(lm=metered, track_usage=True):
        prediction = dspy.Predict("question -> answer")(question="What?")
    assert prediction.get_lm_usage()["openai/some-model"]["prompt_tokens"] == 7
