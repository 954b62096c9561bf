"""Analyzes questions: the names in them, and what they ask for.

What is asked for comes from the question word and the head noun of its phrase ("what Nevada *city*", "which *tribe* of
indigenous people", "the *name* of the *fanzine*"), wherever in the question that phrase is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile

from .spans import (
    FINITE,
    OCCUPATION_NOUNS,
    ORGANISATION_NOUNS,
    PERSON_NOUNS,
    PLACE_NOUNS,
    WH,
    WORK_NOUNS,
    WORKS,
    names,
    quoted,
)

AUXILIARY = re.compile(
    r"^(?:is|are|was|were|did|do|does|has|have|had|can|could|may|must|should|will|would)\b", re.IGNORECASE
)

_AT = "\ufe6b"  # replaces an "@" of the question itself


@dataclass(frozen=True)
class Masked:
    """A question with its names replaced by @0, @1, ..."""

    text: str
    names: tuple[str, ...]

    def unmask(self, text: str) -> str:
        return re.sub(r"@(\d+)", lambda match: self.names[int(match[1])], text).replace(_AT, "@")


@lru_cache(maxsize=512)
def mask(question: str) -> Masked:
    """Replace names, quoted titles and the parentheses that belong to them."""
    question = " ".join(question.split()).replace("@", _AT)
    found: list[str] = []
    parts, end = "", 0
    for start, stop in _name_spans(question):
        digit = question[stop : stop + 1].isdecimal()  # '"A"9', which "@09" is not
        parts += f"{question[end:start]}@{len(found)}{' ' * digit}"
        found.append(question[start:stop].replace(_AT, "@"))
        end = stop
    text = re.sub(r"(@\d+)(?:'?\s?|\s+)'[sS]\b", r"\1's", parts + question[end:])
    return Masked(text, tuple(found))


# What may separate two parts of one title: "Elvis: That's the Way", "Oh! What a Nurse", "Febbre - La Mandrakata".
_INSIDE_WORK = re.compile(
    r" (?:in|on|at|with|and|from|to|for|into|under|over|without)(?: (?:a|an|the|my|his|her|your))? "
)
_INSIDE_TITLE = re.compile(r"[:!]\s|\s[-–]\s|\s")


def _name_spans(question: str) -> list[tuple[int, int]]:
    found = [(span.start - 1, span.end + 1) for span in quoted(question)]
    found += [(s.start, s.end) for s in names(question) if not any(a < s.end and s.start < b for a, b in found)]
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if spans and start < spans[-1][1]:
            continue  # in the parentheses of the last one
        if tail := re.match(r"\s*\([^()]*\)|\s+programming language\b|\s+v?\d+(?:\.\d+)+\b", question[end:]):
            end += tail.end()
        gap = question[spans[-1][1] : start] if spans else ","
        place = gap == ", " and not re.match(r"\s*,?\s*(?:or|and)\b", question[end:])  # "Hajjiabad, Jask", no list
        named = spans and re.search(rf"\b(?:{WORKS})(s?) $", question[: spans[-1][0]])
        # "the films A and B" are two
        work = named and _INSIDE_WORK.fullmatch(gap) and not (named[1] and " and " in gap)
        if place or work or _INSIDE_TITLE.fullmatch(gap):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


# --- what is asked for ------------------------------------------------------------------------------------------------

ANSWER_KINDS = (
    "who", "where", "when", "year", "country", "city", "region", "place", "number", "measure", "nationality",
    "occupation", "person", "work", "organisation", "name", "kind", "either", "yes/no", "reason", "noun", "what",
)  # fmt: skip


@dataclass(frozen=True)
class AnswerType:
    """What a question asks for."""

    kind: str  # one of `ANSWER_KINDS`
    head: str = ""  # the head noun of what is asked for ("magazine"), singular and in lower case; may be empty
    modifiers: tuple[str, ...] = ()  # the words before it, in lower case


# What stands before a question in a sentence of its own.
_BEFORE_QUESTION = re.compile(
    rf"^.*[\w)\]]{{2}}[.!] (?=(?:(?:[A-Za-z]+ ){{0,3}}{WH}|is|are|was|were|did|do|does|has|have|can)\b[^.]*\?$)",
    re.I | re.S,
)
_WH = re.compile(r"\b(?:what|which|who(?:m|se)?|where|when|why|how)\b", re.I)
# A text without these is a statement that holds or not. "This 4-letter name" in one sentence asks for the name.
_ASKS = re.compile(
    rf"\?|\bwhat\b|^(?:\w+,? (?:the )?)?{_WH.pattern}|{_WH.pattern}\W*$|"
    r"^(?:i|name|find|give|list|tell|identify|state|determine)\b|^(?!.*\w{3}\. [A-Z]).*\bthis\b",
    re.I | re.S,
)
_COUNT = re.compile(r"how many\b|(?:what|which)(?: (?:is|was|are|were))?(?: the)? (?:\w+ )?number\b", re.I)
_MEASURE = re.compile(
    r"how (?:much|tall|high|long|far|old|large|big|deep|wide|fast|heavy|often)\b|"
    r"(?:what|which)(?: (?:is|was|are|were))?(?: the)? (?:[\w@]+ )?"
    r"(?:percentage|distance|length|height|area|population|size|elevation|capacity|depth|speed|width|age|amount|cost)\b",
    re.I,
)
_DATE = re.compile(
    r"\b(?:date|day|month) (?:of|when|did|was|is)\b|\bbirthday\b|what (?:exact )?(?:date|day|month)\b", re.I
)
_YEAR = re.compile(r"\b(?:what|which)(?: \w+)? (?:year|decade|century|season)s?\b|\byear of\b", re.I)
_PHRASE = re.compile(
    r"(?:what|which|whose|name)(?:\s+(?:is|was|are|were|'s|has been))?(?:\s+(?:the|a|an|two|three|both|other))*"
    r"((?:\s+(?:[a-z][\w'’-]*|@\d+(?:['’]s?)?)){1,7})",
    re.I,
)
_ENDS = re.compile(
    rf"(?:{FINITE}|that|who|which|where|in|on|at|by|from|to|for|with|and|or|the|a|an|whose|as|into|through|first|once|"
    r"\w{3,}ed|made|built|wrote|sung|held|set|won|led|brought|gave|took|ran|rose|fell|released|are|both|when|between|"
    r"during|under|after|before|located|known|named|called|born|did|does|do)"
)
_BARE = frozenset("name type kind sort form one part style title".split())  # "the name of the fanzine" is a fanzine


@lru_cache(maxsize=512)
def answer_type(question: str) -> AnswerType:
    """Classify what a question asks for."""
    text = _BEFORE_QUESTION.sub("", mask(question).text.strip())
    if AUXILIARY.match(text):
        return AnswerType("either" if " or " in text else "yes/no")
    if text.endswith(".") and not _ASKS.search(question.strip()):
        return AnswerType("yes/no")
    wh = _question_word(text)
    rest = text[wh.start() :] if wh else text
    word = wh.group().lower() if wh else ""
    head, modifiers, bare = _head(rest)
    return AnswerType(_kind(text, rest, word, head, bare), head, modifiers)


def _question_word(text: str) -> re.Match[str] | None:
    """The question word, not that of a relative clause: the first if the question opens with it, else the last."""
    found = list(_WH.finditer(text))
    if not found:
        return None
    if found[0].start() <= 8 or re.match(r"\w+ (?:the )?(?:\w+ )?$", text[: found[0].start()]):
        return found[0]
    strong = [m for m in found if re.match(r"what|how", m.group(), re.I)]
    return (strong or found)[-1]


def _head(text: str) -> tuple[str, tuple[str, ...], bool]:
    """The head noun, the words before it, and whether it stands behind a bare noun ("the name of the fanzine")."""
    match = _PHRASE.match(text)
    words, phrase, bare = match[1].lower().split() if match else [], list[str](), False
    while words:
        word = words.pop(0)
        if word == "of" and words and phrase and singular(phrase[-1]) in _BARE:
            bare, phrase = True, []
            words = list(dropwhile(("the", "a", "an", "this", "his", "her").__contains__, words))
        elif word == "of" or _ENDS.fullmatch(word):
            break
        else:
            phrase.append(word)
            if singular(word) in PERSON_NOUNS | PLACE_NOUNS and ORGANISATION_NOUNS.isdisjoint(words[:1]):
                break
    nouns = WORK_NOUNS | ORGANISATION_NOUNS | PLACE_NOUNS | PERSON_NOUNS
    known = [n for n, word in enumerate(phrase, 1) if singular(word) in nouns]
    words = [word for word in phrase[: known[-1] if known else None] if not word.startswith("@")]
    return singular(words[-1]) if words else "", tuple(words[:-1]), bare


_EITHER = re.compile(r"@\d+[^@,]{0,20},? or (?:the |an? )?(?:\w+ ){0,3}@\d+|^(?:which|who)\b.*[,:] [^?]+ or ", re.I)
_BY_HEAD: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"nationality", "citizenship", "ethnicity"}), "nationality"),
    (frozenset({"country", "nation"}), "country"),
    (frozenset({"city", "town", "village", "municipality", "capital", "suburb", "borough", "neighborhood"}), "city"),
    (frozenset("state county province region district department territory prefecture".split()), "region"),
    (OCCUPATION_NOUNS, "occupation"),
    (PLACE_NOUNS, "place"),
    (PERSON_NOUNS, "person"),
    (WORK_NOUNS, "work"),
    (ORGANISATION_NOUNS, "organisation"),
    (frozenset({"genre"}), "kind"),
    (frozenset({"name", "nickname", "surname", "pseudonym", "title"}), "name"),
)  # fmt: skip


def _kind(text: str, rest: str, word: str, head: str, bare: bool) -> str:
    """The first kind that applies."""
    rules = (
        ("either", word in ("which", "who", "what", "whose") and _EITHER.search(text)),
        ("number", _COUNT.match(rest)),
        ("measure", _MEASURE.match(rest)),
        ("year", _YEAR.match(rest) or head in ("year", "season", "decade", "century")),
        ("when", word == "when" or _DATE.search(rest)),
        ("who", word in ("who", "whom", "whose") and not head),
        ("where", word == "where" or re.search(r"\bplace of\b|\bbirthplace\b", rest, re.I)),
        ("reason", word in ("why", "how")),
        *((kind, head in nouns) for nouns, kind in _BY_HEAD),
        ("name", bare and re.match(r"\w+(?: \w+)? (?:the )?(?:name|title)", rest)),
        ("kind", bare),
        ("noun", head),
        ("what", True),
    )
    return next(kind for kind, applies in rules if applies)


def singular(noun: str) -> str:
    if noun.endswith("ies") and len(noun) > 4 and noun not in ("series", "species", "movies"):
        return noun[:-3] + "y"
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is")) and noun not in ("series", "species")
    return noun[:-1] if is_plural else noun
