"""An agent: a DSPy predictor with fenced inputs, the adapter it uses, and agents that run in parallel."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import dspy
from dspy.adapters.chat_adapter import field_header_pattern
from dspy.adapters.utils import format_field_value
from dspy.clients.call_context import adapter_fallback_scope
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError

from ..engines.costs import acting_as, current_attempt, record_incident
from ..engines.secrets import without_secrets
from ..signatures.fields import NumberedPassages, fenced
from .trace import Parallel, Trace

T = TypeVar("T")


class Agent(dspy.Predict):
    """A `dspy.Predict` that escapes field markers in its inputs and demos, with any adapter.

    Questions and passages are untrusted: ``[[ ## answer ## ]]`` in one of them would start a field of the prompt.

    If the prompt exceeds the model's context, the agent retries with the first half of the passages, then with half of
    a single passage's sentences, then without demos; then the error is raised.

    Attributes:
        role: The agent's name in its program; costs are recorded under it.
    """

    role = ""

    def forward(self, **kwargs: Any) -> Any:
        demos = kwargs.pop("demos", self.demos)
        with acting_as(self.role or self.signature.__name__):
            while True:
                try:
                    return super().forward(**_fenced(kwargs), demos=fenced(demos))
                except ContextWindowExceededError:
                    if half := _halved(kwargs):
                        kwargs |= half
                    elif demos:
                        demos = []
                    else:
                        raise
                    record_incident("prompt shortened")

    async def aforward(self, **kwargs: Any) -> Any:
        return await dspy.asyncify(type(self).forward)(self, **kwargs)


def _fenced(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a call with fenced inputs.

    A retried question gets another ``rollout_id``: DSPy's cache also keeps bad replies, which would fail again.
    """
    options = {name: kwargs[name] for name in ("signature", "config", "lm") if name in kwargs}
    if (n := current_attempt()) > 1:
        options["config"] = {**options.get("config", {}), "rollout_id": n}
    return {**fenced({name: value for name, value in kwargs.items() if name not in options}), **options}


def _halved(kwargs: dict[str, Any]) -> dict[str, NumberedPassages]:
    """Half of the longest list of passages that can be shortened; empty if there is none."""
    lists = {name: value for name, value in kwargs.items() if isinstance(value, NumberedPassages)}
    halves = {name: half for name, value in lists.items() if (half := value.first_half()) is not None}
    longest = max(halves, key=lambda name: lists[name].length, default=None)
    return {} if longest is None else {longest: halves[longest]}


# --- adapters ---------------------------------------------------------------------------------------------------------

_MAX_QUOTED = 2_000  # characters of a reply that an error quotes
_MAX_LENGTH, _MAX_BRACKETS = 8_000, 100
"""Limits on broken JSON that DSPy may repair. Repair time grows with the cube: 65,000 characters can take minutes."""


class ChatAdapter(dspy.ChatAdapter):
    """Renders exactly what `dspy.ChatAdapter` renders, in less than half the time, and bounds the repair of replies.

    The description of a signature is cached (DSPy builds the JSON schema of every output field at each call), and
    texts, passages and lists of texts are formatted without a serializer.

    Args:
        json_fallback: Whether an unparsable reply is requested once more as JSON.
    """

    def __init__(self, json_fallback: bool = True) -> None:
        super().__init__(use_json_adapter_fallback=False)  # replaced by `__call__`
        self.json_fallback = json_fallback
        self._system: WeakKeyDictionary[type[dspy.Signature], str] = WeakKeyDictionary()
        self._required: WeakKeyDictionary[type[dspy.Signature], str] = WeakKeyDictionary()

    def __call__(
        self,
        lm: Any,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        with adapter_fallback_scope() as progress:
            try:
                return super().__call__(lm, lm_kwargs, signature, demos, inputs)  # type: ignore[no-any-return]
            except AdapterParseError:
                if progress.emitted or not self.json_fallback:
                    raise
                record_incident("asked again as JSON")
                adapter = JSONAdapter(self.callbacks, self.use_native_function_calling, self.parallel_tool_calls)
                return adapter(lm, lm_kwargs, signature, demos, inputs)  # type: ignore[no-any-return]

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        if (message := self._system.get(signature)) is None:
            message = self._system[signature] = super().format_system_message(signature)
        return message

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        if (message := self._required.get(signature)) is None:
            message = self._required[signature] = super().user_message_output_requirements(signature)
        return message

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        given = {name: field for name, field in signature.input_fields.items() if name in inputs}
        parts = [f"[[ ## {name} ## ]]\n{_format_value(field, inputs[name])}" for name, field in given.items()]
        required = [self.user_message_output_requirements(signature)] if main_request else []
        return "\n\n".join([prefix, *parts, *required, suffix]).strip()

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        with _bounded_errors("ChatAdapter", signature, completion):
            if _is_tangled(completion):  # texts are not repaired
                for name, text in _sections(completion).items():
                    if name in signature.output_fields and signature.output_fields[name].annotation is not str:
                        _refuse_tangles(text)
            fields: dict[str, Any] = super().parse(signature, completion)
            return fields


class JSONAdapter(dspy.JSONAdapter):
    """`dspy.JSONAdapter` that refuses replies whose repair could take minutes."""

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        with _bounded_errors("JSONAdapter", signature, completion):
            _refuse_tangles(completion)
            fields: dict[str, Any] = super().parse(signature, completion)
            return fields


ADAPTER = ChatAdapter()


def guarded(adapter: dspy.Adapter | None) -> dspy.Adapter:
    """The adapter for a program: ours for none, our `JSONAdapter` for DSPy's, any other unchanged."""
    if adapter is None:
        return ADAPTER
    if type(adapter) is not dspy.JSONAdapter:
        return adapter
    ours = JSONAdapter()
    for name, value in vars(adapter).items():
        setattr(ours, name, value)
    return ours


@contextmanager
def _bounded_errors(adapter: str, signature: type[dspy.Signature], completion: str) -> Iterator[None]:
    """Raise whatever fails inside as an `AdapterParseError` with a short quotation."""
    try:
        yield
        return
    except (AdapterParseError, ValueError, RecursionError) as error:
        if isinstance(error, AdapterParseError) and len(completion) <= _MAX_QUOTED:
            raise
        why = "Fields are missing." if isinstance(error, AdapterParseError) else f"{type(error).__name__}: {error}"
    quoted = without_secrets(completion)[:_MAX_QUOTED]  # redact before truncating, or a partial key may leak
    why = without_secrets(why)[:200]
    raise AdapterParseError(adapter, signature, quoted, f"{len(completion):,} characters. {why}")


def _refuse_tangles(text: str) -> None:
    """Raises: ValueError: the text is not JSON, and its repair could take minutes."""
    if _is_tangled(text):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("too long or too deeply nested to be repaired as JSON") from None


def _is_tangled(text: str) -> bool:
    return len(text) > _MAX_LENGTH or len(re.findall(r"[\[{(]", text)) > _MAX_BRACKETS


def _sections(completion: str) -> dict[str, str]:
    """The text of each field by name, split as DSPy splits a reply."""
    lines, name = defaultdict[str, list[str]](list), ""
    for line in completion.splitlines():
        if match := field_header_pattern.match(line.strip()):
            name, line = match[1], line[match.end() :]
        lines[name].append(line)
    return {name: "\n".join(each) for name, each in lines.items()}


def _format_value(field: Any, value: Any) -> str:
    """The same text as DSPy's `format_field_value`."""
    if type(value) is str:
        return value
    if type(value) is NumberedPassages:
        return value.format()
    if type(value) is list and field.annotation is not str and all(type(item) is str for item in value):
        return json.dumps(value, ensure_ascii=False)
    text: str = format_field_value(field_info=field, value=value)
    return text


# --- in parallel ------------------------------------------------------------------------------------------------------


def together(trace: Trace, tasks: Sequence[Callable[[Trace], T]]) -> list[T]:
    """Run tasks in parallel threads; returns their results in the order of the tasks.

    Each task records its steps in its own trace; these become one `Parallel` step of ``trace``, also if a task fails.
    A single task runs in this thread and records in ``trace`` itself. Threads use the caller's DSPy settings, and
    DSPy's trace of predictor calls keeps the order of the tasks.

    Raises:
        BaseException: the error of the first task that failed, once all are done.
    """
    if len(tasks) < 2:
        return [task(trace) for task in tasks]
    branches = [Trace() for _ in tasks]
    recorded = dspy.settings.trace
    records: list[list[object]] = [[] for _ in tasks]

    def run(n: int) -> T:
        with dspy.context(trace=None if recorded is None else records[n]):
            return tasks[n](branches[n])

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(copy_context().run, run, n) for n in range(len(tasks))]
    trace.add(Parallel(tuple(branches)))
    if recorded is not None:
        for record in records:
            recorded.extend(record)
    return [future.result() for future in futures]
