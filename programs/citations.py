"""Citations in what agents say: "[2s1]", "(2s1, 3s2)", and of whole passages "[2]".

The ids that agents list in fields of their own are read by `Candidates.resolve`.
"""

from __future__ import annotations

import re

SENTENCE = r"\d{1,6}s\d{1,6}"
"""The id of a sentence, as a pattern."""

_EITHER = r"\d{1,6}(?:s\d{1,6})?"
_AND = r"(?:\s*[,;]\s*(?:and\s+)?|\s+and\s+|\s+)"
_MORE = rf"(?:{_AND}{_EITHER})*"
_ID = re.compile(_EITHER)
_IN_BRACKETS = re.compile(rf"\[{_EITHER}{_MORE}\]")
# "[2]" and "(1941)" may be part of an answer.
_OF_SENTENCES = re.compile(rf"\s*[\[(]{SENTENCE}(?:{_AND}{SENTENCE})*[\])]")
# "(2s1)", "[2s1, 3s2]", "[2]", "2s1" at the end; "(1941)" and "(2)" belong to the text.
_AT_THE_END = re.compile(
    rf"(?:\s*(?:\[{_EITHER}{_MORE}\]|\((?:(?:ids?|sources?|see|sentences?)\W+)?{SENTENCE}{_MORE}\)|\b{SENTENCE}\b)"
    r"[.,;]*)+\Z"
)


def cited_in(text: str) -> list[str]:
    """The ids of passages and sentences that a text cites in brackets, in its order, each once."""
    return _ids(_IN_BRACKETS.findall(text))


def cut_citations(text: str) -> tuple[str, list[str]]:
    """A text without its citations of sentences, wherever they stand, and their ids."""
    return _OF_SENTENCES.sub("", text), _ids(_OF_SENTENCES.findall(text))


def split_citations(text: str) -> tuple[str, list[str]]:
    """A text without the citations at its end, in brackets or bare, and their ids."""
    found = _AT_THE_END.search(text)
    return (text[: found.start()], _ids([found.group()])) if found else (text, [])


def _ids(citations: list[str]) -> list[str]:
    return list(dict.fromkeys(id for citation in citations for id in _ID.findall(citation)))
