"""The review of PAR-RAG (arXiv 2504.16787): two judges, and a revision of answers that do not pass.

A judge's accuracy and the credibility of the citations are combined into a confidence. Below the threshold, the answer
itself is the query for a sparse retriever; a reviser reads sources and gives a new answer or keeps the old. The public
code settles what the paper leaves open.

Deviations at the default settings, each with the tunable that removes it (`ParRag.paper_values`):

- the judge of accuracy reads all sources, not only what the answer cites (``judged``): on the citations alone it would
  repeat the judge of attribution, and could not see that another source names somebody else;
- citations are of sentences, not of passages (``cites``);
- the reviser reads the old sources too, not only what the second search finds (``reads``);
- accuracy and credibility have a minimum (`polyhop.programs.confidence`).

Deviations that remain: credibility is judged by an agent with AttrScore's classes, not by AttrScore, unless you give a
`CredibilityModel`. The reviser reads the draft. An answer without citations is extrapolatory without a call; a reviser
without an answer revises nothing; the reviser is not called if there is nothing to read. The confidence is not rounded
to two places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, SupportsFloat

from dspy.utils.exceptions import AdapterParseError

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Retriever
from ..engines.costs import record_incident
from ..signatures import JudgeAccuracy, JudgeAttribution, ReviseAnswer
from ..signatures.replies import read_probability
from .agent import Agent, Part
from .candidates import Candidates, cut_citations, facts, whole
from .confidence import CREDIBILITY, Confidence, checked
from .prediction import UNKNOWN, Status, tidy
from .run import record, together
from .search import Search
from .trace import Judged, Revised, Scored, Weighed
from .tunable import choice


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
    status: Status  # of the answer that was reviewed
    revised: bool = False  # whether `answer` replaces the answer that was reviewed

    @property
    def passed(self) -> bool:
        return self.status == "verified"


class CredibilityModel(Protocol):
    """How far an answer is supported by its citations, by a model such as AttrScore's or one of entailment.

    It is called in several threads at once, and only for answers with citations.
    """

    def __call__(self, question: str, answer: str, evidence: Sequence[Evidence], /) -> float:
        """A number from 0 to 1; `polyhop.programs.confidence.CREDIBILITY` has those of AttrScore's classes.

        Args:
            evidence: What the answer cites: sentences or passages, each with ``text`` and ``passage.title``.
        """
        ...


class Review(Part):
    """Judges an answer, and revises it if it does not pass.

    2 LM calls in parallel; 1 more and 1 search if the answer does not pass.

    Args:
        retriever: For the second search, if a question has no pool of its own; meant to be sparse.
        k: Passages per search.
        credibility: Judges attribution in place of the agent. Like the retriever, it is not part of the saved state.

    ``judged`` is what the judge of accuracy reads, ``reads`` what the reviser reads, ``cites`` the unit of citations.
    """

    shared = ("credibility",)

    def __init__(
        self, retriever: Retriever | None = None, k: int = 10, credibility: CredibilityModel | None = None
    ) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.credibility = credibility
        self.judged = choice("all", ("all", "cited"))
        self.reads = choice("all", ("all", "found"))
        self.cites = choice("sentence", ("sentence", "passage"))
        self.accuracy_judge = Agent(JudgeAccuracy)
        self.attribution_judge = Agent(JudgeAttribution)
        self.confidence = Confidence()
        self.reviser = Agent(ReviseAnswer)

    def forward(self, draft: CitedAnswer, sources: Candidates, hops: float, *, shown: int) -> ReviewResult:
        """Review an answer read from ``sources``, to which the best ``shown`` hits of a second search are added."""
        weighed, status = self.judge(draft, sources, hops)
        if weighed.passed:
            return ReviewResult(draft, weighed.confidence, status)
        query = draft.question if draft.answer == UNKNOWN else draft.answer
        found = self.search(query)
        fresh = [hit.passage for hit in found[:shown]]
        sources.extend(fresh)
        read = sources if self.reads.value == "all" else Candidates(fresh)
        revised = self._revise(draft, read) if read.passages else None
        return ReviewResult(revised or draft, weighed.confidence, status, revised is not None)

    def judge(self, draft: CitedAnswer, sources: Candidates, hops: float) -> tuple[Weighed, Status]:
        """The confidence in an answer, 0 for an unknown one, and how it was checked."""
        accuracy: float | None = 0.0
        credibility = 0.0
        if draft.answer != UNKNOWN:
            judges = [partial(self._accuracy, draft, sources), partial(self._credibility, draft, sources)]
            accuracy, judged = together(judges)
            credibility = judged or 0.0
        weighed: Weighed = self.confidence(hops, accuracy, credibility)
        return weighed, checked(weighed.passed, credibility)

    def read(
        self, answer: object, citations: Iterable[object], sources: Candidates
    ) -> tuple[str, tuple[Evidence, ...], tuple[str, ...]]:
        """`read_cited`, with the passages of the citations if these are the unit."""
        text, cited, invalid = read_cited(answer, citations, sources)
        return text, tuple(whole(cited)) if self.cites.value == "passage" else cited, invalid

    def _accuracy(self, draft: CitedAnswer, sources: Candidates) -> float | None:
        """The judge's probability; None if its reply cannot be read."""
        shown = sources.show() if self.judged.value == "all" else sources.show(draft.cited)
        try:
            reply = self.accuracy_judge(question=draft.question, sources=shown, answer=draft.answer)
            judged = Judged("accuracy", read_probability(reply.accuracy))
        except AdapterParseError as error:  # errors of the model itself are not a verdict
            record_incident("verdict unreadable")
            judged = Judged("accuracy", 0.0, invalid=(" ".join(str(error.lm_response).split())[:80],))
        record(judged)
        return None if judged.invalid else judged.score

    def _credibility(self, draft: CitedAnswer, sources: Candidates) -> float | None:
        if not draft.cited:
            return CREDIBILITY["extrapolatory"]
        if self.credibility is not None:
            record(Scored(score := _checked(self.credibility(draft.question, draft.answer, draft.cited))))
            return score
        evidence = sources.show(draft.cited)
        verdict = self.attribution_judge(question=draft.question, evidence=evidence, answer=draft.answer).attribution
        record(Judged("attribution", CREDIBILITY[verdict], verdict))
        return CREDIBILITY[verdict]

    def _revise(self, draft: CitedAnswer, sources: Candidates) -> CitedAnswer | None:
        """The new answer, with the old citations if it has none; None if the old one stays."""
        reply = self.reviser(question=draft.question, sources=sources.show(), draft=draft.answer)
        answer, cited, invalid = self.read(reply.answer, reply.cited, sources)
        accepted = reply.decision == "revised" and answer != UNKNOWN
        record(Revised(answer, str(reply.reason or "").strip(), accepted, facts(cited), invalid))
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


def _checked(score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, SupportsFloat) or not 0 <= float(score) <= 1:
        raise PolyhopError(f"the credibility model returned {score!r}: it must return a number from 0 to 1")
    return float(score)
