"""Models behind an endpoint: in a program, in a copy, in a file and over a real connection."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import LMError, LMServerError

from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.engines.costs import Ledger
from polyhop.engines.endpoint import Endpoint, Limits, unguarded
from polyhop.engines.models import language_model

from ..scripts.studies.faults.listening import Listening, fails, says
from .guarded import ANSWER, Scripted, ask, response

KEY = "planted-0123456789"


def guarded(engine: Any, name: str = "made/up", **more: Any) -> dspy.LM:
    return Endpoint(Limits(retries=0)).guard(dspy.LM(name, engine=engine, **{"cache": False} | more))


# --- in a program ----------------------------------------------------------------------------------------------------


def test_a_call_is_one_call() -> None:
    """For callbacks, histories and trackers, although one model stands before another."""

    class Counting(BaseCallback):
        started, ended = 0, 0

        def on_lm_start(self, *arguments: Any, **more: Any) -> None:
            self.started += 1

        def on_lm_end(self, *arguments: Any, **more: Any) -> None:
            self.ended += 1

    everywhere, own, ledger = Counting(), Counting(), Ledger()
    lm = guarded(Scripted(), callbacks=[own])
    with dspy.context(callbacks=[everywhere], usage_tracker=ledger):
        assert ask(lm) == "42"
    assert (everywhere.started, everywhere.ended, own.started, own.ended) == (1, 1, 1, 1)
    assert len(lm.history) == 1
    assert ledger.costs()["lm_calls"] == 1


def test_a_plain_model_and_its_guarded_one_share_their_cache() -> None:
    engine = Scripted()
    lm = dspy.LM(f"made/up-{id(engine)}", engine=engine)
    assert [ask(lm), ask(Endpoint().guard(lm))] == ["42"] * 2
    assert engine.calls == 1


def test_optimizers_can_have_it() -> None:
    engine = Scripted()
    examples = [dspy.Example(question=f"{n}?", answer="42").with_inputs("question") for n in range(3)]
    program = dspy.Predict("question -> answer")
    dspy.configure(lm=guarded(engine))
    optimizer = dspy.BootstrapFewShot(metric=lambda example, found, trace=None: True, max_bootstrapped_demos=2)
    better = optimizer.compile(program, trainset=examples)
    assert len(better.demos) == 3
    assert better(question="What?").answer == "42"
    assert engine.calls == 3


def test_another_process_gets_the_same_limits() -> None:
    endpoint = Endpoint(Limits(concurrency=3, requests_per_minute=60))
    both = [endpoint.guard(dspy.LM("openai/x", api_base="http://127.0.0.1:9/v1", temperature=0.3)) for _ in "ab"]
    first, second = pickle.loads(pickle.dumps(both))
    assert first.engine.endpoint is second.engine.endpoint
    assert first.engine.endpoint.limits == endpoint.limits
    assert (first.model, first.kwargs) == (both[0].model, both[0].kwargs)
    assert unguarded(first).kwargs == unguarded(both[0]).kwargs


def test_it_can_do_what_the_model_can() -> None:
    lm = dspy.LM("openai/gpt-4o-mini")
    for each in (language_model("openai/gpt-4o-mini"), Budget().meter(language_model("openai/gpt-4o-mini"))):
        assert each.supported_params == lm.supported_params
        assert each.supports_response_schema is lm.supports_response_schema is True
        assert each.supports_function_calling is lm.supports_function_calling
        assert each.supports_reasoning is lm.supports_reasoning


def test_the_last_endpoint_counts() -> None:
    first, second = Endpoint(Limits(concurrency=1)), Endpoint(Limits(retries=1, patience=0.001))
    engine = Scripted([LMServerError("boom")] * 9)
    lm = second.guard(first.guard(dspy.LM("made/up", engine=engine, cache=False)))
    assert lm.engine.endpoint is second
    with pytest.raises(LMServerError):
        ask(lm)
    assert engine.calls == 1


# --- in a file -------------------------------------------------------------------------------------------------------


def test_a_saved_program_has_the_plain_model(tmp_path: Path) -> None:
    lm = dspy.LM("openai/some-model", api_key=KEY, temperature=0.25, max_tokens=77, headers={"X-Auth": KEY})
    program = dspy.Predict("question -> answer")
    program.set_lm(Endpoint(Limits(concurrency=1)).guard(lm))
    program.save(tmp_path / "program.json")
    assert KEY not in (tmp_path / "program.json").read_text()
    again = dspy.Predict("question -> answer")
    again.load(tmp_path / "program.json")
    assert type(again.lm) is dspy.LM
    assert (again.lm.model, again.lm.engine, again.lm.num_retries) == ("openai/some-model", "auto", lm.num_retries)
    assert {name: value for name, value in again.lm.kwargs.items() if value is not None} == {
        "temperature": 0.25,
        "max_tokens": 77,
    }


# --- streams and event loops -----------------------------------------------------------------------------------------


def test_a_stream_has_the_whole_reply() -> None:
    engine = Scripted([LMServerError("boom")])
    lm = Endpoint().guard(dspy.LM("made/up", engine=engine, cache=False))
    program = dspy.streamify(dspy.Predict("question -> answer"), async_streaming=False)
    with dspy.context(lm=lm):
        *chunks, found = program(question="What?")
    assert found.answer == "42"
    assert "".join(each.choices[0]["delta"]["content"] or "" for each in chunks) == ANSWER
    assert engine.calls == 2


def test_a_stream_in_an_event_loop() -> None:
    async def stream() -> Any:
        program = dspy.streamify(dspy.Predict("question -> answer"), is_async_program=False)
        return [each async for each in program(question="What?")][-1].answer

    async def stream_acall() -> Any:
        with dspy.context(send_stream=_Sink()):
            return (await dspy.Predict("question -> answer").acall(question="What?")).answer

    with dspy.context(lm=guarded(Scripted())):
        assert asyncio.run(stream()) == asyncio.run(stream_acall()) == "42"


class _Sink:
    async def send(self, chunk: Any) -> None:
        pass


def test_many_coroutines_at_once() -> None:
    """As many as the endpoint allows, not as the event loop has threads."""
    together = threading.Barrier(40)

    def meet() -> lm15.Response:
        together.wait(60)  # nobody gets on before all are there
        return response()

    engine = Scripted([meet] * 40)

    async def many() -> list[Any]:
        program = dspy.Predict("question -> answer")
        return await asyncio.gather(*(program.acall(question=f"{n}?") for n in range(40)), return_exceptions=True)

    with dspy.context(lm=guarded(engine), disable_history=True):
        found = asyncio.run(many())
    assert [each.answer for each in found] == ["42"] * 40


def test_a_coroutine_that_fails() -> None:
    lm = guarded(Scripted([LMServerError("boom"), BudgetSpent("5 LM calls")]))
    with pytest.raises(LMServerError):
        asyncio.run(lm.acall("What?"))
    with pytest.raises(BudgetSpent):
        asyncio.run(lm.acall("What?"))
    assert asyncio.run(lm.acall("What?")) == [ANSWER]


def test_a_coroutine_that_is_cancelled_leaves_no_trace(capfd: pytest.CaptureFixture[str]) -> None:
    release = threading.Event()

    def wait() -> lm15.Response:
        release.wait(60)
        return response()

    async def impatient() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(guarded(Scripted([wait])).acall("What?"), 0.1)
        release.set()

    asyncio.run(impatient())
    sleep(0.5)
    assert capfd.readouterr() == ("", "")


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


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_another_process_connects_anew(engine: str, server: Listening) -> None:
    lm = Endpoint().guard(dspy.LM("openai/some-model", api_base=server.url, api_key=KEY, cache=False, engine=engine))
    assert [ask(each) for each in (lm, pickle.loads(pickle.dumps(lm)))] == ["42"] * 2
    assert [seen["key"] for seen in server.seen] == [f"Bearer {KEY}"] * 2


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
