"""Questions as streams of events: what a program does as it happens, then its answer or an error.

Events are JSON objects with ``event`` and ``seconds`` since the question came:

- ``start``: ``question``, ``program``;
- ``waiting``: for one of the places of the service;
- ``asking``: ``agent`` (whose reply the program waits for), ``text``, ``branch``, ``costs``;
- ``step``: ``text``, ``step`` (as in a trace), ``branch``, ``costs``, ``passages`` (by id, those that it is about);
- ``answer``: the prediction as `Prediction.to_json` has it, with ``costs``, ``incidents`` and ``passages``;
- ``error``: ``kind`` and ``message``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from threading import Lock
from time import perf_counter
from traceback import format_exc
from typing import Any, TypeVar

import dspy

from ..data.errors import IndexFault, PolyhopError
from ..data.lucene.bm25 import BM25Index
from ..data.passages import Fact, Hit, Passage
from ..data.pool import PassagePool
from ..data.retrievers import RETRIEVERS, build_retriever
from ..engines.budget import Budget, BudgetSpent
from ..engines.costs import CANCELLED, Abandoned, Ledger
from ..engines.replies import ModelError, explain, model_errors
from ..engines.secrets import without_secrets
from ..programs.prediction import STOPS, check_question, to_record
from ..programs.program import ask, completed
from ..programs.trace import Event, Searched, TraceStep, following

log = logging.getLogger("polyhop.serve")

_SHOWN = 20  # passages of one search in an event
_LONGEST = 3_000  # characters of a passage in an event

Record = dict[str, Any]
T = TypeVar("T")


class ServiceError(PolyhopError):
    """A question that is not answered. ``kind`` is one of `STATUS`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


STATUS = {
    "refused": 403,
    "unknown": 404,
    "question": 422,
    "budget": 429,
    "failed": 500,
    "model": 502,
    "busy": 503,
    "timeout": 504,
}
"""The HTTP status of each kind of error."""


@contextmanager
def _of_the_client() -> Iterator[None]:
    """What is wrong inside is wrong with the request."""
    try:
        yield
    except ServiceError:
        raise
    except (PolyhopError, ValueError) as error:
        raise ServiceError("question", explain(error)) from error


class Service:
    """Answers questions with programs over one source. Use it from one event loop.

    Args:
        build: Makes a program from its name.
        programs: The names, the default first; none if there is nothing to ask.
        source: What the programs search; None if they do not.
        index: What the source is called.
        examples: Questions that the page suggests.
        concurrency: Questions that are answered at the same time.
        waiting: Questions that wait for that; further ones are refused.
        seconds: Per question, without waiting.
        budget: Of all questions together.
    """

    def __init__(
        self,
        build: Callable[[str], dspy.Module],
        programs: Iterable[str],
        source: BM25Index | PassagePool | None,
        *,
        index: str = "",
        examples: Iterable[str] = (),
        concurrency: int = 64,
        waiting: int = 256,
        seconds: float = 300.0,
        budget: Budget | None = None,
    ) -> None:
        self.programs, self.source, self.index, self.examples = list(programs), source, index, list(examples)
        self.seconds, self.budget, self.outcomes = seconds, budget, Counter[str]()
        self._build, self._built, self._building = build, dict[str, dspy.Module](), Lock()
        self._retrievers = dict[str, Any]()
        self._places, self._most, self.waiting = asyncio.Semaphore(concurrency), concurrency + waiting, 0
        self.threads = ThreadPoolExecutor(concurrency + 8, "question")
        self._running = set[_Asked]()

    def program(self, name: str) -> dspy.Module:
        """Raises: ServiceError: no program has this name, or it does not go with the models."""
        with self._building:
            if name not in self._built:
                if name not in self.programs:
                    raise ServiceError("unknown", f"no program {name!r}: choose {', '.join(self.programs)}")
                self._built[name] = self._build(name)
                if self.budget:
                    self.budget.meter_program(self._built[name])
            return self._built[name]

    async def search(self, query: str, k: int, offset: int = 0, retriever: str = "chain") -> list[Hit]:
        """The hits of a retriever by its name.

        Raises:
            ServiceError: there is no such retriever, or it cannot search for this.
        """
        if self.source is None:
            raise ServiceError("unknown", "there is nothing to search: start the server with --index")
        if retriever not in RETRIEVERS:  # nor any MODULE:FUNCTION
            raise ServiceError("question", f"no retriever {retriever!r}: choose {', '.join(RETRIEVERS)}")

        def search() -> list[Hit]:
            with self._building:
                if retriever not in self._retrievers:
                    self._retrievers[retriever] = build_retriever(retriever, self.source)
            hits: list[Hit] = self._retrievers[retriever].search(query, k, offset)
            return hits

        with _of_the_client():
            return await self.in_thread(search)

    def passages(self, ids: Iterable[str]) -> dict[str, Passage]:
        """The passages of the source with these ids; those that it does not have are left out."""
        wanted = list(dict.fromkeys(ids))
        if isinstance(self.source, PassagePool):
            return {passage.id: passage for passage in self.source.passages if passage.id in wanted}
        with suppress(KeyError, IndexFault):  # a retriever of the user's own finds others
            return dict(zip(wanted, self.source.passages(wanted), strict=True)) if self.source and wanted else {}
        return {}

    def shown(self, passages: Mapping[str, Passage]) -> dict[str, Record]:
        """Passages as events have them: the first ``sentences``, ``more`` if there are others, and ``links``, as
        [sentence, text, target], those to documents of the source and to other sites ("//host/path")."""
        targets = list({link.target for passage in passages.values() for link in passage.links})
        reached = self._rows(targets).keys() | {target for target in targets if target.startswith("//")}
        records = {}
        for id, passage in passages.items():
            sentences, left = list[str](), _LONGEST
            for sentence in passage.sentences:
                if left <= 0:
                    break
                sentences.append(sentence[:left])
                left -= len(sentence)
            links = [link for link in passage.links if link.sentence < len(sentences) and link.target in reached]
            records[id] = {
                "title": passage.heading,
                "sentences": sentences,
                "more": len(sentences) < len(passage.sentences) or left < 0,
                "links": [[link.sentence, link.text, link.target] for link in links],
            }
        return records

    def linked(self, target: str) -> Passage | None:
        """The passage of the source that a hyperlink leads to."""
        rows = self._rows([target])
        return self.source.stored([rows[target]])[0] if self.source and rows else None

    def _rows(self, targets: Sequence[str]) -> dict[str, int]:
        if not targets or self.source is None or (isinstance(self.source, BM25Index) and not self.source.has_titles):
            return {}
        return self.source.store.named(targets)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """The result of a call in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, call)

    async def events(self, question: str, program: str = "") -> AsyncGenerator[Record]:
        """The events of a question; closing the iterator stops its work before the next step or call.

        Raises:
            ServiceError: before the first event: the question, the program, or the load does not allow an answer.
        """
        if not self.programs:
            raise ServiceError("unknown", "there is nothing to ask: start the server with --index")
        name = program or self.programs[0]
        with _of_the_client():
            question = check_question(question)
            run = self._built.get(name) or await self.in_thread(lambda: self.program(name))
        if self.running + self.waiting >= self._most:
            raise ServiceError("busy", "too many questions at once: try again in a few seconds")
        asked = _Asked(self, run, question, name)
        self.waiting += 1  # before an event: others may come until the next one is taken
        try:
            yield asked.event("start", question=question, program=name)
            if self._places.locked():
                yield asked.event("waiting", text="waiting for other questions")
            await self._places.acquire()
        except (asyncio.CancelledError, GeneratorExit):
            self._count(asked)
            raise
        finally:
            self.waiting -= 1
        self._running.add(asked)
        asked.begin(self._finished)
        until = asked.seconds + self.seconds
        try:
            while event := await asyncio.wait_for(asked.queue.get(), until - asked.seconds):
                yield event
        except TimeoutError:
            asked.outcome = "timeout"
            yield asked.event("error", kind="timeout", message=f"no answer within {self.seconds:g} s")
        finally:
            asked.ledger.abandoned.set()

    def _finished(self, asked: _Asked) -> None:
        self._running.discard(asked)
        self._places.release()
        self._count(asked)

    def _count(self, asked: _Asked) -> None:
        self.outcomes[asked.outcome] += 1
        cancelled = asked.ledger.incidents.get(CANCELLED, 0)
        about = {"program": asked.name, "outcome": asked.outcome, "seconds": round(asked.seconds, 3)}
        log.info("question", extra={"details": {**about, **asked.ledger.costs(), "cancelled_calls": cancelled}})

    @property
    def running(self) -> int:
        return len(self._running)

    def close(self) -> None:
        """Stop all work."""
        for asked in list(self._running):
            asked.ledger.abandoned.set()
        self.threads.shutdown(wait=False, cancel_futures=True)


class _Asked:
    """A question in a thread of its own."""

    def __init__(self, service: Service, program: dspy.Module, question: str, name: str) -> None:
        self._service, self._program, self._question, self.name = service, program, question, name
        self._loop, self._start = asyncio.get_running_loop(), perf_counter()
        self._sent: set[str] = set()  # ids of passages
        self.queue: asyncio.Queue[Record | None] = asyncio.Queue()
        self.ledger = Ledger(on_incident=lambda incident: self._tell("incident", text=incident))
        self.outcome = "left"

    @property
    def seconds(self) -> float:
        return perf_counter() - self._start

    def event(self, event: str, **rest: Any) -> Record:
        return {"event": event, "seconds": round(self.seconds, 3), **rest}

    def begin(self, finished: Callable[[_Asked], None]) -> None:
        def end(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(finished, self)
                self._loop.call_soon_threadsafe(self.queue.put_nowait, None)

        self._service.threads.submit(self._run).add_done_callback(end)

    def _run(self) -> None:
        try:
            with model_errors(), dspy.context(usage_tracker=self.ledger), following(self._follow):
                asked = dspy.Example(question=self._question).with_inputs("question")
                prediction = completed(ask(self._program, asked))
        except (Abandoned, asyncio.CancelledError):
            return
        except (BudgetSpent, Exception) as error:  # noqa: BLE001  # whatever a program raises is told
            kinds = ((BudgetSpent, "budget"), (ModelError, "model"))
            self.outcome = next((kind for type, kind in kinds if isinstance(error, type)), "failed")
            if self.outcome == "failed" and not isinstance(error, PolyhopError):
                log.error("failed", extra={"details": {"traceback": without_secrets(format_exc())}})
            spent = isinstance(error, BudgetSpent)
            message = f"the server's budget of {error} is spent" if spent else explain(error)
            self._tell("error", kind=self.outcome, message=message)
            return
        self.outcome = "answered"
        known_passages = {passage.id: passage for passage in prediction.ranking[:_SHOWN]}
        known_passages |= {item.passage.id: item.passage for item in prediction.evidence}
        record = {name: value for name, value in to_record(prediction).items() if name != "trace"}
        record["stopped"] = STOPS.get(prediction.stop_reason, prediction.stop_reason)
        record |= {"costs": self.ledger.costs(), "by_agent": self.ledger.by_agent()}
        self._tell("answer", **record, incidents=self.ledger.incidents, passages=self._fresh(known_passages))

    def _follow(self, event: Event) -> None:
        if self.ledger.abandoned.is_set():
            raise Abandoned
        shared: Record = {"text": event.text, "branch": event.branch, "costs": self.ledger.costs()}
        if event.step is None:
            self._tell("asking", agent=event.agent, **shared)
        else:
            step = {"step": type(event.step).__name__.lower(), **asdict(event.step)}
            shown = self._fresh(self._service.passages(id for id in _mentioned(event.step) if id not in self._sent))
            self._tell("step", step=step, **shared, passages=shown)

    def _fresh(self, passages: Mapping[str, Passage]) -> Record:
        """Passages that were not sent before."""
        new = {id: passage for id, passage in passages.items() if id not in self._sent}
        self._sent |= new.keys()
        return self._service.shown(new)

    def _tell(self, event: str, **rest: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.queue.put_nowait, self.event(event, **rest))


def _mentioned(step: TraceStep) -> list[str]:
    """The ids of the passages that a step is about."""
    if isinstance(step, Searched):
        return [id for id, _, _ in step.found[:_SHOWN]]
    values = [getattr(step, field.name) for field in fields(step)]
    return [fact.passage_id for value in values if isinstance(value, tuple) for fact in value if isinstance(fact, Fact)]
