"""Awaited programs, and what DSPy's tools for asynchronous code and for observation see of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from time import monotonic
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.streaming import StatusMessage, StreamListener, StreamResponse

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Hit
from polyhop.data.pool import PassagePool
from polyhop.data.sample import sample_passages
from polyhop.engines.lexical import LexicalEngine
from polyhop.engines.limits import LimitedLM, RateLimit
from polyhop.programs import ParRag, PolyHop, Program, Search, conclude
from polyhop.programs.program import StatusMessages
from polyhop.programs.trace import Searched

from .scripted import answer, lm, scripted

QUESTION = "Where was the director of Stalker born?"
SECONDS = 60  # after which a test fails


class Door(LexicalEngine):
    """The embedded engine, whose first requests pass. The others wait until it is opened."""

    def __init__(self, passes: int) -> None:
        self.passes, self.asked = passes, 0
        self._opened, self._lock = threading.Event(), threading.Lock()

    def open(self) -> None:
        self._opened.set()

    def complete(self, request: lm15.Request) -> lm15.Response:
        with self._lock:
            self.asked += 1
            number = self.asked
        assert number <= self.passes or self._opened.wait(SECONDS)
        return super().complete(request)

    def __deepcopy__(self, memo: dict[int, Any]) -> Door:
        return self


def behind(door: Door) -> dspy.LM:
    return dspy.LM("lexical", engine=door, cache=False, num_retries=0)


@pytest.fixture(scope="module")
def pool() -> PassagePool:
    return PassagePool(sample_passages())


@pytest.fixture(scope="module")
def retriever(pool: PassagePool) -> ChainRetriever:
    return ChainRetriever(pool)


async def until(condition: Callable[[], bool]) -> None:
    end = monotonic() + SECONDS
    while not condition():
        assert monotonic() < end
        await asyncio.sleep(0.01)  # never returns if the event loop is blocked


def ending(kind: Any) -> Any:
    """A kind of program that tells when it has ended, perhaps after the task that awaits it."""

    class Ending(kind):
        ended = threading.Event()

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().__call__(*args, **kwargs)
            finally:
                self.ended.set()

    return Ending


def test_many_questions_wait_for_models_at_once_and_block_nothing(retriever: ChainRetriever) -> None:
    door, program = Door(0), PolyHop(retriever)

    async def ask(questions: int) -> list[dspy.Prediction]:
        tasks = [asyncio.create_task(program.acall(question=QUESTION)) for _ in range(questions)]
        await until(lambda: door.asked == questions)
        door.open()
        return await asyncio.gather(*tasks)

    with dspy.context(lm=behind(door)):
        assert {found.answer for found in asyncio.run(ask(20))} == {program(question=QUESTION).answer}


async def awaited(program: Any) -> None:
    await program.acall(question=QUESTION)


async def streamed(program: Any) -> None:
    async for _ in dspy.streamify(program)(question=QUESTION):
        pass


async def streamed_awaited(program: Any) -> None:
    async for _ in dspy.streamify(program, is_async_program=True)(question=QUESTION):
        pass


@pytest.mark.parametrize("way", [awaited, streamed, streamed_awaited])
@pytest.mark.parametrize(("kind", "passes", "together"), [(PolyHop, 1, 1), (ParRag, 2, 2)])
@pytest.mark.parametrize("limited", [False, True])
def test_a_cancelled_question_asks_nothing_more(
    limited: bool, kind: Any, passes: int, together: int, way: Any, retriever: ChainRetriever
) -> None:
    door = Door(passes)  # later, PAR-RAG asks two judges in parallel
    program = ending(kind)(retriever)

    async def leave() -> None:
        task = asyncio.create_task(way(program))
        await until(lambda: door.asked == passes + together)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if not limited:  # a model with limits is not waited for
            door.open()
            await until(program.ended.is_set)  # what a thread sends to a loop that closes may never return

    with dspy.context(lm=LimitedLM(behind(door), RateLimit()) if limited else behind(door)):
        asyncio.run(leave())
    assert program.ended.wait(SECONDS)
    door.open()
    assert door.asked == passes + together


def test_a_cancelled_question_searches_no_more() -> None:
    class Slow:
        searched, found = 0, threading.Event()

        def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
            self.searched += 1
            assert self.found.wait(SECONDS)
            return []

    class Twice(Program):
        def __init__(self, retriever: Any) -> None:
            super().__init__()
            self.search = Search(retriever)

        def forward(self, question: str, pool: Any = None) -> dspy.Prediction:
            self.search(question)
            self.search(question)
            return conclude("-", 1.0, stop="-")

    slow = Slow()
    program = ending(Twice)(slow)

    async def leave() -> None:
        task = asyncio.create_task(program.acall(question="Who?"))
        await until(lambda: slow.searched == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        slow.found.set()

    asyncio.run(leave())
    assert program.ended.wait(SECONDS)
    assert slow.searched == 1


def test_each_question_has_the_settings_and_variables_of_its_task(pool: PassagePool) -> None:
    user: ContextVar[str] = ContextVar("user")
    searched = set[tuple[str, str]]()

    class Noting:
        def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
            searched.add((user.get(), dspy.settings.lm.model))
            return pool.search(query, k, offset)

    program = PolyHop(Noting())

    async def ask(name: str) -> dspy.Prediction:
        user.set(name)
        model = lm(scripted(reader=answer(name))).copy(model=name)
        with dspy.context(lm=model, track_usage=True, adapter=dspy.ChatAdapter()):
            return await program.acall(question="Who is asked about?")

    async def both() -> list[dspy.Prediction]:
        return await asyncio.gather(*map(ask, ("Ada", "Otto")))

    found = asyncio.run(both())
    assert [each.answer for each in found] == ["Ada", "Otto"]
    assert [list(each.get_lm_usage()) for each in found] == [["Ada"], ["Otto"]]
    assert searched == {("Ada", "Ada"), ("Otto", "Otto")}


@pytest.mark.parametrize(("is_async_program", "limited"), [(False, True), (True, False)])
def test_agents_that_are_asked_in_parallel_stream_as_others_do(
    is_async_program: bool, limited: bool, retriever: ChainRetriever
) -> None:
    program = ParRag(retriever)
    listeners = [
        StreamListener("reasoning", predict=program.review.accuracy_judge, predict_name="judge", allow_reuse=True),
        StreamListener("answer", predict=program.answerer, predict_name="answerer"),
    ]

    async def collect() -> list[Any]:
        options = {"status_message_provider": StatusMessages(), "stream_listeners": listeners}
        stream = dspy.streamify(program, is_async_program=is_async_program, **options)
        return [value async for value in stream(question=QUESTION)]

    door = behind(Door(1_000))
    with dspy.context(lm=LimitedLM(door, RateLimit()) if limited else door):
        values = asyncio.run(collect())
        known = program(question=QUESTION)
    messages = [value.message for value in values if isinstance(value, StatusMessage)]
    assert {"asking the accuracy judge", "asking the attribution judge"} < set(messages)
    assert len([each for each in messages if each.startswith("asking")]) == known.trace.lm_calls
    searched = [step.query for step in known.trace.flat() if isinstance(step, Searched)]
    assert sorted(text for text in messages if text.startswith("searching")) == sorted(
        f"searching for “{query}”" for query in searched
    )
    chunks = [value for value in values if isinstance(value, StreamResponse)]
    assert "".join(value.chunk for value in chunks if value.predict_name == "answerer").strip() == known.answer
    tokens = [value for value in chunks if value.predict_name == "judge"]
    judged = messages.count("asking the accuracy judge")
    assert sum(value.is_last_chunk for value in tokens) == judged > 1
    said = "".join(value.chunk for value in tokens).replace("\n", "")  # which DSPy 3.4.0 keeps
    assert said.startswith("Who is the director of Stalker? Andrei Tarkovsky [1s1].")
    assert said.endswith("].")
    assert (values[-1].answer, values[-1].evidence) == (known.answer, known.evidence)
