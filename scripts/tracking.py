"""Tracking in MLflow, if MLFLOW_TRACKING_URI is set (``make tracking`` installs the client).

    MLFLOW_TRACKING_URI=sqlite:///mlflow.db polyhop evaluate --out runs/mine

Logs parameters, metrics and the path of the run; of an evaluation also traces. Without the variable MLflow is not
imported.

The run's folder has all results, so a tracking error does not stop the run: a server that fails or hangs is waited for
once, for some seconds. MLflow's own messages are hidden, because they contain the address, which may have a password.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .text import warn

ADDRESS = "MLFLOW_TRACKING_URI"
EXPERIMENT = "MLFLOW_EXPERIMENT_NAME"

_TIMEOUT = 60.0  # seconds per step; the first one creates the tables of a database
_SETTINGS = {  # defaults of environment variables
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    EXPERIMENT: "polyhop",
}
_GIVEN_UP = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "1", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
_LONGEST = 500  # characters of a parameter's value

Record = Callable[[Mapping[str, Any]], None]
"""Logs the metrics of a finished run: numbers, in groups that may be nested."""


@contextmanager
def tracked(name: str, settings: Mapping[str, Any], out: Path | None, *, traces: bool = False) -> Iterator[Record]:
    """A run in MLflow, which an exception marks as failed. Settings may be nested; with ``traces``, the calls of
    programs, agents and models are recorded.
    """
    if not os.environ.get(ADDRESS):
        yield lambda metrics: None
        return
    worker = _Worker()
    if find_spec("mlflow") is None:
        _warn(f"{ADDRESS} is set, but MLflow is not installed: make tracking")
        worker.closed = True
    else:
        for variable, value in _SETTINGS.items():
            os.environ.setdefault(variable, value)
        worker.do(lambda: _begin(name, settings, out))
        if traces and not worker.closed:
            import mlflow

            mlflow.dspy.autolog(silent=True)  # in this thread: DSPy can be configured by one thread only
            logging.getLogger("mlflow.tracing").addHandler(_Trouble(logging.WARNING))
    ended = "FAILED"
    try:
        yield lambda metrics: worker.do(lambda: _log(metrics))
        ended = "FINISHED"
    finally:
        worker.do(lambda: _end(ended))


def _begin(name: str, settings: Mapping[str, Any], out: Path | None) -> None:
    import mlflow

    from ..eval.folder import flat

    for handler in list(logging.getLogger("mlflow").handlers):
        logging.getLogger("mlflow").removeHandler(handler)
    logging.getLogger("mlflow").propagate = False
    logging.getLogger("alembic").setLevel(logging.WARNING)
    mlflow.set_experiment(os.environ[EXPERIMENT])
    mlflow.start_run(run_name=name, tags={"polyhop.folder": str(out.absolute())} if out else None)
    mlflow.log_params({_named(key): str(value)[:_LONGEST] for key, value in flat(settings) if value is not None})


def _log(metrics: Mapping[str, Any]) -> None:
    import mlflow

    from ..eval.folder import flat

    numbers = {key: value for key, value in flat(metrics) if type(value) in (int, float)}
    mlflow.log_metrics({_named(key): float(value) for key, value in numbers.items()})


def _end(status: str) -> None:
    import mlflow

    mlflow.end_run(status)


class _Worker:
    """Runs the calls to MLflow in order, in a daemon thread, until one fails or takes too long."""

    def __init__(self) -> None:
        self.closed = False
        self._jobs: SimpleQueue[tuple[Callable[[], None], Future[None]]] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def do(self, job: Callable[[], None]) -> None:
        if self.closed:
            return
        done: Future[None] = Future()
        self._jobs.put((job, done))
        try:
            error = done.exception(_TIMEOUT)
        except TimeoutError:
            why = f"no answer in {_TIMEOUT:g} s"
        else:
            if error is None:
                return
            why = str(error) if isinstance(error, ImportError) else type(error).__name__
        self.closed = True
        _warn(f"tracking stopped: cannot write to {ADDRESS} ({why})")

    def _work(self) -> None:
        while True:
            job, done = self._jobs.get()
            try:
                done.set_result(job())
            except Exception as error:  # noqa: BLE001  # a tracking server must not stop the run
                done.set_exception(error)


class _Trouble(logging.Handler):
    """Stops tracing at the first trace that cannot be sent, or if traces come faster than they are sent."""

    _over = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._over:
            self._over = True
            _warn(f"tracing stopped: cannot send all traces to {ADDRESS}")
            os.environ.update(_GIVEN_UP)
            threading.Thread(target=_stop_tracing, daemon=True).start()  # not in MLflow's own thread


def _stop_tracing() -> None:
    import mlflow

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # or it warns about every late span
    mlflow.tracing.disable()


_warn = cache(warn)  # once


def _named(key: str) -> str:
    """A name with the characters that MLflow allows."""
    return re.sub(r"[^\w\-. /:]", "_", key.replace("@", "_at_"))[: _LONGEST // 2]
