"""All candidate spans of some passages in one table, with the features that do not depend on the question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...data.text import FUNCTION_WORDS, bare_title, title_key
from .prompt import ParsedPassage, Sentence
from .spans import DATE, SPAN_KINDS, TITLE, YEAR, CandidateSpan, candidate_spans
from .vocabulary import (
    ORGANISATION_NOUNS,
    PERSON_NOUNS,
    PLACE_NOUNS,
    WORK_NOUNS,
    is_adjective,
    is_country,
    is_state,
    relation_term,
    relation_terms,
)  # fmt: skip

Matrix = NDArray[np.float32]
Vector = NDArray[np.float32]
Indices = NDArray[np.int64]

# The words next to a span that are features of their own; others count by their first character.
_BEFORE = (
    "by in of at from as the a an and to for with on is was were are ( , : \" ' named called born died since near into "
    "his her or than between under that who which"
).split()
_AFTER = ". , ( ) and of in is was 's ; who which that \" for at from to or has had".split()
_NOUNS = {
    "person noun": PERSON_NOUNS, "place noun": PLACE_NOUNS, "work noun": WORK_NOUNS,
    "organisation noun": ORGANISATION_NOUNS,
}  # fmt: skip
SPAN_FEATURES = (
    *SPAN_KINDS, "1 word", "2 words", "3 words", "4 words", "capitals", "first capital", "digit", "country", "state",
    "adjective",
    *_NOUNS, "opens sentence", "in parentheses", "first of life", "last of life", "longest", "place in sentence",
    "article", "list", "of", "like a person", *(f"after {word}" for word in _BEFORE), "after a capital",
    "after a digit",
    *(f"before {word}" for word in _AFTER), "before a capital", "before another",
)  # fmt: skip
_COLUMN = {name: number for number, name in enumerate(SPAN_FEATURES)}

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LIFE = re.compile(r"\(([^()]*\d{3,4}[^()]*)\)")  # "(12 May 1901 – 3 June 1980)"
_PREVIOUS = re.compile(r"(?:[\w'’]+|[^\w\s])\s*$")
_NEXT = re.compile(r"\s*('s|\w+|[^\w\s])")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class SentenceSpans:
    """The candidate spans of a sentence, and per span its key, words and features."""

    words: int  # in the sentence
    where: dict[str, tuple[int, ...]]  # the words at which each relation term occurs
    spans: tuple[CandidateSpan, ...]
    keys: tuple[str, ...]  # see `answer_key`
    first: Indices  # word of the span
    last: Indices  # word of the span
    content: Indices  # number of content words
    features: Matrix  # in the order of `SPAN_FEATURES`


@lru_cache(maxsize=1024)
def sentence_spans(text: str) -> SentenceSpans:
    words = list(_WORD.finditer(text))
    where: dict[str, tuple[int, ...]] = {}
    topical = [0]
    for n, word in enumerate(words):
        if term := relation_term(word.group()):
            where[term] = (*where.get(term, ()), n)
        topical.append(topical[-1] + bool(term))
    spans = candidate_spans(text)
    first = np.searchsorted([word.end() for word in words], [span.start for span in spans], side="right")
    last = np.searchsorted([word.start() for word in words], [span.end for span in spans], side="left") - 1
    counts = np.array(topical)
    return SentenceSpans(
        len(words), where, spans, tuple(answer_key(span.text) for span in spans), first, last,
        counts[last + 1] - counts[first], _features(text, spans),
    )  # fmt: skip


@lru_cache(maxsize=4096)
def answer_key(text: str) -> str:
    """The same key for all spellings of one answer."""
    return title_key.__wrapped__(text).removeprefix("the ")


def _features(text: str, spans: Sequence[CandidateSpan]) -> Matrix:
    rows = np.zeros((len(spans), len(SPAN_FEATURES)), np.float32)
    life = _LIFE.search(text)
    dated = [s for s in spans if life and s.kind in (DATE, YEAR) and life.start() <= s.start < life.end()]
    holds: list[int] = []  # indices in the flattened rows
    reached = 0
    for n, span in enumerate(spans):
        on = [*_own_features(span.text, span.kind), *_neighbours(text, span)]
        if span.end > reached:
            on.append(_COLUMN["longest"])
            reached = span.end
        if dated and span.start == dated[0].start:
            on.append(_COLUMN["first of life"])
        elif dated and span.end == dated[-1].end:
            on.append(_COLUMN["last of life"])
        row = n * len(SPAN_FEATURES)
        holds += [row + column for column in on]
    if holds:
        rows.ravel()[holds] = 1
        rows[:, _COLUMN["place in sentence"]] = [span.start / len(text) for span in spans]
    return rows


@lru_cache(maxsize=4096)
def _own_features(text: str, kind: str) -> tuple[int, ...]:
    words = text.split()
    capitals = [word[0].isupper() for word in words if word.lower() not in FUNCTION_WORDS]
    capital = bool(capitals) and all(capitals)
    digit = _DIGIT.search(text) is not None
    last = words[-1].lower().rstrip(".") if words else ""
    is_nationality = is_adjective(text) and not is_state(text)
    flags = {
        kind: True,
        ("1 word", "2 words", "3 words", "4 words")[min(len(words), 4) - 1]: True,
        **{name: last in nouns or last.removesuffix("s") in nouns for name, nouns in _NOUNS.items()},
        "state": is_state(text),
        "adjective": is_nationality,
        "country": is_country(text) and not is_state(text) and not is_nationality,
        "capitals": capital,
        "first capital": text[:1].isupper(),
        "digit": digit,
        "article": bool(words) and words[0].lower() in ("the", "a", "an"),
        "list": "," in text or " and " in text,
        "of": " of " in text,
        "like a person": capital and 2 <= len(words) <= 4 and not digit and "," not in text and "of" not in words,
    }
    return tuple(_COLUMN[name] for name, is_on in flags.items() if is_on)


def _neighbours(text: str, span: CandidateSpan) -> list[int]:
    on = []
    if text.rfind("(", 0, span.start) > text.rfind(")", 0, span.start):
        on.append(_COLUMN["in parentheses"])
    if previous := _PREVIOUS.search(text[max(0, span.start - 24) : span.start]):
        on.append(_beside(previous.group().rstrip(), True))
    else:
        on.append(_COLUMN["opens sentence"])
    if following := _NEXT.match(text, span.end):
        on.append(_beside(following[1], False))
    return [column for column in on if column >= 0]


@lru_cache(maxsize=8192)
def _beside(word: str, is_before: bool) -> int:
    """The column of the word before or after a span; -1 if there is none."""
    side, known = ("after", _BEFORE) if is_before else ("before", _AFTER)
    if word.lower() in known:
        return _COLUMN[f"{side} {word.lower()}"]
    if is_before:
        name = "after a capital" if word[0].isupper() else "after a digit" if word[0].isdigit() else ""
    else:
        name = ("before a capital" if word[0].isupper() else "before another") if word[0].isalpha() else ""
    return _COLUMN.get(name, -1)


class SpanTable:
    """The candidate spans of some passages. Every sentence also offers the title of its passage.

    Attributes:
        sentences: All sentences, each with its passage.
        rows: The spans of each sentence.
        terms: The terms of each sentence, and of the headings above its passage.
        place: The index of each sentence in its passage.
        weight: The inverse sentence frequency of each term (scikit-learn's smoothed IDF has other values).
        passage_terms: The terms of each passage with its title.
        opening: The terms of each passage's title and first sentence.
        links: links[a, b] is the certainty that passage a mentions passage b.
        spans, texts: The candidates. For each of them:
        sentence, passage: their indices;
        first, last: its words in the sentence, or -2 for a title;
        content: its number of content words;
        features: its row in the order of `SPAN_FEATURES`;
        group: the index of its `answer_key`;
        is_own: whether it is the title of its passage;
        keys, groups: The key of each group, and the group of each key.
        mentions, passage_mentions: The number of candidates and of passages that have each group.
        entitled: The passages whose title is a group.
    """

    def __init__(self, passages: Sequence[ParsedPassage]) -> None:
        self.passages = passages
        self.sentences: list[tuple[ParsedPassage, Sentence]] = [
            (passage, sentence) for passage in passages for sentence in passage.sentences
        ]
        self.rows = [sentence_spans(sentence.text) for _, sentence in self.sentences]
        sizes = [len(passage.sentences) for passage in passages]
        self.place = np.array([n for size in sizes for n in range(size)], np.float32)
        above = {passage.headings: relation_terms(passage.headings) for passage in passages}
        self.terms = [
            row.where.keys() | above[passage.headings] if passage.headings else row.where.keys()
            for row, (passage, _) in zip(self.rows, self.sentences, strict=True)
        ]
        frequency = Counter(term for known in self.terms for term in known)
        self.weight = {term: math.log(1 + len(self.sentences) / found) for term, found in frequency.items()}
        self.passage_terms = [_terms(f"{p.title} {p.headings}", p.sentences) for p in passages]
        self.opening = [_terms(p.title, p.sentences[:1]) for p in passages]
        self.links = _links(passages)

        parts = [
            r
            for r, (passage, _) in zip(self.rows, self.sentences, strict=True)
            for r in (r, _title(bare_title(passage.title)))
        ]
        self.spans = [span for part in parts for span in part.spans]
        self.texts = [span.text for span in self.spans]
        self.sentence = np.repeat(np.repeat(np.arange(len(self.sentences)), 2), [len(part.spans) for part in parts])
        self.passage = np.repeat(np.arange(len(passages)), sizes)[self.sentence]
        self.first = _joined([part.first for part in parts])
        self.last = _joined([part.last for part in parts])
        self.content = _joined([part.content for part in parts])
        empty = np.zeros((0, len(SPAN_FEATURES)), np.float32)
        self.features = np.concatenate([empty, *(part.features for part in parts)])
        keys = [key for part in parts for key in part.keys]
        self.keys = list(dict.fromkeys(keys))
        self.groups = {key: n for n, key in enumerate(self.keys)}
        self.group = np.array([self.groups[key] for key in keys], np.int64)

        size, each = len(self.groups), len(passages) + 1
        self.mentions = np.bincount(self.group, minlength=size)
        self.passage_mentions = np.bincount(np.unique(self.group * each + self.passage) // each, minlength=size)
        self.entitled: dict[int, list[int]] = {}
        for n, passage in enumerate(passages):
            for name in dict.fromkeys(answer_key(name) for name in passage.names[:2]):
                if (group := self.groups.get(name)) is not None:
                    self.entitled.setdefault(group, []).append(n)
        own = [group * each + n for group, numbers in self.entitled.items() for n in numbers]
        self.is_own = np.isin(self.group * each + self.passage, own)

    def text_after(self, candidate: int) -> str:
        """The text after a span in its sentence: the unit of a number."""
        span, (_, sentence) = self.spans[candidate], self.sentences[self.sentence[candidate]]
        return "" if span.kind == TITLE else sentence.text[span.end : span.end + 16]


@lru_cache(maxsize=16)
def span_table(passages: tuple[ParsedPassage, ...]) -> SpanTable:
    """The table of some passages; cached, since the same passages come back for every sub-question and round."""
    return SpanTable(passages)


@lru_cache(maxsize=1024)
def _title(name: str) -> SentenceSpans:
    """A passage's title as a candidate outside the sentence."""
    spans = (CandidateSpan(name, 0, len(name), TITLE),) if name else ()
    keys, outside = tuple(answer_key(span.text) for span in spans), np.full(len(spans), -2)
    return SentenceSpans(0, {}, spans, keys, outside, outside, outside * 0 + 1, _features(name, spans))


def _terms(title: str, sentences: Sequence[Sentence]) -> frozenset[str]:
    return relation_terms(title).union(*(sentence_spans(sentence.text).where for sentence in sentences))


def _joined(parts: Sequence[Indices]) -> Indices:
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)


def _links(passages: Sequence[ParsedPassage]) -> Matrix:
    found = np.zeros((len(passages), len(passages)), np.float32)
    by_word: dict[str, list[tuple[str, int, float]]] = {}  # names by their first word
    for b, passage in enumerate(passages):
        for name, worth in zip(passage.names, (1.0, 0.9, 0.6, 0.6), strict=False):
            if len(name) > 2:
                by_word.setdefault(name.split()[0], []).append((f" {name} ", b, worth))
    for a, passage in enumerate(passages):
        text = " ".join(sentence.key for sentence in passage.sentences)
        for word in by_word.keys() & text.split():
            for name, b, worth in by_word[word]:
                if a != b and worth > found[a, b] and name in text:
                    found[a, b] = worth
    return found
