"""The review of PAR-RAG (arXiv 2504.16787): two judges, and a second look where they are not convinced.

An answer's accuracy (a judge's estimate) and its credibility (what its citations say to it) join to a confidence. Below
the threshold the answer itself becomes a query to a sparse retriever, and a reviser reads what there was and what was
found: it gives a new answer, or keeps the old one, unconfident.

Decisions of ours: an answer that cites nothing is extrapolatory, which no judge has to be asked; a reviser that says
"revised" and gives no answer has revised nothing; it is not asked where there is nothing at all to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dspy.utils.exceptions import AdapterParseError

from ..data.passages import Evidence, Hit, Passage, Retriever
from ..data.pool import PassagePool
from ..engines.costs import record_incident
from ..signatures import JudgeAccuracy, JudgeAttribution, ReviseAnswer
from .agent import Agent
from .candidates import Candidates, facts
from .citations import cut_citations
from .confidence import CREDIBILITY, Confidence
from .plan import Claim
from .prediction import UNKNOWN, tidy
from .program import Program
from .search import Search
from .together import together
from .trace import Judged, Revised, Trace, Weighed


@dataclass(frozen=True)
class Reviewed:
    """A claim after its review.

    Attributes:
        confidence: Of the claim that was reviewed.
        passed: Whether that was enough.
        revised: Whether ``claim`` is another than the one that was reviewed.
        found: What the second look searched for.
    """

    claim: Claim
    confidence: float
    passed: bool
    revised: bool = False
    found: tuple[Hit, ...] = ()


class Review(Program):
    """Judges an answer, and has it revised if it does not pass.

    2 LM calls side by side; where it does not pass one more, and 1 search.

    Args:
        retriever: Where to look again when a question brings no pool of its own; meant to be sparse.
        k: Passages that one search returns.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 10) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.accuracy_judge = Agent(JudgeAccuracy)
        self.attribution_judge = Agent(JudgeAttribution)
        self.confidence = Confidence()
        self.reviser = Agent(ReviseAnswer)

    def forward(
        self,
        claim: Claim,
        sources: Candidates,
        hops: float,
        pool: Sequence[Passage] | PassagePool | None,
        trace: Trace,
        *,
        shown: int,
    ) -> Reviewed:
        """Review a claim that was read from ``sources``; these grow by the best ``shown`` hits of a second search."""
        weighed = self.judge(claim, sources, hops, trace)
        if weighed.passed:
            return Reviewed(claim, weighed.confidence, passed=True)
        query = claim.question if claim.answer == UNKNOWN else claim.answer
        found = self.search(query, pool, trace)
        sources.extend(hit.passage for hit in found[:shown])
        revised = self._revise(claim, sources, trace) if sources.passages else None
        return Reviewed(revised or claim, weighed.confidence, False, revised is not None, tuple(found))

    def judge(self, claim: Claim, sources: Candidates, hops: float, trace: Trace) -> Weighed:
        """How sure a claim is; 0 if it says that the answer is not known."""
        if claim.answer == UNKNOWN:
            return self._weigh(hops, 0.0, 0.0, trace)
        judges = [partial(self._accuracy, claim, sources), partial(self._credibility, claim, sources)]
        accuracy, credibility = together(trace, judges)
        return self._weigh(hops, accuracy, credibility, trace)

    def _weigh(self, hops: float, accuracy: float, credibility: float, trace: Trace) -> Weighed:
        weighed: Weighed = self.confidence(hops, accuracy, credibility, trace)
        return weighed

    def _accuracy(self, claim: Claim, sources: Candidates, trace: Trace) -> float:
        try:
            reply = self.accuracy_judge(question=claim.question, sources=sources.show(), answer=claim.answer)
            judged = Judged("accuracy", reply.accuracy)
        except AdapterParseError as error:  # only what cannot be read; a model that fails is no verdict
            record_incident("verdict unreadable")
            judged = Judged("accuracy", 0.0, invalid=(" ".join(str(error.lm_response).split())[:80],))
        trace.add(judged)
        return judged.score

    def _credibility(self, claim: Claim, sources: Candidates, trace: Trace) -> float:
        if not claim.cited:
            return CREDIBILITY["extrapolatory"]
        evidence = sources.show(claim.cited)
        verdict = self.attribution_judge(question=claim.question, evidence=evidence, answer=claim.answer).attribution
        trace.add(Judged("attribution", CREDIBILITY[verdict], verdict))
        return CREDIBILITY[verdict]

    def _revise(self, claim: Claim, sources: Candidates, trace: Trace) -> Claim | None:
        """The new claim, with the old citations where it gives none of its own; None if the old one stays."""
        reply = self.reviser(question=claim.question, sources=sources.show(), draft=claim.answer)
        answer, cited, invalid = read_cited(reply.answer, reply.cited, sources)
        accepted = reply.decision == "revised" and answer != UNKNOWN
        trace.add(Revised(answer, str(reply.reason or "").strip(), accepted, facts(cited), invalid))
        return replace(claim, answer=answer, cited=cited or claim.cited) if accepted else None


def read_cited(
    answer: object, citations: Iterable[object], sources: Candidates
) -> tuple[str, tuple[Evidence, ...], tuple[str, ...]]:
    """An answer, the evidence that it cites, and what could not be used.

    Sentence ids that stand in the answer itself ("Paris [2s1]") are citations, too. What is not known rests on nothing.
    """
    ids = [str(id) for id in citations]
    text, marked = cut_citations(str(answer))
    text, cut = tidy(text)
    cited, invalid = sources.resolve([*ids, *(id for id in marked if id not in ids)])
    return text, tuple(cited) if text != UNKNOWN else (), (*cut, *invalid)
