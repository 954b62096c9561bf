"""A DSPy model as an engine, and what engines that stand before another one have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

import dspy
from dspy import lm15
from dspy.clients._litellm import get_litellm
from dspy.clients.backend_selection import CLIENT_KEYS, BackendSelection, select_backend
from dspy.clients.engines import LiteLLMEngine, LM15Engine
from dspy.clients.engines.lm15_engine import timeouts_for
from dspy.clients.errors import error_boundary

from .diagnosis import counted
from .leaving import importing

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
        timeout: Seconds, where the model has no time limit of its own.
    """

    def __init__(self, lm: dspy.LM, timeout: float | None = None) -> None:
        self.lm, self._timeout = lm, timeout

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Ask.

        Raises:
            LMError: the model could not be reached, or refused.
        """
        asked = _with_extra_body(request)
        if self._engine is None:
            # The model before it counts, remembers and tells the callbacks, when no key is left in an error.
            with dspy.context(usage_tracker=None, disable_history=True, callbacks=[], send_stream=None):
                response: lm15.Response = self._once(asked)
        else:
            with error_boundary(self.lm.model, provider=self._engine.provider, unexpected=True):
                if request.model != self.lm.model:
                    raise ValueError(f"this is the connection of {self.lm.model}, not of {request.model}")
                response = self._engine.complete(asked)
        return counted(response, request)

    def connect(self) -> None:
        """Make the client: to import LiteLLM's takes seconds, which are not the server's."""
        if isinstance(self._engine, _LiteLLM):
            with importing:
                get_litellm(feature="LiteLLM engine")
                import_module("openai.resources")  # half a second that it would take within the first request

    @cached_property
    def _engine(self) -> _Native | _LiteLLM | None:
        """What DSPy itself would ask. To ask it without a model around it takes half the time: such a model looks up
        what each reply costs, which nobody reads. None where it is somebody's own engine, model or provider."""
        own = type(self.lm).forward is not dspy.LM.forward or "forward" in vars(self.lm)
        if own or not isinstance(self.lm.engine, str):
            return None
        backend = select_backend(self.lm, self._patience)
        if backend.resolution is not None and backend.resolution.declared:
            return None
        return _Native(self.lm, backend) if backend.native else _LiteLLM(self.lm, backend.clients)

    @cached_property
    def _once(self) -> dspy.LM:
        lm = self.lm.copy(cache=False, num_retries=0, callbacks=[])
        if isinstance(lm.engine, str):
            lm.kwargs.update(self._patience)
        return lm

    @property
    def _patience(self) -> dict[str, float]:
        """The time limit, where the model has none of its own."""
        return {} if self._timeout is None or "timeout" in self.lm.kwargs else {"timeout": self._timeout}

    def __getattr__(self, name: str) -> Any:
        if name == "simulation":
            return getattr(self.lm.engine, name)
        if name in _ASKED_OF_ENGINES:
            return getattr(self.lm, name)
        raise AttributeError(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        return self

    def __reduce__(self) -> Any:
        """In another process: the same, with sockets of its own."""
        return Connection, (self.lm, self._timeout)


class _Native(LM15Engine):
    """DSPy's own connection. Where DSPy may choose, what it cannot carry goes through LiteLLM."""

    def __init__(self, lm: dspy.LM, backend: BackendSelection) -> None:
        self.provider: str = backend.resolution.provider
        clients, url = backend.clients, backend.clients.get("api_base") or backend.clients.get("base_url")
        config = lm15.RouterConfig(
            api_keys={self.provider: clients["api_key"]} if "api_key" in clients else None,
            base_urls={self.provider: url} if url else None,
            timeouts=timeouts_for(clients.get("timeout")),
        )
        super().__init__(config, model_type=lm.model_type)
        self._other = _LiteLLM(lm, clients) if lm.engine == "auto" else None

    def complete(self, request: lm15.Request) -> lm15.Response:
        try:
            return super().complete(request)
        except lm15.UnsupportedFeatureError:
            if self._other is None or not self._refuses(request):
                raise
        return self._other.complete(request)

    def _refuses(self, request: lm15.Request) -> bool:
        """Whether a request cannot even be written."""
        try:
            self.plan(request)
        except lm15.UnsupportedFeatureError:
            return True
        return False


class _LiteLLM(LiteLLMEngine):
    """LiteLLM, whose clients repeat requests on their own unless they are told."""

    provider = None

    def __init__(self, lm: dspy.LM, clients: Mapping[str, Any]) -> None:
        super().__init__(model_type=lm.model_type, **clients)

    def _arguments(self, request: lm15.Request, *, streaming: bool = False) -> dict[str, Any]:
        return {**super()._arguments(request, streaming=streaming), "max_retries": 0}

    def _response(self, raw: Any, request: lm15.Request) -> lm15.Response:
        """With the refusal that LiteLLM puts where DSPy does not look: the reply seems empty without it."""
        response: lm15.Response = super()._response(raw, request)
        for choice in getattr(raw, "choices", None) or ():
            said = (getattr(choice.message, "provider_specific_fields", None) or {}).get("refusal")
            if isinstance(said, str) and said:
                parts = (*response.message.parts, lm15.RefusalPart(said))
                return replace(response, message=replace(response.message, parts=parts))
        return response


class InFront:
    """An engine that stands before another one, and can do what that one can."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def connect(self) -> None:
        self.engine.connect()

    def __getattr__(self, name: str) -> Any:
        if name in _ASKED_OF_ENGINES:
            return getattr(self.engine, name)
        raise AttributeError(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> InFront:
        return self


def engine_of(lm: Any) -> Any:
    """The engine that answers for a model in the end: a `Connection`, or an engine of somebody's own."""
    engine = _behind(lm)
    return engine_of(engine.lm) if isinstance(engine, Connection) and not isinstance(engine.lm.engine, str) else engine


def plain(lm: Any) -> Any:
    """The model that DSPy itself would connect to, behind whatever stands before its connection; any other model as it
    is."""
    engine = _behind(lm)
    return engine.lm if isinstance(engine, Connection) else lm


def connected(lm: dspy.LM, engine: Any, **settings: Any) -> dspy.LM:
    """A copy of a model that is answered for by an engine. DSPy refuses settings of a connection for such a model."""
    if extra := lm.kwargs.get("extra_body"):
        settings |= {"extra_body": None, "metadata": {**(lm.kwargs.get("metadata") or {}), _EXTRA: extra}}
    return lm.copy(engine=engine, **settings, **{name: None for name in CLIENT_KEYS if name in lm.kwargs})


def settings_of(lm: dspy.LM) -> dict[str, Any]:
    """The settings of a model that is `connected`, as they would be without what stands before its connection."""
    connection = {name: value for name, value in plain(lm).kwargs.items() if name in CLIENT_KEYS}
    settings: dict[str, Any] = {**connection, **lm.kwargs}
    if extra := (settings.get("metadata") or {}).get(_EXTRA):
        metadata = {name: value for name, value in settings["metadata"].items() if name != _EXTRA}
        del settings["metadata"]
        settings |= {"extra_body": extra} | ({"metadata": metadata} if metadata else {})
    return settings


_EXTRA = "extra_body"
"""No request of DSPy's can carry an ``extra_body``: it travels in the metadata, where it counts for the cache."""


def _with_extra_body(request: lm15.Request) -> lm15.Request:
    extensions = dict(request.config.extensions or {})
    metadata = dict(extensions.pop("metadata", None) or {})
    if _EXTRA not in metadata:
        return request
    extensions |= metadata.pop(_EXTRA) | ({"metadata": metadata} if metadata else {})
    return replace(request, config=replace(request.config, extensions=extensions))


def _behind(lm: Any) -> Any:
    engine = getattr(lm, "engine", None)
    while isinstance(engine, InFront):
        engine = engine.engine
    return engine
