"""Families of words that name the same relation: "Who directed X" is answered by "the director of X".

Stems of one family count as one term when a sub-question meets a sentence.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ...data.text import content_terms, stem

_FAMILIES = """
birth: born birth birthplace birthday native hometown nativity
death: died death dead dies die killed deceased
director: director directed direct directing filmmaker directorial
performer: performer performed sang sung singer vocals recorded singing performs musician recording artist
composer: composer composed composes music score scored composition soundtrack
writer: author wrote written writer writes novel novelist playwright screenwriter book playwrights penned
spouse: spouse wife husband married wed widow marriage marry widower consort
parent: father mother parent parents
child: son daughter child children offspring
founder: founder founded founding establish established co-founded formed created creator began begun started launched
designer: architect designed designer design
producer: producer produced produces
actor: actor actress starring starred stars plays portrayed portrays cast played role
location: located situated lies stands stand location
release: released release premiered published publication
country: country nation nationality citizen citizenship
university: university college studied educated graduated education study degree alma doctorate
discovery: discovered discoverer discovery found
invention: invented inventor invention devised
capital: capital
river: river flows tributary
currency: currency
language: language
employer: worked employer works employed
member: member members
owner: owned owner owns
headquarters: headquarters headquartered based
league: league
burial: buried grave burial
"""
_FAMILY: dict[str, str] = {}
for _row in _FAMILIES.strip().splitlines():
    _name, _, _words = _row.partition(":")
    for _word in _words.split():
        _FAMILY.setdefault(stem(_word), _name)
FAMILIES = frozenset(_FAMILY.values())


@lru_cache(maxsize=8192)
def relation_terms(text: str) -> frozenset[str]:
    """The topic terms of a text, those of one family as one."""
    return frozenset(_FAMILY.get(term, term) for term in content_terms(text))


@lru_cache(maxsize=8192)
def word_terms(text: str) -> tuple[tuple[int, int, str], ...]:
    """Where the topic words of a text stand: (start, end, term)."""
    words = ((match, relation_term(match.group())) for match in re.finditer(r"\w+", text))
    return tuple((match.start(), match.end(), term) for match, term in words if term)


@lru_cache(maxsize=32768)
def relation_term(word: str) -> str:
    """The relation term of one word; empty for a function word. Past the caches of texts, which words would fill."""
    terms = content_terms.__wrapped__(word)
    return _FAMILY.get(terms[0], terms[0]) if terms else ""
