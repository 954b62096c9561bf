"""Questions on Ray: actors that hold a program, on this machine or on a cluster.

    evaluate(program, questions, "runs/a", executor=Ray(workers=4, threads=8))
    evaluate(program, questions, "runs/a", executor=Ray("auto", workers=16, threads=8))  # the nodes of a cluster

polyhop and the index must be on all nodes, at the same paths. A budget and the limits of models hold for all workers
together. What a worker that ended has not finished is executed again, each question alone in a worker.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count as counting
from logging import WARNING
from typing import Any

import cloudpickle
import dspy

from ..data.errors import PolyhopError
from ..data.importing import installs
from ..engines.models import protect_cache
from ..engines.replies import explain
from ..engines.secrets import learn_models
from ..engines.shared import Shared, dumps, loads
from .executor import ATTEMPTS, GRACE, QuestionTask, ThreadExecutor
from .metrics import METRICS
from .records import QuestionRecord

Question = tuple[int, dspy.Example]

_ENVIRONMENT = {"RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}  # Java uses the signals that Ray's handler takes for crashes


@dataclass(frozen=True)
class Ray:
    """Where questions are executed.

    Attributes:
        address: Of a cluster, as for ``ray.init``: "auto", "host:port" or "ray://host:port"; None starts Ray here.
        workers: How many actors.
        threads: Questions that each executes at the same time.
    """

    address: str | None = None
    workers: int = 2
    threads: int = 1


class RayExecutor:
    """Executes questions on Ray; see `Executor`. Use it in a ``with`` block.

    Raises:
        PolyhopError: Ray is not installed or not there, the task does not pickle, or a worker cannot load it.
    """

    def __init__(self, task: QuestionTask, where: Ray) -> None:
        self._task, self._where = task, where
        ours = __name__.partition(".")[0]
        own = {name: each for name, each in METRICS.items() if not each.function.__module__.startswith(f"{ours}.")}
        settings = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
        try:
            self._content, shared = dumps((task, settings, own))
        except Exception as error:  # pickling runs anybody's code
            raise PolyhopError(f"with workers, program, questions and metric must pickle: {explain(error)}") from error
        self._ray, self._started = _connected(where)
        here = self._ray.get_runtime_context().get_node_id()  # where the file of the budget is
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        options = {"num_cpus": 0, "max_concurrency": 1000, "scheduling_strategy": affinity}
        self._shared = self._ray.remote(Shared).options(**options).remote(shared)
        self._waiting: dict[Any, tuple[Question, _Seat]] = {}
        self._numbers = counting()
        self._seats = [self._seat() for _ in range(where.workers)]
        try:
            self._ray.get([seat.actor.ready.remote() for seat in self._seats])
        except self._ray.exceptions.RayError as error:
            self.close()
            raise PolyhopError(f"a worker cannot start: {explain(getattr(error, 'cause', None) or error)}") from error

    def _seat(self) -> _Seat:
        """A new worker."""
        number, cpus = next(self._numbers), 1.0 if self._where.address else 0.0  # here, the threads decide
        options = {"num_cpus": cpus, "max_concurrency": self._where.threads, "runtime_env": {"env_vars": _ENVIRONMENT}}
        return _Seat(number, self._ray.remote(_Worker).options(**options).remote(self._content, self._shared, number))

    def run(self, questions: Iterable[Question]) -> Iterator[QuestionRecord]:
        lost: list[Question] = []
        yield from self._pass(questions, self._where.threads, lost)
        for _ in range(ATTEMPTS - 1):
            again, lost = lost, []
            yield from self._pass(again, 1, lost)
        for n, example in lost:
            yield self._task.lost(n, example)

    def _pass(self, questions: Iterable[Question], threads: int, lost: list[Question]) -> Iterator[QuestionRecord]:
        """The records of questions, with so many at a time in each worker; those that ended one are ``lost``."""
        for question in questions:
            while min(seat.busy for seat in self._seats) >= threads:
                yield from self._next(lost)
            seat = min(self._seats, key=lambda seat: seat.busy)
            seat.busy += 1
            self._waiting[seat.actor.ask.remote(question)] = question, seat
        while self._waiting:
            yield from self._next(lost)

    def _next(self, lost: list[Question]) -> Iterator[QuestionRecord]:
        [done], _ = self._ray.wait(list(self._waiting), num_returns=1)
        question, seat = self._waiting.pop(done)
        try:
            record, error = self._ray.get(done)
        except self._ray.exceptions.RayActorError:
            lost.append(question)
            if seat in self._seats:  # not replaced yet
                self._ray.get(self._shared.lost.remote(seat.number))
                self._seats[self._seats.index(seat)] = self._seat()
            return
        seat.busy -= 1
        if error is not None:
            raise error
        yield record

    def drain(self) -> Iterator[QuestionRecord]:
        waiting = list(self._waiting)
        done, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=GRACE) if waiting else ([], [])
        for each in done:
            try:
                record, error = self._ray.get(each)
            except self._ray.exceptions.RayActorError:
                continue
            if error is None:
                yield record

    def close(self) -> None:
        for actor in (*(seat.actor for seat in self._seats), self._shared):
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(eq=False)
class _Seat:
    """A worker, and how many questions it has."""

    number: int
    actor: Any
    busy: int = 0


class _Worker:
    """The actor that holds the program. It has DSPy's settings and the metrics of the process of the run."""

    def __init__(self, content: bytes, shared: Any, number: int) -> None:
        import ray

        def call(*call: Any, **named: Any) -> Any:
            result, error = ray.get(shared.call.remote(number, *call, **named))
            if error is not None:
                raise error
            return result

        protect_cache()
        task, self._settings, metrics = loads(content, call)
        METRICS.update(metrics)
        learn_models(task.program)
        self._task: QuestionTask = task

    def ready(self) -> None:
        """Return when the program is loaded."""

    def ask(self, question: Question) -> tuple[QuestionRecord | None, BaseException | None]:
        """The record, or what must stop the run, such as a spent budget; Ray would take it for the end of the actor."""
        try:
            with dspy.context(**self._settings):
                return next(ThreadExecutor(self._task).run([question])), None
        except BaseException as error:  # noqa: BLE001  # raised in the process of the run
            try:
                cloudpickle.loads(cloudpickle.dumps(error))
            except Exception:  # noqa: BLE001  # it has anybody's code
                return None, PolyhopError(explain(error))
            return None, error


def _connected(where: Ray) -> tuple[Any, bool]:
    """Ray, connected; and whether this call has connected it."""
    os.environ.update(_ENVIRONMENT)
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        told = f"workers need Ray: {installs('ray')}; or leave --workers out and use --threads"
        raise PolyhopError(told) from error
    if ray.is_initialized():
        return ray, False
    start = partial(ray.init, logging_level=WARNING, log_to_driver=False)
    had_handler = faulthandler.is_enabled()
    try:
        start(where.address) if where.address else start("local", include_dashboard=False, num_cpus=where.workers)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise PolyhopError(f"no Ray cluster at {where.address!r}: {reason}") from error
    if not had_handler:
        faulthandler.disable()  # Ray has enabled it; now the handler of Java is back, if an index is open
    return ray, True
