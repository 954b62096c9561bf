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
from ..eval.folder import flat
from .terminal import warn

_ADDRESS = "MLFLOW_TRACKING_URI"
_LONGEST = 250  # characters of a name or a value


@contextmanager
def tracked(
    name: str, settings: Mapping[str, Any], out: Path | None, *, traces: bool = False
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A run in MLflow, which an exception marks as failed; gives a function that logs metrics, which may be nested.
    With ``traces``, the calls of programs, agents and models are recorded.
    """
    if not os.environ.get(_ADDRESS):
        yield lambda metrics: None
        return
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # a server that is down is noticed at once

    def begin() -> Any:
        import mlflow

        mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", "polyhop"))
        mlflow.start_run(run_name=name, tags={"polyhop.folder": str(out.absolute())} if out else None)
        mlflow.log_params({key: str(value)[:_LONGEST] for key, value in _named(settings).items()})
        if traces:
            mlflow.dspy.autolog(silent=True)
        return mlflow

    def log(metrics: Mapping[str, Any]) -> None:
        numbers = {key: value for key, value in _named(metrics).items() if type(value) in (int, float)}
        _try(lambda: mlflow and mlflow.log_metrics(numbers))

    mlflow, ended = _try(begin), "FAILED"
    try:
        yield log
        ended = "FINISHED"
    finally:
        _try(lambda: mlflow and mlflow.end_run(ended))


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with names that MLflow allows."""
    named = {re.sub(r"[^\w\-. /:]", "_", key.replace("@", "_at_"))[:_LONGEST]: value for key, value in flat(values)}
    return {key: value for key, value in named.items() if value is not None}


def _try(call: Callable[[], Any]) -> Any:
    """The result of a call of MLflow. Its errors may tell the address, with a password: only their kind is told."""
    try:
        return call()
    except ImportError:
        warn(f"{_ADDRESS} is set, but MLflow is not installed: {installs('tracking')}")
    except Exception as error:  # noqa: BLE001  # a tracking server must not stop the run
        warn(f"not tracked: cannot write to {_ADDRESS} ({type(error).__name__})")
    return None
