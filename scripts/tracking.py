"""Tracking in MLflow, if MLFLOW_TRACKING_URI is set.

    MLFLOW_TRACKING_URI=sqlite:///mlflow.db polyhop evaluate --out runs/mine

Logs parameters, metrics and the path of the run. The run's folder has all results, so an error of MLflow is a warning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..data.importing import installs
from .text import warn

ADDRESS, EXPERIMENT = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
_LONGEST = 250  # characters of a name or a value

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
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # a server that is down is noticed at once
    mlflow, ended = _try(lambda: _begin(name, settings, out, traces)), "FAILED"

    def log(metrics: Mapping[str, Any]) -> None:
        if mlflow:
            _try(lambda: mlflow.log_metrics(dict(_flat(metrics, numbers=True))))

    try:
        yield log
        ended = "FINISHED"
    finally:
        if mlflow:
            _try(lambda: mlflow.end_run(ended))


def _begin(name: str, settings: Mapping[str, Any], out: Path | None, traces: bool) -> Any:
    import mlflow

    mlflow.set_experiment(os.environ.get(EXPERIMENT, "polyhop"))
    mlflow.start_run(run_name=name, tags={"polyhop.folder": str(out.absolute())} if out else None)
    mlflow.log_params({key: str(value)[:_LONGEST] for key, value in _flat(settings)})
    if traces:
        mlflow.dspy.autolog(silent=True)
    return mlflow


def _flat(values: Mapping[str, Any], numbers: bool = False) -> Iterator[tuple[str, Any]]:
    """The values, or the numbers among them, with names that MLflow allows."""
    from ..eval.folder import flat

    for key, value in flat(values):
        if type(value) in (int, float) if numbers else value is not None:
            yield re.sub(r"[^\w\-. /:]", "_", key.replace("@", "_at_"))[:_LONGEST], value


def _try(call: Callable[[], Any]) -> Any:
    """The result of a call of MLflow. Its errors may tell the address, with a password: only their kind is told."""
    try:
        return call()
    except ImportError:
        warn(f"{ADDRESS} is set, but MLflow is not installed: {installs('tracking')}")
    except Exception as error:  # noqa: BLE001  # a tracking server must not stop the run
        warn(f"not tracked: cannot write to {ADDRESS} ({type(error).__name__})")
    return None
