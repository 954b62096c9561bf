"""Worker processes that share the questions of a trial."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

import cloudpickle
import dspy

from ...data.errors import PolyhopError
from ...engines.budget import Budget
from ...engines.models import explain, protect_cache
from ..measure import Measured, Metric, OnScore, measure
from .space import Values, with_values

_ATTEMPTS = 3  # workers that may die on the same questions


@dataclass(frozen=True)
class _Batch:
    trial: int
    values: Values
    numbers: tuple[int, ...]


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    batch: _Batch | None = None


class WorkerPool:
    """Processes that hold a program and its questions; use it in a ``with`` block.

    A batch of questions goes to whichever worker is free. A worker that dies is replaced, and its batch is repeated.
    Workers end when this process closes the pool or dies; each closes the budget.
    """

    def __init__(
        self,
        program: dspy.Module,
        questions: Sequence[dspy.Example],
        metric: Metric,
        jobs: int,
        threads: int,
        budget: Budget | None = None,
    ) -> None:
        context = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
        try:
            self._content = cloudpickle.dumps((program, list(questions), metric, threads, budget, context))
        except Exception as error:  # pickling runs anybody's code
            raise PolyhopError(f"with jobs > 1, program, questions and metric must pickle: {explain(error)}") from error
        self._threads, self._trial = threads, 0
        self._workers = [self._start() for _ in range(jobs)]

    def _start(self) -> _Worker:
        context = get_context("spawn")  # Java does not survive a fork
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._content), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def measure(self, values: Values, order: Sequence[int], on_score: OnScore) -> Measured:
        """`polyhop.optimizers.measure.measure` with these values of the tunables; raises what a worker raised."""
        self._trial += 1
        size = self._threads
        numbers = [tuple(order[start : start + size]) for start in range(0, len(order), size)]
        waiting = deque(_Batch(self._trial, values, each) for each in numbers)
        deaths: dict[tuple[int, ...], int] = {}
        measured = Measured()
        while waiting or any(worker.batch and worker.batch.trial == self._trial for worker in self._workers):
            for n, worker in enumerate(self._workers):
                if worker.batch is None and waiting and not _send(worker, waiting[0]):
                    self._workers[n] = self._start()
                elif worker.batch is None and waiting:
                    worker.batch = waiting.popleft()
            busy = {worker.connection: n for n, worker in enumerate(self._workers) if worker.batch}
            for connection in wait(list(busy)):
                n = busy[connection]  # type: ignore[index]
                worker, batch = self._workers[n], self._workers[n].batch
                worker.batch = None
                try:
                    reply = worker.connection.recv()
                except (EOFError, OSError):
                    self._workers[n] = self._start()
                    reply = None
                if batch is None or batch.trial != self._trial:
                    continue  # of a trial that was pruned
                if reply is None:
                    deaths[batch.numbers] = deaths.get(batch.numbers, 0) + 1
                    if deaths[batch.numbers] == _ATTEMPTS:
                        raise PolyhopError(
                            f"{_ATTEMPTS} worker processes died on the same questions: if memory ran out, use fewer "
                            "jobs; the search can be resumed"
                        )
                    waiting.appendleft(batch)
                    continue
                if isinstance(reply, BaseException):
                    raise reply
                measured.update(reply)
                for number in batch.numbers:
                    if not on_score(number, reply.scores[number]):
                        return measured
        return measured

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.process.join(timeout=0 if isinstance(error, KeyboardInterrupt) else 5)
            worker.process.terminate()
            worker.process.join()


def _send(worker: _Worker, batch: _Batch) -> bool:
    try:
        worker.connection.send(batch)
    except OSError:  # it died
        return False
    return True


def _serve(connection: Connection, content: bytes) -> None:
    """What a worker does, until the pool is closed or its process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    loaded: tuple[Any, ...] | None = None
    try:
        while True:
            batch: _Batch = connection.recv()
            try:
                if loaded is None:
                    loaded = cloudpickle.loads(content)
                    if any(getattr(predictor.lm, "cache", False) for predictor in loaded[0].predictors()):
                        protect_cache()
                student, questions, metric, threads, _, context = loaded
                with dspy.context(**context):
                    program = with_values(student, batch.values)
                    reply: Any = measure(program, questions, metric, threads=threads, order=batch.numbers)
            except BaseException as error:  # noqa: BLE001  # it is raised in the driver
                reply = error
            try:
                connection.send(reply)
            except (TypeError, AttributeError) as error:
                connection.send(PolyhopError(f"{explain(reply)} ({error})"))
    except (EOFError, OSError):
        pass  # the pool is closed
    if loaded is not None and loaded[4] is not None:
        loaded[4].close()
    os._exit(0)  # an abandoned thread may hold the import lock, and Python would wait for it
