"""The features of passages as the next one of a chain, and of the end of the chain.

The passages of a prompt are a small collection. A graph holds which passages the question names, which of its words a
passage explains, and how two passages are tied. Further features are the retriever's order, and the sub-questions with
the answers that the chosen passages give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...data.chain.arrays import Floats, counted, occurrences
from ...data.chain.graph import SHARED, Graph
from ...data.chain.question import specificity
from ...data.passages import Passage
from ...data.pool import PassagePool
from ...data.references import references
from ...data.text import bare_title, content_terms, title_key
from .hops import fill_references, resolve
from .prompt import ParsedPassage
from .question import answer_type, mask

_EXPLAINED, _RARITY, _AMBIGUITY, _IN_TITLE, _CUE = 0.56, 0.6, 0.28, 1.54, 1.98  # constants of the fit
_ASKED = 0.4  # weight of a tie by a name that the question has itself
_JOINT = re.compile(r"\b(?:both|same|or|in common)\b")
_TITLE_RARITY = 1 / 3  # of `_RARITY`: a title in the question is hardly there by chance


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


# The weights of the first passage of a chain, the next one, and its end, fitted on train questions in version 0.1.
FIRST = {
    "rank": -0.402, "ahead": -0.402, "bm25": 0.118, "cover": -3.11, "sentence": 7.38, "opening": 3.01, "words": 0.887,
    "named": 4.07, "whole": 0.636, "step": 1.17, "step_share": 1.17,
}  # fmt: skip
NEXT = {
    "rank": 0.477, "ahead": -0.921, "bm25": -0.195, "cover": -8.34, "sentence": 4.3, "opening": 3.54, "words": 4.49,
    "named": 2.57, "whole": 1.7, "taken": 2.58, "link": 1.17, "back": 0.471, "shared": 2.51, "both": -2.22,
    "tied": 2.67, "answer": 0.391, "part": 0.898, "step": 2.36, "step_share": 1.2, "copy": -5.95,
}  # fmt: skip
END = {
    "always": 6.93, "alone": -2.81, "single": -0.836, "short": -0.588, "pairs": -1.35, "beyond": 0.218, "left": -1.74,
    "length": -0.845, "names": 0.405, "closed": -0.0979, "joint": 0.781,
}  # fmt: skip


def weighted_sum(features: ExtensionFeatures | StopFeatures, weights: Mapping[str, float]) -> float:
    return math.fsum(getattr(features, name) * weight for name, weight in weights.items())


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
        self.graph = graph = Graph(question, PassagePool(pool))
        graph.start()
        graph.beyond(len(pool))
        nodes = {row: node for node, row in enumerate(graph.rows)}
        self.node = {passage.number: nodes[row] for row, passage in enumerate(self.passages)}
        self._names = {title_key(form) for name in mask(question).names for form in (name, bare_title(name))}
        self._whole = [not self._names.isdisjoint(passage.names[:2]) for passage in self.passages]
        self._titles = counted(graph.names)
        self._named = self._titles_asked()
        self._ties: dict[int, Floats] = {}
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
            left=float(self._state(chosen).weights.sum()),
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
        node = self.node[passage.number]
        link, back, shared = state.ties[:, node].tolist()
        cover, named, taken = float(state.cover[node]), float(self._named[node]), bool(state.taken[node])
        steps = [(self.share(step, passage), had) for step, had in state.steps]
        keys = [f" {key} " for key in passage.names]
        return ExtensionFeatures(
            rank=math.log(rank),
            ahead=math.log(1 + ahead),
            bm25=float(self.graph.bm25[node]),
            cover=cover,
            sentence=float(state.sentence[node]),
            opening=float(state.opening[node]),
            words=float(state.words[node]),
            named=0.0 if taken else named,
            whole=float(bool(named) and not taken and self._whole[rank - 1]),
            taken=named if taken else 0.0,
            link=link,
            back=back,
            shared=shared,
            both=min(link, back),
            tied=cover * max(link, back, shared),
            answer=float(any(answer == key for answer in state.answers for key in keys)),
            part=float(any(answer in key or key in answer for answer in state.answers for key in keys)),
            step=max([0.0, *(share - had for share, had in steps)]),
            step_share=max((share for share, _ in steps), default=0.0),
            copy=float(node in state.copies),
        )

    def _titles_asked(self) -> Floats:
        """How specific the title of each node is that the question has, 0 for the others."""
        graph = self.graph
        found = graph.match_certainty * specificity(graph.match_rarity, _TITLE_RARITY * _RARITY)
        asked = np.flatnonzero(found)
        found[asked] *= occurrences(graph.names[asked, graph.match[asked]], self._titles) ** -_AMBIGUITY
        return found

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

    def ties(self, node: int) -> Floats:
        """How strongly a node links to, is linked from, and shares a name with each other one: (relations, nodes)."""
        if (found := self._ties.get(node)) is None:
            graph, edges = self.graph, self.graph.edges(node)
            shared = edges.relation == SHARED
            strength = edges.certainty * specificity(edges.rarity, _RARITY) * np.where(edges.in_question, _ASKED, 1.0)
            bearers = np.where(shared, edges.sharing, occurrences(edges.name, self._titles))
            cue = graph.has[edges.sentence] @ graph.question.weights
            strength *= bearers**-_AMBIGUITY
            strength *= np.where(shared, np.where(edges.in_title, _IN_TITLE, 1.0), 1 + _CUE * cue)
            found = self._ties[node] = np.zeros((3, len(graph)))
            np.maximum.at(found, (edges.relation, edges.node), strength)
        return found


class _Chosen:
    """What the features need to know about the chosen passages, which are in the order of all passages.

    Attributes:
        weights: Of the question's words, lowered for those that the passages explain.
        cover, sentence, opening, words, ties, taken: See `ExtensionFeatures`, one entry a node.
        copies: The nodes that repeat a chosen passage.
        answers: Of the sub-questions that another one refers to, as keys.
        steps: The sub-questions with answers filled in, and how much of each the passages explain.
    """

    def __init__(self, features: ChainFeatures, chosen: Sequence[ParsedPassage]) -> None:
        graph = features.graph
        nodes = [features.node[passage.number] for passage in chosen]
        self.passages = chosen
        had = graph.node_has[nodes]
        self.weights = graph.question.weights * (1 - _EXPLAINED) ** had.sum(axis=0)
        self.cover = graph.node_has @ self.weights
        self.sentence, self.opening = graph.in_sentences(self.weights)
        self.words = (graph.node_has & ~had.any(axis=0)).sum(axis=1) / max(len(graph.question.words), 1)
        self.taken = graph.overlapping(nodes)
        self.ties = np.max([np.zeros((3, len(graph))), *(features.ties(node) for node in nodes)], axis=0)
        self.copies = frozenset(copy for node in nodes for copy in graph.copies(node).tolist())
        answers = resolve(features.steps, chosen) if chosen else []
        needed = [answer for n, answer in enumerate(answers, 1) if features.is_needed(n) and answer.text]
        self.answers = [f" {title_key(answer.text)} " for answer in needed]
        steps = [fill_references(step, answers) for step in features.steps]
        self.steps = [(step, max((features.share(step, each) for each in chosen), default=0.0)) for step in steps]
