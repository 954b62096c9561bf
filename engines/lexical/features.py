"""The candidate answers in some passages, and their features: one row of numbers per span and question.

The features describe the span and its neighbors (once for all questions), the question, the span's sentence and passage
against the question's words and names, and the span against them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.text import FUNCTION_WORDS, bare_title, content_terms, stem, title_key
from .prompt import ParsedPassage, Sentence
from .question import ANSWER_KINDS, AnswerType, answer_type, mask
from .spans import (
    DATE,
    FAMILIES,
    KIND_NOUNS,
    ORGANISATION_NOUNS,
    PERSON_NOUNS,
    PLACE_NOUNS,
    SPAN_KINDS,
    TITLE,
    WORK_NOUNS,
    YEAR,
    Span,
    candidate_spans,
    is_adjective,
    is_country,
    is_state,
    relation_term,
    relation_terms,
    unnumbered,
)

Matrix = NDArray[np.float32]
Vector = NDArray[np.float32]
Indices = NDArray[np.int64]

# --- spans -----------------------------------------------------------------------------------------------------------

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
_COLUMNS = (
    *SPAN_KINDS, "1 word", "2 words", "3 words", "4 words", "capitals", "first capital", "digit", "country", "state",
    "adjective", *_NOUNS, "opens sentence", "in parentheses", "first of life", "last of life", "longest",
    "place in sentence", "article", "list", "of", "like a person", *(f"after {word}" for word in _BEFORE),
    "after a capital", "after a digit", *(f"before {word}" for word in _AFTER), "before a capital", "before another",
)  # fmt: skip
_COLUMN = {name: number for number, name in enumerate(_COLUMNS)}

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LIFE = re.compile(r"\(([^()]*\d{3,4}[^()]*)\)")  # "(12 May 1901 – 3 June 1980)"
_PREVIOUS = re.compile(r"(?:[\w'’]+|[^\w\s])\s*$")
_NEXT = re.compile(r"\s*('s|\w+|[^\w\s])")


class SentenceSpans(NamedTuple):
    """The candidate spans of a sentence."""

    words: int  # in the sentence
    where: dict[str, list[int]]  # the words at which each relation term occurs
    spans: tuple[Span, ...]
    keys: tuple[str, ...]  # see `answer_key`
    first: Indices  # word of the span
    last: Indices  # word of the span
    content: Indices  # number of content words
    features: Matrix  # in the order of `_COLUMNS`


@lru_cache(maxsize=1024)
def sentence_spans(text: str) -> SentenceSpans:
    words = list(_WORD.finditer(text))
    where: dict[str, list[int]] = {}
    topical = [0]
    for n, word in enumerate(words):
        if term := relation_term(word.group()):
            where.setdefault(term, []).append(n)
        topical.append(topical[-1] + bool(term))
    spans = candidate_spans(text)
    first = np.searchsorted([word.end() for word in words], [span.start for span in spans], side="right")
    last = np.searchsorted([word.start() for word in words], [span.end for span in spans], side="left") - 1
    content = np.array(topical)[last + 1] - np.array(topical)[first]
    keys = tuple(answer_key(span.text) for span in spans)
    return SentenceSpans(len(words), where, spans, keys, first, last, content, _features(text, spans))


@lru_cache(maxsize=1024)
def _title(name: str) -> SentenceSpans:
    """A passage's title as a candidate outside the sentence."""
    spans = (Span(name, 0, len(name), TITLE),) if name else ()
    keys, outside = tuple(answer_key(span.text) for span in spans), np.full(len(spans), -2)
    return SentenceSpans(0, {}, spans, keys, outside, outside, outside * 0 + 1, _features(name, spans))


@lru_cache(maxsize=4096)
def answer_key(text: str) -> str:
    """The same key for all spellings of one answer."""
    return title_key.__wrapped__(text).removeprefix("the ")


def _features(text: str, spans: Sequence[Span]) -> Matrix:
    rows = np.zeros((len(spans), len(_COLUMNS)), np.float32)
    life = _LIFE.search(text)
    dated = [s for s in spans if life and s.kind in (DATE, YEAR) and life.start() <= s.start < life.end()]
    reached = 0
    for row, span in zip(rows, spans, strict=True):
        row[[*_own_features(span.text, span.kind), *_neighbours(text, span)]] = 1
        row[_COLUMN["longest"]] = span.end > reached
        reached = max(reached, span.end)
        if dated and span.start == dated[0].start:
            row[_COLUMN["first of life"]] = 1
        elif dated and span.end == dated[-1].end:
            row[_COLUMN["last of life"]] = 1
        row[_COLUMN["place in sentence"]] = span.start / len(text)
    return rows


@lru_cache(maxsize=4096)
def _own_features(text: str, kind: str) -> tuple[int, ...]:
    words = text.split()
    capitals = [word[0].isupper() for word in words if word.lower() not in FUNCTION_WORDS]
    capital = bool(capitals) and all(capitals)
    digit = any(map(str.isdecimal, text))
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


def _neighbours(text: str, span: Span) -> list[int]:
    on = []
    if text.rfind("(", 0, span.start) > text.rfind(")", 0, span.start):
        on.append("in parentheses")
    previous = _PREVIOUS.search(text[max(0, span.start - 24) : span.start])
    on.append(_beside("after", previous[0].rstrip()) if previous else "opens sentence")
    if following := _NEXT.match(text, span.end):
        on.append(_beside("before", following[1]))
    return [_COLUMN[name] for name in on if name in _COLUMN]


def _beside(side: str, word: str) -> str:
    if (known := f"{side} {word.lower()}") in _COLUMN:
        return known
    is_digit = word[0].isdigit()
    return f"{side} {'a capital' if word[0].isupper() else 'a digit' if is_digit else 'another' * word[0].isalpha()}"


# --- passages --------------------------------------------------------------------------------------------------------


class SpanTable:
    """The candidate spans of some passages. Every sentence also offers the title of its passage.

    Attributes:
        sentences: All sentences, each with its passage; ``rows`` has their spans, ``terms`` their terms with those of
            the headings above, ``place`` their index in the passage.
        weight: The inverse sentence frequency of each term.
        passage_terms, opening: The terms of each passage with its title, and of its title and first sentence.
        links: links[a, b] is the certainty that passage a mentions passage b.
        spans: The candidates. For each of them: ``sentence`` and ``passage``; its ``first`` and ``last`` word in the
            sentence, or -2 for a title; ``content``, its number of content words; ``features``; ``group``, the index of
            its `answer_key` in ``keys``; ``is_own``, whether it is the title of its passage.
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
        self.terms = [
            row.where.keys() | relation_terms(passage.headings)
            for row, (passage, _) in zip(self.rows, self.sentences, strict=True)
        ]
        frequency = Counter(term for known in self.terms for term in known)
        self.weight = {term: math.log(1 + len(self.sentences) / found) for term, found in frequency.items()}
        self.passage_terms = [_terms(f"{p.title} {p.headings}", p.sentences) for p in passages]
        self.opening = [_terms(p.title, p.sentences[:1]) for p in passages]
        self.links = _links(passages)

        titles = [_title(unnumbered(bare_title(passage.title))) for passage, _ in self.sentences]
        parts = [part for pair in zip(self.rows, titles, strict=True) for part in pair]
        self.spans = [span for part in parts for span in part.spans]
        self.sentence = np.repeat(np.arange(len(parts)) // 2, [len(part.spans) for part in parts])
        self.passage = np.repeat(np.arange(len(passages)), sizes)[self.sentence]
        empty = _title("")
        self.first, self.last, self.content = (
            np.concatenate([getattr(part, name) for part in (empty, *parts)]) for name in ("first", "last", "content")
        )
        self.features = np.concatenate([part.features for part in (empty, *parts)])
        keys = [key for part in parts for key in part.keys]
        self.keys = list(dict.fromkeys(keys))
        groups = {key: n for n, key in enumerate(self.keys)}
        self.group = np.array([groups[key] for key in keys], np.int64)
        in_passage = sorted({*zip(self.group.tolist(), self.passage.tolist(), strict=True)})
        self.mentions = np.bincount(self.group, minlength=len(groups))
        self.passage_mentions = np.bincount([group for group, _ in in_passage], minlength=len(groups))
        self.entitled: dict[int, list[int]] = {}
        for n, passage in enumerate(passages):
            for name in dict.fromkeys(answer_key(name) for name in passage.names[:2]):
                if (group := groups.get(name)) is not None:
                    self.entitled.setdefault(group, []).append(n)
        self.is_own = np.array(
            [p in self.entitled.get(g, ()) for g, p in zip(self.group.tolist(), self.passage.tolist(), strict=True)]
        )

    def text_after(self, candidate: int) -> str:
        """The text after a span in its sentence: the unit of a number."""
        span, (_, sentence) = self.spans[candidate], self.sentences[self.sentence[candidate]]
        return "" if span.kind == TITLE else sentence.text[span.end : span.end + 16]


@lru_cache(maxsize=16)
def span_table(passages: tuple[ParsedPassage, ...]) -> SpanTable:
    """The table of some passages; cached, since the same passages come back for every sub-question and round."""
    return SpanTable(passages)


def _terms(title: str, sentences: Sequence[Sentence]) -> frozenset[str]:
    return relation_terms(title).union(*(sentence_spans(sentence.text).where for sentence in sentences))


def _links(passages: Sequence[ParsedPassage]) -> Matrix:
    found = np.zeros((len(passages), len(passages)), np.float32)
    texts = ["".join(sentence.key for sentence in passage.sentences) for passage in passages]
    for b, passage in enumerate(passages):
        for name, worth in reversed(list(zip(passage.names, (1.0, 0.9, 0.6, 0.6), strict=False))):
            for a, text in enumerate(texts):
                if a != b and len(name) > 2 and f" {name} " in text:
                    found[a, b] = worth
    return found


# --- questions -------------------------------------------------------------------------------------------------------

_UNSEEN = 2.0  # weight of a term of the question that no sentence has
_OF_YEAR = re.compile(rf"\b(\d{{4}}) ({KIND_NOUNS})(?: titled| called| named)? (@\d+)")
_FADES = 0.75  # factor of a word's weight per word of distance


@dataclass(frozen=True)
class ParsedQuestion:
    """A question with what the features need."""

    asks: AnswerType
    names: tuple[str, ...]  # and the answers in place of its references, as title keys without parentheses
    titles: tuple[str, ...]  # the same with parentheses
    named: frozenset[str]  # the terms of the names
    relation: frozenset[str]  # the terms of its other words
    head: str  # the term of the head noun of what is asked for; may be empty
    key: str  # the whole question as a key between spaces
    words: int


@lru_cache(maxsize=512)
def parse_question(text: str, answers: tuple[str, ...] = ()) -> ParsedQuestion:
    """Parse a question in which ``answers`` replaced the references."""
    masked, asks = mask(text), answer_type(text)
    names = [name for name in (*answers, *(name.strip('"“” ') for name in masked.names)) if title_key(name)]
    named = relation_terms(" ".join(names))
    titles = [title_key(name) for name in names]
    for year, kind, n in _OF_YEAR.findall(masked.text):  # "the 1972 film Solaris"
        titles = [title + f" {year} {kind}" * (title == title_key(masked.unmask(n))) for title in titles]
    return ParsedQuestion(
        asks, tuple(title_key(bare_title(name)) for name in names), tuple(titles), named,
        relation_terms(re.sub(r"@\d+", " ", masked.text)) - named, relation_term(asks.head) if asks.head else "",
        f" {title_key(text)} ", len(text.split()),
    )  # fmt: skip


def features(question: ParsedQuestion, table: SpanTable) -> Matrix:
    """One row per span of the table: of the span alone, the question, the sentence, the passage, and the span's own."""
    if not table.spans:
        return np.zeros((0, 0), np.float32)
    names = list(zip(question.names, question.titles, strict=True))
    certainty = np.array([max((about(p, *name) for name in names), default=0.0) for p in table.passages], np.float32)
    asked = [question.asks.kind == kind for kind in ANSWER_KINDS]
    asked += ["birth" in question.relation, "death" in question.relation, bool(question.relation & FAMILIES)]
    asked += [bool(question.names), question.words < 9]
    parts = [
        table.features,
        np.tile(asked, (len(table.spans), 1)),
        _sentence_features(question, table)[table.sentence],
        _passage_features(question, table, certainty)[table.passage],
        _span_features(question, table, certainty),
    ]
    return np.hstack(parts, dtype=np.float32, casting="same_kind")


def _sentence_features(question: ParsedQuestion, table: SpanTable) -> Matrix:
    relation, named = (
        np.array([math.fsum(table.weight[term] for term in terms & known) for known in table.terms], np.float32)
        for terms in (question.relation, question.named)
    )
    both = relation + named
    before = np.concatenate([[0.0], both[:-1]]) * (table.place > 0)
    mentioned = [any(f" {name} " in sentence.key for name in question.names) for _, sentence in table.sentences]
    all_relation, all_named = _worth(question.relation, table), _worth(question.named, table)
    return np.stack([
        relation / (all_relation or 1), named / (all_named or 1), both / ((all_relation + all_named) or 1),
        relation / _best(relation), named / _best(named), both / _best(both), both >= both.max() - 1e-6,
        before / _best(both), table.place == 0, np.minimum(table.place / 8, 1.5), mentioned,
        [question.head in row.where for row in table.rows],
    ], axis=1)  # fmt: skip


def _passage_features(question: ParsedQuestion, table: SpanTable, certainty: Vector) -> Matrix:
    terms, size = question.relation | question.named, len(table.passages)
    known = frozenset[str]().union(
        *(found for found, sure in zip(table.passage_terms, certainty, strict=True) if sure >= 0.7)
    )
    covers = np.array([_worth(terms & found, table) for found in table.passage_terms])
    adds = np.array([_worth((terms & found) - known, table) for found in table.passage_terms])
    asked_for = np.array(
        [any(f" {name} " in question.key for name in p.names if len(name) > 2) for p in table.passages]
    )
    starts = np.maximum(certainty, asked_for)
    everything = _worth(terms, table) or 1
    return np.stack([
        certainty, asked_for, (table.links * starts[:, None]).max(axis=0), (table.links * starts).max(axis=1),
        covers / everything, covers / _best(covers), adds / everything, np.arange(size) == 0,
        np.full(size, min(size, 10) / 5), [question.head in opening for opening in table.opening],
    ], axis=1)  # fmt: skip


def _worth(terms: Iterable[str], table: SpanTable) -> float:
    return math.fsum(table.weight.get(term, _UNSEEN) for term in terms)


def _best(values: NDArray[np.floating]) -> float:
    return float(values.max()) or 1.0


def about(passage: ParsedPassage, name: str, title: str) -> float:
    """The certainty that a passage is about the bearer of a name; both are title keys, ``name`` without parentheses."""
    if title in passage.names[:1]:
        return 1.0
    if name in passage.names:
        asked_for, had = set(title.split()), set(passage.names[0].split())
        return 0.9 if asked_for <= had or had <= asked_for else 0.4  # "Solaris (1972 film)" for "Solaris (2002 film)"
    own = "".join(passage.names[:2][-1:])
    if own and (within(name, own) or within(own, name)):
        return 0.7
    # "Berg" for "Ada Berg", "Bjarne Stroustrup" for "B. Stroustrup"
    ours, theirs = own.split(), name.split()
    return 0.6 if len(theirs) > 1 and ours and ours[-1] == theirs[-1] and ours[0][0] == theirs[0][0] else 0.0


def within(part: str, whole: str) -> bool:
    """Whether a key contains another one, word by word."""
    return f" {part} " in f" {whole} " and bool(content_terms(part))


def _span_features(question: ParsedQuestion, table: SpanTable, certainty: Vector) -> Matrix:
    near, shared = _nearness(question, table)
    groups = np.zeros((len(table.keys), 3), np.float32)
    for group, numbers in table.entitled.items():
        groups[group] = 1, any(question.head in table.opening[n] for n in numbers), max(certainty[n] for n in numbers)
    counts = np.log(np.stack([table.mentions, table.passage_mentions], axis=1))
    return np.hstack(
        [near, _overlap(question, table, shared), table.is_own[:, None], groups[table.group], counts[table.group]]
    )


def _nearness(question: ParsedQuestion, table: SpanTable) -> tuple[Matrix, Indices]:
    """How near the question's words are to each span, and how many are in it."""
    terms = question.relation | question.named | ({question.head} if question.head else set())
    width = max(row.words for row in table.rows) + 5
    # Words start at column 2, so that there are columns left of the first and right of the last.
    worth = np.zeros((2, len(table.rows), width))
    is_any, is_family, is_head = np.zeros((3, len(table.rows), width), bool)
    for n, row in enumerate(table.rows):
        for term in terms & row.where.keys():
            at = [position + 2 for position in row.where[term]]
            if term in question.relation or term in question.named:
                worth[int(term not in question.relation), n, at] = table.weight[term]
                is_any[n, at] = True
                is_family[n, at] = term in question.relation and term in FAMILIES
            is_head[n, at] = term == question.head
    worth /= worth.max() or 1.0
    fades = _FADES ** np.arange(width)
    from_left = np.cumsum(worth / fades, axis=2) * fades
    from_right = np.cumsum((worth * fades)[:, :, ::-1], axis=2)[:, :, ::-1] / fades
    outside = table.first < 0  # a title
    sentence, left, right = table.sentence, np.where(outside, 0, table.first + 1), np.where(outside, 1, table.last + 3)
    columns = []
    for words in (0, 1):  # of the relation, of the names
        columns += [from_left[words, sentence, left], from_right[words, sentence, right]]
    for flags in (is_any, is_family, is_head):
        columns += [_nearest(flags)[sentence, left], _nearest(flags[:, ::-1])[sentence, width - 1 - right]]
    heads, inside = np.cumsum(is_head, axis=1), np.cumsum(is_any, axis=1)
    columns += [heads[sentence, right - 1] > heads[sentence, left], is_head[sentence, right - 1]]
    near = np.stack(columns, axis=1).astype(np.float32)
    near[outside] = 0
    return near, inside[sentence, right - 1] - inside[sentence, left]


def _nearest(flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How near the last flag is at each place: 1 at the place itself, 1/2 three words further."""
    places = np.arange(flags.shape[1])
    last = np.maximum.accumulate(np.where(flags, places, -1000), axis=1)
    near: NDArray[np.float64] = 1 / (1 + (places - last) / 3)
    return near


def _overlap(question: ParsedQuestion, table: SpanTable, shared: Indices) -> Matrix:
    """How much of each span is in the question."""
    groups = np.zeros((len(table.keys), 3), np.float32)
    modifiers = frozenset(stem(word) for word in question.asks.modifiers)
    for group in set(table.group[(shared > 0) | (table.first < 0)].tolist()):  # the others share no word with it
        key = table.keys[group]
        groups[group] = (
            f" {key} " in question.key,
            any(key == name or within(key, name) or within(name, key) for name in question.names),
            not modifiers.isdisjoint(content_terms(key)),
        )
    share, (in_question, is_name, has_modifier) = shared / np.maximum(table.content, 1), groups[table.group].T
    return np.stack([share, np.maximum(share >= 1, in_question), shared > 0, is_name, has_modifier], axis=1)
