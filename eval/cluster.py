"""Questions on Ray: actors that hold a program, on this machine or on a cluster.

    evaluate(program, questions, "runs/a", executor=Ray(workers=4, threads=8))
    evaluate(program, questions, "runs/a", executor=Ray("auto", workers=16, threads=8))  # the nodes of a cluster

polyhop and the index must be on all nodes, at the same paths. A budget and the limits of models hold for all workers
together. What a worker that ended has not finished is executed again, each question alone in a worker.
"""

from __future__ import annotations

import faulthandler
import os
from contextlib import closing
from dataclasses import dataclass
from itertools import count as counting
from logging import WARNING
from threading import Lock
from typing import Any

import cloudpickle
import dspy

from ..data.errors import PolyhopError
from ..data.importing import installs
from ..engines.costs import Ledger
from ..engines.models import protect_cache
from ..engines.replies import explain
from ..engines.secrets import learn_models
from ..engines.shared import Shared, dumps, loads
from .metrics import METRICS, own_metrics
from .records import Failure, RunRecord
from .run import QuestionTask, in_threads

ATTEMPTS = 3
"""Workers that a question may end until it has failed."""

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

    def start(self, task: QuestionTask) -> closing[RayTask]:
        """The workers, with a task each, until the end of a ``with`` block.

        Raises:
            PolyhopError: Ray is not installed or not there, the task does not pickle, or a worker cannot load it.
        """
        return closing(RayTask(task, self))


@dataclass(eq=False)
class _Seat:
    """A worker, and how many questions it has."""

    number: int
    cpus: float  # of a cluster, that it takes
    actor: Any
    busy: int = 0


class RayTask:
    """Has a question asked by the worker that has the fewest; called from a thread for each question."""

    timeout = None  # workers see to it

    def __init__(self, task: QuestionTask, where: Ray) -> None:
        own = {name: METRICS[name] for name in own_metrics()}
        settings = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
        try:
            self._content, shared = dumps((task, settings, own))
        except Exception as error:  # pickling runs anybody's code
            raise PolyhopError(f"with workers, program, questions and metric must pickle: {explain(error)}") from error
        self.failed, self.too_late, self._where = task.failed, task.too_late, where
        self._ray, self._started = ray, _ = connected(where)
        here = ray.get_runtime_context().get_node_id()  # where the file of the budget is
        affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        options = {"num_cpus": 0, "max_concurrency": 1000, "scheduling_strategy": affinity}
        self._shared = ray.remote(Shared).options(**options).remote(shared)
        self._numbers, self._lock, self._alone = counting(), Lock(), Lock()
        self._lone: list[_Seat] = []  # the worker for questions that ended one, when it is needed
        self._seats = [self._seat() for _ in range(where.workers)]
        try:
            ray.get([seat.actor.ready.remote() for seat in self._seats])
        except ray.exceptions.RayError as error:
            self.close()
            raise PolyhopError(f"a worker cannot start: {explain(getattr(error, 'cause', None) or error)}") from error

    def _seat(self, cpus: float = 1.0) -> _Seat:
        number, taken = next(self._numbers), cpus if self._where.address else 0.0  # here, the threads decide
        options = {"num_cpus": taken, "max_concurrency": self._where.threads, "runtime_env": {"env_vars": _ENVIRONMENT}}
        actor = self._ray.remote(_Worker).options(**options).remote(self._content, self._shared, number)
        return _Seat(number, cpus, actor)

    def ask(self, n: int, example: dspy.Example, ledger: Ledger) -> RunRecord:
        record = self._asked(self._seats, n, example, ledger)
        for _ in range(ATTEMPTS - 1):
            if record is None:
                with self._alone:
                    self._lone = self._lone or [self._seat(0.0)]  # the others may have all processors of a cluster
                    record = self._asked(self._lone, n, example, ledger)
        message = f"the question ended {ATTEMPTS} workers; if memory ran out, use fewer --threads"
        lost = Failure(cause="worker", type="WorkerLost", message=message)
        return record or self.failed(n, example, ledger, lost, 0.0)

    def _asked(self, seats: list[_Seat], n: int, example: dspy.Example, ledger: Ledger) -> RunRecord | None:
        """The record; None if the worker ended, which another one replaces."""
        with self._lock:
            seat = min(seats, key=lambda seat: seat.busy)
            seat.busy += 1
        try:
            record, error = self._ray.get(seat.actor.ask.remote(n, example))
        except self._ray.exceptions.RayActorError:
            if ledger.abandoned.is_set():  # the run has ended
                raise
            with self._lock:
                if seat in seats:  # not replaced yet
                    self._ray.get(self._shared.lost.remote(seat.number))
                    seats[seats.index(seat)] = self._seat(seat.cpus)
            return None
        with self._lock:
            seat.busy -= 1
        if error is not None:
            raise error
        return record  # type: ignore[no-any-return]

    def close(self) -> None:
        for actor in (*(seat.actor for seat in (*self._seats, *self._lone)), self._shared):
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()


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

    def ask(self, n: int, example: dspy.Example) -> tuple[RunRecord | None, BaseException | None]:
        """The record, or what must stop the run, such as a spent budget; Ray would take it for the end of the actor."""
        try:
            with dspy.context(**self._settings):
                task = self._task
                return next(in_threads(task.ask, [(n, example)], 1, task.timeout, task.too_late)), None
        except BaseException as error:  # noqa: BLE001  # raised in the process of the run
            try:
                cloudpickle.loads(cloudpickle.dumps(error))
            except Exception:  # noqa: BLE001  # it has anybody's code
                return None, PolyhopError(explain(error))
            return None, error


def connected(where: Ray) -> tuple[Any, bool]:
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
    had_handler = faulthandler.is_enabled()
    local = {} if where.address else {"include_dashboard": False, "num_cpus": where.workers}
    try:
        ray.init(where.address or "local", logging_level=WARNING, log_to_driver=False, **local)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise PolyhopError(f"no Ray cluster at {where.address!r}: {reason}") from error
    if not had_handler:
        faulthandler.disable()  # Ray has enabled it; now the handler of Java is back, if an index is open
    return ray, True
