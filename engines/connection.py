"""A DSPy model as an engine, and what engines that stand before another one have in common."""

from __future__ import annotations

from typing import Any

import dspy
from dspy import lm15
from dspy.clients.backend_selection import CLIENT_KEYS

from .diagnosis import counted

_ASKED_OF_ENGINES = frozenset(
    {
        "supports_function_calling",
        "supports_reasoning",
        "supports_response_schema",
        "supported_params",
        "simulation",  # what an engine says that it simulates, if it is a simulation
    }
)


class Connection:
    """The connection of one of DSPy's own models. One attempt a call: whoever stands before it repeats and remembers.

    Args:
        lm: The model, with the settings of its connection.
    """

    def __init__(self, lm: dspy.LM) -> None:
        self.lm = lm
        self._once = lm.copy(cache=False, num_retries=0, callbacks=[])

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Ask.

        Raises:
            LMError: the model could not be reached, or refused.
        """
        with dspy.context(usage_tracker=None, disable_history=True):  # the model before it does both
            response: lm15.Response = self._once(request)
        return counted(response, request)

    def __getattr__(self, name: str) -> Any:
        if name in _ASKED_OF_ENGINES and name != "simulation":
            return getattr(self.lm, name)
        raise AttributeError(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        return self


class InFront:
    """An engine that stands before another one, and can do what that one can."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        if name in _ASKED_OF_ENGINES:
            return getattr(self.engine, name)
        raise AttributeError(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> InFront:
        return self


def engine_of(lm: Any) -> Any:
    """The engine that answers for a model in the end."""
    engine = getattr(lm, "engine", None)
    while isinstance(engine, InFront):
        engine = engine.engine
    return engine


def plain(lm: Any) -> Any:
    """The model that DSPy itself would connect to, behind whatever stands before its connection; any other model as it
    is."""
    engine = engine_of(lm)
    return engine.lm if isinstance(engine, Connection) else lm


def connected(lm: dspy.LM, engine: Any, **settings: Any) -> dspy.LM:
    """A copy of a model that is answered for by an engine. DSPy refuses settings of a connection for such a model."""
    return lm.copy(engine=engine, **settings, **{name: None for name in CLIENT_KEYS if name in lm.kwargs})
