"""DSPy's `ChatAdapter`, which describes a signature once instead of at every call."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import dspy


class ChatAdapter(dspy.ChatAdapter):
    """Renders what DSPy's own adapter renders.

    A system message depends on the signature alone, and making it takes most of the time that DSPy spends on a call: it
    builds the JSON schema of every output field. A signature with other instructions is another class.
    """

    def __init__(self) -> None:
        super().__init__()
        self._described: WeakKeyDictionary[type[dspy.Signature], str] = WeakKeyDictionary()

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        if (message := self._described.get(signature)) is None:
            message = self._described[signature] = super().format_system_message(signature)
        return message


ADAPTER = ChatAdapter()
