"""Workers: processes, of this machine or of others, that hold a task and do its items.

`Processes` starts them here. A `Pool` gives them items and takes their results; what a lost worker has not finished
goes to another one.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import cloudpickle

from ..data.errors import PolyhopError
from ..engines.desk import Desk, fetch_indexes, loads, share_cache
from ..engines.replies import explain

Item = TypeVar("Item")
Result = TypeVar("Result")

ATTEMPTS = 3
"""Workers that an item may cost until it has failed. So often may all workers fail to start."""

_PING = 15.0  # seconds between two signs of life
_HANGS = 90.0  # seconds without one after which a worker is replaced


class WorkerLost(Exception):
    """A worker has ended before it was done."""


class Worker(Protocol):
    """A process that holds a task.

    Attributes:
        ready: Done when the task is loaded.
    """

    ready: Future[Any]

    def submit(self, item: Any) -> Future[Any]:
        """The result of an item; raises what the task raises, or `WorkerLost`."""

    def ping(self) -> Future[Any]:
        """Done when the process shows that it is alive."""

    def kill(self) -> None:
        """End the process."""


class Workers(Protocol):
    """Where workers run, how many, and how many items each does at a time."""

    @property
    def workers(self) -> int: ...

    @property
    def threads(self) -> int: ...

    def start(self, content: bytes, desk: Desk, number: int) -> Worker:
        """Start a worker that loads a task from what `Desk.dumps` made of it."""


# --- the pool --------------------------------------------------------------------------------------------------------


@dataclass
class _Work:
    item: Any
    deaths: int = 0


class _Seat:
    """A worker of a pool, and what it does."""

    def __init__(self, worker: Worker, number: int) -> None:
        self.worker, self.number = worker, number
        self.works: dict[Future[Any], _Work] = {}
        self.alone = False  # its work may have ended another worker, and gets no company
        self.ping, self.pinged = worker.ready, monotonic()

    @property
    def ready(self) -> bool:
        return self.worker.ready.done() and not self.worker.ready.exception() and not self.alone


class Pool(Generic[Item, Result]):
    """Workers that do the items of a task; use it in a ``with`` block.

    A worker that ends, or shows no sign of life for 90 seconds, is replaced. Its items are done again, each alone.

    Args:
        task: Called with an item, in several threads; it must pickle.

    Raises:
        PolyhopError: the task does not pickle.
    """

    def __init__(self, workers: Workers, task: Callable[[Item], Result]) -> None:
        if workers.workers < 1 or workers.threads < 1:
            raise PolyhopError(f"workers and threads must be positive, got {workers.workers} and {workers.threads}")
        self._workers, self._desk, self._numbers = workers, Desk(), count()
        try:
            self._content = self._desk.dumps(task)
        except Exception as error:  # pickling runs anybody's code
            raise PolyhopError(f"with workers, program, questions and metric must pickle: {explain(error)}") from error
        self._done: SimpleQueue[tuple[_Seat, Future[Any]]] = SimpleQueue()
        self._again: deque[_Work] = deque()
        self._failed_starts = 0
        self._seats = [self._start() for _ in range(workers.workers)]

    def run(self, items: Iterable[Item | None]) -> Iterator[tuple[Item, Result | WorkerLost]]:
        """Yield each item with its result, in the order of completion; with an error if it ended several workers.

        Args:
            items: None where the next item depends on results; it is asked for after the next one.

        Raises:
            BaseException: what the task raises.
            PolyhopError: workers do not start.
        """
        source = iter(items)
        while True:
            more = True
            while seat := self._free(more):
                if self._again and not seat.works:
                    seat.alone = True
                    self._give(seat, self._again.popleft())
                elif (item := next(source, None)) is None:
                    more = False
                else:
                    self._give(seat, _Work(item))
            if not (more or self._again or any(seat.works for seat in self._seats)):
                return
            yield from self._next()

    def drain(self, seconds: float) -> Iterator[tuple[Item, Result]]:
        """After `run` was left early: yield what is done within some seconds."""
        end = monotonic() + seconds
        while any(seat.works for seat in self._seats) and (left := end - monotonic()) > 0:
            try:
                seat, future = self._done.get(timeout=left)
            except Empty:
                return
            work = seat.works.pop(future, None)
            if work and future.exception() is None:
                yield work.item, future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for seat in self._seats:
            seat.worker.kill()

    def _start(self) -> _Seat:
        number = next(self._numbers)
        seat = _Seat(self._workers.start(self._content, self._desk, number), number)
        seat.worker.ready.add_done_callback(lambda future: self._done.put((seat, future)))
        return seat

    def _free(self, more: bool) -> _Seat | None:
        """A worker that can take work. What is done again needs an idle worker, for which one gets nothing else."""
        seats = sorted((seat for seat in self._seats if seat.ready), key=lambda seat: len(seat.works))
        if self._again:
            if seats and not seats[0].works:
                return seats[0]
            seats = seats[1:]
        return next((seat for seat in seats if more and len(seat.works) < self._workers.threads), None)

    def _give(self, seat: _Seat, work: _Work) -> None:
        future = seat.worker.submit(work.item)
        seat.works[future] = work
        future.add_done_callback(lambda future: self._done.put((seat, future)))

    def _next(self) -> Iterator[tuple[Item, Result | WorkerLost]]:
        """Handle the next event, or the silence of workers."""
        try:
            seat, future = self._done.get(timeout=_PING)
        except Empty:
            self._replace_hanging()
            return
        self._replace_hanging()
        if seat not in self._seats:
            return  # a worker that was replaced
        work, error = seat.works.pop(future, None), future.exception()
        if isinstance(error, WorkerLost):
            self._failed_starts += future is seat.worker.ready
            if self._failed_starts == ATTEMPTS * self._workers.workers:
                raise PolyhopError(
                    f"workers end before they are ready ({error}); a script must start them under "
                    "if __name__ == '__main__'"
                ) from error
            yield from self._lost(seat, [*([work] if work else []), *seat.works.values()], error)
            return
        if error is not None:
            raise error
        if work is None:
            self._failed_starts = 0
            return
        seat.alone = False
        yield work.item, future.result()

    def _lost(self, seat: _Seat, works: list[_Work], error: WorkerLost) -> Iterator[tuple[Item, WorkerLost]]:
        self._desk.lost(seat.number)
        self._seats[self._seats.index(seat)] = self._start()
        for work in works:
            work.deaths += 1
            if work.deaths < ATTEMPTS:
                self._again.append(work)
            else:
                yield work.item, error

    def _replace_hanging(self) -> None:
        now = monotonic()
        for seat in self._seats:
            if seat.ping.done() and now - seat.pinged >= _PING and seat.worker.ready.done():
                seat.ping, seat.pinged = seat.worker.ping(), now
            elif not seat.ping.done() and now - seat.pinged > _HANGS and seat.worker.ready.done():
                seat.worker.kill()  # then its items are lost


# --- messages --------------------------------------------------------------------------------------------------------


class _Messages:
    """Messages (kind, id, value) over a connection, and the futures of those that wait for a reply. Thread-safe."""

    def __init__(self, connection: Connected) -> None:
        self._connection = connection
        self._sending, self._ids = Lock(), count()
        self._waiting: dict[int, Future[Any]] = {}
        self._ended = False

    def ask(self, kind: str, value: Any) -> Future[Any]:
        """Send a message that is answered by "result" or "error"."""
        number, future = next(self._ids), Future[Any]()
        self._waiting[number] = future
        try:
            self.send(kind, number, value)
        except OSError:
            self._ended = True
        if self._ended:
            self._fail(number)
        return future

    def send(self, kind: str, number: int, value: Any) -> None:
        content = cloudpickle.dumps((kind, number, value))
        with self._sending:
            self._connection.send_bytes(content)

    def answer(self, number: int, work: Callable[..., Any], *arguments: Any) -> None:
        """Do what a message asks for, in a thread, and send the result."""

        def run() -> None:
            with suppress(OSError):  # the other process has ended
                self._send_result(number, work, *arguments)

        Thread(target=run, daemon=True).start()

    def _send_result(self, number: int, work: Callable[..., Any], *arguments: Any) -> None:
        try:
            result = work(*arguments)
        except BaseException as error:  # noqa: BLE001  # raised in the other process
            self.send("error", number, portable(error))
            return
        try:
            self.send("result", number, result)
        except (TypeError, AttributeError) as error:
            self.send("error", number, PolyhopError(f"a result does not pickle: {error}"))

    def receive(self, handlers: dict[str, Callable[[int, Any], None]]) -> None:
        """Handle messages until the other process ends."""
        try:
            while True:
                kind, number, value = cloudpickle.loads(self._connection.recv_bytes())
                if kind in handlers:
                    handlers[kind](number, value)
                elif kind == "error":
                    self._waiting.pop(number).set_exception(value)
                else:
                    self._waiting.pop(number).set_result(value)
        except (EOFError, OSError):
            self._ended = True
            for number in list(self._waiting):
                self._fail(number)

    def _fail(self, number: int) -> None:
        if future := self._waiting.pop(number, None):
            future.set_exception(WorkerLost("the process ended"))


def portable(error: BaseException) -> BaseException:
    """An error that can be pickled, and unpickled."""
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:  # noqa: BLE001  # unpickling runs anybody's code
        return PolyhopError(explain(error))
    return error


class Connected(Protocol):
    """A connection to another process; ``recv_bytes`` raises `EOFError` or `OSError` after its end."""

    def send_bytes(self, content: bytes, /) -> None: ...

    def recv_bytes(self) -> bytes: ...


class Link:
    """A worker behind a connection; see `Worker`.

    Args:
        end: Ends its process.
    """

    def __init__(
        self, connection: Connected, content: bytes, desk: Desk, number: int, end: Callable[[], object]
    ) -> None:
        self._messages = _Messages(connection)
        self._end = end
        self.ready: Future[Any] = Future()
        Thread(target=self._receive, args=(content, desk, number), daemon=True).start()

    def _receive(self, content: bytes, desk: Desk, number: int) -> None:
        def call(id: int, value: Any) -> None:
            self._messages.answer(id, desk.call, number, *value)

        self._messages.ask("load", content).add_done_callback(self._loaded)
        self._messages.receive({"call": call})

    def _loaded(self, loaded: Future[Any]) -> None:
        if error := loaded.exception():
            self.ready.set_exception(error)
        else:
            self.ready.set_result(None)

    def submit(self, item: Any) -> Future[Any]:
        return self._messages.ask("item", item)

    def ping(self) -> Future[Any]:
        return self._messages.ask("ping", None)

    def kill(self) -> None:
        self._end()


def serve(connection: Connected) -> None:
    """What a worker does, until the process that started it ends."""
    messages = _Messages(connection)
    task: Any = None

    def call(*call: Any) -> Any:
        return messages.ask("call", call).result()

    def load(content: bytes) -> None:
        nonlocal task
        share_cache(call)
        fetch_indexes(call)
        task = loads(content, call)

    messages.receive(
        {
            "load": lambda id, content: messages.answer(id, load, content),
            "item": lambda id, item: messages.answer(id, task, item),
            "ping": lambda id, nothing: messages.send("result", id, nothing),
        }
    )
    os._exit(0)  # an abandoned thread may hold the import lock, and Python would wait for it


# --- processes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Processes:
    """Worker processes of this machine; they end when this process does, however it ends.

    Attributes:
        workers: How many.
        threads: Questions that each executes at the same time.
    """

    workers: int = 2
    threads: int = 1

    def start(self, content: bytes, desk: Desk, number: int) -> Worker:
        context = get_context("spawn")  # Java does not survive a fork
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()

        def end() -> None:
            process.kill()
            process.join()

        return Link(ours, content, desk, number, end)


def _serve(connection: Connected) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    serve(connection)
