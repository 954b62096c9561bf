"""Workers on a Ray cluster.

    evaluate(program, questions, "runs/a", executor=Ray("auto", workers=16, threads=8))
    dataset.map_batches(Answerer, fn_constructor_args=(program,), compute=ActorPoolStrategy(4), batch_size=32)

Each worker is an actor, and a `polyhop.eval.workers.Worker` as a process of this machine is. polyhop must be installed
on all nodes. An index that a node does not have at its path is copied there, once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from logging import WARNING
from queue import SimpleQueue
from threading import Thread
from typing import Any

import dspy

from ..data.errors import PolyhopError
from ..engines.desk import Desk
from .executor import QuestionTask, ThreadExecutor
from .workers import Link, Processes, Worker, Workers, serve

NO_SIGNAL_HANDLER = {"RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}
"""The environment of actors that search: Java uses the signals that Ray's handler takes for crashes."""


@dataclass(frozen=True)
class Ray:
    """Actors of a Ray cluster; they end when this process does, or loses the cluster.

    Attributes:
        address: Of the cluster, as for ``ray.init``: "auto", "host:port" or "ray://host:port".
        workers: How many actors.
        threads: Questions that each executes at the same time.
        cpus: CPUs that Ray reserves for each actor.
    """

    address: str = "auto"
    workers: int = 2
    threads: int = 1
    cpus: float = 1.0

    def start(self, content: bytes, desk: Desk, number: int) -> Worker:
        ray = _connected(self.address)
        options = {"num_cpus": self.cpus, "max_concurrency": 4, "runtime_env": {"env_vars": NO_SIGNAL_HANDLER}}
        actor = ray.remote(**options)(_Actor).remote()
        return Link(_Connection(actor), content, desk, number, partial(ray.kill, actor))


def workers_of(workers: int | None, threads: int, ray: str | None = None) -> Workers | None:
    """The workers that options ask for; None for this process.

    Raises:
        PolyhopError: their number on a cluster is not given.
    """
    if ray is None:
        return None if workers is None else Processes(workers, threads)
    if workers is None:
        raise PolyhopError(f"--ray {ray} needs --workers N: how many to start on the cluster")
    return Ray(ray, workers, threads)


def _connected(address: str) -> Any:
    """Ray, connected to a cluster."""
    try:
        import ray
    except ImportError as error:
        raise PolyhopError("Ray is not installed: pip install 'polyhop[ray]'") from error
    if not ray.is_initialized():
        try:
            ray.init(address, logging_level=WARNING)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise PolyhopError(f"no Ray cluster at {address!r}: {reason}") from error
    return ray


class _Actor:
    """A worker on a node. Its messages wait in queues for the methods that the driver calls."""

    def __init__(self) -> None:
        self._incoming: SimpleQueue[bytes] = SimpleQueue()
        self._outgoing: SimpleQueue[bytes] = SimpleQueue()
        self.send_bytes, self.recv_bytes = self._outgoing.put, self._incoming.get
        Thread(target=serve, args=(self,), daemon=True).start()

    def put(self, content: bytes) -> None:
        """Take a message of the driver."""
        self._incoming.put(content)

    def take(self) -> list[bytes]:
        """Give the driver the messages for it, when there are any."""
        contents = [self._outgoing.get()]
        while not self._outgoing.empty():
            contents.append(self._outgoing.get())
        return contents


class _Connection:
    """The driver's end of the connection to an actor."""

    def __init__(self, actor: Any) -> None:
        self._actor, self._received = actor, deque[bytes]()

    def send_bytes(self, content: bytes) -> None:
        self._actor.put.remote(content)

    def recv_bytes(self) -> bytes:
        import ray
        from ray.exceptions import RayError

        while not self._received:
            try:
                self._received.extend(ray.get(self._actor.take.remote()))
            except RayError as error:
                raise EOFError(str(error)) from error
        return self._received.popleft()


class Answerer:
    """Answers the questions of a ``ray.data.Dataset``, for ``map_batches``; give it as a class.

    Adds the columns ``answer``, ``confidence``, ``evidence`` (ids of passages, a JSON list) and ``error`` to those of a
    batch, which has a column ``question``. A question that fails has an error and no answer.

    Args:
        program: Any polyhop program with its models.
        threads: Questions executed at the same time.
    """

    def __init__(self, program: dspy.Module, threads: int = 1) -> None:
        self._program, self._threads = program, threads

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        import json

        questions = [str(question) for question in batch["question"]]
        asked = [dspy.Example(question=each, answers=()).with_inputs("question") for each in questions]
        executor = ThreadExecutor(QuestionTask(self._program), self._threads)
        records = sorted(executor.run(enumerate(asked)), key=lambda record: record.n)
        return {
            **batch,
            "answer": [record.answer for record in records],
            "confidence": [record.confidence for record in records],
            "evidence": [json.dumps([each.passage_id for each in record.evidence]) for record in records],
            "error": [record.error and record.error.message for record in records],
        }
