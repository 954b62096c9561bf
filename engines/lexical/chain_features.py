"""The features of passages as the next one of a chain, and of the end of the chain.

The passages of a prompt are a small collection. A graph holds which passages the question names, which of its words a
passage explains, and how two passages are tied. Further features are the retriever's order, and the sub-questions with
the answers that the chosen passages give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ...data.chain.graph import SHARED, Graph
from ...data.chain.words import Floats, counted, occurrences, specificity
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


Features = Mapping[str, float]

# The weights of the first passage of a chain, the next one, and its end, fitted on train and dev questions in version
# 0.1.
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


def weighted_sum(features: Features, weights: Mapping[str, float]) -> float:
    return math.fsum(features[name] * weight for name, weight in weights.items())


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

    def of_passages(self, chosen: Collection[ParsedPassage]) -> list[tuple[ParsedPassage, Features]]:
        """The features of each passage that is not chosen as the next one, in order.

        Shares of the question are weighted by IDF among the passages unless noted; words that a chosen passage explains
        count less.
        """
        graph, chosen = self.graph, self._in_order(chosen)
        nodes = [self.node[passage.number] for passage in chosen]
        weights = self._left(nodes)
        cover = graph.node_has @ weights
        sentence, opening = graph.in_sentences(weights)
        fresh = graph.node_has & ~graph.node_has[nodes].any(axis=0)
        words = fresh.sum(axis=1) / max(len(graph.question.words), 1)
        overlaps = graph.overlapping(nodes)
        ties = np.max([np.zeros((3, len(graph))), *(self._ties_of(node) for node in nodes)], axis=0)
        copies = {copy for node in nodes for copy in graph.copies(node).tolist()}
        answers = resolve(self.steps, chosen) if chosen else []
        needed = [answer for n, answer in enumerate(answers, 1) if self._is_needed(n) and answer.text]
        answered = [f" {title_key(answer.text)} " for answer in needed]
        steps = [fill_references(step, answers) for step in self.steps]
        had = [max((self._share(step, each) for each in chosen), default=0.0) for step in steps]
        rest = [(rank, passage) for rank, passage in enumerate(self.passages, 1) if passage not in chosen]
        rows: list[tuple[ParsedPassage, Features]] = []
        for ahead, (rank, passage) in enumerate(rest):
            node = self.node[passage.number]
            named, taken = float(self._named[node]), bool(overlaps[node])
            link, back, shared = ties[:, node].tolist()
            shares = [self._share(step, passage) for step in steps]
            keys = [f" {key} " for key in passage.names]
            features = {
                "rank": math.log(rank),
                "ahead": math.log(1 + ahead),  # passages before it that are not chosen
                "bm25": float(graph.bm25[node]),  # as a share of the best
                "cover": float(cover[node]),  # the share of the question that it explains
                "sentence": float(sentence[node]),  # the same for its best sentence, with the title
                "opening": float(opening[node]),  # the same for its first sentence, without the title
                "words": float(words[node]),  # the unweighted share of the question's words that only it has
                "named": 0.0 if taken else named,  # how specific its title is, if the question has it
                "whole": float(bool(named) and not taken and self._whole[rank - 1]),  # "Lawson" is not "James Lawson"
                "taken": named if taken else 0.0,  # as `named`, where the title of a chosen passage is at that place
                "link": link,  # how strongly a chosen passage mentions it
                "back": back,  # how strongly it mentions a chosen passage
                "shared": shared,  # how strongly it shares a name with one that the question does not have
                "both": min(link, back),
                "tied": float(cover[node]) * max(link, back, shared),
                "answer": float(any(answer == key for answer in answered for key in keys)),  # by the chosen passages
                "part": float(any(answer in key or key in answer for answer in answered for key in keys)),
                # How much more of a sub-question, with answers filled in, it explains than the chosen passages do.
                "step": max([0.0, *(share - known for share, known in zip(shares, had, strict=True))]),
                "step_share": max(shares, default=0.0),
                "copy": float(node in copies),  # of a chosen passage
            }
            rows.append((passage, features))
        return rows

    def of_end(self, chosen: Collection[ParsedPassage]) -> Features:
        """The features of the end of the chain; its hops are the number of sub-questions, at least 2."""
        size, hops = len(chosen), max(len(self.steps), 2)
        left = self._left([self.node[passage.number] for passage in self._in_order(chosen)])
        return {
            "always": 1.0,
            "alone": float(size == 1),
            "single": float(size == 1 and len(self.steps) < 2),
            "short": float(hops == 3 > size),
            "pairs": float(hops > 3 and size < 4),  # most ask about two sides each
            "beyond": float(max(size - hops, 0)),
            "left": float(left.sum()),
            "length": math.log(1 + len(set(content_terms(self.question)))),
            "names": float(len(mask(self.question).names)),
            "closed": float(answer_type(self.question).kind == "yes/no"),
            "joint": float(bool(_JOINT.search(self.question))),
        }

    def _in_order(self, chosen: Collection[ParsedPassage]) -> list[ParsedPassage]:
        numbers = {passage.number for passage in chosen}
        return [passage for passage in self.passages if passage.number in numbers]

    def _left(self, nodes: Sequence[int]) -> Floats:
        """The weights of the question's words, lowered for those that some nodes explain."""
        question = self.graph.question
        weights: Floats = question.weights * (1 - _EXPLAINED) ** self.graph.node_has[nodes].sum(axis=0)
        return weights

    def _titles_asked(self) -> Floats:
        """How specific the title of each node is that the question has, 0 for the others."""
        graph = self.graph
        found = graph.match_certainty * specificity(graph.match_rarity, _TITLE_RARITY * _RARITY)
        asked = np.flatnonzero(found)
        found[asked] *= occurrences(graph.names[asked, graph.match[asked]], self._titles) ** -_AMBIGUITY
        return found

    def _share(self, step: str, passage: ParsedPassage) -> float:
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

    def _is_needed(self, number: int) -> bool:
        """Whether another sub-question refers to a sub-question, counted from 1."""
        return any(number in references(step) for step in self.steps)

    def _ties_of(self, node: int) -> Floats:
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
