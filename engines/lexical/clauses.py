"""The clauses of a sentence that tells of several things: "A was born in Rome and B in Oslo" tells of B in its second
one, which goes on from "was born". What fits a question is in the clause with most of its words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .features import ParsedQuestion, SpanTable
from .spans import DATE, NUMBER, QUANTITY, TITLE, YEAR, Span, relation_term, relation_terms

_JOINT = re.compile(r"[,;]? (?:and|but|while|whereas) |; |, (?=th(?:at|ose) of\b)")
_OWN_SUBJECT = re.compile(r"(?:the |an? )?[A-Z][\w’'-]*(?: [A-Z][\w’'-]*)*|th(?:at|ose) (?=of )|\w+[_.-][\w.-]*\w")
_MARK = re.compile(r"\b(?:an?|the|in|on|at|of|as|by|for|from|to|with|under|until|since)\b")
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|had|does|did|do|will|can|may|must)\b")


class Clause(NamedTuple):
    """Where it is in the sentence, where the part of the one before it ends that it goes on from (0 if it is complete),
    whether the subject is its own, and its terms with those that it goes on from."""

    start: int
    end: int
    shared: int
    is_own: bool
    terms: frozenset[str]

    def has(self, span: Span) -> bool:
        """Whether a span is in the clause, or in what it goes on from."""
        return self.start <= span.start < self.end or (span.end <= self.shared and not self.is_own)


@lru_cache(maxsize=1024)
def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a sentence; names that are only listed are in the clause before them, or behind them at first."""
    starts, ends = [0], list[int]()
    for joint in _JOINT.finditer(text):
        if ends or re.search(r"\b[a-z]", text[: joint.start()]):
            ends.append(joint.start())
            starts.append(joint.end())
    ends.append(len(text))
    found = list[Clause]()
    for start, end in zip(starts, ends, strict=True):
        said = text[start:end]
        own = _OWN_SUBJECT.match(said)
        shared = (
            0 if not found else _shared(text[: found[-1].end], found[0].start, said[own.end() :] if own else said, own)
        )
        if found and (shared is None or not re.search(r"\b[a-z]", said)):
            last = found.pop()
            found.append(last._replace(end=end, terms=last.terms | relation_terms(said)))
            continue
        above = text[found[0].start : shared] if found else ""
        if own:
            above = " ".join(word for word in above.split() if word[0].islower())
        found.append(Clause(start, end, shared or 0, own is not None, relation_terms(said) | relation_terms(above)))
    return tuple(found)


def _shared(before: str, start: int, rest: str, own: re.Match[str] | None) -> int | None:
    """Where the part of the sentence ends that the rest of a clause, behind its own subject, goes on from; None if it
    is no clause but the end of a list: "stars Ann and Tom as children"."""
    mark = _MARK.match(rest.lstrip())
    if _VERB.search(rest) if mark else own and re.match(r" [a-z]", rest):
        return 0
    if mark or own:
        there = re.compile(rf"\b{mark[0]}\b").search(before, start) if mark else None
        return there.start() if there else None
    subject = (word.start() for word in re.finditer(r"\b[a-z]\w*", before[start:]) if relation_term(word[0]))
    verb = _VERB.search(before, start)
    return min([start + next(subject, 0), *([verb.start()] if verb else [])])


def misplaced(question: ParsedQuestion, table: SpanTable) -> NDArray[np.bool_]:
    """Which spans stand in clauses with fewer words of the question than the clauses of another span of their kind."""
    asked, found = question.named | question.relation, np.zeros(len(table.spans), bool)
    for n, (_, sentence) in enumerate(table.sentences):
        if len(parts := clauses(sentence.text)) > 1:
            first, last = np.searchsorted(table.sentence, (n, n + 1))
            rows = [row for row in range(first, last) if table.spans[row].kind != TITLE]
            said = {row: [part.terms & asked for part in parts if part.has(table.spans[row])] for row in rows}
            for row in rows:
                kind = _kind(table.spans[row])
                rivals = {
                    terms
                    for other in rows
                    if _kind(table.spans[other]) == kind and f" {table.keys[table.group[other]]} " not in question.key
                    for terms in said[other]
                }
                found[row] = all(any(own < terms for terms in rivals) for own in said[row])
    return found


def _kind(span: Span) -> str:
    return {YEAR: DATE, QUANTITY: NUMBER}.get(span.kind, span.kind)
