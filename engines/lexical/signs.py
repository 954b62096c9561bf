"""What speaks for a page as the next one of a chain, and what speaks for the end of the chain."""

from __future__ import annotations

import math
from operator import mul
from typing import NamedTuple


class Signs(NamedTuple):
    """What speaks for a page. Shares of the question go by the weight of its words among the pages, unless said
    otherwise, and words that a chosen page explains count for less.

    Attributes:
        rank: The logarithm of its rank among all pages, from 1.
        ahead: The logarithm of 1 and the number of pages before it that are not chosen.
        bm25: Its BM25 score among the pages, as a share of the best.
        cover: The share of the question that it explains.
        sentence: The same of its best sentence, with the title.
        opening: The same of its first sentence, without the title.
        words: The share of the question's words, all worth the same, that it has and no chosen page has.
        named: How telling a title is that stands in the question.
        whole: That title is all of a name of the question: "Lawson" is not in "James Lawson".
        taken: As ``named`` where a chosen page's title stands there.
        link: How strongly a chosen page mentions it.
        back: How strongly it mentions a chosen page.
        shared: How strongly it shares a name with a chosen page that the question does not have.
        both: The lesser of ``link`` and ``back``.
        tied: What of the question it explains, times the strongest of these ties.
        answer: Its title is the answer to a sub-question that another one needs, as the chosen pages tell it.
        part: Its title is part of such an answer, or the answer part of the title.
        step: How much more of a sub-question, with the answers put in, it explains than the chosen pages do.
        step_share: How much of a sub-question it explains.
        copy: It says what a chosen page says.
    """

    rank: float
    ahead: float
    bm25: float
    cover: float
    sentence: float
    opening: float
    words: float
    named: float
    whole: float
    taken: float
    link: float
    back: float
    shared: float
    both: float
    tied: float
    answer: float
    part: float
    step: float
    step_share: float
    copy: float


class End(NamedTuple):
    """What speaks for the end of a chain; the number of hops is that of the sub-questions, at least 2.

    Attributes:
        always: 1.
        alone: Only one page was chosen.
        single: Only one was chosen, and there is only one sub-question.
        short: There are three sub-questions, and fewer pages.
        pairs: There are more sub-questions, and fewer than four pages: most ask for something of two sides each.
        beyond: The number of pages beyond it.
        left: The share of the question that the chosen pages leave unexplained.
        length: The logarithm of the number of the question's words.
        names: The number of names in the question.
        closed: It asks for yes or no.
        joint: It asks for what two have in common.
    """

    always: float
    alone: float
    single: float
    short: float
    pairs: float
    beyond: float
    left: float
    length: float
    names: float
    closed: float
    joint: float


def value(signs: Signs | End, weights: Signs | End) -> float:
    """The weighted sum."""
    return math.fsum(map(mul, signs, weights))
