"""A run in MLflow, for who asks for it: `polyhop[tracking]`, and MLFLOW_TRACKING_URI set as everywhere in MLflow.

    MLFLOW_TRACKING_URI=sqlite:///mlflow.db polyhop evaluate --out runs/mine

A run gets its parameters, its metrics and the path of its folder; an evaluation also the traces of its questions, agent
by agent. Without the variable nothing is imported and nothing is sent anywhere.

What was measured is in the run's own folder, so tracking may fail, and the run goes on: a server that is away or hangs
is waited for some seconds, and once. What MLflow says itself is not shown: its errors have the whole address, in which
a password may stand.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import typer

ADDRESS = "MLFLOW_TRACKING_URI"
EXPERIMENT = "MLFLOW_EXPERIMENT_NAME"

_PATIENT = 60.0  # seconds that a step may take in all: the first one makes the tables of a database
_SETTINGS = {  # unless the user has set them
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    EXPERIMENT: "polyhop",
}
_GIVEN_UP = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "1", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
_LONGEST = 500  # characters of a parameter

Record = Callable[[Mapping[str, Any]], None]
"""Takes the metrics of a run that has ended: numbers, in groups that may be nested."""


@contextmanager
def tracked(name: str, settings: Mapping[str, Any], out: Path | None, *, traces: bool = False) -> Iterator[Record]:
    """While this lasts, a run goes on in MLflow; if it is left by an exception, the run has failed there.

    Args:
        settings: The parameters: texts and numbers, in groups that may be nested.
        out: The folder of the run.
        traces: Whether the calls of programs, agents and models are recorded.
    """
    if not os.environ.get(ADDRESS):
        yield lambda metrics: None
        return
    desk = _Desk()
    if find_spec("mlflow") is None:
        _warn(f"{ADDRESS} is set, but MLflow is not installed: pip install 'polyhop[tracking]'")
        desk.closed = True
    else:
        for variable, value in _SETTINGS.items():
            os.environ.setdefault(variable, value)
        desk.do(lambda: _begin(name, settings, out))
        if traces and not desk.closed:
            _trace()
    ended = "FAILED"
    try:
        yield lambda metrics: desk.do(lambda: _log(metrics))
        ended = "FINISHED"
    finally:
        desk.do(lambda: _end(ended))


def _begin(name: str, settings: Mapping[str, Any], out: Path | None) -> None:
    import mlflow

    for handler in list(logging.getLogger("mlflow").handlers):
        logging.getLogger("mlflow").removeHandler(handler)
    logging.getLogger("mlflow").propagate = False
    logging.getLogger("alembic").setLevel(logging.WARNING)
    mlflow.set_experiment(os.environ[EXPERIMENT])
    mlflow.start_run(run_name=name, tags={"polyhop.folder": str(out.absolute())} if out else None)
    mlflow.log_params({_named(key): str(value)[:_LONGEST] for key, value in _flat(settings)})


def _log(metrics: Mapping[str, Any]) -> None:
    import mlflow

    numbers = {
        _named(key): float(value)
        for key, value in _flat(metrics)
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    mlflow.log_metrics(numbers)


def _end(status: str) -> None:
    import mlflow

    mlflow.end_run(status)


def _trace() -> None:
    """Record what programs do; here, since DSPy is configured by one thread only."""
    import mlflow

    mlflow.dspy.autolog(silent=True)
    logging.getLogger("mlflow.tracing").addHandler(_Trouble(logging.WARNING))


class _Desk:
    """Everything that MLflow is asked to do, one after the other, in a thread that nobody has to wait for.

    Attributes:
        closed: Whether it was given up.
    """

    def __init__(self) -> None:
        self.closed = False
        self._jobs: SimpleQueue[tuple[Callable[[], None], list[str], threading.Event]] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def do(self, job: Callable[[], None]) -> None:
        """Have it done; if it fails or takes too long, that is told, and nothing is done any more."""
        if self.closed:
            return
        trouble: list[str] = []
        done = threading.Event()
        self._jobs.put((job, trouble, done))
        if not done.wait(_PATIENT):
            self.give_up(f"no answer in {_PATIENT:g} s")
        elif trouble:
            self.give_up(trouble[0])

    def give_up(self, why: str) -> None:
        self.closed = True
        _warn(f"what {ADDRESS} names cannot be written to ({why}): nothing more of this run gets there")

    def _work(self) -> None:
        while True:
            job, trouble, done = self._jobs.get()
            try:
                job()
            except ImportError as error:
                trouble.append(str(error))
            except Exception as error:  # noqa: BLE001  # whatever a tracking server does, the run goes on
                trouble.append(type(error).__name__)
            done.set()


class _Trouble(logging.Handler):
    """At the first trace that does not get through, no more are made, and those on their way are given a second each;
    also if they come faster than they are taken."""

    _over = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._over:
            self._over = True
            _warn(f"not every trace gets to what {ADDRESS} names: no more are made")
            os.environ.update(_GIVEN_UP)
            threading.Thread(target=_stop_tracing, daemon=True).start()  # this one is MLflow's own, and busy


def _stop_tracing() -> None:
    import mlflow

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it would tell of every span that comes too late
    mlflow.tracing.disable()


@cache
def _warn(text: str) -> None:
    """Say it once."""
    typer.secho(text, fg=typer.colors.YELLOW, err=True)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value


def _named(key: str) -> str:
    """A name as MLflow allows it."""
    return re.sub(r"[^\w\-. /:]", "_", key.replace("@", "_at_"))[: _LONGEST // 2]
