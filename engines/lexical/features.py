"""What speaks for a span as the answer to a question: a row of numbers for every candidate of some pages.

Four sorts of signs: what is asked (`asked`); the span itself and the words beside it (`book`); its line and page
against the question's words and names; and the span against them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...data.text import bare_title, content_terms, stem, title_key
from .asked import KINDS, Asked, asked
from .book import SIGNS, Book, Indices, Matrix, Vector
from .question import mask
from .reading import Page
from .relations import FAMILIES, relation_term, relation_terms

_QUERY = (*(f"asks {kind}" for kind in KINDS), "asks birth", "asks death", "asks a family", "has names", "short")
_LINE = (
    "line relation", "line names", "line both", "line relation/best", "line names/best", "line both/best", "best line",
    "line before/best", "first line", "place in page", "line mentions a name", "line has head",
)  # fmt: skip
_PAGE = (
    "page about a name", "page in question", "page is linked", "page links", "page covers", "page covers/best",
    "page adds", "first page", "pages", "page opens with head",
)  # fmt: skip
_SPAN = (
    "relation left", "relation right", "names left", "names right", "any near left", "any near right",
    "family near left", "family near right", "head near left", "head near right", "head inside", "head last",
    "overlap", "all in question", "some in question", "is a name", "modifier inside", "is its page", "is a page",
    "its page opens with head", "its page is about a name", "mentions", "pages with it",
)  # fmt: skip
FEATURES = (*SIGNS, *_QUERY, *_LINE, *_PAGE, *_SPAN)

UNSEEN = 2.0  # weight of a term of the question that no line has
FADES = 0.75  # what is left of a word's nearness one word further


@dataclass(frozen=True)
class Query:
    """A question prepared.

    Attributes:
        names: Those in it and the answers that its references stand for, as title keys without parentheses.
        titles: The same with them.
        named: The terms of the names.
        relation: The terms of its other words.
        head: The term of the noun that says what is asked for; may be empty.
        key: The whole question as a key between spaces.
    """

    asked: Asked
    names: tuple[str, ...]
    titles: tuple[str, ...]
    named: frozenset[str]
    relation: frozenset[str]
    head: str
    key: str
    words: int


@lru_cache(maxsize=4096)
def query(text: str, answers: tuple[str, ...] = ()) -> Query:
    """Prepare a question in which the ``answers`` stand in for its references."""
    masked, asks = mask(text), asked(text)
    names = [name for name in (*answers, *(name.strip('"“” ') for name in masked.names)) if title_key(name)]
    named = relation_terms(" ".join(names))
    return Query(
        asks, tuple(title_key(bare_title(name)) for name in names), tuple(title_key(name) for name in names), named,
        relation_terms(re.sub(r"@\d+", " ", masked.text)) - named, relation_term(asks.head) if asks.head else "",
        f" {title_key(text)} ", len(text.split()),
    )  # fmt: skip


def features(query: Query, book: Book) -> Matrix:
    """One row for each candidate of the book, in the order of `FEATURES`."""
    rows = np.zeros((len(book.texts), len(FEATURES)), np.float32)
    if len(rows):
        about = np.array([_about(query, page) for page in book.pages], np.float32)
        parts = (
            book.signs,
            _of_query(query),
            _of_lines(query, book)[book.line],
            _of_pages(query, book, about)[book.page],
        )
        at = 0
        for part in (*parts, _of_spans(query, book, about)):
            rows[:, at : at + part.shape[-1]] = part
            at += part.shape[-1]
    return rows


def _of_query(query: Query) -> Vector:
    row = np.zeros(len(_QUERY), np.float32)
    row[KINDS.index(query.asked.kind)] = 1
    row[len(KINDS) :] = (
        "birth" in query.relation, "death" in query.relation, bool(query.relation & FAMILIES), bool(query.names),
        query.words < 9,
    )  # fmt: skip
    return row


# --- lines and pages -------------------------------------------------------------------------------------------------


def _of_lines(query: Query, book: Book) -> Matrix:
    relation, named = _worths(query.relation, book), _worths(query.named, book)
    both = relation + named
    before = np.concatenate([[0.0], both[:-1]]) * (book.place > 0)
    mentioned = [any(f" {name} " in line.key for name in query.names) for _, line in book.lines]
    all_relation, all_named = _worth(query.relation, book), _worth(query.named, book)
    return np.stack([
        relation / (all_relation or 1), named / (all_named or 1), both / ((all_relation + all_named) or 1),
        relation / _best(relation), named / _best(named), both / _best(both), both >= both.max() - 1e-6,
        before / _best(both), book.place == 0, np.minimum(book.place / 8, 1.5), np.array(mentioned),
        np.array([query.head in reading.where for reading in book.readings]),
    ], axis=1).astype(np.float32)  # fmt: skip


def _of_pages(query: Query, book: Book, about: Vector) -> Matrix:
    terms, size = query.relation | query.named, len(book.pages)
    covers = np.array([_worth(terms & found, book) for found in book.page_terms])
    known = frozenset[str]().union(*(found for found, a in zip(book.page_terms, about, strict=True) if a >= 0.7))
    adds = np.array([_worth((terms & found) - known, book) for found in book.page_terms])
    asked_for = np.array([any(f" {name} " in query.key for name in page.names if len(name) > 2) for page in book.pages])
    starts = np.maximum(about, asked_for)
    everything = _worth(terms, book) or 1
    return np.stack([
        about, asked_for, (book.links * starts[:, None]).max(axis=0), (book.links * starts).max(axis=1),
        covers / everything, covers / _best(covers), adds / everything, np.arange(size) == 0,
        np.full(size, min(size, 10) / 5), np.array([query.head in opening for opening in book.opening]),
    ], axis=1).astype(np.float32)  # fmt: skip


def _worth(terms: frozenset[str], book: Book) -> float:
    return math.fsum(book.weight.get(term, UNSEEN) for term in terms)


def _worths(terms: frozenset[str], book: Book) -> Vector:
    """The weight of those of the terms that each line has."""
    return np.array(
        [math.fsum(book.weight[term] for term in terms if term in r.where) for r in book.readings], np.float32
    )


def _best(values: Vector) -> float:
    return float(values.max()) or 1.0


def _about(query: Query, page: Page) -> float:
    """How surely a page is about one of the question's names."""
    return max((about(page, name, title) for name, title in zip(query.names, query.titles, strict=True)), default=0.0)


def about(page: Page, name: str, title: str) -> float:
    """How surely a page is about the bearer of a name; both as title keys, ``name`` without what is in parentheses."""
    if title in page.names[:1]:
        return 1.0
    if name in page.names:
        asked_for, had = set(title.split()), set(page.names[0].split())
        return 0.9 if asked_for <= had or had <= asked_for else 0.4  # "Solaris (1972 film)" for "Solaris (2002 film)"
    own = page.names[1] if len(page.names) > 1 else (page.names[0] if page.names else "")
    if own and (within(name, own) or within(own, name)):
        return 0.7
    # "Farrow" for "John Farrow", "Bjarne Stroustrup" for "B. Stroustrup"
    ours, theirs = own.split(), name.split()
    return 0.6 if len(theirs) > 1 and ours and ours[-1] == theirs[-1] and ours[0][0] == theirs[0][0] else 0.0


def within(part: str, whole: str) -> bool:
    """Whether one key stands in another, word for word."""
    return f" {part} " in f" {whole} " and bool(content_terms(part))


# --- spans -----------------------------------------------------------------------------------------------------------


def _of_spans(query: Query, book: Book, about: Vector) -> Matrix:
    near, shared = _nearness(query, book)
    pages = np.zeros((len(book.groups), 3), np.float32)
    for group, numbers in book.entitled.items():
        pages[group] = 1, any(query.head in book.opening[n] for n in numbers), max(about[n] for n in numbers)
    counts = np.log(np.stack([book.mentions, book.page_mentions], axis=1))
    return np.concatenate([
        near, _overlap(query, book, shared), book.is_own[:, None], pages[book.group], counts[book.group],
    ], axis=1)  # fmt: skip


def _nearness(query: Query, book: Book) -> tuple[Matrix, Indices]:
    """How near the question's words stand to each candidate, and how many are in it."""
    terms = query.relation | query.named | ({query.head} if query.head else set())
    width = max((reading.words for reading in book.readings), default=0) + 5
    # Words stand from column 2 on, so that what is left of the first and right of the last can be looked up.
    worth = np.zeros((2, len(book.lines), width), np.float64)
    is_any, is_family, is_head = (np.zeros((len(book.lines), width), bool) for _ in range(3))
    for n, reading in enumerate(book.readings):
        for term in terms & reading.where.keys():
            at = [position + 2 for position in reading.where[term]]
            if term in query.relation or term in query.named:
                worth[0 if term in query.relation else 1, n, at] = book.weight[term]
                is_any[n, at] = True
                is_family[n, at] = term in query.relation and term in FAMILIES
            is_head[n, at] = term == query.head
    worth /= worth.max() or 1.0
    fades = FADES ** np.arange(width)
    from_left = np.cumsum(worth / fades, axis=2) * fades
    from_right = np.cumsum((worth * fades)[:, :, ::-1], axis=2)[:, :, ::-1] / fades
    line, left, right = book.line, book.first + 1, book.last + 3
    outside = book.first < 0  # a title
    right = np.where(outside, 0, right)
    left = np.where(outside, 0, left)
    columns = [
        from_left[0][line, left],
        from_right[0][line, right],
        from_left[1][line, left],
        from_right[1][line, right],
    ]
    for flags in (is_any, is_family, is_head):
        columns += [_nearest(flags)[line, left], _nearest(flags[:, ::-1])[line, width - 1 - right]]
    heads = np.cumsum(is_head, axis=1)
    columns += [(heads[line, right - 1] > heads[line, left]), is_head[line, right - 1]]
    near = np.stack(columns, axis=1)
    near[outside] = 0
    inside = np.cumsum(is_any, axis=1)
    return near.astype(np.float32), np.where(outside, 0, inside[line, right - 1] - inside[line, left])


def _nearest(flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How near the last flag is at each place: 1 at the place itself, half of it three words further."""
    places = np.arange(flags.shape[1])
    last = np.maximum.accumulate(np.where(flags, places, -1000), axis=1)
    near: NDArray[np.float64] = 1 / (1 + (places - last) / 3)
    return near


def _overlap(query: Query, book: Book, shared: Indices) -> Matrix:
    """How much of each candidate the question says already."""
    out = np.zeros((len(book.groups), 3), np.float32)
    modifiers = frozenset(stem(word) for word in query.asked.modifiers)
    for group in np.unique(book.group[(shared > 0) | (book.first < 0)]).tolist():  # the others share no word with it
        key = book.keys[group]
        out[group] = (
            f" {key} " in query.key,
            any(key == name or within(key, name) or within(name, key) for name in query.names),
            bool(modifiers) and not modifiers.isdisjoint(content_terms(key)),
        )
    share = shared / np.maximum(book.content, 1)
    whole = np.maximum(share >= 1, out[book.group, 0])
    return np.stack([share, whole, shared > 0, out[book.group, 1], out[book.group, 2]], axis=1).astype(np.float32)
