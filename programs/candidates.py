"""The candidate pool as agents see it: short ids out, evidence back.

Replies are read leniently in form and strictly in substance: an id that addresses nothing is dropped and reported.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..data.passages import Evidence, Fact, Passage
from ..signatures.fields import ID, NumberedPassage, NumberedPassages

_LEADING_ID = re.compile(
    r"[\[(\"'#*`\s]*(?:(?:id|passage|sentence)\s+[\[(]?)?(\d{1,6})(?:[s:./](\d{1,6}))?[\])\"':.*`]*(?=\s|$)",
    re.IGNORECASE,
)


class Candidates:
    """Passages numbered from 1 for one question. Numbers stay the same in every round and for every agent."""

    def __init__(self, passages: Iterable[Passage] = ()) -> None:
        self.passages: list[Passage] = []
        self._number: dict[str, int] = {}
        self.extend(passages)

    def extend(self, passages: Iterable[Passage]) -> list[Passage]:
        """Number further passages; returns those that are new."""
        fresh = []
        for passage in passages:
            if passage.id not in self._number:
                self.passages.append(passage)
                self._number[passage.id] = len(self.passages)
                fresh.append(passage)
        return fresh

    def show(self, evidence: Iterable[Evidence] | None = None, selected: Iterable[Evidence] = ()) -> NumberedPassages:
        """All passages, or only ``evidence``: passages in order of first mention, sentences in order.

        Args:
            selected: Evidence whose sentences are marked.
        """
        marked: dict[str, set[int]] = defaultdict(set)
        for item in selected:
            marked[item.passage.id].update(_sentences(item))
        shown: dict[str, tuple[Passage, set[int]]] = {}
        for item in map(Evidence, self.passages) if evidence is None else evidence:
            shown.setdefault(item.passage.id, (item.passage, set()))[1].update(_sentences(item))
        return NumberedPassages(
            passages=[
                NumberedPassage(
                    number=self._number[passage.id],
                    title=passage.heading,
                    sentences={n + 1: passage.sentences[n] for n in sorted(keep)},
                    selected=frozenset(n + 1 for n in marked.get(passage.id, ())),
                )
                for passage, keep in shown.values()
            ]
        )

    def ids(self, evidence: Iterable[Evidence]) -> list[str]:
        """The short ids of some evidence."""
        numbers = ((self._number[item.passage.id], item.sentence) for item in evidence)
        return [str(number) if sentence is None else f"{number}s{sentence + 1}" for number, sentence in numbers]

    def resolve(self, ids: Iterable[Any]) -> tuple[list[Evidence], tuple[str, ...]]:
        """The evidence that a list of ids addresses, in its order, and the invalid or repeated entries.

        "[2s1]", "2.1" and "2s1 He was born in 1941." all mean 2s1. A whole passage replaces its sentences, at the
        position of the first of them.
        """
        addressed: dict[Fact, Evidence] = {}
        invalid = []
        for entry in map(str, ids):
            item = self._addressed(entry)
            if item is None or item.fact in addressed or Fact(item.passage.id) in addressed:
                invalid.append(entry[:80])
            else:
                addressed[item.fact] = item
        items = (Evidence(item.passage) if Fact(item.passage.id) in addressed else item for item in addressed.values())
        return list({item.fact: item for item in items}.values()), tuple(invalid)

    def _addressed(self, entry: str) -> Evidence | None:
        match = _LEADING_ID.match(entry)
        number, sentence = (int(digits or 0) for digits in match.groups()) if match else (0, 0)
        if not match or not 1 <= number <= len(self.passages):
            return None
        passage = self.passages[number - 1]
        if match[2]:
            return Evidence(passage, sentence - 1) if 1 <= sentence <= len(passage.sentences) else None
        rest = entry[match.end() :].strip()  # "2 Ann Lee" is passage 2, "2 passages are relevant" is prose
        return Evidence(passage) if not rest or rest.startswith(passage.title[:20] or "\n") else None


def _sentences(item: Evidence) -> Iterable[int]:
    """The indices of the sentences of some evidence."""
    return range(len(item.passage.sentences)) if item.sentence is None else (item.sentence,)


def ids(evidence: Iterable[Evidence]) -> tuple[Fact, ...]:
    """The ids of some evidence, as a trace keeps them."""
    return tuple(item.fact for item in evidence)


def whole(evidence: Iterable[Evidence]) -> list[Evidence]:
    """The passages of some evidence, each once."""
    return [Evidence(passage) for passage in {item.passage.id: item.passage for item in evidence}.values()]


@dataclass(frozen=True)
class Cited:
    """A text with the evidence that it cites; of an answer also the question as it was asked."""

    text: str
    cited: tuple[Evidence, ...] = ()
    question: str = ""


# --- citations in text: "[2s1]", "(2s1, 3s2)", "[2]" -----------------------------------------------------------------

_SENTENCE = r"\d{1,6}s\d{1,6}"
_AND = r"(?:\s*[,;]\s*(?:and\s+)?|\s+and\s+|\s+)"
_IN_BRACKETS = rf"\[{ID}(?:{_AND}{ID})*\]"
# "[2]" and "(1941)" may be part of an answer.
_OF_SENTENCES = re.compile(rf"\s*[\[(]{_SENTENCE}(?:{_AND}{_SENTENCE})*[\])]")
_AT_THE_END = re.compile(rf"(?:\s*(?:{_IN_BRACKETS}|\({_SENTENCE}(?:{_AND}{ID})*\)|\b{_SENTENCE}\b)[.,;]*)+\Z")


def cited_in(text: str) -> list[str]:
    """The ids that a text cites in brackets, each once."""
    return _ids_in(re.findall(_IN_BRACKETS, text))


def cut_citations(text: str) -> tuple[str, list[str]]:
    """A text without its citations of sentences, and their ids."""
    return _OF_SENTENCES.sub("", text), _ids_in(_OF_SENTENCES.findall(text))


def split_citations(text: str) -> tuple[str, list[str]]:
    """A text without its citations of sentences, and without others at its end, with or without brackets; and all their
    ids."""
    end = _AT_THE_END.search(text)
    rest, ids = cut_citations(text[: end.start()] if end else text)
    return rest, _ids_in([*ids, end.group() if end else ""])


def _ids_in(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(id for text in texts for id in re.findall(ID, text)))
