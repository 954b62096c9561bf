"""Which passages form a chain of evidence: what the Selector and the Adder of the lexical engine share.

A chain is grown page by page. At every step the next page competes with the others and with the end of the chain, each
by the signs that speak for it (`signs.py`), read from the pages (`judge.py`) and weighed by what
`polyhop.scripts.training.selector` has fitted (`weights.py`).
The Selector grows a chain anew; the Adder goes on from the
selected pages. What is chosen next depends on which pages are chosen, not on who chose them: the Adder finds nothing to
add to a chain that the Selector finished.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from .judge import Judge
from .lines import Lines
from .prompt import Prompt
from .reading import Line, Page, read_pages
from .signs import End, Signs, value
from .weights import END, FIRST, NEXT

GOES_ON = 0.28  # least probability of the best page with which a chain goes on
LONGEST = 6  # pages


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
    """The chain of a question among the pages of one prompt.

    Args:
        question: The question.
        sub_questions: In order; may be empty.
        pages: All candidate pages, in the order in which they were found.
    """

    def __init__(self, question: str, sub_questions: tuple[str, ...], pages: Sequence[Page]) -> None:
        self.pages = tuple({page.number: page for page in pages}.values())
        self._judge = Judge(question, sub_questions, self.pages)
        self._lines = Lines(question, sub_questions, self.pages)
        # Every round asks for the same again.
        self._found: dict[frozenset[str], Page | None] = {}
        self._carrying: dict[tuple[tuple[str, ...], frozenset[str]], list[Line]] = {}

    def extend(self, chosen: Sequence[Page]) -> list[Page]:
        """The pages that the chain needs beside the chosen ones, in the order of the choice."""
        grown, added = list(chosen), list[Page]()
        while (page := self._next(grown)) is not None:
            grown.append(page)
            added.append(page)
        return added

    def lines(self, pages: Sequence[Page], chosen: Sequence[Page]) -> list[Line]:
        """The lines of some of the chosen pages that carry the chain."""
        key = tuple(page.number for page in pages), _numbers(chosen)
        if key not in self._carrying:
            self._carrying[key] = self._lines.carrying(pages, chosen)
        return self._carrying[key]

    def _next(self, chosen: Sequence[Page]) -> Page | None:
        """The next page of the chain; None at its end."""
        if len(chosen) >= min(LONGEST, len(self.pages)):
            return None
        if (key := _numbers(chosen)) not in self._found:
            signs = self._judge.signs(chosen)
            page, probability = likeliest(signs, self._judge.end(chosen) if chosen else None)
            # Any chain has a first page, unless nothing here has a word of the question.
            goes_on = probability >= GOES_ON if chosen else any(one.words for _, one in signs)
            self._found[key] = page if goes_on else None
        return self._found[key]


def _numbers(pages: Sequence[Page]) -> frozenset[str]:
    return frozenset(page.number for page in pages)


def likeliest(signs: Sequence[tuple[Page, Signs]], end: End | None) -> tuple[Page, float]:
    """The page that most speaks for, and the probability that it is the next one; of equals the first.

    Args:
        signs: Of the pages that are not chosen.
        end: Of the end of the chain; None before the first page.
    """
    values = [value(one, NEXT if end else FIRST) for _, one in signs]
    best = max(values)
    others = math.fsum(math.exp(each - best) for each in values)
    if end:
        others += math.exp(min(value(end, END) - best, 700.0))
    return signs[values.index(best)][0], 1.0 / others
