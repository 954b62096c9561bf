"""Questions on Ray: actors that hold a program, on this machine or on a cluster.

    evaluate(program, questions, "runs/a", executor=Ray(workers=4, threads=8))
    evaluate(program, questions, "runs/a", executor=Ray("auto", workers=16, threads=8))  # the nodes of a cluster

polyhop and the index must be on all nodes, at the same paths. A budget and the limits of models hold for all workers
together: each is an actor beside the driver, which the workers call. Ray restarts a worker that ended; what it has not
finished is executed again, each question alone in a worker.
"""

from __future__ import annotations

import faulthandler
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from logging import WARNING
from queue import SimpleQueue
from threading import Lock
from typing import Any

import cloudpickle
import dspy

from ..data.errors import PolyhopError
from ..data.importing import installs
from ..engines.budget import Budget
from ..engines.costs import Ledger
from ..engines.limits import RateLimit
from ..engines.models import protect_cache
from ..engines.replies import explain
from ..engines.secrets import learn_models
from .folder import Failure, RunRecord
from .metrics import METRICS, own_metrics
from .run import QuestionTask, in_threads

_ENVIRONMENT = {"RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}  # Java uses the signals that Ray's handler takes for crashes

Outcome = tuple[Any, BaseException | None]
"""A result or an error. An error that is no `Exception`, such as a spent budget, would end an actor."""


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

    @contextmanager
    def start(self, task: QuestionTask) -> Iterator[RayTask]:
        """The workers, with a task each, until the end of the block.

        Raises:
            PolyhopError: Ray is not installed or not there, the task does not pickle, or a worker cannot load it.
        """
        ray, is_ours = connected(self)
        workers = RayTask(task, self, ray)
        try:
            workers.start()
            yield workers
        finally:
            for actor in workers.actors:
                ray.kill(actor)
            if is_ours:
                ray.shutdown()


class RayTask:
    """Has a question asked by a worker that is free; called from a thread for each question."""

    timeout = None  # workers see to it

    def __init__(self, task: QuestionTask, where: Ray, ray: Any) -> None:
        self.failed, self.too_late, self._task, self._where, self._ray = task.failed, task.too_late, task, where, ray
        self.actors: list[Any] = []
        self._counted: dict[Budget | RateLimit, Any] = {}
        self._free, self._alone = SimpleQueue[Any](), SimpleQueue[Any]()
        self._alone.put(None)  # the worker for questions that ended one is started when it is needed

    def start(self) -> None:
        workers = [self._worker(number) for number in range(self._where.workers)]
        for worker in workers:
            self._wait_for(worker)
        for worker in workers * self._where.threads:  # in turn
            self._free.put(worker)

    def _worker(self, number: int, cpus: float = 1.0) -> Any:
        own = {name: METRICS[name] for name in own_metrics()}
        settings = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
        file = io.BytesIO()
        counted = dict.fromkeys((Budget, RateLimit), partial(self._reduced, worker=number))

        class Pickler(cloudpickle.Pickler):
            dispatch_table = cloudpickle.Pickler.dispatch_table.new_child(counted)

        try:
            Pickler(file).dump((self._task, settings, own))
        except Exception as error:  # pickling runs anybody's code
            raise PolyhopError(f"with workers, program, questions and metric must pickle: {explain(error)}") from error
        reserved = cpus if self._where.address else 0.0  # on this machine, the threads decide
        options = {"num_cpus": reserved, "max_concurrency": self._where.threads, "max_restarts": -1}
        return self._started(_Worker, {**options, "runtime_env": {"env_vars": _ENVIRONMENT}}, file.getvalue())

    def _reduced(self, original: Budget | RateLimit, worker: int) -> tuple[Any, ...]:
        """What a worker gets for a budget or limit. Its actor is on this machine, where the file of the budget is."""
        if original not in self._counted:
            if isinstance(original, Budget):
                original.keep_in_file()
            here = self._ray.get_runtime_context().get_node_id()
            affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
            options = {"num_cpus": 0, "max_concurrency": 1000, "scheduling_strategy": affinity}
            self._counted[original] = self._started(Counted, options, cloudpickle.dumps(original))
        kind = (
            partial(Budget, usd=original.usd) if isinstance(original, Budget) else partial(RateLimit, original.limits)
        )
        return _asking, (kind, self._counted[original], worker)

    def _started(self, kind: type, options: dict[str, Any], content: bytes) -> Any:
        self.actors.append(self._ray.remote(kind).options(**options).remote(content))
        return self.actors[-1]

    def _wait_for(self, worker: Any) -> None:
        try:
            self._ray.get(worker.ready.options(max_task_retries=-1).remote())
        except self._ray.exceptions.RayError as error:
            raise PolyhopError(f"a worker cannot start: {explain(getattr(error, 'cause', None) or error)}") from error

    def ask(self, n: int, example: dspy.Example, ledger: Ledger) -> RunRecord:
        for free in (self._free, self._alone, self._alone):
            record = self._asked(free, n, example, ledger)
            if record is not None:
                return record
        message = "the question ended 3 workers; if memory ran out, use fewer --threads"
        return self.failed(n, example, ledger, Failure(cause="worker", type="WorkerLost", message=message), 0.0)

    def _asked(self, free: SimpleQueue[Any], n: int, example: dspy.Example, ledger: Ledger) -> RunRecord | None:
        """The record; None if the worker ended and was started again."""
        worker = free.get()
        if worker is None:
            worker = self._worker(self._where.workers, cpus=0.0)  # the others may have all processors of a cluster
        try:
            outcome = self._ray.get(worker.ask.remote(n, example))
        except self._ray.exceptions.RayActorError:
            if ledger.abandoned.is_set():  # the run has ended
                raise
            self._wait_for(worker)
            return None
        finally:
            free.put(worker)
        return _result(outcome)  # type: ignore[no-any-return]


class _Worker:
    """The actor that holds the program. It has DSPy's settings and the metrics of the process of the run."""

    def __init__(self, content: bytes) -> None:
        protect_cache()
        self._task, self._settings, metrics = cloudpickle.loads(content)
        METRICS.update(metrics)
        learn_models(self._task.program)

    def ready(self) -> None:
        """Return when the program is loaded."""

    def ask(self, n: int, example: dspy.Example) -> Outcome:
        """The record, or what must stop the run."""
        task = self._task
        with dspy.context(**self._settings):
            return _outcome(lambda: next(in_threads(task.ask, [(n, example)], 1, task.timeout, task.too_late)))


def connected(where: Ray) -> tuple[Any, bool]:
    """Ray, connected; and whether this call has connected it."""
    os.environ.update(_ENVIRONMENT)
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        advice = f"{installs('ray')}; or leave --workers out and use --threads"
        raise PolyhopError(f"workers need Ray: {advice}") from error
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


# --- budgets and limits of all workers -------------------------------------------------------------------------------


class Counted:
    """The actor that counts for all workers: with the budget, or with the limits of a server. Thread-safe."""

    def __init__(self, original: bytes) -> None:
        self._original: Any = cloudpickle.loads(original)
        self._under_way: Counter[int] = Counter()  # requests by worker
        self._lock = Lock()

    def call(self, worker: int, method: str, *arguments: Any, **named: Any) -> Outcome:
        outcome = _outcome(partial(getattr(self._original, method), *arguments, **named))
        entered = method == "enter" and outcome[0] is not None and outcome[0][0]
        with self._lock:
            self._under_way[worker] += entered - (method == "leave")
        return outcome

    def started(self, worker: int) -> None:
        """A worker has started: the requests of the one that had its number are no longer under way."""
        with self._lock:
            unfinished = self._under_way.pop(worker, 0)
        for _ in range(unfinished):
            self._original.leave()


def _asking(kind: Callable[[], Budget | RateLimit], actor: Any, worker: int) -> Budget | RateLimit:
    """In a worker: a budget or limit that its actor counts."""
    import ray

    def call(method: str, *arguments: Any, **named: Any) -> Any:
        return _result(ray.get(actor.call.remote(worker, method, *arguments, **named)))

    ray.get(actor.started.remote(worker))
    local = kind()
    for method in ("pay", "correct") if isinstance(local, Budget) else ("enter", "leave", "hold", "closed"):
        setattr(local, method, partial(call, method))
    return local


def _outcome(call: Callable[[], Any]) -> Outcome:
    try:
        return call(), None
    except BaseException as error:  # noqa: BLE001  # raised by `_result`
        return None, error


def _result(outcome: Outcome) -> Any:
    result, error = outcome
    if error is not None:
        raise error
    return result
