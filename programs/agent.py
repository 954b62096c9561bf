"""An agent: a DSPy predictor with fenced inputs, the adapter it uses, and agents that run in parallel."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, TypeVar
from weakref import WeakKeyDictionary
from xml.etree import ElementTree

import dspy
from dspy.adapters.chat_adapter import field_header_pattern
from dspy.adapters.utils import format_field_value, serialize_for_json
from dspy.clients.call_context import adapter_fallback_scope
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError

from ..engines.costs import acting_as, current_attempt, record_incident
from ..engines.secrets import without_secrets
from ..signatures.fields import NumberedPassages, fenced
from ..signatures.replies import without_thinking
from .excerpts import fitted
from .trace import Parallel, Trace

T = TypeVar("T")


class Agent(dspy.Predict):
    """A `dspy.Predict` that escapes field markers in its inputs and demos, with any adapter.

    Questions and passages are untrusted: ``[[ ## answer ## ]]`` in one of them would start a field of the prompt.

    What one call shows has a budget (`polyhop.programs.excerpts`).

    If the prompt exceeds the model's context, the agent retries with the first half of the passages, then with half of
    a single passage's sentences, then without demos; then the error is raised.

    Attributes:
        role: The agent's name in its program; costs are recorded under it.
    """

    role = ""

    def forward(self, **kwargs: Any) -> Any:
        demos = kwargs.pop("demos", self.demos)
        role, signature = self.role or self.signature.__name__, kwargs.get("signature") or self.signature
        with acting_as(role):
            kwargs |= fitted(role, ADAPTER.format_system_message(signature), kwargs)
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


class _Again(dspy.ChatAdapter):
    """An adapter that formats inputs fast, and requests an unparsable reply once more, as JSON, and records it."""

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
                # Not DSPy's own ChatAdapter, which would ask again unrecorded.
                return dspy.Adapter.__call__(self, lm, lm_kwargs, signature, demos, inputs)  # type: ignore[no-any-return]
            except AdapterParseError:
                if progress.emitted or not self.use_json_adapter_fallback:
                    raise
                record_incident("asked again as JSON")
                adapter = JSONAdapter(self.callbacks, self.use_native_function_calling, self.parallel_tool_calls)
                return adapter(lm, lm_kwargs, signature, demos, inputs)  # type: ignore[no-any-return]

    def section(self, name: str, text: str) -> str:
        """One input in a prompt."""
        return f"[[ ## {name} ## ]]\n{text}"

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        given = {name: field for name, field in signature.input_fields.items() if name in inputs}
        parts = [self.section(name, _format_value(field, inputs[name])) for name, field in given.items()]
        required = [self.user_message_output_requirements(signature)] if main_request else []
        return "\n\n".join([prefix, *parts, *required, suffix]).strip()

    async def acall(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        return await dspy.asyncify(type(self).__call__)(self, *args, **kwargs)  # type: ignore[no-any-return]


class ChatAdapter(_Again):
    """Renders exactly what `dspy.ChatAdapter` renders, in less than half the time, and bounds the repair of replies.

    The description of a signature is cached (DSPy builds the JSON schema of every output field at each call), and
    texts, passages and lists of texts are formatted without a serializer.

    Args:
        json_fallback: Whether an unparsable reply is requested once more as JSON.
    """

    def __init__(self, json_fallback: bool = True) -> None:
        super().__init__(use_json_adapter_fallback=json_fallback)
        self._system: WeakKeyDictionary[type[dspy.Signature], str] = WeakKeyDictionary()
        self._required: WeakKeyDictionary[type[dspy.Signature], str] = WeakKeyDictionary()

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        if (message := self._system.get(signature)) is None:
            message = self._system[signature] = super().format_system_message(signature)
        return message

    def user_message_output_requirements(self, signature: type[dspy.Signature]) -> str:
        if (message := self._required.get(signature)) is None:
            message = self._required[signature] = super().user_message_output_requirements(signature)
        return message

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        with _bounded_errors("ChatAdapter", signature, completion):
            text = _INDENT.sub("", _spoken(completion))
            given = [(name, value) for name, value in _sections(text) if name in signature.output_fields]
            if not given and (found := _json_object(text, signature)):
                return _JSON.parse(signature, found)
            _refuse_contradictions(given)
            if _is_tangled(text):  # texts are not repaired
                for name, value in given:
                    if signature.output_fields[name].annotation is not str:
                        _refuse_tangles(value)
            fields: dict[str, Any] = super().parse(signature, text)
            return fields


class JSONAdapter(dspy.JSONAdapter):
    """`dspy.JSONAdapter` that refuses replies whose repair could take minutes."""

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        with _bounded_errors("JSONAdapter", signature, completion):
            text = _spoken(completion)
            if (found := _json_object(text, signature)) is None:
                _refuse_tangles(text)
            fields: dict[str, Any] = super().parse(signature, found or text)
            return fields


class XMLAdapter(dspy.XMLAdapter, _Again):
    """`dspy.XMLAdapter` that breaks up all tags in inputs and demos, and bounds the repair of replies.

    In replies "&" and "<" that begin neither an entity nor a tag are text.
    """

    format_user_message_content = _Again.format_user_message_content

    def section(self, name: str, text: str) -> str:
        return f"<{name}>\n{fenced(text, tags=True)}\n</{name}>"

    def format_assistant_message_content(
        self, signature: type[dspy.Signature], outputs: dict[str, Any], missing_field_message: str | None = None
    ) -> str:
        plain = {name: fenced(serialize_for_json(value), tags=True) for name, value in outputs.items()}
        content: str = super().format_assistant_message_content(signature, plain, missing_field_message)
        return content

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        with _bounded_errors("XMLAdapter", signature, completion):
            text = _spoken(completion, signature.output_fields)
            if not re.search(rf"<(?:{'|'.join(signature.output_fields)}|entry)[\s/>]", text):
                if found := _json_object(text, signature):
                    return _JSON.parse(signature, found)
                raise ValueError("it has none of the fields")
            text = _STRAY.sub(lambda match: {"&": "&amp;", "<": "&lt;"}.get(match[0], ""), text)
            try:
                elements = ElementTree.fromstring(f"<reply>{text}</reply>")
            except ElementTree.ParseError as error:
                raise ValueError(f"not XML: {error}") from None
            named = [(each.get("key", each.tag) if each.tag == "entry" else each.tag, each) for each in elements]
            given = [(name, each) for name, each in named if name in signature.output_fields]
            for _, each in given:
                each.tail = None  # prose
            _refuse_contradictions((name, ElementTree.tostring(each, "unicode")) for name, each in given)
            for name, each in given:
                if signature.output_fields[name].annotation is not str and not len(each):
                    _refuse_tangles(each.text or "")
            once = dict(reversed(given))  # DSPy would make a list of the same twice
            text = "".join(ElementTree.tostring(each, "unicode") for each in once.values())
            fields: dict[str, Any] = super().parse(signature, text)
            return fields


ADAPTER = ChatAdapter()
_JSON = JSONAdapter()
_OURS = {dspy.ChatAdapter: ChatAdapter, dspy.JSONAdapter: JSONAdapter, dspy.XMLAdapter: XMLAdapter}


def guarded(adapter: dspy.Adapter | None) -> dspy.Adapter:
    """The adapter for a program: our `ChatAdapter` for none, ours instead of DSPy's, any other unchanged."""
    if adapter is None:
        return ADAPTER
    if (kind := _OURS.get(type(adapter))) is None:
        return adapter
    ours = kind()
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


def _sections(completion: str) -> list[tuple[str, str]]:
    """The names and texts of the fields, split as DSPy splits a reply."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in completion.splitlines():
        if match := field_header_pattern.match(line.strip()):
            sections.append((match[1], []))
            line = line[match.end() :]
        sections[-1][1].append(line)
    return [(name, "\n".join(lines).strip()) for name, lines in sections]


# --- the rule for replies, as docs/models.md has it -------------------------------------------------------------------

_BLOCK = re.compile(r"\s*```\w*\n(.*)\n```\s*", re.DOTALL)
_INDENT = re.compile(r"^[ \t]+(?=\[\[ ## )", re.MULTILINE)  # DSPy would cut the field's text by as much
_STRAY = re.compile(  # and what XML does not allow
    r"&(?!(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos);)|<(?!/?[A-Za-z_]|!\[CDATA\[)"
    r"|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_MOST_OBJECTS = 100


def _spoken(completion: str, fields: Container[str] = ()) -> str:
    """A reply without thinking, and without a block of code around all of it. What is one JSON object stays as it is:
    tags in its values are text.

    Raises:
        ValueError: only thinking.
    """
    if completion.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            _DECODER.decode(completion.strip())
            return completion
    text = without_thinking(completion, fields)
    if completion.strip() and not text.strip():
        raise ValueError("the reply has no answer after its thinking")
    block = _BLOCK.fullmatch(text)
    return block[1] if block and "```" not in block[1] else text


def _refuse_contradictions(given: Iterable[tuple[str, Any]]) -> None:
    """Raises: ValueError: a field has two different values."""
    first: dict[str, Any] = {}
    for name, value in given:
        if first.setdefault(name, value) != value:
            raise _Contradiction(f"two different values of {name}")


class _Contradiction(ValueError):
    """A reply says two things."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _refuse_contradictions(pairs)
    return dict(pairs)


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique)  # line breaks in texts are fine


def _json_object(text: str, signature: type[dspy.Signature]) -> str | None:
    """The only JSON object with all output fields, not inside another; None if there is none.

    Raises:
        ValueError: there are several different ones; or one, and fields beside it; or a repair would have to choose.
    """
    names, found, groups, depth, end = set(signature.output_fields), list[Any](), 0, 0, 0
    beside = list[str]()
    for brace in re.finditer(r"[{}]", text):
        if brace.start() < end:
            continue
        if brace[0] == "}":
            depth = max(0, depth - 1)
            continue
        if depth == 0:
            groups += 1
            if groups > _MOST_OBJECTS:
                raise ValueError("too many objects")
            try:
                value, after = _DECODER.raw_decode(text, brace.start())
            except _Contradiction:
                raise
            except (ValueError, RecursionError):  # not JSON: no object inside counts
                depth = 1
                continue
            if names <= value.keys() and value not in found:
                found.append(value)
            beside.append(text[end : brace.start()])
            end = after
        else:
            depth += 1
    keys = re.findall(rf"[\"']({'|'.join(names)})[\"']\s*:", " ".join([*beside, text[end:]]))
    if len(found) > 1 or (found and keys):
        raise _Contradiction("several different objects")
    if not found and (groups > 1 or len(keys) > len(set(keys))):
        raise _Contradiction("several objects, and none is JSON with all fields")
    return json.dumps(found[0], ensure_ascii=False) if found else None


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
    branches = [Trace(branch=(*trace.branch, n)) for n in range(1, len(tasks) + 1)]
    recorded = dspy.settings.trace
    records: list[list[object]] = [[] for _ in tasks]

    def run(n: int) -> T:
        # DSPy's streams take messages only from the thread that `dspy.streamify` has started.
        with dspy.context(trace=None if recorded is None else records[n], send_stream=None):
            return tasks[n](branches[n])

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(copy_context().run, run, n) for n in range(len(tasks))]
    trace.add(Parallel(tuple(branches)))
    if recorded is not None:
        for record in records:
            recorded.extend(record)
    return [future.result() for future in futures]
