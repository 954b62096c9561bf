"""Reads the signs of a chain from the pages of a prompt.

The pages are a small collection, which the graph of the chain retriever reads as it reads an index: where the question
names a page, what of the question a page explains, what ties two pages together. To that come the order in which the
pages were found, and the sub-questions with the answers that the chosen pages give.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence

from ...data.chain import ChainRetriever, ChainWeights
from ...data.chain.features import NameKey
from ...data.chain.graph import Edge, Node, Relation
from ...data.passages import Passage
from ...data.pool import PassagePool
from ...data.references import references
from ...data.text import bare_title, content_terms, title_key
from .asked import asked
from .gaps import put_in
from .question import mask
from .reading import Page
from .resolve import resolve
from .signs import End, Signs

_WEIGHTS = ChainWeights()
_ASKED = 0.4  # weight of a tie by a name that the question has itself
_NO_TIES = (0.0, 0.0, 0.0)
_JOINT = re.compile(r"\b(?:both|same|or|in common)\b")
_TITLE_RARITY = 1 / 3  # of `ChainWeights.rarity`: a title that stands in the question is hardly there by chance


class Judge:
    """Judges the pages among which the chain of a question is looked for. What it says depends on which pages are
    chosen, not on the order in which they were.

    Args:
        question: The question.
        sub_questions: In order; may be empty.
        pages: In the order in which they were found, with different numbers.
    """

    def __init__(self, question: str, sub_questions: Sequence[str], pages: Sequence[Page]) -> None:
        self.question, self.steps, self.pages = question, tuple(sub_questions), tuple(pages)
        passages = [Passage.of(p.title, sentences=[line.text for line in p.lines], id=p.number) for p in pages]
        self.graph = ChainRetriever(PassagePool(passages)).graph(question)
        found = [*self.graph.start(), *self.graph.beyond(len(passages))]
        self.candidates = {candidate.id: candidate for candidate in found}
        self._bearing = Counter(name for one in found for name, _ in one.features.names)
        self._names = {title_key(form) for name in mask(question).names for form in (name, bare_title(name))}
        self._ties: dict[str, dict[str, tuple[float, float, float]]] = {}
        self._shares: dict[tuple[str, str], float] = {}
        self._idf: dict[str, float] = {}
        self._last: tuple[frozenset[str], _State] | None = None
        self._size = len(set(content_terms(question)))

    def signs(self, chosen: Collection[Page]) -> list[tuple[Page, Signs]]:
        """What speaks for each page that is not chosen, in their order."""
        state = self._state(chosen)
        rest = [(rank, page) for rank, page in enumerate(self.pages, 1) if page not in state.chosen]
        return [(page, self._signs(page, rank, ahead, state)) for ahead, (rank, page) in enumerate(rest)]

    def end(self, chosen: Collection[Page]) -> End:
        """What speaks for the end of the chain."""
        size, hops = len(chosen), max(len(self.steps), 2)
        state = self._state(chosen)
        return End(
            always=1.0,
            alone=float(size == 1),
            single=float(size == 1 and len(self.steps) < 2),
            short=float(hops == 3 > size),
            pairs=float(hops > 3 and size < 4),
            beyond=float(max(size - hops, 0)),
            left=state.worth(self.graph.question.all_words),
            length=math.log(1 + self._size),
            names=float(len(mask(self.question).names)),
            closed=float(asked(self.question).kind == "yes/no"),
            joint=float(bool(_JOINT.search(self.question))),
        )

    def _state(self, chosen: Collection[Page]) -> _State:
        numbers = frozenset(page.number for page in chosen)
        last = self._last  # another thread may replace it
        if last is None or last[0] != numbers:
            last = self._last = numbers, _State(self, [page for page in self.pages if page.number in numbers])
        return last[1]

    def _signs(self, page: Page, rank: int, ahead: int, state: _State) -> Signs:
        candidate, worth, question = self.candidates[page.number], state.worth, self.graph.question
        link, back, shared = state.ties.get(page.number, (0.0, 0.0, 0.0))
        strongest = max(link, back, shared)
        cover = worth(candidate.mask)
        named, is_taken = self._named(candidate), False
        if candidate.title_match:
            first, last = candidate.title_match.span
            is_taken = any(first < end and start < last for start, end in state.taken)
        steps = [(self.share(step, page), told) for step, told in state.steps]
        step = max((share - told for share, told in steps), default=0.0)
        sentences = candidate.features.sentences
        return Signs(
            rank=math.log(rank),
            ahead=math.log(1 + ahead),
            bm25=candidate.bm25,
            cover=cover,
            sentence=max(map(worth, candidate.sentences)),
            opening=worth(question.mask(sentences[0][1])) if sentences else 0.0,
            words=(candidate.mask & ~state.mask).bit_count() / max(question.all_words.bit_count(), 1),
            named=0.0 if is_taken else named,
            whole=float(bool(named) and not is_taken and not self._names.isdisjoint(page.names[:2])),
            taken=named if is_taken else 0.0,
            link=link,
            back=back,
            shared=shared,
            both=min(link, back),
            tied=cover * strongest,
            answer=float(any(answer == f" {key} " for answer in state.answers for key in page.names)),
            part=float(any(_overlap(answer, f" {key} ") for answer in state.answers for key in page.names)),
            step=max(step, 0.0),
            step_share=max((share for share, _ in steps), default=0.0),
            copy=float(page.number in state.copies),
        )

    def _named(self, candidate: Node) -> float:
        if candidate.title_match is None:
            return 0.0
        name = candidate.title_match.name
        return candidate.title_match.certainty * self._telling(name, _TITLE_RARITY) * self._clarity(name)

    def _telling(self, name: NameKey, scale: float = 1.0) -> float:
        """How much a name says, 0 to 1."""
        rarity = self.graph.question.rarity(name)
        return rarity / (rarity + scale * _WEIGHTS.rarity) if rarity else 0.0

    def _clarity(self, name: NameKey) -> float:
        """What is left of a name where several pages bear it."""
        return float(max(self._bearing[name], 1) ** -_WEIGHTS.ambiguity)

    def share(self, step: str, page: Page) -> float:
        """The share of a sub-question that the title and one line of a page have."""
        if (found := self._shares.get((step, page.number))) is None:
            terms = frozenset(content_terms(step))
            lines = [self._worth(terms & (line.terms | page.title_terms)) for line in page.lines]
            found = self._shares[step, page.number] = max(lines, default=0.0) / (self._worth(terms) or 1.0)
        return found

    def _worth(self, terms: frozenset[str]) -> float:
        return math.fsum(map(self._term_worth, terms))

    def _term_worth(self, term: str) -> float:
        if (found := self._idf.get(term)) is None:
            frequency, size = sum(term in page.terms for page in self.pages), len(self.pages)
            found = self._idf[term] = math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))
        return found

    def is_needed(self, number: int) -> bool:
        """Whether a sub-question, counted from 1, is referred to by another."""
        return any(number in references(step) for step in self.steps)

    def ties(self, one: Node) -> dict[str, tuple[float, float, float]]:
        """How strongly a page links to, is linked from, and shares a name with each other one, by number."""
        if (found := self._ties.get(one.id)) is None:
            each = {id: self.graph.edges(one, other) for id, other in self.candidates.items() if other is not one}
            sharing = Counter(tie.name for ties in each.values() for tie in ties if tie.relation is Relation.shared)
            found = self._ties[one.id] = {id: self._strongest(ties, sharing) for id, ties in each.items() if ties}
        return found

    def _strongest(self, ties: Sequence[Edge], sharing: Counter[NameKey]) -> tuple[float, float, float]:
        strength = {Relation.link: 0.0, Relation.back: 0.0, Relation.shared: 0.0}
        for tie in ties:
            value = tie.certainty * self._telling(tie.name) * (_ASKED if tie.in_question else 1.0)
            if tie.relation is Relation.shared:
                value *= float(sharing[tie.name] ** -_WEIGHTS.ambiguity) * (_WEIGHTS.in_title if tie.in_title else 1.0)
            else:
                value *= self._clarity(tie.name) * (1 + _WEIGHTS.cue * self.graph.question.weights(tie.cue))
            strength[tie.relation] = max(strength[tie.relation], value)
        return strength[Relation.link], strength[Relation.back], strength[Relation.shared]


def _overlap(one: str, other: str) -> bool:
    """Whether one of two names, with a space on either side, stands in the other."""
    return one in other or other in one


class _State:
    """What a judge must know of the pages chosen so far, which are in the order of all pages."""

    def __init__(self, judge: Judge, chosen: Sequence[Page]) -> None:
        self.chosen = chosen
        candidates = [judge.candidates[page.number] for page in chosen]
        self.worth, self.mask = judge.graph.question.weights, 0
        self.ties: dict[str, tuple[float, float, float]] = {}
        for one in candidates:
            self.worth = self.worth.after(one.mask, _WEIGHTS.explained)
            self.mask |= one.mask
            for number, ties in judge.ties(one).items():
                link, back, shared = map(max, ties, self.ties.get(number, _NO_TIES))
                self.ties[number] = link, back, shared
        self.taken = [one.title_match.span for one in candidates if one.title_match]
        self.copies = {
            other.id
            for one in candidates
            for other in judge.candidates.values()
            if not other.mask & ~one.mask and one.features.copies(other.features)
        }
        answers = resolve(judge.steps, chosen) if chosen else []
        needed = [answer for number, answer in enumerate(answers, 1) if judge.is_needed(number) and answer.text]
        self.answers = [f" {title_key(answer.text)} " for answer in needed]
        steps = [put_in(step, answers) for step in judge.steps]
        self.steps = [(step, max((judge.share(step, page) for page in chosen), default=0.0)) for step in steps]
