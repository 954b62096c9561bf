"""Which passages form a chain of evidence: what the Selector and the Adder of the lexical engine share.

A page belongs to the chain for one of two reasons. *Direct*: the question or a sub-question names it, or it explains
words of the question that nothing chosen so far explains. *Linked*: a chosen page mentions it. The Selector judges by
the first, the Adder by the second, so that each round of the two extends the chain by one hop.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter

from ...data.text import content_terms, title_key
from .prompt import Prompt
from .reading import Line, Page, read_pages
from .resolve import support

# Tuned for evidence F1 on train questions of the sample, 2WikiMultihopQA, HotpotQA and MuSiQue (their own contexts).
NAMED = 1.0  # weight of a title that stands in the question
COVERAGE = 1.0  # weight of the share of the question's words that only this page explains
LINK = 1.0  # weight of a mention by a chosen page
ENOUGH = 0.4  # least gain of one more page
LATER = 0.2  # how much more is asked of every page beyond the expected number of hops
LEADS = 0.75  # weight of a line's mention of another page
OPENS = 0.08  # what the first line of a page has ahead of the others
ANSWERS = 1.0  # weight of a line's support for the answer to a sub-question
SURELY = 0.96  # support at which a line is kept whatever the others are worth
SECOND_LINE = 0.92  # share of the best line's score that a further line of the same page needs

_REFERENCE = re.compile(r"#\d+")


def read_chain(prompt: Prompt) -> tuple[Chain, list[Page]]:
    """The chain that a prompt asks for, and the pages selected so far."""
    question, candidates = prompt.inputs.get("question", ""), prompt.inputs.get("candidates", "")
    chain = _chain(question, tuple(prompt.listed("sub_questions")), candidates)
    selected = {entry.partition("s")[0] for entry in prompt.listed("selected")}
    return chain, [page for page in chain.pages if page.number in selected]


@lru_cache(maxsize=64)  # Selector and Adder ask for the same in every round
def _chain(question: str, sub_questions: tuple[str, ...], candidates: str) -> Chain:
    return Chain(question, sub_questions, read_pages(candidates))


class Chain:
    """The question's side of the search for a chain, over the pages of one prompt.

    Args:
        question: The question.
        sub_questions: In order; may be empty.
        pages: All candidate pages.
    """

    def __init__(self, question: str, sub_questions: tuple[str, ...], pages: tuple[Page, ...]) -> None:
        self.pages, self.sub_questions = pages, sub_questions
        self.hops = len(sub_questions)
        asked = [question, *(_REFERENCE.sub(" ", text) for text in sub_questions)]
        self.terms = frozenset(content_terms(" ".join(asked)))
        self.key = "".join(f" {title_key(text)} " for text in asked)
        size = len(self.pages)
        self.weight = {}
        for term in self.terms:
            frequency = sum(term in page.terms for page in self.pages)
            self.weight[term] = math.log(1 + (size - frequency + 0.5) / (frequency + 0.5)) if frequency else 0.0
        self.total = math.fsum(self.weight.values()) or 1.0
        self.shared = shared_names(self.pages)
        self.named = {page.number: self._named(page) for page in self.pages}

    def _named(self, page: Page) -> float:
        """How clearly the question names the page: 1 for the whole title, less where other pages share the name.

        "Help!" names both "Help! (film)" and "Help! (album)", and "the film Help!" rather the first: the words in
        parentheses decide.
        """
        for key, certainty in zip(page.names, (1.0, 0.9, 0.6, 0.6), strict=False):
            if f" {key} " not in self.key or not is_name(key):
                continue
            if key == page.names[0] or self.shared[key] == 1:
                return certainty
            rest = set(content_terms(page.names[0])) - set(content_terms(key))
            hint = sum(term in self.terms for term in rest) / max(len(rest), 1)
            return certainty * (0.5 + 0.7 * hint)
        return 0.0

    def coverage(self, page: Page, chosen: Collection[Page]) -> float:
        """The share of the question's weight that this page explains and the chosen ones do not."""
        explained = frozenset().union(*(other.terms for other in chosen)) if chosen else frozenset()
        # fsum: the order of a set differs from process to process, and a plain sum with it
        return math.fsum(self.weight[term] for term in (self.terms & page.terms) - explained) / self.total

    def linking(self, lines: Iterable[Line], target: Page) -> float:
        """How strongly some lines mention a page: by a rare name, and with words of the question beside it."""
        best = 0.0
        for key, certainty in zip(target.names, (1.0, 0.9, 0.6, 0.6), strict=False):
            if not is_name(key):
                continue
            for line in lines:
                if f" {key} " in line.key:
                    rarity = 1.0 / self.shared[key] ** 0.5
                    cue = len(self.terms & line.terms) / (len(self.terms & line.terms) + 1.0)
                    best = max(best, certainty * rarity * (0.7 + 0.3 * cue))
        return best

    def gain(self, page: Page, chosen: Sequence[Page], links: bool) -> float:
        """What a page adds to the chain. Without ``links`` only what the question itself says counts."""
        named = self.named[page.number]
        if named and any(self.named[other.number] and set(other.names) & set(page.names) for other in chosen):
            named *= 0.3  # the span of the question is taken
        score = NAMED * named + COVERAGE * self.coverage(page, chosen)
        if links and chosen:
            score += LINK * max(self.linking(other.lines, page) for other in chosen)
        return score

    def extend(self, chosen: Sequence[Page], follow: Collection[Page]) -> list[Page]:
        """The pages to add to the chosen ones, greedily; links lead only to the pages to ``follow``."""
        grown, added = list(chosen), list[Page]()
        rest = [page for page in self.pages if page not in grown]
        while rest:
            gain, best = max(((self.gain(page, grown, page in follow), page) for page in rest), key=itemgetter(0))
            if grown and gain < self._needed(len(grown)):
                break
            grown.append(best)
            added.append(best)
            rest.remove(best)
        return added

    def _needed(self, size: int) -> float:
        """The least gain of page number ``size + 1``."""
        return ENOUGH + LATER * max(0, size + 1 - max(self.hops, 2))

    def lines(self, pages: Sequence[Page], chosen: Sequence[Page]) -> list[Line]:
        """The lines of some chosen pages that carry the chain: those that answer a sub-question or lead to a page."""
        needed = support(self.sub_questions, chosen)
        inside = {page.number for page in chosen}
        found: list[Line] = []
        for page in pages:
            others = [other for other in self.pages if other is not page and self.named[other.number] == 0]
            scored = []
            for position, line in enumerate(page.lines):
                cover = (
                    math.fsum(self.weight[term] for term in (self.terms & line.terms) - page.title_terms) / self.total
                )
                bridge = max(
                    (self.linking([line], other) * (1.0 if other.number in inside else 0.4) for other in others),
                    default=0.0,
                )
                score = cover + LEADS * bridge + OPENS * (position == 0) + ANSWERS * needed.get(line.id, 0.0)
                scored.append((score, -position, line))
            scored.sort(key=lambda item: item[:2], reverse=True)
            found += [
                line
                for score, _, line in scored
                if score >= SECOND_LINE * scored[0][0] or needed.get(line.id, 0.0) >= SURELY
            ]
        return found


def shared_names(pages: Iterable[Page]) -> dict[str, int]:
    """How many pages go by each name."""
    counts: dict[str, int] = {}
    for page in pages:
        for key in page.names:
            counts[key] = counts.get(key, 0) + 1
    return counts


@lru_cache(maxsize=8192)
def is_name(key: str) -> bool:
    """Whether a title is telling enough to be looked for in running text."""
    return bool(content_terms(key)) and (len(key) > 2)
