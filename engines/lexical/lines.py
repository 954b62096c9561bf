"""Which lines of the chosen pages carry the chain: those that answer a sub-question or lead to another page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...data.references import replace_references
from ...data.text import content_terms, title_key
from .reading import Line, Page
from .resolve import support

# Tuned for fact F1 on questions of the sample, 2WikiMultihopQA and HotpotQA.
LEADS = 1.0  # weight of a line's mention of another page
OPENS = 0.08  # what the first line of a page has ahead of the others
ANSWERS = 0.75  # weight of a line's support for the answer to a sub-question
SECOND_LINE = 0.92  # share of the best line's score that a further line of the same page needs
OUTSIDE = 0.2  # weight of a mention of a page that is not chosen

_CERTAINTY = (1.0, 0.9, 0.6, 0.6)  # that a mention by each of a page's names means it


class Lines:
    """The lines of a question's candidate pages.

    Args:
        question: The question.
        sub_questions: In order; may be empty.
        pages: All candidate pages.
    """

    def __init__(self, question: str, sub_questions: Sequence[str], pages: Sequence[Page]) -> None:
        self._sub_questions, self._pages = sub_questions, pages
        asked = [question, *(replace_references(text, lambda _: " ") for text in sub_questions)]
        self._terms = frozenset(content_terms(" ".join(asked)))
        self._key = "".join(f" {title_key(text)} " for text in asked)
        self._weight = {}
        for term in self._terms:
            frequency = sum(term in page.terms for page in pages)
            rarity = math.log(1 + (len(pages) - frequency + 0.5) / (frequency + 0.5))
            self._weight[term] = rarity if frequency else 0.0
        self._total = math.fsum(self._weight.values()) or 1.0
        self._bearing = Counter(key for page in pages for key in page.names)

    def carrying(self, pages: Iterable[Page], chosen: Sequence[Page]) -> list[Line]:
        """The lines of some of the chosen pages, page by page, best first; at least one of each page that has any."""
        needed = support(self._sub_questions, chosen)
        inside = {page.number for page in chosen}
        unnamed = [other for other in self._pages if not self._asks(other)]
        leading = [(other, 1.0 if other.number in inside else OUTSIDE) for other in unnamed]
        found: list[Line] = []
        for page in pages:
            scored = []
            for position, line in enumerate(page.lines):
                leads = (share * self._mention(line, other) for other, share in leading if other is not page)
                score = self._cover(line, page) + LEADS * max(leads, default=0.0)
                score += OPENS * (position == 0) + ANSWERS * needed.get(line.id, 0.0)
                scored.append((score, -position, line))
            scored.sort(key=lambda item: item[:2], reverse=True)
            found += [line for score, _, line in scored if score >= SECOND_LINE * scored[0][0]]
        return found

    def _asks(self, page: Page) -> bool:
        """Whether the question names the page."""
        return any(f" {key} " in self._key and is_name(key) for key in page.names[: len(_CERTAINTY)])

    def _cover(self, line: Line, page: Page) -> float:
        """The share of the question's weight in a line, without what the title says already."""
        # fsum: the order of a set differs from process to process, and a plain sum with it
        return math.fsum(self._weight[term] for term in (self._terms & line.terms) - page.title_terms) / self._total

    def _mention(self, line: Line, page: Page) -> float:
        """How strongly a line mentions a page: by a rare name, and with words of the question beside it."""
        best = 0.0
        for key, certainty in zip(page.names, _CERTAINTY, strict=False):
            if f" {key} " in line.key and is_name(key):
                beside = len(self._terms & line.terms)
                cue = beside / (beside + 1.0)
                best = max(best, certainty / self._bearing[key] ** 0.5 * (0.7 + 0.3 * cue))
        return best


@lru_cache(maxsize=8192)
def is_name(key: str) -> bool:
    """Whether a title is telling enough to be looked for in running text."""
    return bool(content_terms(key)) and len(key) > 2
