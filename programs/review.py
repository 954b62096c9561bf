"""The review of PAR-RAG (arXiv 2504.16787): two judges, and a revision of answers that do not pass.

A judge's accuracy and the credibility of the citations are combined into a confidence. Below the threshold, the answer
itself is the query for a sparse retriever; a reviser reads old and new sources and gives a new answer or keeps the old.

Deviations: an answer without citations is extrapolatory without a call; a reviser without an answer revises nothing;
the reviser is not called if there is nothing to read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from dspy.utils.exceptions import AdapterParseError

from ..data.passages import Evidence, Hit, Retriever
from ..engines.costs import record_incident
from ..signatures import JudgeAccuracy, JudgeAttribution, ReviseAnswer
from .agent import Agent, together
from .candidates import Candidates, cut_citations, facts
from .confidence import CREDIBILITY, Confidence
from .prediction import UNKNOWN, tidy
from .program import Program
from .search import Pool, Search
from .trace import Judged, Revised, Trace, Weighed


@dataclass(frozen=True)
class CitedAnswer:
    """An answer to a question as it was asked, and the evidence that it cites."""

    question: str
    answer: str
    cited: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class ReviewResult:
    """An answer after its review."""

    answer: CitedAnswer
    confidence: float  # of the answer that was reviewed
    passed: bool  # whether that reached the threshold
    revised: bool = False  # whether `answer` replaces the answer that was reviewed
    found: tuple[Hit, ...] = ()  # hits of the second search


class Review(Program):
    """Judges an answer, and revises it if it does not pass.

    2 LM calls in parallel; 1 more and 1 search if the answer does not pass.

    Args:
        retriever: For the second search, if a question has no pool of its own; meant to be sparse.
        k: Passages per search.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 10) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.accuracy_judge = Agent(JudgeAccuracy)
        self.attribution_judge = Agent(JudgeAttribution)
        self.confidence = Confidence()
        self.reviser = Agent(ReviseAnswer)

    def forward(
        self, draft: CitedAnswer, sources: Candidates, hops: float, pool: Pool, trace: Trace, *, shown: int
    ) -> ReviewResult:
        """Review an answer read from ``sources``; the best ``shown`` hits of a second search are added to these."""
        weighed = self.judge(draft, sources, hops, trace)
        if weighed.passed:
            return ReviewResult(draft, weighed.confidence, passed=True)
        query = draft.question if draft.answer == UNKNOWN else draft.answer
        found = self.search(query, pool, trace)
        sources.extend(hit.passage for hit in found[:shown])
        revised = self._revise(draft, sources, trace) if sources.passages else None
        return ReviewResult(revised or draft, weighed.confidence, False, revised is not None, tuple(found))

    def judge(self, draft: CitedAnswer, sources: Candidates, hops: float, trace: Trace) -> Weighed:
        """The confidence in an answer; 0 for an unknown one."""
        accuracy = credibility = 0.0
        if draft.answer != UNKNOWN:
            judges = [partial(self._accuracy, draft, sources), partial(self._credibility, draft, sources)]
            accuracy, credibility = together(trace, judges)
        weighed: Weighed = self.confidence(hops, accuracy, credibility, trace)
        return weighed

    def _accuracy(self, draft: CitedAnswer, sources: Candidates, trace: Trace) -> float:
        try:
            reply = self.accuracy_judge(question=draft.question, sources=sources.show(), answer=draft.answer)
            judged = Judged("accuracy", reply.accuracy)
        except AdapterParseError as error:  # errors of the model itself are not a verdict
            record_incident("verdict unreadable")
            judged = Judged("accuracy", 0.0, invalid=(" ".join(str(error.lm_response).split())[:80],))
        trace.add(judged)
        return judged.score

    def _credibility(self, draft: CitedAnswer, sources: Candidates, trace: Trace) -> float:
        if not draft.cited:
            return CREDIBILITY["extrapolatory"]
        evidence = sources.show(draft.cited)
        verdict = self.attribution_judge(question=draft.question, evidence=evidence, answer=draft.answer).attribution
        trace.add(Judged("attribution", CREDIBILITY[verdict], verdict))
        return CREDIBILITY[verdict]

    def _revise(self, draft: CitedAnswer, sources: Candidates, trace: Trace) -> CitedAnswer | None:
        """The new answer, with the old citations if it has none; None if the old one stays."""
        reply = self.reviser(question=draft.question, sources=sources.show(), draft=draft.answer)
        answer, cited, invalid = read_cited(reply.answer, reply.cited, sources)
        accepted = reply.decision == "revised" and answer != UNKNOWN
        trace.add(Revised(answer, str(reply.reason or "").strip(), accepted, facts(cited), invalid))
        return replace(draft, answer=answer, cited=cited or draft.cited) if accepted else None


def read_cited(
    answer: object, citations: Iterable[object], sources: Candidates
) -> tuple[str, tuple[Evidence, ...], tuple[str, ...]]:
    """An answer, the evidence that it cites, and the invalid citations. Ids in the answer ("Paris [2s1]") count too."""
    ids = [str(id) for id in citations]
    text, marked = cut_citations(str(answer))
    text, cut = tidy(text)
    cited, invalid = sources.resolve([*ids, *(id for id in marked if id not in ids)])
    return text, tuple(cited) if text != UNKNOWN else (), (*cut, *invalid)
