"""Agents: what they ask again with where a prompt is too long for its model, and under which name they cost."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from threading import Lock
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.chain import ChainRetriever
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.costs import Ledger
from polyhop.engines.lexical import LexicalEngine
from polyhop.engines.models import roles
from polyhop.engines.replies import read_request
from polyhop.programs import PROGRAMS, Trace, new_program
from polyhop.programs.agent import ADAPTER, Agent, ChatAdapter, JSONAdapter, XMLAdapter, guarded, together
from polyhop.programs.program import Program
from polyhop.programs.trace import Parallel, Stopped, Thought
from polyhop.signatures import AnswerFromPassages, NumberedPassage, NumberedPassages

from .scripted import Request, answer, playing, scripted

TOO_LONG = lm15.ContextLengthError("This model's maximum context length is 4096 tokens.")


def passages(*sentences: int, words: int = 5) -> NumberedPassages:
    """Passages of so many sentences each."""
    return NumberedPassages(
        passages=[
            NumberedPassage(number=n, title=f"Title {n}", sentences={s + 1: "word " * words for s in range(many)})
            for n, many in enumerate(sentences, 1)
        ]
    )


def shown(request: Request) -> list[str]:
    """The ids of the sentences in a prompt."""
    return re.findall(r"^(\d+s\d+) ", request.prompt, re.MULTILINE)


def demo(n: int) -> dspy.Example:
    return dspy.Example(question=f"Earlier {n}?", passages=passages(1), reasoning="", answer="x", confidence=1.0)


def refuse(limit: int) -> Any:
    """Refuses prompts that show more sentences, or any demo if the limit is negative."""

    def reply(request: Request) -> dict[str, Any]:
        if len(shown(request)) > abs(limit) or (limit < 0 and request.demos):
            raise TOO_LONG
        return answer(f"saw {', '.join(shown(request))}")

    return reply


@pytest.mark.parametrize("adapter", [ChatAdapter(), dspy.ChatAdapter(), dspy.JSONAdapter()])
@pytest.mark.parametrize(
    ("sentences", "limit", "asked"),
    [
        ((2, 2, 2, 2), 8, ["1s1 1s2 2s1 2s2 3s1 3s2 4s1 4s2"]),
        ((1, 1, 1, 1, 1), 2, ["1s1 2s1 3s1 4s1 5s1", "1s1 2s1"]),
        ((4, 1), 1, ["1s1 1s2 1s3 1s4 2s1", "1s1 1s2 1s3 1s4", "1s1 1s2", "1s1"]),
    ],
)
def test_half_of_the_passages_until_they_fit(
    sentences: tuple[int, ...], limit: int, asked: list[str], adapter: Any
) -> None:
    ledger = Ledger()
    with playing(scripted(answerer=refuse(limit)), adapter) as script, dspy.context(usage_tracker=ledger):
        reply = Agent(AnswerFromPassages)(question="Who?", passages=passages(*sentences))
    assert [" ".join(shown(request)) for request in script.requests] == asked
    # The answer is the one to what was shown, and is paid once.
    assert reply.answer == f"saw {', '.join(asked[-1].split())}"
    assert ledger.costs()["lm_calls"] == 1
    assert ledger.incidents == ({"prompt shortened": len(asked) - 1} if len(asked) > 1 else {})


def test_demos_go_last() -> None:
    agent = Agent(AnswerFromPassages)
    agent.demos = [demo(1), demo(2)]
    with playing(scripted(answerer=refuse(-1))) as script:
        assert agent(question="Who?", passages=passages(1, 1)).answer == "saw 1s1"
    assert [(len(shown(request)), request.demos) for request in script.requests] == [(2, 2), (1, 2), (1, 0)]
    assert len(agent.demos) == 2  # for the next question


def test_the_error_is_raised_where_nothing_is_left() -> None:
    agent = Agent(AnswerFromPassages)
    agent.demos = [demo(1)]
    with playing(scripted(answerer=TOO_LONG)) as script, pytest.raises(ContextWindowExceededError):
        agent(question="Who?", passages=passages(2, 2))
    assert [(len(shown(each)), each.demos) for each in script.requests] == [(4, 1), (2, 1), (1, 1), (1, 0)]
    with playing(scripted(answerer=TOO_LONG)) as script, pytest.raises(ContextWindowExceededError):
        Agent(AnswerFromPassages)(question="Who?", passages=NumberedPassages(passages=[]))
    assert len(script.requests) == 1


# --- programs --------------------------------------------------------------------------------------------------------


class Small:
    """The embedded engine with a context of so many characters."""

    def __init__(self, limit: int) -> None:
        self.limit, self.engine, self.refused, self._lock = limit, LexicalEngine(), 0, Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        system, messages = read_request(request)
        if len(system) + sum(len(message.text) for message in messages) > self.limit:
            with self._lock:
                self.refused += 1
            raise lm15.ContextLengthError(f"the prompt has more than {self.limit} characters")
        return self.engine.complete(request)


POOL = PassagePool(sample_passages())
QUESTIONS = [example.question for example in load_sample("dev")[:2]]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("direct", "oracle")])
def test_every_program_ends_with_an_answer_in_a_small_context(name: str) -> None:
    program, engine, ledger = new_program(name, ChainRetriever(POOL), POOL), Small(3_500), Ledger()
    program.set_lm(dspy.LM("small", engine=engine, cache=False, num_retries=0))
    for question in QUESTIONS:
        with dspy.context(usage_tracker=ledger):
            prediction = program(question=question)
        assert prediction.answer
        assert prediction.stop_reason
        assert all(item.text for item in prediction.evidence)
    assert ledger.incidents.get("prompt shortened", 0) == engine.refused
    assert engine.refused
    assert set(ledger.by_agent()) <= set(roles(program))


# --- adapter --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_prompts_are_those_of_dspy(name: str) -> None:
    plain = dspy.ChatAdapter()
    for _, agent in new_program(name).named_predictors():
        inputs = dict.fromkeys(agent.signature.input_fields, "x")
        for signature in (agent.signature, agent.signature.with_instructions("Do something else.")):
            expected = plain.format(signature, [], inputs)
            assert ADAPTER.format(signature, [], inputs) == expected
            assert ADAPTER.format(signature, [], inputs) == expected  # from what is remembered


PASSAGES = NumberedPassages(passages=[NumberedPassage(number=2, title="A \u2028b", sentences={1: "Œuvre.", 3: ""})])


@given(
    st.sampled_from([str, list[str], NumberedPassages, int, bool, list[int]]),
    st.one_of(
        st.text(st.characters(codec=None, categories=None)),
        st.lists(st.one_of(st.text(), st.integers(), st.none())),
        st.none(),
        st.integers(),
        st.booleans(),
        st.just(PASSAGES),
    ),
    st.booleans(),
)
def test_whatever_an_input_is_it_is_written_as_dspy_writes_it(kind: Any, value: Any, main: bool) -> None:
    class Any_(dspy.Signature):
        """Do it."""

        thing: kind = dspy.InputField()
        answer: str = dspy.OutputField()

    plain = dspy.ChatAdapter().format_user_message_content(Any_, {"thing": value}, "a", "b", main_request=main)
    assert ADAPTER.format_user_message_content(Any_, {"thing": value}, "a", "b", main_request=main) == plain


class Asking(Program):
    def __init__(self) -> None:
        super().__init__()
        self.agent = dspy.Predict("question -> answer")

    def forward(self) -> Any:
        return dspy.settings.adapter


def awaited(program: Program) -> Any:
    return asyncio.run(program.acall())


@pytest.mark.parametrize("call", [Asking.__call__, awaited], ids=["called", "awaited"])
def test_programs_use_it_unless_another_one_is_set(call: Callable[[Program], Any]) -> None:
    assert call(Asking()) is ADAPTER
    assert dspy.settings.adapter is None
    for other in (
        type("Own", (dspy.XMLAdapter,), {})(),
        ChatAdapter(),
        JSONAdapter(),
        type("Own", (dspy.JSONAdapter,), {})(),
    ):
        with dspy.context(adapter=other):
            assert call(Asking()) is other


@pytest.mark.parametrize("call", [Asking.__call__, awaited], ids=["called", "awaited"])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("ours", [ChatAdapter, JSONAdapter, XMLAdapter])
def test_programs_guard_the_adapters_of_dspy(call: Callable[[Program], Any], ours: Any, native: bool) -> None:
    theirs = getattr(dspy, ours.__name__)
    given = theirs([BaseCallback()], use_native_function_calling=native, parallel_tool_calls=not native)
    with dspy.context(adapter=given):
        used = call(Asking())
        assert dspy.settings.adapter is given
    assert (type(used), type(given)) == (ours, theirs)
    assert vars(used).items() >= vars(given).items()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("given", [dspy.ChatAdapter(), dspy.JSONAdapter(), dspy.XMLAdapter()])
def test_the_prompts_of_dspys_adapters_stay_what_they_are(name: str, given: Any) -> None:
    ours = guarded(given)
    for _, agent in new_program(name).named_predictors():
        inputs = dict.fromkeys(agent.signature.input_fields, "x")
        demos = [dspy.Example({**inputs, **dict.fromkeys(agent.signature.output_fields, "y")})]
        assert ours.format(agent.signature, demos, inputs) == given.format(agent.signature, demos, inputs)


# --- unreadable replies ------------------------------------------------------------------------------------


class Planned(dspy.Signature):
    """Plan."""

    question: str = dspy.InputField()
    reasoning: str = dspy.OutputField()
    steps: list[str] = dspy.OutputField()


ENDLESS = [
    "{",
    "[",
    '{"a":',
    "[{",
    "{[",
    "a{b}",
    "[ 'x', ",
    "{ x ",
    "(",
    "```json\n{",
    '{"steps": ["',
    "[[ ## steps ## ]]\n[",
]


@pytest.mark.parametrize("adapter", [ADAPTER, JSONAdapter()], ids=["chat", "json"])
@pytest.mark.parametrize("unit", ENDLESS)
def test_a_reply_that_goes_in_circles_is_refused_at_once(unit: str, adapter: dspy.Adapter) -> None:
    """Without an end to it, most of these take minutes: this test would not come back."""
    for length in (5_000, 65_536, 1 << 20):
        for before in ("", "[[ ## reasoning ## ]]\nx\n\n[[ ## steps ## ]]\n"):
            with pytest.raises(AdapterParseError) as caught:
                adapter.parse(Planned, before + unit * (length // len(unit)))
            assert len(str(caught.value)) < 8_000


OBJECTS = [  # the chat adapter of DSPy does not read them
    '{"reasoning": "x", "steps": ["a", "b"]}',
    '```json\n{"reasoning": "x", "steps": ["a", "b"]}\n```',
    'Sure! {"reasoning": "x", "steps": ["a", "b"]} Anything else?',
]
REPLIES = [
    "{'reasoning': 'x', 'steps': ['a', 'b'],}",
    '{"reasoning": "x", "steps": ["a", "b"',
    '{"reasoning": "x"}',
    "[[ ## reasoning ## ]]\nx\n\n[[ ## steps ## ]]\n['a', 'b']\n\n[[ ## completed ## ]]",
    "[[ ## reasoning ## ]]\nx\n\n[[ ## steps ## ]]\na, b",
    "[1, 2]",
    "42",
    "",
    "No.",
    "{" * 40 + "}" * 40,
]


@pytest.mark.parametrize(
    ("ours", "theirs", "reply"),
    [
        *((ADAPTER, dspy.ChatAdapter(), reply) for reply in REPLIES),
        *((JSONAdapter(), dspy.JSONAdapter(), reply) for reply in [*OBJECTS, *REPLIES]),
    ],
)
def test_any_other_reply_is_read_as_dspy_reads_it(ours: Any, theirs: Any, reply: str) -> None:
    def read(adapter: Any) -> Any:
        try:
            return adapter.parse(Planned, reply)
        except AdapterParseError as error:
            return str(error)

    assert read(ours) == read(theirs)


@pytest.mark.parametrize("fallback", [True, False])
def test_an_unreadable_reply_is_requested_again_as_json(fallback: bool) -> None:
    def requests(adapter: dspy.Adapter) -> list[Any]:
        with playing(scripted(answerer=["No.", {"answer": "x"}]), adapter) as script:
            try:
                assert dspy.Predict("question -> answer")(question="?").answer == "x"
            except AdapterParseError:
                assert not fallback
        return [(request.system, request.messages) for request in script.requests]

    ours = requests(ChatAdapter(json_fallback=fallback))
    assert ours == requests(dspy.ChatAdapter(use_json_adapter_fallback=fallback))
    assert len(ours) == 1 + fallback


# --- together -------------------------------------------------------------------------------------------------------


def test_tasks_run_at_the_same_time_and_answer_in_order() -> None:
    meeting = threading.Barrier(3, timeout=10)  # passes only if all three are running
    trace = Trace()

    def task(n: int) -> int:
        meeting.wait()
        return n

    assert together(trace, [lambda _, n=n: task(n) for n in range(3)]) == [0, 1, 2]  # type: ignore[misc]
    assert isinstance(trace.steps[0], Parallel)


def test_a_failure_is_raised_when_all_are_done_and_their_steps_are_kept() -> None:
    trace, done = Trace(), []

    def fails(own: Trace) -> None:
        own.add(Thought("failing"))
        raise ValueError("first")

    def works(own: Trace) -> None:
        own.add(Thought("working"))
        done.append(1)

    with pytest.raises(ValueError, match="first"):
        together(trace, [fails, works])
    assert done == [1]
    assert [step.text for step in trace.flat() if isinstance(step, Thought)] == ["failing", "working"]
    assert trace.lm_calls_critical_path == 1


def test_models_and_records_of_the_caller_reach_the_threads() -> None:
    predict = dspy.Predict("question -> answer")
    first_waits = threading.Event()

    def ask(n: int) -> str:
        if n == 0:
            first_waits.wait(60)
        reply = str(predict(question=f"{n}?").answer)
        first_waits.set()
        return reply

    with playing(scripted(answerer=lambda request: {"answer": request.inputs["question"]})):
        with dspy.context(trace=[]), dspy.track_usage() as usage:
            trace = Trace([Stopped("x")])
            assert together(trace, [lambda _, n=n: ask(n) for n in range(2)]) == ["0?", "1?"]  # type: ignore[misc]
            recorded = [inputs["question"] for _, inputs, _ in dspy.settings.trace]
        assert recorded == ["0?", "1?"]  # though the second was asked first
        assert len(usage.usage_data["scripted"]) == 2
