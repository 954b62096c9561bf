"""The names in a question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .reading import Span, names, quoted
from .vocabulary import WORKS

_AT = "\ufe6b"  # stands in for an "@" that the question itself has


@dataclass(frozen=True)
class Masked:
    """A question whose names are replaced by @0, @1, ..."""

    text: str
    names: tuple[str, ...]

    def unmask(self, text: str) -> str:
        return re.sub(r"@(\d+)", lambda match: self.names[int(match[1])], text).replace(_AT, "@")


@lru_cache(maxsize=4096)
def mask(question: str) -> Masked:
    """Replace names, quoted titles and the parentheses that belong to them."""
    question = " ".join(question.split()).replace("@", _AT)
    spans = _name_spans(question)
    found: list[str] = []
    parts: list[str] = []
    end = 0
    for span in spans:
        digit = question[span.end : span.end + 1].isdecimal()  # '"A"9', which "@09" is not
        parts += [question[end : span.start], f"@{len(found)}", " " * digit]
        found.append(question[span.start : span.end].replace(_AT, "@"))
        end = span.end
    text = "".join([*parts, question[end:]])
    text = re.sub(r"(@\d+)'?\s?'[sS]\b|(@\d+)\s+'[sS]\b", lambda m: f"{m[1] or m[2]}'s", text)
    return Masked(text, tuple(found))


# What may stand between two parts of one title: "Elvis: That's the Way", "Oh! What a Nurse", "Febbre - La Mandrakata".
_INSIDE_WORK = re.compile(
    r" (?:in|on|at|with|and|from|to|for|into|under|over|without)(?: (?:a|an|the|my|his|her|your))? "
)
_INSIDE_TITLE = re.compile(r"[:!]\s|\s[-–]\s|\s")


def _name_spans(question: str) -> list[Span]:
    found = [Span("", s.start - 1, s.end + 1) for s in quoted(question)]
    found += [s for s in names(question) if not any(q.start < s.end and s.start < q.end for q in found)]
    spans: list[tuple[int, int]] = []
    for span in sorted(found, key=lambda span: span.start):
        start, end = span.start, span.end
        if spans and start < spans[-1][1]:
            continue  # stands in the parentheses of the last one
        if tail := re.match(r"\s*\([^()]*\)|\s+programming language\b", question[end:]):
            end += tail.end()
        gap = question[spans[-1][1] : start] if spans else ""
        place = gap == ", " and not re.match(r"\s*,?\s*(?:or|and)\b", question[end:])  # "Hajjiabad, Jask", no list
        named = spans and re.search(rf"\b(?:{WORKS})(s?) $", question[: spans[-1][0]])
        work = (
            named and _INSIDE_WORK.fullmatch(gap) and not (named[1] and " and " in gap)
        )  # "the films A and B" are two
        if spans and (place or work or _INSIDE_TITLE.fullmatch(gap)):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return [Span(question[start:end], start, end) for start, end in spans]


AUXILIARY = re.compile(r"^(?:is|are|was|were|did|do|does|has|have|had|can|could|will|would)\b", re.IGNORECASE)
