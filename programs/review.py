"""The review of PAR-RAG (arXiv 2504.16787): two judges, and a revision of answers that do not pass.

A judge's accuracy and the credibility of the citations are combined into a confidence; both read what the answer cites.
Below the threshold, the answer itself is the query for a sparse retriever; a reviser reads what it finds and gives a
new answer or keeps the old. `polyhop.programs.par_rag` says what differs from the paper.
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
from .candidates import Candidates, cut_citations, ids, whole
from .confidence import CREDIBILITY, Confidence, checked
from .prediction import UNKNOWN, Status, tidy
from .run import record, together
from .search import Search
from .trace import Judged, Revised, Scored, Weighed
from .tunable import choice


@dataclass(frozen=True)
class CitedAnswer:
    """An answer to a question as it was asked, and the passages that it cites."""

    question: str
    answer: str
    cited: tuple[Evidence, ...] = ()


class CredibilityModel(Protocol):
    """How far an answer is supported by its citations, by a model such as AttrScore's or one of entailment.

    It is called in several threads at once, and only for answers with citations.
    """

    def __call__(self, question: str, answer: str, evidence: Sequence[Evidence], /) -> float:
        """A number from 0 to 1; `polyhop.programs.confidence.CREDIBILITY` has those of AttrScore's classes.

        Args:
            evidence: What the answer cites: passages, each with ``text`` and ``passage.title``.
        """
        ...


class Review(Part):
    """Judges an answer, and revises it if it does not pass.

    2 LM calls in parallel; 1 more and 1 search if the answer does not pass.

    Args:
        retriever: For the second search, if a question has no pool of its own; meant to be sparse.
        k: Passages per search.
        shown: How many of them the reviser reads.
        credibility: Judges attribution in place of the agent. Like the retriever, it is not part of the saved state.

    ``judges`` are those that are asked: one of them, or none, is the paper's ablation.
    """

    shared = ("credibility",)

    def __init__(
        self, retriever: Retriever | None = None, k: int = 10, credibility: CredibilityModel | None = None
    ) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.credibility = credibility
        self.judges = choice("both", ("both", "accuracy", "credibility", "none"))
        self.accuracy_judge = Agent(JudgeAccuracy)
        self.attribution_judge = Agent(JudgeAttribution)
        self.confidence = Confidence(least_accuracy=0.0, least_credibility=0.0)
        self.reviser = Agent(ReviseAnswer)

    def forward(self, draft: CitedAnswer, hops: float, shown: int) -> CitedAnswer:
        """The answer if it passes, or else the reviser's."""
        if self.judges.value == "none" or self.judge(draft, hops)[0].passed:
            return draft
        found = self.search(draft.question if draft.answer == UNKNOWN else draft.answer)
        sources = Candidates(hit.passage for hit in found[:shown])
        return self._revised(draft, sources) if sources.passages else draft

    def judge(self, draft: CitedAnswer, hops: float) -> tuple[Weighed, Status]:
        """The confidence in an answer, 0 for an unknown one, and how it was checked."""
        accuracy = credibility = 0.0
        if draft.answer != UNKNOWN:
            asked = {"accuracy": self._accuracy, "credibility": self._credibility}
            names = [name for name in asked if self.judges.value in ("both", name)]
            scores = dict(zip(names, together([partial(asked[name], draft) for name in names]), strict=True))
            # A judge who is not asked agrees with the other one.
            accuracy = scores.get("accuracy", scores.get("credibility", 0.0))
            credibility = scores.get("credibility", accuracy)
        weighed: Weighed = self.confidence(hops, accuracy, credibility, draft.answer)
        return weighed, checked(accuracy, credibility)

    def _accuracy(self, draft: CitedAnswer) -> float:
        """The judge's probability; 0 if the reply cannot be read."""
        shown = Candidates(item.passage for item in draft.cited).show()
        try:
            reply = self.accuracy_judge(question=draft.question, evidence=shown, answer=draft.answer)
            judged = Judged("accuracy", read_probability(reply.accuracy))
        except AdapterParseError as error:  # errors of the model itself are not a verdict
            record_incident("verdict unreadable")
            judged = Judged("accuracy", 0.0, invalid=(" ".join(str(error.lm_response).split())[:80],))
        record(judged)
        return judged.score

    def _credibility(self, draft: CitedAnswer) -> float:
        """By AttrScore's classes; an answer without citations is extrapolatory without a call."""
        if not draft.cited:
            return CREDIBILITY["extrapolatory"]
        if self.credibility is not None:
            record(Scored(score := _checked(self.credibility(draft.question, draft.answer, draft.cited))))
            return score
        evidence = Candidates(item.passage for item in draft.cited).show()
        verdict = self.attribution_judge(question=draft.question, evidence=evidence, answer=draft.answer).attribution
        record(Judged("attribution", CREDIBILITY[verdict], verdict))
        return CREDIBILITY[verdict]

    def _revised(self, draft: CitedAnswer, sources: Candidates) -> CitedAnswer:
        """The reviser's answer, with the old citations if it has none; the draft if that is kept."""
        reply = self.reviser(question=draft.question, sources=sources.show(), draft=draft.answer)
        answer, cited, invalid = read_cited(reply.answer, reply.cited, sources)
        accepted = reply.decision == "revised" and answer != UNKNOWN
        record(Revised(answer, str(reply.reason or "").strip(), accepted, ids(cited), invalid))
        return replace(draft, answer=answer, cited=cited or draft.cited) if accepted else draft


def read_cited(
    answer: object, citations: Iterable[object], sources: Candidates
) -> tuple[str, tuple[Evidence, ...], tuple[str, ...]]:
    """An answer, the passages that it cites, and the invalid citations. Ids in the answer ("Paris [2s1]") count too."""
    named = [str(id) for id in citations]
    text, marked = cut_citations(str(answer))
    text, cut = tidy(text)
    cited, invalid = sources.resolve([*named, *(id for id in marked if id not in named)])
    return text, tuple(whole(cited)) if text != UNKNOWN else (), (*cut, *invalid)


def _checked(score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, SupportsFloat) or not 0 <= float(score) <= 1:
        raise PolyhopError(f"the credibility model returned {score!r}: it must return a number from 0 to 1")
    return float(score)
