"""References to earlier answers: in "Where was #1 born?" the "#1" stands for the answer to the first sub-question."""

from __future__ import annotations

import re
from collections.abc import Callable

# "#1s" is a name, and no list is so long that a number of it has ten digits.
_REFERENCE = re.compile(r"#(\d{1,9})\b")


def references(text: str) -> list[int]:
    """The numbers that a text refers to, in its order, each once."""
    return list(dict.fromkeys(map(int, _REFERENCE.findall(text))))


def replace_references(text: str, answer: Callable[[int], str | None]) -> str:
    """The text with an answer for each number in place of the references to it; they stay where it is None."""

    def put(reference: re.Match[str]) -> str:
        found = answer(int(reference[1]))
        return reference.group() if found is None else found

    return _REFERENCE.sub(put, text)
