"""What stands in the fields of replies, beyond what their types say."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"\s*(\d{1,3})[.)]\s+(?=\S)")
_NOTHING = re.compile(r"\W*(?:none|null|nothing|n/?a|empty)?\W*", re.IGNORECASE)


def read_texts(reply: Iterable[str]) -> list[str]:
    """The texts of a list on one line each, without blanks, "none", and the numbers of a numbered list."""
    texts = [" ".join(text.split()) for text in reply if not _NOTHING.fullmatch(text)]
    marks = [_NUMBERED.match(text) for text in texts]
    # "1. FC Köln" alone is a name; a list whose items all count is numbered.
    if len(texts) > 1 and all(mark and int(mark[1]) == n for n, mark in enumerate(marks, 1)):
        return [_NUMBERED.sub("", text, count=1) for text in texts]
    return texts


def read_probability(reply: float) -> float:
    """A probability in [0, 1]; 2 to 100 is percent, 1.2 an overstated 1, and what is no number is 0."""
    if reply != reply:
        return 0.0
    return reply / 100 if 2 <= reply <= 100 else float(min(max(reply, 0), 1))
