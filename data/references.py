"""References to earlier answers: "#1" in "Where was #1 born?" is the answer to the first sub-question."""

from __future__ import annotations

import re
from collections.abc import Callable

# "#1s" is a name.
_REFERENCE = re.compile(r"#(\d{1,9})\b")


def references(text: str) -> list[int]:
    """The distinct numbers that a text refers to, in order."""
    return list(dict.fromkeys(map(int, _REFERENCE.findall(text))))


def replace_references(text: str, answer: Callable[[int], str | None]) -> str:
    """The text with each reference replaced by its answer, unless that is None."""

    def put(reference: re.Match[str]) -> str:
        replacement = answer(int(reference[1]))
        return reference.group() if replacement is None else replacement

    return _REFERENCE.sub(put, text)
