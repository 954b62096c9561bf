"""The token budget of one call: excerpts of passages that are too long for it.

A program's tunable ``prompt_tokens`` limits what one call shows: instructions, question, passages and notes, without
demos. Where that is exceeded, passages are cut at the ends of sentences. Selected sentences come first, then the best
sentence of each passage in its order, then the best of all: those with rare words of the other inputs, or that mention
another passage, and their neighbours; early sentences before late ones. A sentence without an end is cut at clauses or
spaces. The trace says what was cut (`Shortened`).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..data.text import terms
from ..engines.costs import record_incident
from ..engines.replies import estimated_tokens
from ..signatures.fields import NumberedPassage, NumberedPassages
from .scope import scope
from .trace import Shortened

_LEAST = 500  # tokens of passages that are shown beside the longest question
_LONGEST_ITEM = 400  # characters of an item of a list, and of a piece of a sentence without an end
_LONGEST_SENTENCE = 1_200  # characters; a longer one is cut
_LONGEST_TITLE = 200  # characters
_LINE = 4  # tokens of a line's id
_NEIGHBOUR = 0.3  # share of the score of the sentences before and after
_NAMED = 50  # passages whose mentions count
_PIECE = re.compile(rf".{{1,{_LONGEST_ITEM}}}(?:(?<=[\s,;:、，；：])|$)|.{{1,{_LONGEST_ITEM}}}", re.DOTALL)
_GAP = " … "


def fitted(agent: str, fixed: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a call within the budget: shorter items of lists, then excerpts of passages.

    Args:
        fixed: The instructions.
    """
    now, shown = scope(), dict(inputs)
    before = estimated_tokens(fixed) + sum(map(_tokens, inputs.values()))
    if before <= now.prompt_tokens:
        return shown
    lists = [name for name, value in inputs.items() if isinstance(value, list)]
    shown |= {name: _short_items(inputs[name], now.prompt_tokens // 4) for name in lists}
    passages = {name: value for name, value in inputs.items() if isinstance(value, NumberedPassages)}
    others = {name: value for name, value in shown.items() if name not in passages}
    room = max(_LEAST, now.prompt_tokens - estimated_tokens(fixed) - sum(map(_tokens, others.values())))
    asked = " ".join(text for value in others.values() for text in _texts(value))
    for name, value in passages.items():
        shown[name] = excerpt(value, asked, room / len(passages))
    after = estimated_tokens(fixed) + sum(map(_tokens, shown.values()))
    if after < before:
        full = [each for value in passages.values() for each in value.passages]
        left = [each for name in passages for each in shown[name].passages]
        kept = {each.number: _length(each) for each in left}
        cut = tuple(each.title[:_LONGEST_TITLE] for each in full if 0 < kept.get(each.number, 0) < _length(each))
        now.cuts.append(Shortened(agent, round(before), round(after), cut, len(full) - len(left)))
        record_incident("passages shortened")
    return shown


def excerpt(shown: NumberedPassages, asked: str, tokens: float) -> NumberedPassages:
    """The parts of passages that match what is asked, in their order, in so many tokens (estimated)."""
    if _tokens(shown) <= tokens:
        return shown
    units = [unit for place, passage in enumerate(shown.passages) for unit in _units(place, passage)]
    scores = _scores(units, shown.passages, frozenset(terms(asked)))
    ranked = sorted(range(len(units)), key=lambda n: (-scores[n], units[n].sentence, units[n].part, n))
    best: dict[int, int] = {}
    for n in ranked:
        best.setdefault(units[n].place, n)
    # The best sentence of each passage may have half of the room: the rest is for the best sentences of all.
    order = [
        *((n, 0.0) for n in ranked if units[n].selected),
        *((best[place], tokens / 2) for place in sorted(best)),
        *((n, 0.0) for n in ranked),
    ]
    kept: dict[int, set[int]] = defaultdict(set)
    left = tokens
    for n, least in order:
        unit = units[n]
        cost = unit.tokens + (0 if unit.place in kept else unit.opening)
        if left - cost >= least and n not in kept.get(unit.place, ()):
            kept[unit.place].add(n)
            left -= cost
    return NumberedPassages(
        passages=[
            shown.passages[place].model_copy(
                update={
                    "title": shown.passages[place].title[:_LONGEST_TITLE],
                    "sentences": _joined(units[n] for n in sorted(kept[place])),
                }
            )
            for place in sorted(kept)
        ]
    )


@dataclass(frozen=True)
class _Unit:
    """A sentence, or a piece of one without an end."""

    place: int  # of the passage among those shown
    sentence: int
    part: int  # from 0; ``last`` if it is the last of its sentence
    last: bool
    text: str
    selected: bool
    tokens: float
    opening: float  # tokens of the line with the title


def _units(place: int, passage: NumberedPassage) -> Iterator[_Unit]:
    opening = estimated_tokens(passage.title[:_LONGEST_TITLE]) + _LINE
    for number, text in passage.sentences.items():
        parts = [text] if len(text) <= _LONGEST_SENTENCE else _PIECE.findall(text)
        for part, piece in enumerate(parts):
            cost = estimated_tokens(piece) + _LINE
            last = part == len(parts) - 1
            yield _Unit(place, number, part, last, piece, number in passage.selected, cost, opening)


def _joined(units: Iterable[_Unit]) -> dict[int, str]:
    """The sentences that some units, in their order, make; gaps within a sentence are marked."""
    found: dict[int, str] = {}
    before: _Unit | None = None
    for unit in units:
        same = before is not None and before.sentence == unit.sentence
        if before is not None and not same and not before.last:
            found[before.sentence] += _GAP.rstrip()
        start = "" if unit.part == 0 else _GAP.lstrip()
        if same and before is not None:
            start = found[unit.sentence] + ("" if before.part + 1 == unit.part else _GAP)
        found[unit.sentence] = start + unit.text
        before = unit
    if before is not None and not before.last:
        found[before.sentence] += _GAP.rstrip()
    return found


def _scores(units: list[_Unit], passages: list[NumberedPassage], asked: frozenset[str]) -> list[float]:
    """How well each unit matches what is asked, with its neighbours in its passage."""
    titles = [frozenset(terms(passage.title[:_LONGEST_TITLE])) for passage in passages]
    wanted = asked.union(*titles[:_NAMED])
    had = [wanted.intersection(terms(unit.text)) for unit in units]
    counts = Counter(term for each in had for term in each)
    weight: dict[str, float] = defaultdict(float)
    weight |= {term: math.log1p(len(units) / count) for term, count in counts.items()}
    own = []
    for unit, found in zip(units, had, strict=True):
        matched = math.fsum(weight[term] for term in found & asked)
        named = (
            max(weight[term] for term in title)
            for n, title in enumerate(titles[:_NAMED])
            if title and title <= found and n != unit.place
        )
        own.append(matched + max(named, default=0.0))
    return [
        score
        + _NEIGHBOUR * sum(own[m] for m in (n - 1, n + 1) if 0 <= m < len(units) and units[m].place == units[n].place)
        for n, score in enumerate(own)
    ]


def _short_items(items: list[Any], tokens: int) -> list[Any]:
    """The last items of a list in so many tokens, each cut to its first characters."""
    kept: list[Any] = []
    for item in reversed(items):
        short = f"{item[:_LONGEST_ITEM]} …" if isinstance(item, str) and len(item) > _LONGEST_ITEM else item
        tokens -= int(_tokens(short))
        if tokens < 0 and kept:
            break
        kept.append(short)
    return kept[::-1]


def _tokens(value: Any) -> float:
    return sum(estimated_tokens(text) + _LINE for text in _texts(value))


def _texts(value: Any) -> list[str]:
    """The texts of an input."""
    if isinstance(value, NumberedPassages):
        return [text for passage in value.passages for text in (passage.title, *passage.sentences.values())]
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _length(passage: NumberedPassage) -> int:
    return sum(map(len, passage.sentences.values()))
