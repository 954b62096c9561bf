"""Word lists (``vocabulary.json``): nouns and verbs of questions, families of relation words, and countries."""

from __future__ import annotations

import json
import re
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

# Words of one family name the same relation: "Who directed X" is answered by "the director of X".
_FAMILY: dict[str, str] = {}
for _name, _words in _LISTS["relations"].items():
    for _word in _words.split():
        _FAMILY.setdefault(stem(_word), _name)
FAMILIES = frozenset(_FAMILY.values())


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


def _any_of(names: list[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_COUNTRY = {
    fold(name.strip()): country
    for country, others in _LISTS["countries"].items()
    for name in (country, *others.split(","))
}
_STATES = dict.fromkeys(_LISTS["states"].split(", "))
_MENTION = re.compile(rf"(?<![\w-])(?=[A-Z])((?i:{_any_of(list(_COUNTRY))}))(?![\w])")
_STATE = re.compile(rf"\b({_any_of(list(_STATES))})\b")


class Mention(NamedTuple):
    """A country, the words by which a text names it, and where they start."""

    country: str
    written: str
    start: int


def countries(text: str) -> tuple[Mention, ...]:
    """The countries that a text names or implies, in order; a state of the United States implies the country."""
    found = [
        Mention(_COUNTRY[fold(match[1])], match[1], match.start())
        for match in _MENTION.finditer(text)
        if match[1][0].isupper() and match[1] != "Us"  # "to polish", "us"
    ]
    found += [Mention("United States", match[1], match.start()) for match in _STATE.finditer(text)]
    return tuple(sorted(found, key=lambda mention: mention.start))


def is_country(text: str) -> bool:
    """Whether the whole text is the name or adjective of a country or an American state."""
    name = text.removeprefix("The ").removeprefix("the ")
    return name[:1].isupper() and (fold(name) in _COUNTRY or name in _STATES)


def is_state(text: str) -> bool:
    """Whether a text is the name of an American state."""
    return text in _STATES


def is_adjective(text: str) -> bool:
    """Whether a text is a nationality ("Austrian", "Canadian-American")."""
    parts = fold(text).removeprefix("the ").replace("–", "-").split("-")
    return all(part in _COUNTRY and fold(_COUNTRY[part]) != part for part in parts)
