"""Selects the passages that form a chain of evidence, and in them the sentences that carry it.

A chain grows passage by passage: at every step the candidates compete with each other and with the end of the chain, by
a conditional logit over `chain_features`. The Selector starts a new chain, the Adder extends the selected passages. The
next passage depends on which passages are chosen, not on their order or on who chose them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...data.references import replace_references
from ...data.text import content_terms, title_key
from .chain_features import END, FIRST, NEXT, ChainFeatures, rarity, weighted_sum
from .hops import support
from .prompt import ParsedPassage, ParsedPrompt, Sentence, documents, parse_passages

GOES_ON = 0.28  # least probability of the best passage with which a chain is extended
LONGEST = 6  # passages

# Tuned for fact F1 on questions of the sample, 2WikiMultihopQA and HotpotQA.
LEADS = 1.0  # weight of a sentence's mention of another passage
OPENS = 0.08  # bonus of the first sentence of a passage
ANSWERS = 0.75  # weight of a sentence's support for the answer to a sub-question
SECOND_SENTENCE = 0.92  # share of the best sentence's score that another sentence of the same passage needs
OUTSIDE = 0.2  # weight of a mention of a passage that is not chosen
_CERTAINTY = (1.0, 0.9, 0.6, 0.6)  # that a mention of each of a passage's names refers to the passage


def read_chain(prompt: ParsedPrompt) -> tuple[EvidenceChain, list[ParsedPassage]]:
    """The chain of a prompt, and the passages selected so far."""
    chain = _chain(prompt.question, tuple(prompt.listed("sub_questions")), prompt.text("candidates"))
    selected = {entry.partition("s")[0] for entry in prompt.listed("selected")}
    return chain, [
        each for each in chain.passages if any(row.id.partition("s")[0] in selected for row in each.sentences)
    ]


@lru_cache(maxsize=64)  # Selector and Adder read the same candidates in every round
def _chain(question: str, sub_questions: tuple[str, ...], candidates: str) -> EvidenceChain:
    return EvidenceChain(question, sub_questions, documents(parse_passages(candidates)))


class EvidenceChain:
    """The chain of a question among the passages of one prompt.

    Args:
        question: The question.
        sub_questions: In order; may be empty.
        passages: All candidates, in the order of the retriever.
    """

    def __init__(self, question: str, sub_questions: tuple[str, ...], passages: Sequence[ParsedPassage]) -> None:
        self.passages = tuple({passage.number: passage for passage in passages}.values())
        self._features = ChainFeatures(question, sub_questions, self.passages)
        self._sub_questions = sub_questions
        texts = [question, *(replace_references(text, lambda _: " ") for text in sub_questions)]
        key = "".join(f" {title_key(text)} " for text in texts)
        self._unnamed = [each for each in self.passages if not any(f" {k} " in key and _is_name(k) for k in each.names)]
        self._terms = frozenset(content_terms(" ".join(texts)))
        frequency = {term: sum(term in passage.terms for passage in self.passages) for term in self._terms}
        # BM25's IDF over the few passages of the prompt, which scikit-learn's vectorizers do not offer.
        self._weight = {term: rarity(n, len(self.passages)) if n else 0.0 for term, n in frequency.items()}
        self._bearers = Counter(key for passage in self.passages for key in passage.names)

    def extend(self, chosen: Sequence[ParsedPassage]) -> list[ParsedPassage]:
        """The passages that extend the chosen ones, in the order of the choice."""
        grown = list(chosen)
        while len(grown) < min(LONGEST, len(self.passages)) and (passage := self._next(grown)) is not None:
            grown.append(passage)
        return grown[len(chosen) :]

    def _next(self, chosen: Sequence[ParsedPassage]) -> ParsedPassage | None:
        """The likeliest next passage, the first of equals; None at the end of the chain."""
        rows = self._features.of_passages(chosen)
        values = [weighted_sum(row, NEXT if chosen else FIRST) for _, row in rows]
        best = max(values)
        if chosen:
            others = math.fsum(math.exp(each - best) for each in values)
            end = math.exp(min(weighted_sum(self._features.of_end(chosen), END) - best, 700.0))
            goes_on = 1 / (others + end) >= GOES_ON
        else:  # any chain has a first passage, unless no candidate has a word of the question
            goes_on = any(row["words"] for _, row in rows)
        return rows[values.index(best)][0] if goes_on else None

    def sentences(self, passages: Iterable[ParsedPassage], chosen: Sequence[ParsedPassage]) -> list[Sentence]:
        """The sentences of some of the chosen passages that carry the chain, passage by passage, best first.

        They have terms of the question, mention other passages, or support answers. Every passage that has sentences
        has at least one of them.
        """
        supported = support(self._sub_questions, chosen)
        inside = {passage.number for passage in chosen}
        leading = [(other, 1.0 if other.number in inside else OUTSIDE) for other in self._unnamed]
        total = math.fsum(self._weight.values()) or 1.0  # fsum, as the order of a set differs between processes
        found: list[Sentence] = []
        for passage in passages:
            scored = []
            for position, sentence in enumerate(passage.sentences):
                terms = (self._terms & sentence.terms) - passage.title_terms
                leads = (share * self._mention(sentence, other) for other, share in leading if other is not passage)
                score = math.fsum(self._weight[term] for term in terms) / total + LEADS * max(leads, default=0.0)
                score += OPENS * (position == 0) + ANSWERS * supported.get(sentence.id, 0.0)
                scored.append((score, -position, sentence))
            scored.sort(key=lambda item: item[:2], reverse=True)
            found += [sentence for score, _, sentence in scored if score >= SECOND_SENTENCE * scored[0][0]]
        return found

    def _mention(self, sentence: Sentence, passage: ParsedPassage) -> float:
        """How strongly a sentence mentions a passage: by a rare name, near words of the question."""
        best = 0.0
        for key, certainty in zip(passage.names, _CERTAINTY, strict=False):
            if f" {key} " in sentence.key and _is_name(key):
                beside = len(self._terms & sentence.terms)
                cue = beside / (beside + 1.0)
                best = max(best, certainty / self._bearers[key] ** 0.5 * (0.7 + 0.3 * cue))
        return best


def _is_name(key: str) -> bool:
    """Whether a title is specific enough to look for it in running text."""
    return bool(content_terms(key)) and len(key) > 2
