"""DSPy's `ChatAdapter`, without what it does at every call although it comes to the same."""

from __future__ import annotations

import json
from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.adapters.utils import format_field_value

from ..engines.costs import happened
from ..signatures.fields import NumberedPassages


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
        happened("asked again as JSON")
        return super()._make_json_adapter_fallback()

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
