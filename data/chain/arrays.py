"""Operations on words as numbers: their hashes, and where names are among them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .reading import LONGEST_NAME, Words

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_FACTORS = np.random.default_rng(20).integers(1, 2**63, LONGEST_NAME, np.uint64) | np.uint64(1)
_MARKS = 4096


def hash_names(names: Words) -> Hashes:
    """The hashes of names, rows of words without flags that end in zeros: multilinear modulo 2^64."""
    found: Hashes = (names.astype(np.uint64) * _FACTORS[: names.shape[-1]]).sum(axis=-1, dtype=np.uint64)
    return found


def place_numbers(documents: Hashes, anchors: Hashes) -> Hashes:
    """The numbers of places in documents, that of a document for the anchor 0."""
    found: Hashes = documents + anchors * _FACTORS[1]
    return found


def hash_runs(words: Words, longest: int) -> list[Hashes]:
    """For each length from 1, the hashes of the runs of words without flags that start at each word."""
    padded = np.concatenate([words, np.zeros(longest, np.uint32)]).astype(np.uint64)
    total = np.zeros(len(words), np.uint64)
    found = []
    for at in range(longest):
        total = total + padded[at : at + len(words)] * _FACTORS[at]
        found.append(total)
    return found


def counted(names: Hashes) -> tuple[Hashes, Ints]:
    """The distinct names, in order, and how often each occurs."""
    return np.unique(names, return_counts=True)


def occurrences(names: Hashes, among: tuple[Hashes, Ints]) -> Floats:
    """How often each name is among `counted` ones, at least 1."""
    distinct, counts = among
    if not len(distinct):
        return np.ones(len(names))
    at = np.minimum(np.searchsorted(distinct, names), len(distinct) - 1)
    return np.where(distinct[at] == names, counts[at], 1.0)


def locate(values: Words, keys: Words, order: Ints) -> tuple[Ints, Ints]:
    """The places of values that are among the keys, and which key each is.

    Args:
        order: The order that sorts the keys, which are distinct.
    """
    places = _likely(values, keys)
    if not len(places):
        return places, places
    which = order[np.minimum(np.searchsorted(keys, values[places], sorter=order), len(keys) - 1)]
    right = keys[which] == values[places]
    return places[right], which[right]


def find_names(names: Words, words: Words) -> tuple[Ints, Ints]:
    """The occurrences of names (rows that end in zeros, or are zero) among words, both without flags: which, where."""
    first = names[:, 0]
    rows = first.argsort(kind="stable")
    rows = rows[len(rows) - np.count_nonzero(first) :]
    first = first[rows]
    places = _likely(words, first)
    values = words[places]
    low = first.searchsorted(values)
    count = first.searchsorted(values, "right") - low
    which, place = rows[spread(low, count)], places.repeat(count)
    end = len(words) - 1
    for at in range(1, LONGEST_NAME):
        wanted = names[which, at]
        if not wanted.any():
            break
        after = place + at
        same = (wanted == 0) | ((words[np.minimum(after, end)] == wanted) & (after <= end))
        which, place = which[same], place[same]
    return which, place


def _likely(values: Words, keys: Words) -> Ints:
    """The places of values that may be among the keys: a test that is fast for many values and few keys."""
    marked = np.zeros(_MARKS, bool)
    marked[keys & (_MARKS - 1)] = True
    found: Ints = marked[values & (_MARKS - 1)].nonzero()[0]
    return found


def spread(first: Ints, count: Ints) -> Ints:
    """The numbers from each ``first``, ``count`` of them, one after another."""
    ends = count.cumsum()
    found: Ints = np.arange(ends[-1] if len(ends) else 0) + (first - ends + count).repeat(count)
    return found


def spanned(words: Words, spans: Ints) -> Words:
    """The words of spans (start, end) as rows that end in zeros, shape (spans, `LONGEST_NAME`)."""
    at = spans[:, :1] + np.arange(LONGEST_NAME)
    found: Words = np.where(at < spans[:, 1:], words[np.minimum(at, max(len(words) - 1, 0))], 0).astype(np.uint32)
    return found
