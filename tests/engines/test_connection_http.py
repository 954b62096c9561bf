"""What reaches a real server through a guarded model: whose key, which settings, how often; and what is made of its
replies."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import LMError

from polyhop.engines.budget import Budget
from polyhop.engines.costs import Ledger
from polyhop.engines.diagnosis import RefusedError
from polyhop.engines.endpoint import Endpoint, Limits
from polyhop.scripts.studies.faults.completions import completion_of, with_content

from ..scripts.studies.faults.listening import Listening, fails, says
from .guarded import ANSWER, Scripted, ask

KEY = "planted-0123456789"


@pytest.fixture
def server() -> Iterator[Listening]:
    with Listening(says(ANSWER)) as server:
        yield server


@pytest.mark.parametrize("engine", ["auto", "lm15", "litellm"])
@pytest.mark.parametrize("status", [200, 401, 429, 500, 503])
def test_an_attempt_is_one_request(engine: str, status: int, server: Listening) -> None:
    """The clients inside LiteLLM would repeat it on their own: the endpoint counts, waits and pays for each."""
    server.act = says(ANSWER) if status == 200 else fails(status)
    lm = dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, cache=False, engine=engine, temperature=0.25)
    lm = Endpoint(Limits(retries=0)).guard(lm)
    if status == 200:
        assert ask(lm) == "42"
    else:
        with pytest.raises(LMError) as caught:
            ask(lm)
        assert KEY not in str(caught.value)
    (seen,) = server.seen
    assert (seen["key"], seen["model"], seen["temperature"]) == (f"Bearer {KEY}", "some-model", 0.25)
    assert "max_retries" not in seen


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("content", [None, ""])
def test_a_refusal_is_told(engine: str, content: str | None, server: Listening) -> None:
    completion = with_content(completion_of("some-model", ""), content, refusal="I cannot help.")
    server.act = lambda exchange: exchange.reply(completion)
    lm = dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, cache=False, engine=engine)
    with pytest.raises(RefusedError, match="the model refused to answer: I cannot help."):
        ask(Endpoint().guard(lm))
    assert len(server.seen) == 1


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_what_only_this_server_knows_reaches_it(engine: str, server: Listening) -> None:
    extra = {"guided": {"a": 1}, "top_k": 5}
    lm = dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, engine=engine, extra_body=extra, cache=False)
    for each in (lm, Endpoint().guard(lm), Budget().meter(Endpoint().guard(lm)), Budget().meter(lm)):
        ask(each)
    for seen in server.seen:
        assert (seen["guided"], seen["top_k"], seen.get("metadata")) == ({"a": 1}, 5, None)
    assert Endpoint().guard(lm).dump_state() == lm.dump_state()
    assert "metadata" not in Endpoint().guard(lm).dump_state()


def test_replies_of_two_servers_are_cached_apart() -> None:
    with Listening(says(ANSWER)) as one, Listening(says(ANSWER.replace("42", "43"))) as other:
        name = f"openai/model-{id(one)}"
        models = [Endpoint().guard(dspy.LM(name, api_base=server.url, api_key=KEY)) for server in (one, other, one)]
        assert [ask(lm) for lm in models] == ["42", "43", "42"]
        assert [len(server.seen) for server in (one, other)] == [1, 1]


def test_another_extra_body_is_another_question() -> None:
    engine = Scripted()
    models = [dspy.LM(f"made/up-{id(engine)}", engine=engine, extra_body={"thinking": yes}) for yes in (True, False)]
    assert [ask(Endpoint().guard(lm)) for lm in (*models, *models)] == ["42"] * 4
    assert engine.calls == 2


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_another_process_connects_anew(engine: str, server: Listening) -> None:
    lm = Endpoint().guard(dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, cache=False, engine=engine))
    assert [ask(each) for each in (lm, pickle.loads(pickle.dumps(lm)))] == ["42"] * 2
    assert [seen["key"] for seen in server.seen] == [f"Bearer {KEY}"] * 2


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_a_copy_of_another_name_does_not_take_the_key_along(engine: str, server: Listening) -> None:
    lm = Endpoint().guard(dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, cache=False, engine=engine))
    with pytest.raises(LMError, match="Request.model must match LM.model"):
        ask(lm.copy(model="groq/another"))
    assert server.seen == []


@pytest.mark.filterwarnings("ignore:Implementing custom LMs")
def test_a_model_with_a_way_of_its_own_is_asked_by_it(server: Listening) -> None:
    class Own(dspy.LM):
        def forward(self, *arguments: Any, **more: Any) -> Any:
            asked.append(more)
            return super().forward(*arguments, **more)

    asked: list[Any] = []
    lm = Endpoint().guard(Own("openai/some-model", api_base=server.url, api_key=KEY, cache=False))
    assert ask(lm) == "42"
    assert len(asked) == len(server.seen) == 1


def test_requests_are_repeated_and_paid_each(server: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.engines.endpoint._FIRST_WAIT", 0.01)
    script = iter([fails(503), fails(429), says(ANSWER)])
    server.act = lambda exchange: next(script)(exchange)
    budget, ledger = Budget(), Ledger()
    lm = budget.meter(Endpoint().guard(dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, cache=False)))
    with dspy.context(usage_tracker=ledger):
        assert ask(lm) == "42"
    assert len(server.seen) == budget.spent.calls == 3
    assert (budget.spent.tokens_in, ledger.costs()["lm_calls"]) == (7, 1)
    assert ledger.incidents == {"repeated after rate_limit": 1, "repeated after server": 1}


def test_sixteen_threads_over_one_connection(server: Listening) -> None:
    lm = Endpoint().guard(dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, cache=False))
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda n: ask(lm, f"{n}?"), range(64))) == ["42"] * 64
    assert len(server.seen) == 64
