"""Selects the passages that form a chain of evidence, and in them the sentences that carry it.

A chain grows passage by passage: at every step the candidates compete with each other and with the end of the chain, by
a conditional logit over a few features. The Selector starts a new chain, the Adder extends the selected passages. The
next passage depends on which passages are chosen, not on their order or on who chose them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from ...data.references import replace_references
from ...data.text import bare_title, content_terms, title_key
from .features import within
from .hops import read_hops, support
from .prompt import ParsedPassage, ParsedPrompt, Sentence, documents, parse_passages
from .question import mask
from .spans import names

# The weights of the first passage, the next one, and the end of a chain, fitted on train questions, in part to their
# evidence and in part to the choices of a larger model that had been fitted on train and dev questions.
FIRST = {
    "rank": -1.28, "cover": -1.21, "sentence": 3.87, "opening": 2.37, "words": 1.33, "named": 4.09, "whole": 1.03,
    "step": 1.38,
}  # fmt: skip
NEXT = {
    "rank": -1.1, "cover": -4.63, "sentence": 1.41, "opening": 1.57, "words": 3.34, "named": 2.15, "whole": 1.34,
    "taken": 2.09, "link": 1.28, "back": 0.854, "shared": 2.17, "both": -1.99, "tied": 1.96, "part": 1.25,
    "step": 1.75,
}  # fmt: skip
END = {
    "always": 3.38, "alone": -3.2, "pairs": -2.1, "beyond": 0.201, "length": -0.742, "names": 0.253, "joint": 0.472,
}  # fmt: skip
GOES_ON = 0.28  # least probability of the best passage with which a chain is extended
LONGEST = 6  # passages
EXPLAINED = 0.56  # share of a question word's weight that a passage takes with it

# Tuned for fact F1 on questions of the sample, 2WikiMultihopQA and HotpotQA.
LEADS = 1.0  # weight of a sentence's mention of another passage
OPENS = 0.08  # bonus of the first sentence of a passage
ANSWERS = 0.75  # weight of a sentence's support for the answer to a sub-question
SECOND_SENTENCE = 0.92  # share of the best sentence's score that another sentence of the same passage needs
OUTSIDE = 0.2  # weight of a mention of a passage that is not chosen
CERTAINTY = (1.0, 0.9, 0.6, 0.6)  # that a mention of each of a passage's names refers to the passage

_JOINT = re.compile(r"\b(?:both|same|or|in common)\b")


def read_chain(prompt: ParsedPrompt) -> tuple[EvidenceChain, list[ParsedPassage]]:
    """The chain of a prompt, and the passages selected so far."""
    passages = documents(parse_passages(prompt.text("candidates")))
    selected = {entry.partition("s")[0] for entry in prompt.listed("selected")}
    chosen = [each for each in passages if any(row.id.partition("s")[0] in selected for row in each.sentences)]
    return EvidenceChain(prompt.question, prompt.listed("sub_questions"), passages), chosen


class EvidenceChain:
    """The chain of a question among the passages of one prompt.

    Args:
        question: The question.
        sub_questions: In order; may be empty.
        passages: All candidates, in the order of the retriever.
    """

    def __init__(self, question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> None:
        self.passages = tuple({passage.number: passage for passage in passages}.values())
        self._steps, self._key = tuple(sub_questions), f" {title_key(question)} "
        self._terms = frozenset(content_terms(question))
        self._holders = Counter(term for passage in self.passages for term in passage.terms)
        self._bearers = Counter(name for passage in self.passages for name in passage.names)
        self._mentions = Counter(name for passage in self.passages for name in {*passage.names, *_names_in(passage)})
        self._total = self._worth(self._terms) or 1.0
        asked = mask(question).names
        self._names = {title_key(form) for name in asked for form in (name, bare_title(name))}
        joint = bool(_JOINT.search(question))
        self._end = {"always": 1.0, "length": math.log(1 + len(self._terms)), "names": len(asked), "joint": joint}

    def _worth(self, terms: Iterable[str], explained: Mapping[str, int] | None = None) -> float:
        """The sum of some terms' inverse frequencies among the passages (BM25's), less of those that are explained."""
        held = [(self._holders[term], (explained or {}).get(term, 0)) for term in terms if term in self._holders]
        size = len(self.passages)
        return math.fsum(math.log(1 + (size - n + 0.5) / (n + 0.5)) * (1 - EXPLAINED) ** times for n, times in held)

    def extend(self, chosen: Sequence[ParsedPassage]) -> list[ParsedPassage]:
        """The passages that extend the chosen ones, in the order of the choice."""
        grown = list(chosen)
        while len(grown) < min(LONGEST, len(self.passages)) and (passage := self._next(grown)) is not None:
            grown.append(passage)
        return grown[len(chosen) :]

    def _next(self, chosen: Sequence[ParsedPassage]) -> ParsedPassage | None:
        """The likeliest next passage, the first of equals; None at the end of the chain."""
        rows = self._features(chosen)
        values = [_weighted(row, NEXT if chosen else FIRST) for _, row in rows]
        best = max(values)
        if chosen:
            size, hops = len(chosen), max(len(self._steps), 2)
            of_size = {"alone": size == 1, "pairs": hops > 3 and size < 4, "beyond": max(size - hops, 0)}
            others = math.fsum(math.exp(each - best) for each in values)
            end = math.exp(min(_weighted(self._end | of_size, END) - best, 700.0))
            goes_on = 1 / (others + end) >= GOES_ON
        else:  # any chain has a first passage, unless no candidate has a word of the question
            goes_on = any(row["words"] for _, row in rows)
        return rows[values.index(best)][0] if goes_on else None

    def _features(self, chosen: Collection[ParsedPassage]) -> list[tuple[ParsedPassage, dict[str, float]]]:
        """The features of each passage that is not chosen as the next one, in order.

        Shares of the question are weighted by the rarity of its words; those that a chosen passage has count less.
        """
        had = Counter(term for passage in chosen for term in passage.terms & self._terms)
        hops = read_hops(self._steps, [each for each in self.passages if each in chosen]) if chosen else ()
        known = {n: hop.best.text for n, hop in enumerate(hops, 1) if hop.best.text}
        answers = [f" {title_key(text)} " for n, text in known.items() if any(f"#{n}" in step for step in self._steps)]
        steps = [frozenset(content_terms(replace_references(step, known.get))) for step in self._steps]
        explained = [max((self._share(step, each) for each in chosen), default=0.0) for step in steps]
        taken = [title for each in chosen if (title := self._asked_title(each)[0])]
        found = []
        for rank, passage in enumerate(self.passages, 1):
            if passage in chosen:
                continue
            keys = [f" {name} " for name in passage.names]
            title, certainty = self._asked_title(passage)
            named = self._specificity(title) * certainty
            is_taken = any(within(title, other) or within(other, title) for other in taken)
            cover = self._worth(passage.terms & self._terms, had) / self._total
            opening = passage.sentences[0].terms if passage.sentences else frozenset[str]()
            lines = (self._worth((row.terms | passage.title_terms) & self._terms, had) for row in passage.sentences)
            link = max((self._mention(each, passage) for each in chosen), default=0.0)
            back = max((self._mention(passage, each) for each in chosen), default=0.0)
            shared = max((self._shared(each, passage) for each in chosen), default=0.0)
            shares = (self._share(step, passage) - share for step, share in zip(steps, explained, strict=True))
            features = {
                "rank": math.log(rank),
                "cover": cover,  # the share of the question that it explains
                "sentence": max(lines, default=0.0) / self._total,  # the same for its best sentence, with the title
                "opening": self._worth(opening & self._terms, had) / self._total,  # the same for its first sentence
                "words": len(passage.terms & self._terms - had.keys()) / max(len(self._terms), 1),  # that only it has
                "named": named * (not is_taken),  # how specific its title is, if the question has it
                "whole": float(title in self._names and not is_taken),  # "Lawson" is not "James Lawson"
                "taken": named * is_taken,  # as `named`, where the title of a chosen passage is at that place
                "link": link,  # how strongly a chosen passage mentions it
                "back": back,  # how strongly it mentions a chosen passage
                "shared": shared,  # how strongly it shares a name with one that the question does not have
                "both": min(link, back),
                "tied": cover * max(link, back, shared),
                "part": float(any(answer in key or key in answer for answer in answers for key in keys)),
                # How much more of a sub-question, with answers filled in, it explains than the chosen passages do.
                "step": max([0.0, *shares]),
            }
            found.append((passage, features))
        return found

    def _asked_title(self, passage: ParsedPassage) -> tuple[str, float]:
        """The name of a passage that the question has, and the certainty that it means the passage; empty for none."""
        names = zip(passage.names, CERTAINTY, strict=False)
        return next((pair for pair in names if f" {pair[0]} " in self._key), ("", 0.0))

    def _specificity(self, name: str) -> float:
        """How specific a name is, 0 to 1, by its rarest word."""
        rare = max((self._worth([term]) for term in content_terms(name)), default=0.0)
        return rare / (rare + 1)

    def _share(self, step: frozenset[str], passage: ParsedPassage) -> float:
        """The share of a sub-question in the title and one sentence of a passage."""
        shares = (self._worth(step & (sentence.terms | passage.title_terms)) for sentence in passage.sentences)
        return max(shares, default=0.0) / (self._worth(step) or 1.0)

    def _mention(self, passage: ParsedPassage, other: ParsedPassage) -> float:
        """How strongly a passage mentions another one: by a specific name, near words of the question."""
        found = 0.0
        for name, certainty in zip(other.names, CERTAINTY, strict=False):
            cues = [self._worth(self._terms & row.terms) for row in passage.sentences if f" {name} " in row.key]
            if cues:
                strength = certainty * self._specificity(name) * (0.4 if f" {name} " in self._key else 1.0)
                found = max(found, strength * (1 + 1.98 * max(cues) / self._total) / self._bearers[name] ** 0.28)
        return found

    def _shared(self, passage: ParsedPassage, other: ParsedPassage) -> float:
        """How strongly two passages share a name that the question does not have."""
        names = _names_in(passage) & {*_names_in(other), *other.names}
        strengths = (
            self._specificity(name) * (1.54 if name in other.names else 1.0) / self._mentions[name] ** 0.28
            for name in names
            if f" {name} " not in self._key
        )
        return max(strengths, default=0.0)

    def sentences(self, passages: Iterable[ParsedPassage], chosen: Sequence[ParsedPassage]) -> list[Sentence]:
        """The sentences of some of the chosen passages that carry the chain, passage by passage, best first.

        They have terms of the question, mention other passages, or support answers. Every passage that has sentences
        has at least one of them.
        """
        supported = support(self._steps, chosen)
        inside = {passage.number for passage in chosen}
        asked = self._terms.union(*(content_terms(replace_references(step, lambda _: " ")) for step in self._steps))
        leading = [(each, 1.0 if each.number in inside else OUTSIDE) for each in self.passages]
        leading = [(each, share) for each, share in leading if not self._asked_title(each)[0]]
        found: list[Sentence] = []
        for passage in passages:
            scored = []
            for position, sentence in enumerate(passage.sentences):
                leads = (share * self._leads(sentence, other) for other, share in leading if other is not passage)
                score = self._worth((asked & sentence.terms) - passage.title_terms) / (self._worth(asked) or 1.0)
                score += LEADS * max(leads, default=0.0) + OPENS * (position == 0)
                scored.append((score + ANSWERS * supported.get(sentence.id, 0.0), -position, sentence))
            scored.sort(key=lambda item: item[:2], reverse=True)
            found += [sentence for score, _, sentence in scored if score >= SECOND_SENTENCE * scored[0][0]]
        return found

    def _leads(self, sentence: Sentence, other: ParsedPassage) -> float:
        """How strongly a sentence mentions a passage."""
        beside = len(self._terms & sentence.terms)
        return max(
            (
                certainty / self._bearers[name] ** 0.5 * (0.7 + 0.3 * beside / (beside + 1))
                for name, certainty in zip(other.names, CERTAINTY, strict=False)
                if f" {name} " in sentence.key and len(name) > 2
            ),
            default=0.0,
        )


def _weighted(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return math.fsum(features[name] * weight for name, weight in weights.items())


@lru_cache(maxsize=1024)
def _names_in(passage: ParsedPassage) -> frozenset[str]:
    """The keys of the names in a passage."""
    return frozenset(title_key(span.text) for sentence in passage.sentences for span in names(sentence.text))
