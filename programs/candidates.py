"""The candidate pool as agents see it: short ids out, evidence back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..data.passages import Evidence, Fact, Passage
from ..signatures.fields import NumberedPassage, NumberedPassages

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
        """Number what a later search found; returns the passages that are new."""
        fresh = []
        for passage in passages:
            if passage.id not in self._number:
                self.passages.append(passage)
                self._number[passage.id] = len(self.passages)
                fresh.append(passage)
        return fresh

    def show(self, evidence: Iterable[Evidence] | None = None) -> NumberedPassages:
        """All passages, or only what ``evidence`` names: passages in order of first mention, sentences in order."""
        if evidence is None:
            return NumberedPassages(passages=[self._numbered(passage) for passage in self.passages])
        shown: dict[str, tuple[Passage, set[int]]] = {}
        for item in evidence:
            passage, sentences = shown.setdefault(item.passage.id, (item.passage, set()))
            sentences.update(range(len(passage.sentences)) if item.sentence is None else (item.sentence,))
        return NumberedPassages(passages=[self._numbered(passage, keep) for passage, keep in shown.values()])

    def ids(self, evidence: Iterable[Evidence]) -> list[str]:
        """The short ids of some evidence."""
        return [self._id(item) for item in evidence]

    def resolve(self, ids: Iterable[Any]) -> tuple[list[Evidence], tuple[str, ...]]:
        """What an agent's reply points at, in its order, and the entries that point at nothing or repeat another.

        Forgiving in form ("[2s1]", "2.1" and "2s1 He was born in 1941." are 2s1), strict in substance: an id out of
        range is dropped and reported. A passage kept whole stands for its sentences, in the place of the first of them.
        """
        found: dict[tuple[str, int | None], Evidence] = {}
        invalid = []
        for entry in ids:
            item = self._parse(str(entry))
            if item is None or item.fact in found or (item.passage.id, None) in found:
                invalid.append(str(entry)[:80])
            else:
                found[item.fact] = item
        items = [Evidence(item.passage) if (item.passage.id, None) in found else item for item in found.values()]
        return list({item.fact: item for item in items}.values()), tuple(invalid)

    def _parse(self, entry: str) -> Evidence | None:
        match = _LEADING_ID.match(entry)
        if match is None:
            return None
        number, sentence = match.groups()
        if not 1 <= int(number) <= len(self.passages):
            return None
        passage = self.passages[int(number) - 1]
        if not sentence:
            # "2 John Farrow" is passage 2, "2 passages are relevant" is prose.
            said = entry[match.end() :].strip()
            return Evidence(passage) if not said or said.startswith(passage.title[:20] or "\n") else None
        if not 1 <= int(sentence) <= len(passage.sentences):
            return None
        return Evidence(passage, int(sentence) - 1)

    def _numbered(self, passage: Passage, keep: set[int] | None = None) -> NumberedPassage:
        sentences = {i + 1: text for i, text in enumerate(passage.sentences) if keep is None or i in keep}
        return NumberedPassage(number=self._number[passage.id], title=passage.title, sentences=sentences)

    def _id(self, item: Evidence) -> str:
        number = self._number[item.passage.id]
        return str(number) if item.sentence is None else f"{number}s{item.sentence + 1}"


def facts(evidence: Iterable[Evidence]) -> tuple[Fact, ...]:
    """What a trace keeps of some evidence."""
    return tuple(item.fact for item in evidence)
