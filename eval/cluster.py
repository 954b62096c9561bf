"""Questions on Ray: actors that hold a program, on this machine or on a cluster.

    evaluate(program, questions, "runs/a", executor=Ray(workers=4, threads=8))
    evaluate(program, questions, "runs/a", executor=Ray("auto", workers=16, threads=8))  # the nodes of a cluster

polyhop and the index must be on all nodes, at the same paths. Workers count a budget in its file, which all nodes must
share, and each has its part of the limits of a model. Ray restarts a worker that ended; what it has not finished is
executed again, each question alone in a worker.
"""

from __future__ import annotations

import faulthandler
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from logging import WARNING
from pathlib import Path
from queue import SimpleQueue
from socket import gethostname
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
        content = _pickled(task, self.workers)
        ray, is_ours = connected(self)
        task_on_ray = RayTask(task, content, self, ray)
        try:
            task_on_ray.start()
            yield task_on_ray
        finally:
            for actor in task_on_ray.actors:
                ray.kill(actor)
            if is_ours:
                ray.shutdown()


class RayTask:
    """Has a question asked by a worker that is free; called from a thread for each question."""

    timeout = None  # workers see to it

    def __init__(self, task: QuestionTask, content: bytes, where: Ray, ray: Any) -> None:
        self.record, self.too_late = task.record, task.too_late
        self._content, self._where, self._ray = content, where, ray
        self.actors: list[Any] = []
        self._free, self._alone = SimpleQueue[Any](), SimpleQueue[Any]()
        self._alone.put(None)  # the worker for questions that ended one is started when it is needed

    def start(self) -> None:
        workers = [self._started() for _ in range(self._where.workers)]
        for worker in workers:
            self._wait_for(worker)
        for worker in workers * self._where.threads:  # in turn
            self._free.put(worker)

    def _started(self, cpus: float = 1.0) -> Any:
        options = {
            "num_cpus": cpus if self._where.address else 0.0,  # on this machine, the threads decide
            "max_concurrency": self._where.threads,
            "max_restarts": -1,
            "runtime_env": {"env_vars": _ENVIRONMENT},
        }
        self.actors.append(self._ray.remote(_Worker).options(**options).remote(self._content))
        return self.actors[-1]

    def _wait_for(self, worker: Any) -> None:
        try:
            self._ray.get(worker.ready.options(max_task_retries=-1).remote())
        except self._ray.exceptions.RayError as error:
            raise PolyhopError(f"a worker cannot start: {explain(getattr(error, 'cause', None) or error)}") from error

    def ask(self, n: int, example: dspy.Example, ledger: Ledger) -> RunRecord:
        for free in (self._free, self._alone, self._alone):
            # The others may have all processors of a cluster.
            worker = free.get() or self._started(cpus=0.0)
            try:
                result = self._ray.get(worker.ask.remote(n, example))
            except self._ray.exceptions.RayActorError:
                if ledger.abandoned.is_set():  # the run has ended
                    raise
                self._wait_for(worker)
                continue
            finally:
                free.put(worker)
            if isinstance(result, BaseException):
                raise result
            return result  # type: ignore[no-any-return]
        message = "the question ended 3 workers; if memory ran out, use fewer --threads"
        why = Failure(cause="worker", type="WorkerLost", message=message)
        return self.record(n, example, ledger, 0.0, error=why)


class _Worker:
    """The actor that holds the program. It has DSPy's settings and the metrics of the process of the run."""

    def __init__(self, content: bytes) -> None:
        protect_cache()
        self._task, self._settings, metrics = cloudpickle.loads(content)
        METRICS.update(metrics)
        learn_models(self._task.program)

    def ready(self) -> None:
        """Return when the program is loaded."""

    def ask(self, n: int, example: dspy.Example) -> RunRecord | BaseException:
        """The record, or what must stop the run: raised here, a spent budget would end the actor."""
        task = self._task
        try:
            with dspy.context(**self._settings):
                record: RunRecord = next(in_threads(task.ask, [(n, example)], 1, task.timeout, task.too_late))
                return record
        except BaseException as error:  # noqa: BLE001
            return error


def connected(where: Ray) -> tuple[Any, bool]:
    """Ray, connected; and whether this call has connected it."""
    os.environ.update(_ENVIRONMENT)
    try:
        import ray
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


def _pickled(task: QuestionTask, workers: int) -> bytes:
    """What a worker loads: the task, DSPy's settings, and the user's own metrics."""
    reducers = {Budget: _reduced_budget, RateLimit: partial(_reduced_limit, workers=workers)}

    class Pickler(cloudpickle.Pickler):
        dispatch_table = cloudpickle.Pickler.dispatch_table.new_child(reducers)

    metrics = {name: METRICS[name] for name in own_metrics()}
    settings = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
    file = io.BytesIO()
    try:
        Pickler(file).dump((task, settings, metrics))
    except PolyhopError:  # of a limit
        raise
    except Exception as error:  # pickling runs anybody's code
        raise PolyhopError(f"with workers, program, questions and metric must pickle: {explain(error)}") from error
    return file.getvalue()


def _reduced_budget(budget: Budget) -> tuple[Any, ...]:
    budget.keep_in_file()
    _ = budget.spent  # now the file exists
    _, limits, state = budget.__reduce__()
    return _budget_in_file, limits, state


def _budget_in_file(calls: int | None, usd: float | None, minutes: float | None, file: Path) -> Budget:
    """In a worker: the same account."""
    if not file.exists():
        advice = "choose an --out on a file system that all nodes share"
        raise PolyhopError(f"the workers count the budget in {file}, which {gethostname()} does not have: {advice}")
    return Budget(calls, usd, minutes, file)


def _reduced_limit(limit: RateLimit, workers: int) -> tuple[Any, ...]:
    """The part of one worker."""
    limits = limit.limits
    if limits.concurrency is not None and limits.concurrency < workers:
        raise PolyhopError(
            f"{workers} workers need a model that may get as many requests at once, not {limits.concurrency}: use "
            "fewer --workers with more --threads, or raise its concurrency"
        )
    per_minute = limits.requests_per_minute and limits.requests_per_minute / workers
    concurrency = limits.concurrency and limits.concurrency // workers
    return RateLimit, (limits.model_copy(update={"concurrency": concurrency, "requests_per_minute": per_minute}),)
