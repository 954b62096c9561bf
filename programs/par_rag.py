"""PAR-RAG (arXiv 2504.16787): Plan, then Act, then Review. docs/programs.md says what the paper leaves open, and what
is different here.

The question's complexity chooses the planner's exemplars and weights the judges of the review. Each step of the plan is
searched for, answered with citations and reviewed: an accuracy and the credibility of the citations are combined into a
confidence. Below the threshold the answer itself is the query for a sparse retriever; a reviser reads what it finds and
gives a new answer or keeps the old. The next question is refined with the answers before it. The final answer is
concluded from the steps, and judged once more. Steps that do not refer to one another run in parallel:

    #1 Who directed Vertigo?    #2 Who directed Psycho?    #3 Where was #1 born?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import dspy

from .. import signatures
from ..data.chain import ChainRetriever
from ..data.form import references, replace_references
from ..data.passages import Evidence, Retriever
from ..data.text import has_phrase
from ..signatures.fields import read_probability, read_texts
from .agent import Agent, Part
from .candidates import Candidates, Cited, cut_citations, ids, whole
from .complexity import HOPS, Complexity, ComplexityEstimator
from .confidence import CREDIBILITY, Confidence, checked, verdict
from .exemplars import Exemplars, plan_like
from .prediction import UNKNOWN, Status, conclude, nothing_found, read_answer, tidy
from .program import Program, register
from .run import Pool, current, record, together
from .search import Search
from .trace import Decomposed, Estimated, Judged, Revised, StepAnswered, Weighed
from .tunable import choice, integer, switch

MAX_STEPS = 8


@register("par_rag")
class ParRag(Program):
    """Plan the question, take the steps of the plan, review every answer. Evidence consists of passages.

    LM calls: 1 for the plan, 3 per step, 3 for the final answer; 1 more for each step's answer that does not pass, and
    for each question that refers to another. In sequence: 1 for the plan, 2 to 4 per level of the plan, 2 for the final
    answer. Searches: 1 per step and per step's answer that does not pass.

    Args:
        k: Passages per search.
        shown: How many of them an agent reads.
        review_retriever: For the review, meant to be sparse; by default the BM25 source of a `ChainRetriever`, else the
            same retriever.
        estimator: Of the complexity.

    The paper's ablations are tunables: without ``planned`` the question is the only step; ``review.judges`` are those
    that are asked; ``review.confidence.adaptive`` is off for a fixed alpha; ``exemplars.mode`` chooses the exemplars;
    ``misjudged`` is added to the estimated number of hops.
    """

    shown_exemplars = ("planner",)

    def __init__(
        self,
        retriever: Retriever | None = None,
        k: int = 10,
        shown: int = 5,
        review_retriever: Retriever | None = None,
        *,
        estimator: ComplexityEstimator | None = None,
    ) -> None:
        super().__init__(abstain_below=0.0)
        sparse = cast(Retriever | None, retriever.source) if isinstance(retriever, ChainRetriever) else retriever
        self.search = Search(retriever, k)
        self.shown = integer(shown, 1, 50)
        self.planned = switch(True)
        self.misjudged = integer(0, -3, 3, usual=(0, 0))
        self.estimator = estimator or ComplexityEstimator()
        self.exemplars = Exemplars(count=1)
        self.planner = Agent(signatures.PlanSteps)
        self.step_answerer = Agent(signatures.AnswerStep)
        self.review = Review(review_retriever or sparse, k)
        self.refiner = Agent(signatures.RefineQuestion)
        self.answerer = Agent(signatures.AnswerFromTrajectory)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        estimated = self.estimator(question)
        record(Estimated(estimated.probabilities))
        complexity = Complexity.of(min(max(estimated.hops + self.misjudged.value, HOPS[0]), HOPS[-1]))

        plan, done = self._plan(question, complexity), dict[int, Cited]()
        while level := [step for step in plan if step.number not in done and done.keys() >= set(step.needs)]:
            tasks = [partial(self._act, question, step, dict(done), complexity) for step in level]
            done |= zip((step.number for step in level), together(tasks), strict=True)
        if not current().seen:
            return nothing_found()

        evidence = tuple(dict.fromkeys(item for _, answer in sorted(done.items()) for item in answer.cited))
        shown = Candidates(item.passage for item in evidence).show()
        reply = self.answerer(question=question, trajectory=trajectory(done), evidence=shown)
        answer, confidence = read_answer(reply)
        if self.review.judges.value == "none":
            return conclude(answer, confidence, evidence=evidence, stop="plan done")
        weighed, status = self.review.judge(Cited(answer, evidence, question), complexity.hops)
        stop = "confident" if weighed.passed else "unconfident"
        return conclude(answer, weighed.confidence, evidence=evidence, stop=stop, status=status)

    def _plan(self, question: str, complexity: Complexity) -> list[PlanStep]:
        """The first `MAX_STEPS` steps of the planner; without planning, or without any step, the question itself."""
        if not self.planned.value:
            return [PlanStep(1, question)]
        reply = plan_like(self.exemplars(question, complexity), self.planner, question)
        asked = read_texts(reply.sub_questions)
        kept = asked[:MAX_STEPS] or [question]
        record(Decomposed(tuple(kept), tuple(asked[MAX_STEPS:])))
        return [PlanStep(number, text) for number, text in enumerate(kept, 1)]

    def _act(self, question: str, step: PlanStep, done: Mapping[int, Cited], complexity: Complexity) -> Cited:
        """Take one step: refine its question, search, answer with citations, review."""
        asked = step.question
        if any(number in done for number in step.needs):
            reply = self.refiner(question=question, trajectory=trajectory(done), next_question=asked)
            refined, _ = tidy(reply.refined_question)
            asked = asked if refined == UNKNOWN else refined
        asked = bind(asked, done)
        sources = Candidates(hit.passage for hit in self.search(asked)[: self.shown.value])
        draft = Cited(UNKNOWN, question=asked)
        if sources.passages:
            reply = self.step_answerer(question=asked, sources=sources.show())
            answer, cited, invalid = read_cited(reply.answer, reply.cited, sources)
            draft = Cited(answer, cited, asked)
            record(StepAnswered(step.number, asked, answer, ids(cited), invalid))
        reviewed: Cited = self.review(draft, complexity.hops, self.shown.value)
        return reviewed


# --- the plan ---------------------------------------------------------------------------------------------------------


class PlanStep(NamedTuple):
    """One lookup; ``number`` counts from 1."""

    number: int
    question: str

    @property
    def needs(self) -> list[int]:
        """The earlier steps whose answers it refers to."""
        return [number for number in references(self.question) if 0 < number < self.number]


def bind(question: str, answers: Mapping[int, Cited]) -> str:
    """A question with answers in place of its references; an unknown answer is described by its question."""

    def text(number: int) -> str | None:
        if (answer := answers.get(number)) is None:
            return None
        return answer.text if answer.text != UNKNOWN else f'the answer to "{answer.question.rstrip("?. ")}"'

    return replace_references(question, text)


def trajectory(answers: Mapping[int, Cited]) -> list[str]:
    """Questions and answers in the order of the steps, as agents read them."""
    return [f"#{number} {answer.question} -> {answer.text}" for number, answer in sorted(answers.items())]


# --- the review -------------------------------------------------------------------------------------------------------


class Review(Part):
    """Judges an answer, and revises it if it does not pass.

    2 LM calls in parallel; 1 more and 1 search if the answer does not pass.

    Args:
        retriever: For the second search, if a question has no pool of its own; meant to be sparse.
        k: Passages per search.

    ``judges`` are those that are asked: one of them, or none, is the paper's ablation. A subclass whose
    ``credibility(draft)`` returns a number from 0 to 1 judges attribution with another model.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 10) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.judges = choice("both", ("both", "accuracy", "credibility", "none"))
        self.accuracy_judge = Agent(signatures.JudgeAccuracy)
        self.attribution_judge = Agent(signatures.JudgeAttribution)
        self.confidence = Confidence(least_accuracy=0.0, least_credibility=0.0)
        self.reviser = Agent(signatures.ReviseAnswer)

    def forward(self, draft: Cited, hops: float, shown: int) -> Cited:
        """The answer if it passes, or else the reviser's, who reads so many passages; the old citations stay if the new
        answer has none."""
        if self.judges.value == "none" or self.judge(draft, hops)[0].passed:
            return draft
        hits = self.search(draft.question if draft.text == UNKNOWN else draft.text)
        sources = Candidates(hit.passage for hit in hits[:shown])
        if not sources.passages:
            return draft
        reply = self.reviser(question=draft.question, sources=sources.show(), draft=draft.text)
        answer, cited, invalid = read_cited(reply.answer, reply.cited, sources)
        accepted = reply.decision == "revised" and answer != UNKNOWN
        record(Revised(answer, str(reply.reason or "").strip(), accepted, ids(cited), invalid))
        return replace(draft, text=answer, cited=cited or draft.cited) if accepted else draft

    def judge(self, draft: Cited, hops: float) -> tuple[Weighed, Status]:
        """The confidence in an answer, 0 for an unknown one, and how it was checked."""
        accuracy = credibility = 0.0
        if draft.text != UNKNOWN:
            asked = {"accuracy": self.accuracy, "credibility": self.credibility}
            names = [name for name in asked if self.judges.value in ("both", name)]
            scores = dict(zip(names, together([partial(asked[name], draft) for name in names]), strict=True))
            # A judge who is not asked agrees with the other one.
            accuracy = scores.get("accuracy", scores.get("credibility", 0.0))
            credibility = scores.get("credibility", accuracy)
        weighed: Weighed = self.confidence(hops, accuracy, credibility, draft.text)
        return weighed, checked(weighed)

    def accuracy(self, draft: Cited) -> float:
        """The judge's probability; 0 if the reply cannot be read."""
        if (reply := _judged(self.accuracy_judge, "accuracy", draft)) is None:
            return 0.0
        record(judged := Judged("accuracy", read_probability(reply.accuracy)))
        return judged.score

    def credibility(self, draft: Cited) -> float:
        """By AttrScore's classes; an answer without citations is extrapolatory without a call, and so does
        an unreadable verdict count."""
        if not draft.cited:
            return CREDIBILITY["extrapolatory"]
        if (reply := _judged(self.attribution_judge, "attribution", draft)) is None:
            return CREDIBILITY["extrapolatory"]
        record(Judged("attribution", CREDIBILITY[reply.attribution], reply.attribution))
        return CREDIBILITY[reply.attribution]


def _judged(judge: Agent, aspect: str, draft: Cited) -> dspy.Prediction | None:
    shown = Candidates(item.passage for item in draft.cited).show()
    return verdict(judge, aspect, question=draft.question, evidence=shown, answer=draft.text)


def read_cited(
    answer: object, citations: Iterable[object] | None, sources: Candidates
) -> tuple[str, tuple[Evidence, ...], tuple[str, ...]]:
    """An answer, the passages that it cites, and the invalid citations. Ids in the answer ("Paris [2s1]") count too; if
    a reply has lost its citations, the first source that has the answer counts."""
    text, marked = cut_citations(str(answer))
    text, cut = tidy(text)
    named = list(map(str, citations or ()))
    cited, invalid = sources.resolve([*named, *(id for id in marked if id not in named)])
    if citations is None and not cited:
        cited = [Evidence(passage) for passage in sources.passages if has_phrase(passage.text, text)][:1]
    return text, tuple(whole(cited)) if text != UNKNOWN else (), (*cut, *invalid)
