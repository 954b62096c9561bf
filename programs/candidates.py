"""The candidate pool as agents see it: short ids out, evidence back.

Replies are read leniently in form and strictly in substance: an id that addresses nothing, or a quotation that is in no
passage, is dropped and reported.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ..data.passages import Evidence, Fact, Passage
from ..signatures.fields import NumberedPassage, NumberedPassages, one_line

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

    def has(self, passage: Passage) -> bool:
        """Whether a passage has a number."""
        return passage.id in self._number

    def number(self, passage: Passage) -> int:
        """Raises: KeyError: the passage has none."""
        return self._number[passage.id]

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
        return [self._id(item) for item in evidence]

    def resolve(self, ids: Iterable[Any]) -> tuple[list[Evidence], tuple[str, ...]]:
        """The evidence that a list of ids addresses, in its order, and the invalid or repeated entries.

        "[2s1]", "2.1" and "2s1 He was born in 1941." all mean 2s1. A whole passage replaces its sentences, at the
        position of the first of them.
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
            # "2 Ann Lee" is passage 2, "2 passages are relevant" is prose.
            rest = entry[match.end() :].strip()
            return Evidence(passage) if not rest or rest.startswith(passage.title[:20] or "\n") else None
        if not 1 <= int(sentence) <= len(passage.sentences):
            return None
        return Evidence(passage, int(sentence) - 1)

    def _id(self, item: Evidence) -> str:
        number = self._number[item.passage.id]
        return str(number) if item.sentence is None else f"{number}s{item.sentence + 1}"


def _sentences(item: Evidence) -> Iterable[int]:
    """The indices of the sentences of some evidence."""
    return range(len(item.passage.sentences)) if item.sentence is None else (item.sentence,)


def ids(evidence: Iterable[Evidence]) -> tuple[Fact, ...]:
    """The ids of some evidence, as a trace keeps them."""
    return tuple(item.fact for item in evidence)


def whole(evidence: Iterable[Evidence]) -> list[Evidence]:
    """The passages of some evidence, each once."""
    return [Evidence(passage) for passage in {item.passage.id: item.passage for item in evidence}.values()]


# --- citations in text: "[2s1]", "(2s1, 3s2)", "[2]" -----------------------------------------------------------------

_SENTENCE = r"\d{1,6}s\d{1,6}"
_EITHER = r"\d{1,6}(?:s\d{1,6})?"
_AND = r"(?:\s*[,;]\s*(?:and\s+)?|\s+and\s+|\s+)"
_MORE = rf"(?:{_AND}{_EITHER})*"
_ID = re.compile(_EITHER)
_IN_BRACKETS = re.compile(rf"\[{_EITHER}{_MORE}\]")
# "[2]" and "(1941)" may be part of an answer.
_OF_SENTENCES = re.compile(rf"\s*[\[(]{_SENTENCE}(?:{_AND}{_SENTENCE})*[\])]")
# "(2s1)", "[2s1, 3s2]", "[2]", "2s1" at the end; "(1941)" and "(2)" belong to the text.
_AT_THE_END = re.compile(
    rf"(?:\s*(?:\[{_EITHER}{_MORE}\]|\((?:(?:ids?|sources?|see|sentences?)\W+)?{_SENTENCE}{_MORE}\)|\b{_SENTENCE}\b)"
    r"[.,;]*)+\Z"
)


def cited_in(text: str) -> list[str]:
    """The ids that a text cites in brackets, each once."""
    return _cited(_IN_BRACKETS.findall(text))


def cut_citations(text: str) -> tuple[str, list[str]]:
    """A text without its citations of sentences, and their ids."""
    return _OF_SENTENCES.sub("", text), _cited(_OF_SENTENCES.findall(text))


def split_citations(text: str) -> tuple[str, list[str]]:
    """A text without its citations of sentences, and without others at its end, with or without brackets; and all their
    ids."""
    found = _AT_THE_END.search(text)
    rest, ids = cut_citations(text[: found.start()] if found else text)
    return rest, list(dict.fromkeys([*ids, *(_cited([found.group()]) if found else ())]))


def _cited(citations: list[str]) -> list[str]:
    return list(dict.fromkeys(id for citation in citations for id in _ID.findall(citation)))


# --- verbatim spans ---------------------------------------------------------------------------------------------------

_LEADING_NUMBER = re.compile(
    r"(?:[-*•>]\s+)?[*`]*(?:[\[(](\d{1,6})(?:s\d{1,6})?[\])]|(\d{1,6})s\d{1,6}\b)[*`]*(?:\s*[-–:.,])?\s*"
)
_SENTENCE_ID = re.compile(rf"[\[(]?{_SENTENCE}[\])]?")
_STRAIGHT_QUOTES = str.maketrans("’‘‛“”„‟«»", '\'\'\'""""""')


def read_spans(spans: Iterable[str], documents: Candidates) -> tuple[list[Evidence], tuple[str, ...]]:
    """The sentences that verbatim spans lie in, in the order of the spans, and the spans found in no document.

    A span with a leading id ("2s1 He was ...", "[2] He was ...") must be in that passage; a sentence id alone means the
    whole sentence.
    """
    found: dict[Fact, Evidence] = {}
    invalid = []
    for span in spans:
        items = _addressed(span.strip(), documents)
        found |= {item.fact: item for item in items if item.fact not in found}
        if not items:
            invalid.append(span[:80])
    return list(found.values()), tuple(invalid)


def _addressed(span: str, documents: Candidates) -> Sequence[Evidence]:
    if _SENTENCE_ID.fullmatch(span):
        return documents.resolve([span])[0]
    mark = _LEADING_NUMBER.match(span)
    if mark is None and (cited := split_citations(span))[1]:  # "He was ... (2s1)"
        mark = _LEADING_NUMBER.match(span := f"[{cited[1][0]}] {cited[0]}")
    number = int(mark[1] or mark[2]) if mark else 0
    if mark and 1 <= number <= len(documents.passages):
        return locate(span[mark.end() :], documents.passages[number - 1])
    return next((items for passage in documents.passages if (items := locate(span, passage))), ())


def locate(span: str, passage: Passage) -> tuple[Evidence, ...]:
    """The sentences of a passage that a verbatim span lies in; empty if it is not in the passage.

    White space and the style of quotation marks may differ, and punctuation may surround the span. The passage's text
    is compared as agents see it.
    """
    sentences = [_normalized(sentence) for sentence in passage.sentences]
    text = " ".join(sentence for sentence in sentences if sentence)
    for wanted in (_normalized(span), _normalized(span).strip("\"'` ….")):
        start = text.find(wanted)
        if start >= 0 and any(character.isalnum() for character in wanted):
            break
    else:
        return ()
    items, position = [], 0
    for number, sentence in enumerate(sentences):
        if sentence and position < start + len(wanted) and start < position + len(sentence):
            items.append(Evidence(passage, number))
        position += len(sentence) + bool(sentence)
    return tuple(items)


def _normalized(text: str) -> str:
    return one_line(text.translate(_STRAIGHT_QUOTES))
