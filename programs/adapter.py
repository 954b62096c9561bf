"""DSPy's `ChatAdapter`, without what it does at every call although it comes to the same, and with an end to what it
does for a reply that nobody can read."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.adapters.chat_adapter import field_header_pattern
from dspy.adapters.utils import format_field_value
from dspy.utils.exceptions import AdapterParseError

from ..engines.costs import record_incident
from ..engines.secrets import without_secrets
from ..signatures.fields import NumberedPassages

_QUOTED = 2_000  # characters of a reply that an error about it quotes
_LONG, _MANY = 8_000, 100
"""Characters and opening brackets of broken JSON that are mended in half a second at the most. The time grows with
their cube: 65,000 characters can take minutes."""


class ChatAdapter(dspy.ChatAdapter):
    """Renders what DSPy's own adapter renders, in less than half the time.

    How a signature is described depends on it alone (one with other instructions is another class), and DSPy builds the
    JSON schema of every output field for it. And our inputs are texts, passages and lists of texts, for which no
    serializer has to be made.
    """

    def __init__(self) -> None:
        super().__init__()
        self._system: WeakKeyDictionary[type[dspy.Signature], str] = WeakKeyDictionary()
        self._required: WeakKeyDictionary[type[dspy.Signature], str] = WeakKeyDictionary()

    def _make_json_adapter_fallback(self) -> dspy.JSONAdapter:
        """DSPy asks again in this way where a reply has not the fields it was asked for."""
        record_incident("asked again as JSON")
        return JSONAdapter(self.callbacks, self.use_native_function_calling, self.parallel_tool_calls)

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
        parts = [f"[[ ## {name} ## ]]\n{_text(field, inputs[name])}" for name, field in given.items()]
        required = [self.user_message_output_requirements(signature)] if main_request else []
        return "\n\n".join([prefix, *parts, *required, suffix]).strip()

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        with _reading("ChatAdapter", signature, completion):
            if _is_tangled(completion):  # but texts are not mended
                for name, text in _sections(completion).items():
                    if name in signature.output_fields and signature.output_fields[name].annotation is not str:
                        _refuse_tangles(text)
            fields: dict[str, Any] = super().parse(signature, completion)
            return fields


class JSONAdapter(dspy.JSONAdapter):
    """DSPy's own, for replies that it can read in time."""

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        with _reading("JSONAdapter", signature, completion):
            _refuse_tangles(completion)
            fields: dict[str, Any] = super().parse(signature, completion)
            return fields


@contextmanager
def _reading(adapter: str, signature: type[dspy.Signature], completion: str) -> Iterator[None]:
    """Whatever goes wrong inside is a reply that cannot be read, and is told without a page of quotation."""
    try:
        yield
        return
    except (AdapterParseError, ValueError, RecursionError) as error:
        if isinstance(error, AdapterParseError) and len(completion) <= _QUOTED:
            raise
        why = "It has not the fields." if isinstance(error, AdapterParseError) else f"{type(error).__name__}: {error}"
    quoted = without_secrets(completion)[:_QUOTED]  # in this order: nobody knows half a key
    why = without_secrets(why)[:200]
    raise AdapterParseError(adapter, signature, quoted, f"{len(completion):,} characters. {why}")


def _refuse_tangles(text: str) -> None:
    """Raises: ValueError: the text is no JSON, and it could take minutes to make it some."""
    if not _is_tangled(text):
        return
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("too long or too nested to be mended as JSON") from None


def _is_tangled(text: str) -> bool:
    return len(text) > _LONG or len(re.findall(r"[\[{(]", text)) > _MANY


def _sections(completion: str) -> dict[str, str]:
    """The text of each field, by name, as DSPy finds them."""
    lines, name = defaultdict[str, list[str]](list), ""
    for line in completion.splitlines():
        if match := field_header_pattern.match(line.strip()):
            name, line = match[1], line[match.end() :]
        lines[name].append(line)
    return {name: "\n".join(each) for name, each in lines.items()}


def _text(field: Any, value: Any) -> str:
    """What DSPy's `format_field_value` makes of a value."""
    if type(value) is str:
        return value
    if type(value) is NumberedPassages:
        return value.format()
    if type(value) is list and field.annotation is not str and all(type(item) is str for item in value):
        return json.dumps(value, ensure_ascii=False)
    text: str = format_field_value(field_info=field, value=value)
    return text


ADAPTER = ChatAdapter()


def guarded(adapter: dspy.Adapter | None) -> dspy.Adapter:
    """The adapter that programs use where DSPy is set to one: ours for none, ours with the same settings for DSPy's
    `JSONAdapter`, and any other as it is."""
    if adapter is None:
        return ADAPTER
    if type(adapter) is not dspy.JSONAdapter:
        return adapter
    ours = copy(adapter)
    ours.__class__ = JSONAdapter
    return ours
