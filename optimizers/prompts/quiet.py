"""Keeps DSPy's teleprompters from writing to the terminal, which belongs to whoever called them, and from asking twice
what takes long."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from dspy.utils.parallelizer import ParallelExecutor
from tqdm import tqdm

_TALKATIVE = (
    "dspy.propose.dataset_summary_generator",
    "dspy.propose.grounded_proposer",
    "dspy.propose.utils",
    "dspy.teleprompt.bootstrap",
    "dspy.teleprompt.random_search",
    "dspy.teleprompt.teleprompt_optuna",
    "dspy.teleprompt.utils",
    "dspy.utils.parallelizer",
    "gepa.core.engine",
)
"""The modules that print or draw bars: in these, and for as long as it takes, neither does anything."""

_lock = Lock()
_depth = 0
_silence = ExitStack()


@contextmanager
def quiet() -> Iterator[None]:
    """No prints, bars or logs of DSPy's optimizers inside, in any thread, and no question asked again because it is
    among the last and takes two minutes. May be nested and used by several threads."""
    global _depth
    with _lock:
        if not _depth:
            _silence_all()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                _silence.close()


def _silence_all() -> None:
    import optuna

    modules = [import_module(name) for name in _TALKATIVE]
    for module in modules:
        _silence.enter_context(patch.object(module, "print", _say_nothing, create=True))
        bar = getattr(module, "tqdm", None)
        if bar is not None:
            silent = SimpleNamespace(tqdm=_NoBar) if isinstance(bar, ModuleType) else _NoBar
            _silence.enter_context(patch.object(module, "tqdm", silent))
    _silence.enter_context(patch.object(ParallelExecutor, "execute", _execute))
    for name in ("dspy", "optuna", "gepa"):
        logger = logging.getLogger(name)
        _silence.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
    _silence.callback(optuna.logging.set_verbosity, optuna.logging.get_verbosity())  # MIPROv2 sets it for good
    _silence.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)


_executing = ParallelExecutor.execute


def _execute(self: ParallelExecutor, function: Any, data: Any) -> Any:
    self.timeout = 0  # of stragglers: none are
    return _executing(self, function, data)


def _say_nothing(*args: Any, **kwargs: Any) -> None:
    pass


class _NoBar(tqdm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "disable": True})
