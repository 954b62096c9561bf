"""The forms in which other texts mention a title."""

from __future__ import annotations

import numpy as np

from .arrays import Ints, hash_names, spanned
from .reading import FORM_BITS, LONGEST_NAME, STEM_BITS, TOPIC, Words, read, without_flags
from .store import Records, Store

# Forms of a title: whole, without disambiguation, short, the file's name, to the first comma, without article, first
# and last name.
FORMS = 7
CERTAINTY = np.array([1.0, 0.9, 0.9, 0.8, 0.6, 0.6, 0.6])  # that a form means the passage
_ARTICLES = np.array([word.numbers[0] >> FORM_BITS for word in read("the a an")], np.uint32)
TOPIC_WORD = TOPIC << (STEM_BITS - FORM_BITS)  # the least number of a topic word, without flags


def title_forms(words: Words, starts: Ints, records: Records) -> Words:
    """The forms in which other texts may mention titles, shape (passages, forms, words); unused ones are zeros."""
    whole, bare, comma = records.titles.T
    article = (bare > 1) & np.isin(words[starts], _ARTICLES)
    person = (bare > 2) & (words[starts] >= TOPIC_WORD)
    spans = [
        (starts, whole),
        (starts, np.where(whole == bare, 0, bare)),
        (starts + records.short[:, 0], records.short[:, 1] - records.short[:, 0]),
        (starts + whole + 1, records.files),
        (starts, comma),
        (starts + 1, np.where(article, bare - 1, 0)),
        (starts, np.zeros_like(starts)),
    ]
    start, size = np.array(spans).transpose(1, 2, 0)
    forms = spanned(words, np.stack([start, start + size], axis=2).reshape(-1, 2)).reshape(-1, FORMS, LONGEST_NAME)
    forms[person, -1, 0] = words[starts[person]]
    forms[person, -1, 1] = words[starts[person] + bare[person] - 1]
    forms[~(forms >= TOPIC_WORD).any(axis=2)] = 0
    return forms


def title_rows(store: Store, title: str) -> list[int]:
    """The rows of the passages that may have a title, in their order; it may be another form of theirs."""
    words = without_flags(np.array([number for word in read(title) for number in word.numbers], np.uint32))
    if not len(words):
        return []
    rows, _ = store.titled(hash_names(spanned(words, np.array([[0, len(words)]]))))
    found: list[int] = np.unique(rows).tolist()
    return found
