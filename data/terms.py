"""Terms in text that is broken into lines: what a row explains that is indented below it, or goes on behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .text import FUNCTION_WORDS

LONGEST_TERM = 200  # characters
_CALLED = re.compile(r"\s*\(.*", re.DOTALL)  # what a term says behind its name, such as parameters
_USUAL, _NARROW = 0.9, 60  # share of the rows that are not longer than paragraphs are wide, and the least width
_BESIDE = re.compile(r"\s*(\S+(?: \S+)*) {2,}(?=\S)")
_ITEM = re.compile(r"\s*(?:[*•+-]|o(?=  )|(?:[a-z]|[ivx]{2,4}|\d{1,3})[.)])\s+\S")


def width_of(rows: Iterable[str]) -> int:
    """How wide the paragraphs are of a text that is broken into lines."""
    widths = sorted(len(row) for row in rows if row.strip())
    return max(_NARROW, widths[int(_USUAL * len(widths))] if widths else 0)


def term_of(row: str, following: str, width: int) -> str:
    """What the following row explains, or goes on to explain behind it; "" if that is nothing.

    A row that is broken where the next word would have had room is a term, the start of a paragraph is none:

        -k, --keep
                Keep the files.
        KiB     1,024 bytes. Other names
                are accepted.
    """
    below, beside = column(following), _BESIDE.match(row)
    if below <= column(row) or is_item(row) or not (row.strip() and following.strip()):
        return ""
    is_wrapped = len(row.rstrip()) + 1 + len(following.split()[0]) > width
    text = beside[1] if beside and beside.end() == below else "" if is_wrapped else " ".join(row.split())
    if len(text) > LONGEST_TERM or following[below] in "[|{":  # of a synopsis
        return ""
    is_name = re.search(r"(?:\w\w|-\w).*[\w\])>}=?!%*\"'”’]$|-\w$", text) and text.split()[-1] not in FUNCTION_WORDS
    return text if is_name else ""


def column(row: str) -> int:
    return len(row) - len(row.lstrip())


def is_item(row: str) -> bool:
    return _ITEM.match(row) is not None


def label_of(term: str) -> str:
    """A term without what it says behind its name, such as parameters."""
    return _CALLED.sub("", term) or term
