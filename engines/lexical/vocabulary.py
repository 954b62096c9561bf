"""Word lists (``vocabulary.json``): nouns and verbs of questions, families of relation words, and countries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from ...data.text import content_terms, fold, stem

_LISTS = json.loads((files(__package__) / "vocabulary.json").read_text(encoding="utf-8"))

PERSON_NOUNS, PLACE_NOUNS, OCCUPATION_NOUNS, WORK_NOUNS, ORGANISATION_NOUNS = (
    frozenset(_LISTS["nouns"][kind].split()) for kind in ("person", "place", "occupation", "work", "organisation")
)
# Verbs that end a noun phrase; regular pasts and participles are recognized by their endings.
VERBS = frozenset(_LISTS["verbs"].split())
# Verbs that separate the clauses of a question; without regular pasts, which are participles as often.
FINITE = rf"(?:{'|'.join(_LISTS['finite'].split())})"
WH = r"(?:who|whom|whose|what|which|where|when|how|why)"
WORKS = "|".join(_LISTS["works"].split(", "))
KIND_NOUNS = (
    rf"(?:{WORKS}|city|town|village|river|lake|mountain|island|actor|actress|singer|author|writer|physicist|chemist)"
)

# Words of one family name the same relation: "Who directed X" is answered by "the director of X". A word of two
# families belongs to the first.
_FAMILY = {stem(word): name for name, words in reversed(_LISTS["relations"].items()) for word in words.split()}
FAMILIES = frozenset(_LISTS["relations"])


@lru_cache(maxsize=1024)
def relation_terms(text: str) -> frozenset[str]:
    """The content terms of a text, with the terms of one family as one."""
    return frozenset(_FAMILY.get(term, term) for term in content_terms(text))


@lru_cache(maxsize=8192)
def relation_term(word: str) -> str:
    """The relation term of one word; empty for a function word. Bypasses the caches, which words would fill."""
    terms = content_terms.__wrapped__(word)
    return _FAMILY.get(terms[0], terms[0]) if terms else ""


# --- countries -------------------------------------------------------------------------------------------------------


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_COUNTRY = {
    fold(name.strip()): country
    for country, others in _LISTS["countries"].items()
    for name in (country, *others.split(","))
}
_STATES = frozenset(_LISTS["states"].split(", "))
_MENTION = re.compile(rf"(?<![\w-])(?=[A-Z])((?i:{_any_of(_COUNTRY)}))(?!\w)|\b({_any_of(_STATES)})\b")


class Mention(NamedTuple):
    """A country, the words by which a text names it, and where they start."""

    country: str
    written: str
    start: int


def countries(text: str) -> tuple[Mention, ...]:
    """The countries that a text names or implies, in order; a state of the United States implies the country."""
    return tuple(
        Mention(_COUNTRY[fold(match[1])] if match[1] else "United States", match[0], match.start())
        for match in _MENTION.finditer(text)
        if match[0] != "Us"
    )


def is_country(text: str) -> bool:
    """Whether the whole text is the name or adjective of a country or an American state."""
    name = text.removeprefix("The ").removeprefix("the ")
    return name[:1].isupper() and (fold(name) in _COUNTRY or is_state(name))


def is_state(text: str) -> bool:
    """Whether a text is the name of an American state."""
    return text in _STATES


def is_adjective(text: str) -> bool:
    """Whether a text is a nationality ("Austrian", "Canadian-American")."""
    parts = fold(text).removeprefix("the ").replace("–", "-").split("-")
    return all(part in _COUNTRY and fold(_COUNTRY[part]) != part for part in parts)
