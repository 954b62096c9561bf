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
from .chain_features import END, FIRST, NEXT, ChainFeatures, ExtensionFeatures, StopFeatures, rarity, weighted_sum
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
        self._selection = _SentenceSelection(question, sub_questions, self.passages)
        self._next_found: dict[frozenset[str], ParsedPassage | None] = {}
        self._sentences_found: dict[tuple[tuple[str, ...], frozenset[str]], list[Sentence]] = {}

    def extend(self, chosen: Sequence[ParsedPassage]) -> list[ParsedPassage]:
        """The passages that extend the chosen ones, in the order of the choice."""
        grown, added = list(chosen), list[ParsedPassage]()
        while (passage := self._next(grown)) is not None:
            grown.append(passage)
            added.append(passage)
        return added

    def sentences(self, passages: Sequence[ParsedPassage], chosen: Sequence[ParsedPassage]) -> list[Sentence]:
        """The sentences of some of the chosen passages that carry the chain."""
        key = tuple(passage.number for passage in passages), _numbers(chosen)
        if key not in self._sentences_found:
            self._sentences_found[key] = self._selection(passages, chosen)
        return self._sentences_found[key]

    def _next(self, chosen: Sequence[ParsedPassage]) -> ParsedPassage | None:
        """The next passage of the chain; None at its end."""
        if len(chosen) >= min(LONGEST, len(self.passages)):
            return None
        if (key := _numbers(chosen)) not in self._next_found:
            rows = self._features.of_passages(chosen)
            passage, probability = likeliest(rows, self._features.of_stop(chosen) if chosen else None)
            # Any chain has a first passage, unless no candidate has a word of the question.
            extend = probability >= GOES_ON if chosen else any(row.words for _, row in rows)
            self._next_found[key] = passage if extend else None
        return self._next_found[key]


def _numbers(passages: Sequence[ParsedPassage]) -> frozenset[str]:
    return frozenset(passage.number for passage in passages)


def likeliest(
    rows: Sequence[tuple[ParsedPassage, ExtensionFeatures]], stop: StopFeatures | None
) -> tuple[ParsedPassage, float]:
    """The likeliest next passage with its probability; the first of equals.

    Args:
        rows: The passages that are not chosen.
        stop: None before the first passage.
    """
    values = [weighted_sum(row, NEXT if stop else FIRST) for _, row in rows]
    best = max(values)
    others = math.fsum(math.exp(each - best) for each in values)
    if stop:
        others += math.exp(min(weighted_sum(stop, END) - best, 700.0))
    return rows[values.index(best)][0], 1.0 / others


class _SentenceSelection:
    """Scores sentences by the question's terms, mentions of other passages, and support for answers.

    Terms weigh by BM25's IDF over the few passages of the prompt, which scikit-learn's vectorizers do not offer.
    """

    def __init__(self, question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> None:
        self._sub_questions, self._passages = sub_questions, passages
        texts = [question, *(replace_references(text, lambda _: " ") for text in sub_questions)]
        self._terms = frozenset(content_terms(" ".join(texts)))
        self._key = "".join(f" {title_key(text)} " for text in texts)
        frequency = {term: sum(term in passage.terms for passage in passages) for term in self._terms}
        self._weight = {term: rarity(n, len(passages)) if n else 0.0 for term, n in frequency.items()}
        self._total = math.fsum(self._weight.values()) or 1.0
        self._bearers = Counter(key for passage in passages for key in passage.names)

    def __call__(self, passages: Iterable[ParsedPassage], chosen: Sequence[ParsedPassage]) -> list[Sentence]:
        """The selected sentences, passage by passage, best first; at least one of each passage that has any."""
        supported = support(self._sub_questions, chosen)
        inside = _numbers(chosen)
        unnamed = [other for other in self._passages if not self._is_named(other)]
        leading = [(other, 1.0 if other.number in inside else OUTSIDE) for other in unnamed]
        found: list[Sentence] = []
        for passage in passages:
            scored = []
            for position, sentence in enumerate(passage.sentences):
                leads = (share * self._mention(sentence, other) for other, share in leading if other is not passage)
                score = self._cover(sentence, passage) + LEADS * max(leads, default=0.0)
                score += OPENS * (position == 0) + ANSWERS * supported.get(sentence.id, 0.0)
                scored.append((score, -position, sentence))
            scored.sort(key=lambda item: item[:2], reverse=True)
            found += [sentence for score, _, sentence in scored if score >= SECOND_SENTENCE * scored[0][0]]
        return found

    def _is_named(self, passage: ParsedPassage) -> bool:
        """Whether the question names the passage."""
        return any(f" {key} " in self._key and _is_name(key) for key in passage.names[: len(_CERTAINTY)])

    def _cover(self, sentence: Sentence, passage: ParsedPassage) -> float:
        """The share of the question's weight in a sentence, without the terms of the title."""
        # fsum, because the order of a set differs between processes
        terms = (self._terms & sentence.terms) - passage.title_terms
        return math.fsum(self._weight[term] for term in terms) / self._total

    def _mention(self, sentence: Sentence, passage: ParsedPassage) -> float:
        """How strongly a sentence mentions a passage: by a rare name, near words of the question."""
        best = 0.0
        for key, certainty in zip(passage.names, _CERTAINTY, strict=False):
            if f" {key} " in sentence.key and _is_name(key):
                beside = len(self._terms & sentence.terms)
                cue = beside / (beside + 1.0)
                best = max(best, certainty / self._bearers[key] ** 0.5 * (0.7 + 0.3 * cue))
        return best


@lru_cache(maxsize=8192)
def _is_name(key: str) -> bool:
    """Whether a title is specific enough to look for it in running text."""
    return bool(content_terms(key)) and len(key) > 2
