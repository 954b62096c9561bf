"""The clauses of a sentence that tells of several things: "A was born in Rome and B in Oslo" tells of B in its second
one, which goes on from "was born". What fits a question is in the clause with most of its words."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .features import ParsedQuestion, SpanTable
from .spans import DATE, NUMBER, QUANTITY, TITLE, VERBS, YEAR, Span, relation_term, relation_terms

_MOST = 20  # clauses; what has more is a list
_NAME = r"[A-Z][\w’'-]*(?: [A-Z][\w’'-]*){0,5}"
_JOINT = re.compile(rf"[,;]? (?:and|but|while|whereas) |; |, (?=th(?:at|ose) of\b)| (?={_NAME}, (?:who|the|an?) )")
_OWN_SUBJECT = re.compile(rf"(?:the |an? )?{_NAME}|th(?:at|ose) (?=of )|\w+[_.-][\w.-]*\w")
_MARK = re.compile(r"\b(?:an?|the|in|on|at|of|as|by|for|from|to|with|under|until|since)\b")
_PREDICATE = re.compile(rf"(?:he|she|it|they|then|later|also|\w+ed|\w*[^\Ws]s|{'|'.join(VERBS)})\b")
_IS_A = re.compile(r"(?:is|are|was|were) (?:an?|the) ")
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|had|does|did|do|will|can|may|must)\b")


class Clause(NamedTuple):
    """Where it is in the sentence, where the part of the one before it ends that it goes on from (0 if it is complete),
    whether the subject is its own, and its words behind those that it goes on from."""

    start: int
    end: int
    shared: int
    is_own: bool
    text: str

    def has(self, span: Span) -> bool:
        """Whether a span is in the clause, or in what it goes on from."""
        return self.start <= span.start < self.end or (span.end <= self.shared and not self.is_own)


@lru_cache(maxsize=1024)
def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a sentence; names that are only listed are in the clause before them, or behind them at first."""
    starts, ends = [0], list[int]()
    for joint in _JOINT.finditer(text):
        if len(ends) == _MOST:
            return (Clause(0, len(text), 0, True, text),)
        above = text[: joint.start()]
        is_inside = joint[0] == " " and above.split()[-1][0].isupper()  # a name
        if not is_inside and (ends or re.search(r"\b[a-z]", above)):
            ends.append(joint.start())
            starts.append(joint.end())
    ends.append(len(text))
    found = [Clause(0, ends[0], 0, True, text[: ends[0]])]
    for start, end in zip(starts[1:], ends[1:], strict=True):
        said, last = text[start:end], found[-1]
        own = _OWN_SUBJECT.match(said)
        shared = _shared(text[: last.end], said[own.end() :] if own else said, own is not None)
        if shared is None or not re.search(r"\b[a-z]", said):
            found[-1] = last._replace(end=end, text=f"{last.text}{text[last.end : end]}")
            continue
        words = [word for word in text[:shared].split() if not own or word[0].islower()]
        found.append(Clause(start, end, shared, own is not None, " ".join([*words, said])))
    return tuple(found)


def _shared(before: str, rest: str, is_own: bool) -> int | None:
    """Where the part of the sentence ends that the rest of a clause, behind its own subject, goes on from; None if it
    is no clause but the end of a list: "stars Ann and Tom as children"."""
    mark = _MARK.match(rest.lstrip())
    if _VERB.search(rest) if mark else is_own and re.match(r",? [a-z]", rest):
        return 0
    first = re.match(r" ?([a-z]\w*)", rest)
    if first and (there := re.search(rf"\b{first[1]}\b", before)):
        return there.start()
    if mark or is_own or not _PREDICATE.match(rest):
        return None
    words = re.finditer(r"\b[a-z]\w*", before)
    subject = next((word.start() for word in words if _VERB.match(word[0]) or relation_term(word[0])), 0)
    # What the subject is, is so in all clauses; and "it" may be anything before.
    return len(before) if _IS_A.match(before, subject) or re.search(r"\b(?:it|him|her|them)\b", rest) else subject


def misplaced(question: ParsedQuestion, table: SpanTable) -> NDArray[np.bool_]:
    """Which spans stand in clauses with fewer words of the question than the clauses of another span of their kind."""
    asked, found = question.named | question.relation, np.zeros(len(table.spans), bool)
    for n, (_, sentence) in enumerate(table.sentences):
        if len(parts := clauses(sentence.text)) > 1:
            first, last = np.searchsorted(table.sentence, (n, n + 1))
            told = [(part, relation_terms(part.text) & asked) for part in parts]
            rivals = defaultdict[str, set[frozenset[str]]](set)
            said = dict[int, list[frozenset[str]]]()
            for row in (row for row in range(first, last) if table.spans[row].kind != TITLE):
                said[row] = [terms for part, terms in told if part.has(table.spans[row])]
                if f" {table.keys[table.group[row]]} " not in question.key:
                    rivals[_kind(table.spans[row])].update(said[row])
            for row, own in said.items():
                found[row] = all(any(mine < terms for terms in rivals[_kind(table.spans[row])]) for mine in own)
    return found


def _kind(span: Span) -> str:
    return {YEAR: DATE, QUANTITY: NUMBER}.get(span.kind, span.kind)
