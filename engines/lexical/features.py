"""The features of candidate spans as answers to a question: one row of numbers per span.

They describe the question (`answer_type`), the span and its neighbors (`span_table`), its sentence and passage against
the question's words and names, and the span against them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...data.text import bare_title, content_terms, stem, title_key
from .prompt import ParsedPassage
from .question import ANSWER_KINDS, AnswerType, answer_type, mask
from .span_table import SPAN_FEATURES, Indices, Matrix, SpanTable, Vector
from .vocabulary import FAMILIES, relation_term, relation_terms

_QUESTION = (
    *(f"asks {kind}" for kind in ANSWER_KINDS), "asks birth", "asks death", "asks a family", "has names", "short",
)  # fmt: skip
_SENTENCE = (
    "sentence relation", "sentence names", "sentence both", "sentence relation/best", "sentence names/best",
    "sentence both/best", "best sentence", "sentence before/best", "first sentence", "place in passage",
    "sentence mentions a name", "sentence has head",
)  # fmt: skip
_PASSAGE = (
    "passage about a name", "passage in question", "passage is linked", "passage links", "passage covers",
    "passage covers/best", "passage adds", "first passage", "passages", "passage opens with head",
)  # fmt: skip
_SPAN = (
    "relation left", "relation right", "names left", "names right", "any near left", "any near right",
    "family near left", "family near right", "head near left", "head near right", "head inside", "head last",
    "overlap", "all in question", "some in question", "is a name", "modifier inside", "is its passage", "is a passage",
    "its passage opens with head", "its passage is about a name", "mentions", "passages with it",
)  # fmt: skip
FEATURES = (*SPAN_FEATURES, *_QUESTION, *_SENTENCE, *_PASSAGE, *_SPAN)

UNSEEN = 2.0  # weight of a term of the question that no sentence has
FADES = 0.75  # factor of a word's weight per word of distance


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
    return ParsedQuestion(
        asks, tuple(title_key(bare_title(name)) for name in names), tuple(title_key(name) for name in names), named,
        relation_terms(re.sub(r"@\d+", " ", masked.text)) - named, relation_term(asks.head) if asks.head else "",
        f" {title_key(text)} ", len(text.split()),
    )  # fmt: skip


def features(question: ParsedQuestion, table: SpanTable) -> Matrix:
    """One row per span of the table, in the order of `FEATURES`."""
    rows = np.zeros((len(table.texts), len(FEATURES)), np.float32)
    if len(rows):
        names = list(zip(question.names, question.titles, strict=True))
        certainty = [max((about(passage, *name) for name in names), default=0.0) for passage in table.passages]
        certainties = np.array(certainty, np.float32)
        parts = (
            table.features,
            _question_features(question),
            _sentence_features(question, table)[table.sentence],
            _passage_features(question, table, certainties)[table.passage],
            _span_features(question, table, certainties),
        )
        at = 0
        for part in parts:
            rows[:, at : at + part.shape[-1]] = part
            at += part.shape[-1]
    return rows


def _question_features(question: ParsedQuestion) -> Vector:
    row = np.zeros(len(_QUESTION), np.float32)
    row[ANSWER_KINDS.index(question.asks.kind)] = 1
    row[len(ANSWER_KINDS) :] = (
        "birth" in question.relation, "death" in question.relation, bool(question.relation & FAMILIES),
        bool(question.names), question.words < 9,
    )  # fmt: skip
    return row


def _sentence_features(question: ParsedQuestion, table: SpanTable) -> Matrix:
    relation, named = _worths(question.relation, table), _worths(question.named, table)
    both = relation + named
    before = np.concatenate([[0.0], both[:-1]]) * (table.place > 0)
    mentioned = [any(f" {name} " in sentence.key for name in question.names) for _, sentence in table.sentences]
    all_relation, all_named = _worth(question.relation, table), _worth(question.named, table)
    return np.stack([
        relation / (all_relation or 1), named / (all_named or 1), both / ((all_relation + all_named) or 1),
        relation / _best(relation), named / _best(named), both / _best(both), both >= both.max() - 1e-6,
        before / _best(both), table.place == 0, np.minimum(table.place / 8, 1.5), np.array(mentioned),
        np.array([question.head in row.where for row in table.rows]),
    ], axis=1).astype(np.float32)  # fmt: skip


def _passage_features(question: ParsedQuestion, table: SpanTable, certainty: Vector) -> Matrix:
    terms, size = question.relation | question.named, len(table.passages)
    covers = np.array([_worth(terms & found, table) for found in table.passage_terms])
    known = frozenset[str]().union(
        *(found for found, a in zip(table.passage_terms, certainty, strict=True) if a >= 0.7)
    )
    adds = np.array([_worth((terms & found) - known, table) for found in table.passage_terms])
    asked_for = np.array(
        [any(f" {name} " in question.key for name in p.names if len(name) > 2) for p in table.passages]
    )
    starts = np.maximum(certainty, asked_for)
    everything = _worth(terms, table) or 1
    return np.stack([
        certainty, asked_for, (table.links * starts[:, None]).max(axis=0), (table.links * starts).max(axis=1),
        covers / everything, covers / _best(covers), adds / everything, np.arange(size) == 0,
        np.full(size, min(size, 10) / 5), np.array([question.head in opening for opening in table.opening]),
    ], axis=1).astype(np.float32)  # fmt: skip


def _worth(terms: frozenset[str], table: SpanTable) -> float:
    return math.fsum(table.weight.get(term, UNSEEN) for term in terms)


def _worths(terms: frozenset[str], table: SpanTable) -> Vector:
    """The total weight of the terms in each sentence."""
    return np.array(
        [math.fsum(table.weight[term] for term in terms if term in known) for known in table.terms], np.float32
    )


def _best(values: Vector) -> float:
    return float(values.max()) or 1.0


def about(passage: ParsedPassage, name: str, title: str) -> float:
    """The certainty that a passage is about the bearer of a name; both are title keys, ``name`` without parentheses."""
    if title in passage.names[:1]:
        return 1.0
    if name in passage.names:
        asked_for, had = set(title.split()), set(passage.names[0].split())
        return 0.9 if asked_for <= had or had <= asked_for else 0.4  # "Solaris (1972 film)" for "Solaris (2002 film)"
    own = passage.names[1] if len(passage.names) > 1 else (passage.names[0] if passage.names else "")
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
    passages = np.zeros((len(table.groups), 3), np.float32)
    for group, numbers in table.entitled.items():
        passages[group] = 1, any(question.head in table.opening[n] for n in numbers), max(certainty[n] for n in numbers)
    counts = np.log(np.stack([table.mentions, table.passage_mentions], axis=1))
    return np.concatenate([
        near, _overlap(question, table, shared), table.is_own[:, None], passages[table.group], counts[table.group],
    ], axis=1)  # fmt: skip


def _nearness(question: ParsedQuestion, table: SpanTable) -> tuple[Matrix, Indices]:
    """How near the question's words are to each span, and how many are in it."""
    terms = question.relation | question.named | ({question.head} if question.head else set())
    width = max((row.words for row in table.rows), default=0) + 5
    # Words start at column 2, so that there are columns left of the first and right of the last.
    worth = np.zeros((2, len(table.sentences), width), np.float64)
    is_any, is_family, is_head = (np.zeros((len(table.sentences), width), bool) for _ in range(3))
    for n, row in enumerate(table.rows):
        for term in terms & row.where.keys():
            at = [position + 2 for position in row.where[term]]
            if term in question.relation or term in question.named:
                worth[0 if term in question.relation else 1, n, at] = table.weight[term]
                is_any[n, at] = True
                is_family[n, at] = term in question.relation and term in FAMILIES
            is_head[n, at] = term == question.head
    worth /= worth.max() or 1.0
    fades = FADES ** np.arange(width)
    from_left = np.cumsum(worth / fades, axis=2) * fades
    from_right = np.cumsum((worth * fades)[:, :, ::-1], axis=2)[:, :, ::-1] / fades
    sentence, left, right = table.sentence, table.first + 1, table.last + 3
    outside = table.first < 0  # a title
    right = np.where(outside, 0, right)
    left = np.where(outside, 0, left)
    columns = [
        from_left[0][sentence, left],
        from_right[0][sentence, right],
        from_left[1][sentence, left],
        from_right[1][sentence, right],
    ]
    for flags in (is_any, is_family, is_head):
        columns += [_nearest(flags)[sentence, left], _nearest(flags[:, ::-1])[sentence, width - 1 - right]]
    heads = np.cumsum(is_head, axis=1)
    columns += [(heads[sentence, right - 1] > heads[sentence, left]), is_head[sentence, right - 1]]
    near = np.stack(columns, axis=1)
    near[outside] = 0
    inside = np.cumsum(is_any, axis=1)
    return near.astype(np.float32), np.where(outside, 0, inside[sentence, right - 1] - inside[sentence, left])


def _nearest(flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How near the last flag is at each place: 1 at the place itself, 1/2 three words further."""
    places = np.arange(flags.shape[1])
    last = np.maximum.accumulate(np.where(flags, places, -1000), axis=1)
    near: NDArray[np.float64] = 1 / (1 + (places - last) / 3)
    return near


def _overlap(question: ParsedQuestion, table: SpanTable, shared: Indices) -> Matrix:
    """How much of each span is in the question."""
    out = np.zeros((len(table.groups), 3), np.float32)
    modifiers = frozenset(stem(word) for word in question.asks.modifiers)
    for group in np.unique(table.group[(shared > 0) | (table.first < 0)]).tolist():  # the others share no word with it
        key = table.keys[group]
        out[group] = (
            f" {key} " in question.key,
            any(key == name or within(key, name) or within(name, key) for name in question.names),
            bool(modifiers) and not modifiers.isdisjoint(content_terms(key)),
        )
    share = shared / np.maximum(table.content, 1)
    whole = np.maximum(share >= 1, out[table.group, 0])
    return np.stack([share, whole, shared > 0, out[table.group, 1], out[table.group, 2]], axis=1).astype(np.float32)
