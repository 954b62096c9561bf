"""The features of passages as the next one of a chain, and of the end of the chain.

The passages of a prompt are a small collection. The chain retriever's graph reads it as it reads an index: which
passages the question names, which of its words a passage explains, how two passages are tied. Further features are the
retriever's order, and the sub-questions with the answers that the chosen passages give.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from operator import mul
from typing import NamedTuple

from ...data.chain import ChainRetriever, ChainWeights
from ...data.chain.features import NameKey
from ...data.chain.graph import Edge, Node, Relation
from ...data.passages import Passage
from ...data.pool import PassagePool
from ...data.references import references
from ...data.text import bare_title, content_terms, title_key
from .hops import fill_references, resolve
from .prompt import ParsedPassage
from .question import answer_type, mask

_WEIGHTS = ChainWeights()
_ASKED = 0.4  # weight of a tie by a name that the question has itself
_NO_TIES = (0.0, 0.0, 0.0)
_JOINT = re.compile(r"\b(?:both|same|or|in common)\b")
_TITLE_RARITY = 1 / 3  # of `ChainWeights.rarity`: a title in the question is hardly there by chance


class ExtensionFeatures(NamedTuple):
    """The features of a passage as the next one. Shares of the question are weighted by IDF among the passages unless
    noted; words that a chosen passage explains count less."""

    rank: float  # log of its rank among all passages, from 1
    ahead: float  # log of 1 + the number of passages before it that are not chosen
    bm25: float  # its BM25 score, as a share of the best
    cover: float  # the share of the question that it explains
    sentence: float  # the same for its best sentence, with the title
    opening: float  # the same for its first sentence, without the title
    words: float  # the unweighted share of the question's words that it has and no chosen passage has
    named: float  # how specific its title is, if the question has it
    whole: float  # that title is all of a name in the question: "Lawson" is not in "James Lawson"
    taken: float  # as `named`, where the title of a chosen passage is at that place
    link: float  # how strongly a chosen passage mentions it
    back: float  # how strongly it mentions a chosen passage
    shared: float  # how strongly it shares a name with a chosen passage that the question does not have
    both: float  # the lesser of `link` and `back`
    tied: float  # `cover` times the strongest of these ties
    answer: float  # its title is the answer to a sub-question that another one refers to, by the chosen passages
    part: float  # its title is part of such an answer, or the answer part of the title
    step: float  # how much more of a sub-question, with answers filled in, it explains than the chosen passages do
    step_share: float  # how much of a sub-question it explains
    copy: float  # it repeats a chosen passage


class StopFeatures(NamedTuple):
    """The features of the end of a chain; its hops are the number of sub-questions, at least 2."""

    always: float  # 1
    alone: float  # one passage is chosen
    single: float  # one passage is chosen, and there is at most one sub-question
    short: float  # three hops, and fewer passages
    pairs: float  # more hops, and fewer than four passages: most ask about two sides each
    beyond: float  # the number of passages beyond the hops
    left: float  # the share of the question that the chosen passages do not explain
    length: float  # log of 1 + the number of the question's words
    names: float  # the number of names in the question
    closed: float  # it is a yes/no question
    joint: float  # it asks for what two have in common


def weighted_sum(features: ExtensionFeatures | StopFeatures, weights: ExtensionFeatures | StopFeatures) -> float:
    return math.fsum(map(mul, features, weights))


def rarity(frequency: int, size: int) -> float:
    """BM25's inverse document frequency."""
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


class ChainFeatures:
    """Computes features for a question and its candidate passages. They depend on which passages are chosen, not on
    their order.

    Args:
        question: The question.
        sub_questions: In order; may be empty.
        passages: In the order of the retriever, with distinct numbers.
    """

    def __init__(self, question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> None:
        self.question, self.steps, self.passages = question, tuple(sub_questions), tuple(passages)
        pool = [Passage.of(p.title, sentences=[s.text for s in p.sentences], id=p.number) for p in passages]
        self.graph = ChainRetriever(PassagePool(pool)).graph(question)
        found = [*self.graph.start(), *self.graph.beyond(len(pool))]
        self.candidates = {candidate.id: candidate for candidate in found}
        self._bearers = Counter(name for one in found for name, _ in one.features.names)
        self._names = {title_key(form) for name in mask(question).names for form in (name, bare_title(name))}
        self._ties: dict[str, dict[str, tuple[float, float, float]]] = {}
        self._shares: dict[tuple[str, str], float] = {}
        self._rarity: dict[str, float] = {}
        self._last: tuple[frozenset[str], _Chosen] | None = None
        self._size = len(set(content_terms(question)))

    def of_passages(self, chosen: Collection[ParsedPassage]) -> list[tuple[ParsedPassage, ExtensionFeatures]]:
        """The features of each passage that is not chosen, in order."""
        state = self._state(chosen)
        rest = [(rank, passage) for rank, passage in enumerate(self.passages, 1) if passage not in state.passages]
        return [(passage, self._of(passage, rank, ahead, state)) for ahead, (rank, passage) in enumerate(rest)]

    def of_stop(self, chosen: Collection[ParsedPassage]) -> StopFeatures:
        """The features of the end of the chain."""
        size, hops = len(chosen), max(len(self.steps), 2)
        return StopFeatures(
            always=1.0,
            alone=float(size == 1),
            single=float(size == 1 and len(self.steps) < 2),
            short=float(hops == 3 > size),
            pairs=float(hops > 3 and size < 4),
            beyond=float(max(size - hops, 0)),
            left=self._state(chosen).worth(self.graph.question.all_words),
            length=math.log(1 + self._size),
            names=float(len(mask(self.question).names)),
            closed=float(answer_type(self.question).kind == "yes/no"),
            joint=float(bool(_JOINT.search(self.question))),
        )

    def _state(self, chosen: Collection[ParsedPassage]) -> _Chosen:
        numbers = frozenset(passage.number for passage in chosen)
        last = self._last  # another thread may replace it
        if last is None or last[0] != numbers:
            last = self._last = numbers, _Chosen(self, [each for each in self.passages if each.number in numbers])
        return last[1]

    def _of(self, passage: ParsedPassage, rank: int, ahead: int, state: _Chosen) -> ExtensionFeatures:
        candidate, worth, question = self.candidates[passage.number], state.worth, self.graph.question
        link, back, shared = state.ties.get(passage.number, _NO_TIES)
        cover = worth(candidate.mask)
        named, is_taken = self._named(candidate), False
        if candidate.title_match:
            first, last = candidate.title_match.span
            is_taken = any(first < end and start < last for start, end in state.taken)
        steps = [(self.share(step, passage), had) for step, had in state.steps]
        sentences = candidate.features.sentences
        keys = [f" {key} " for key in passage.names]
        return ExtensionFeatures(
            rank=math.log(rank),
            ahead=math.log(1 + ahead),
            bm25=candidate.bm25,
            cover=cover,
            sentence=max(map(worth, candidate.sentences)),
            opening=worth(question.mask(sentences[0][1])) if sentences else 0.0,
            words=(candidate.mask & ~state.mask).bit_count() / max(question.all_words.bit_count(), 1),
            named=0.0 if is_taken else named,
            whole=float(bool(named) and not is_taken and not self._names.isdisjoint(passage.names[:2])),
            taken=named if is_taken else 0.0,
            link=link,
            back=back,
            shared=shared,
            both=min(link, back),
            tied=cover * max(link, back, shared),
            answer=float(any(answer == key for answer in state.answers for key in keys)),
            part=float(any(answer in key or key in answer for answer in state.answers for key in keys)),
            step=max([0.0, *(share - had for share, had in steps)]),
            step_share=max((share for share, _ in steps), default=0.0),
            copy=float(passage.number in state.copies),
        )

    def _named(self, candidate: Node) -> float:
        if candidate.title_match is None:
            return 0.0
        name = candidate.title_match.name
        return candidate.title_match.certainty * self._specificity(name, _TITLE_RARITY) * self._clarity(name)

    def _specificity(self, name: NameKey, scale: float = 1.0) -> float:
        found = self.graph.question.rarity(name)
        return found / (found + scale * _WEIGHTS.rarity) if found else 0.0

    def _clarity(self, name: NameKey) -> float:
        """Below 1 where several passages bear a name."""
        return float(max(self._bearers[name], 1) ** -_WEIGHTS.ambiguity)

    def share(self, step: str, passage: ParsedPassage) -> float:
        """The share of a sub-question in the title and one sentence of a passage."""
        if (found := self._shares.get((step, passage.number))) is None:
            terms = frozenset(content_terms(step))
            had = [self._worth(terms & (sentence.terms | passage.title_terms)) for sentence in passage.sentences]
            found = self._shares[step, passage.number] = max(had, default=0.0) / (self._worth(terms) or 1.0)
        return found

    def _worth(self, terms: frozenset[str]) -> float:
        for term in terms - self._rarity.keys():
            self._rarity[term] = rarity(sum(term in passage.terms for passage in self.passages), len(self.passages))
        return math.fsum(self._rarity[term] for term in terms)

    def is_needed(self, number: int) -> bool:
        """Whether another sub-question refers to a sub-question, counted from 1."""
        return any(number in references(step) for step in self.steps)

    def ties(self, one: Node) -> dict[str, tuple[float, float, float]]:
        """How strongly a passage links to, is linked from, and shares a name with each other one, by number."""
        if (found := self._ties.get(one.id)) is None:
            each = {id: self.graph.edges(one, other) for id, other in self.candidates.items() if other is not one}
            sharing = Counter(tie.name for ties in each.values() for tie in ties if tie.relation is Relation.shared)
            found = self._ties[one.id] = {id: self._strongest(ties, sharing) for id, ties in each.items() if ties}
        return found

    def _strongest(self, ties: Sequence[Edge], sharing: Counter[NameKey]) -> tuple[float, float, float]:
        strength = {Relation.link: 0.0, Relation.back: 0.0, Relation.shared: 0.0}
        for tie in ties:
            value = tie.certainty * self._specificity(tie.name) * (_ASKED if tie.in_question else 1.0)
            if tie.relation is Relation.shared:
                value *= float(sharing[tie.name] ** -_WEIGHTS.ambiguity) * (_WEIGHTS.in_title if tie.in_title else 1.0)
            else:
                value *= self._clarity(tie.name) * (1 + _WEIGHTS.cue * self.graph.question.weights(tie.cue))
            strength[tie.relation] = max(strength[tie.relation], value)
        return strength[Relation.link], strength[Relation.back], strength[Relation.shared]


class _Chosen:
    """What the features need to know about the chosen passages, which are in the order of all passages."""

    def __init__(self, features: ChainFeatures, chosen: Sequence[ParsedPassage]) -> None:
        self.passages = chosen
        candidates = [features.candidates[passage.number] for passage in chosen]
        self.worth, self.mask = features.graph.question.weights, 0
        self.ties: dict[str, tuple[float, float, float]] = {}
        for one in candidates:
            self.worth = self.worth.after(one.mask, _WEIGHTS.explained)
            self.mask |= one.mask
            for number, ties in features.ties(one).items():
                link, back, shared = map(max, ties, self.ties.get(number, _NO_TIES))
                self.ties[number] = link, back, shared
        self.taken = [one.title_match.span for one in candidates if one.title_match]
        self.copies = {
            other.id
            for one in candidates
            for other in features.candidates.values()
            if not other.mask & ~one.mask and one.features.copies(other.features)
        }
        answers = resolve(features.steps, chosen) if chosen else []
        needed = [answer for n, answer in enumerate(answers, 1) if features.is_needed(n) and answer.text]
        self.answers = [f" {title_key(answer.text)} " for answer in needed]
        steps = [fill_references(step, answers) for step in features.steps]
        self.steps = [(step, max((features.share(step, each) for each in chosen), default=0.0)) for step in steps]
