"""What a question asks for: the names in it and the type of its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .reading import Span, names, quoted
from .vocabulary import FINITE, PERSON_NOUNS, PLACE_NOUNS, WORKS

PERSON, PLACE, DATE, NUMBER, YES_NO, THING = "person", "place", "date", "number", "yes/no", "thing"


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
        parts += [question[end : span.start], f"@{len(found)}"]
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


# --- the type of the answer ------------------------------------------------------------------------------------------

AUXILIARY = re.compile(r"^(?:is|are|was|were|did|do|does|has|have|had|can|could|will|would)\b", re.IGNORECASE)
_QUANTITY = re.compile(
    r"\bhow (?:many|much|tall|high|long|far|old|large|big|deep|wide|fast)\b|\bpopulation\b|\bnumber of\b|"
    r"\bwhat (?:number|percentage|distance|length|height|area)\b",
    re.I,
)
_TIME = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:\w+ )?(?:year|date|day|month|decade|century)\b|\bdate of\b|\byear of\b|\bbirthday\b",
    re.I,
)
_PLACE = re.compile(r"\bwhere\b|\bplace of\b|\bbirthplace\b", re.I)
_ASKED_NOUN = re.compile(
    r"\b(?:what|which|whose|name)\b(?: (?:is|was|are|were))?(?: (?:the|a|an|two|of))*((?: [a-z][\w'’-]*){1,6})", re.I
)
_NOUN_ENDS = re.compile(
    rf"(?:{FINITE}|of|that|who|which|where|in|on|at|by|from|to|for|with|and|or|the|a|an|whose|as|into|through|first|once|\w{{3,}}ed|"
    r"made|built|wrote|sung|held|set|won|led|brought|gave|took|ran|rose|fell)"
)


@lru_cache(maxsize=4096)
def answer_type(question: str) -> str:
    """PERSON, PLACE, DATE, NUMBER, YES_NO or THING."""
    text = mask(question).text.strip()
    if AUXILIARY.match(text) and " or " not in text:
        return YES_NO
    if _QUANTITY.search(text):
        return NUMBER
    if _TIME.search(text):
        return DATE
    if (re.search(r"\bwhom?\b(?!se)", text, re.I) and not re.search(r"\b(?:what|which)\b", text, re.I)) or re.match(
        r"who\b", text, re.I
    ):
        return PERSON
    if (_PLACE.search(text) and not re.search(r"\b(?:what|which|who)\b", text, re.I)) or re.match(
        r"where\b", text, re.I
    ):
        return PLACE
    head = head_noun(question)
    if head in PERSON_NOUNS:
        return PERSON
    if head in PLACE_NOUNS or _PLACE.search(text):
        return PLACE
    if re.search(r"\bwho\b", text, re.I) and not head:
        return PERSON
    return THING


@lru_cache(maxsize=4096)
def head_noun(question: str) -> str:
    """The noun of "which ... noun", singular and in lower case, or an empty string."""
    match = _ASKED_NOUN.search(mask(question).text)
    if not match:
        return ""
    phrase: list[str] = []
    for word in match[1].lower().split():
        if _NOUN_ENDS.fullmatch(word):
            break
        noun = _singular(word)
        phrase.append(noun)
        if noun in PERSON_NOUNS or noun in PLACE_NOUNS:
            break
    if (
        len(phrase) > 1
        and match[1].lower().split()[len(phrase) - 1].endswith("s")
        and phrase[-1] not in PERSON_NOUNS | PLACE_NOUNS
    ):
        # "which river flows": the verb of an unknown kind ends in s; a plural noun would not follow a noun here.
        phrase.pop()
    return phrase[-1] if phrase else ""


def _singular(noun: str) -> str:
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun
