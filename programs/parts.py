"""The thorough search: the embedded engine reads what was found for the answer of each part of the question, and
searches for the next part with it.

    Who founded the employer of Ada Berg?  ->  Who is the employer of Ada Berg?  ->  Kestrel  ->  Who founded Kestrel?

The chain retriever follows names from passage to passage; of many names in a passage, this says which one is meant. A
question without parts is searched for once. No model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..data.passages import Hit, Passage, Reason
from ..data.references import references, replace_references
from ..engines.lexical.decompose import decompose
from ..engines.lexical.hops import NONE, Answer, Hop, read_hops
from ..engines.lexical.prompt import ParsedPassage, Sentence

# Chosen on train questions (docs/results.md, "More time for a search").
_READ = 5  # passages that are read
_FOUND = 3  # hits of a part
_WEIGHT = 0.35  # of the best hit of a part, beside 1 for that of the question
_DEPTH = 10  # least number of hits of the question that are ranked with them


def search_parts(search: Callable[[str, int], list[Hit]], question: str, count: int) -> list[Hit]:
    """The hits of a question and of its parts.

    Args:
        search: Finds hits, best first: of a query, so many.
        count: Hits to return; fewer if the search returns fewer.

    A hit scores the reciprocal of its rank, plus for each part the reciprocal of its rank there, weighted by the
    probability of the answer that was put into the part.
    """
    if len(parts := decompose(question)) < 2:
        return search(question, count)
    hits = search(question, max(count, _DEPTH))
    found = {hit.passage.id: hit for hit in hits}
    scores = {hit.passage.id: 1 / hit.rank for hit in hits}
    read, best = [hit.passage for hit in hits[:_READ]], dict[tuple[int, str], float]()
    for part, text, answer in _asked(parts, read_hops(parts, _parsed(read))):
        source = read[int(answer.passage.number) - 1].id if answer.passage else None
        for hit in search(text, _FOUND):
            id, score = hit.passage.id, _WEIGHT * answer.probability / hit.rank
            words = hit.reason.words if hit.reason else ()
            found.setdefault(id, replace(hit, reason=Reason("part", text, None if source == id else source, words)))
            best[part, id] = max(best.get((part, id), 0.0), score)
    for (_, id), score in best.items():
        scores[id] = scores.get(id, 0.0) + score
    ranked = sorted(scores, key=lambda id: -scores[id])[: min(count, len(hits))]
    return [replace(found[id], score=scores[id], rank=rank) for rank, id in enumerate(ranked, 1)]


def _asked(parts: Sequence[str], hops: Sequence[Hop]) -> Iterator[tuple[int, str, Answer]]:
    """The number of each part, its text with each likely answer of the part that it refers to last, and this answer."""
    for number, text in enumerate(parts):
        known = [n for n in references(text) if 0 < n <= number]
        answers = hops[known[-1] - 1].answers if known else (replace(NONE, probability=1.0),)
        for answer in answers:
            texts = {n: hops[n - 1].best.text for n in known} | ({known[-1]: answer.text} if known else {})
            yield number, replace_references(text, lambda n: texts.get(n, "")), answer  # noqa: B023


def _parsed(passages: Sequence[Passage]) -> tuple[ParsedPassage, ...]:
    return tuple(
        ParsedPassage(str(n), each.title, tuple(Sentence(f"{n}s{m}", text) for m, text in enumerate(each.sentences, 1)))
        for n, each in enumerate(passages, 1)
    )
