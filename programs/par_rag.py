"""PAR-RAG (arXiv 2504.16787): Plan, then Act, then Review.

The question's complexity chooses the exemplars that the planner is shown, and how much a judge's estimate weighs
against what the citations say. Every step of the plan is searched for, answered with citations and reviewed; an answer
that does not pass is looked at again, and the questions that build on it are refined. The final answer is concluded
from the steps, and reviewed in the same way.

What the paper leaves open is decided here. Steps that do not refer to one another run side by side. A question is
refined where an answer that it refers to was revised; where none was, the answers are only put in place of the
references. A reference to an answer that was not found is replaced by the question for it. A step whose
search finds nothing is unknown without asking anybody. The final answer rests on all that the steps cite. If it is
revised it is judged once more, because its confidence is the prediction's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import dspy

from ..data.chain import ChainRetriever
from ..data.passages import Evidence, Hit, Passage, Retriever
from ..data.pool import PassagePool
from ..signatures import AnswerFromTrajectory, AnswerStep, PlanSteps, RefineQuestion
from .agent import Agent
from .candidates import Candidates, facts
from .complexity import Complexity, estimate_complexity
from .exemplars import Exemplars
from .plan import Claim, Plan, Step, bind, demonstrated, trajectory
from .prediction import UNKNOWN, check_question, conclude, nothing_found, read_answer, tidy
from .program import Program
from .review import Review, read_cited
from .search import Search
from .together import together
from .trace import Decomposed, Estimated, Recalled, Refined, StepAnswered, Trace
from .tunables import choice, integer

Pool = Sequence[Passage] | PassagePool | None


@dataclass(frozen=True)
class Act:
    """A step that was taken: its claim, whether that was revised, and everything that was found on the way."""

    claim: Claim
    revised: bool
    seen: tuple[Hit, ...]


class ParRag(Program):
    """Plan the question, take the steps of the plan, review every answer.

    LM calls: 1 for the plan, 3 a step, 3 for the final answer; 1 more for every answer that does not pass (3 for the
    final one), 1 for every question that is refined. One after the other: 1 for the plan, 2 a level of the plan and 2
    for the final answer, and 1 more (2 for the final one) where something does not pass. Searches: 1 a step, 1 for
    every answer that does not pass. Evidence is addressed by sentence.

    Args:
        retriever: Where steps are searched for when a question brings no pool of its own.
        k: Passages that one search returns.
        shown: How many of them an agent reads.
        review_retriever: Where the review looks again, meant to be sparse. If not given: the BM25 source of a
            `ChainRetriever`, else the same retriever.

    ``planned`` and ``reviewed`` are the paper's ablations: without a plan the question itself is the only step, without
    a review every answer passes, and the confidence is the answering agent's own.
    """

    shown_exemplars = ("planner",)

    def __init__(
        self,
        retriever: Retriever | None = None,
        k: int = 10,
        shown: int = 5,
        review_retriever: Retriever | None = None,
    ) -> None:
        super().__init__()
        self.search = Search(retriever, k)
        self.shown = integer(shown, 1, 50)
        self.planned = choice(True, (True, False))
        self.reviewed = choice(True, (True, False))
        self.exemplars = Exemplars(count=1)
        self.planner = Agent(PlanSteps)
        self.step_answerer = Agent(AnswerStep)
        self.review = Review(review_retriever or _sparse(retriever), k)
        self.refiner = Agent(RefineQuestion)
        self.answerer = Agent(AnswerFromTrajectory)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        question, trace = check_question(question), Trace()
        complexity = estimate_complexity(question)
        trace.add(Estimated(complexity.probabilities))
        plan = self._plan(question, complexity, trace)

        acts: dict[int, Act] = {}
        for level in plan.levels():
            tasks = [partial(self._act, question, step, dict(acts), complexity, pool) for step in level]
            acts |= zip((step.number for step in level), together(trace, tasks), strict=True)
        seen = [hit for step in plan.steps for hit in acts[step.number].seen]

        if not seen:
            return nothing_found(trace)
        cited = [item for step in plan.steps for item in acts[step.number].claim.cited]
        sources = Candidates(item.passage for item in cited)
        evidence = _merged(cited, sources)
        steps = trajectory({number: act.claim for number, act in acts.items()})
        reply = self.answerer(question=question, trajectory=steps, evidence=sources.show(evidence))
        answer, confidence = read_answer(reply, trace)

        stop = "plan done"
        if self.reviewed.value:
            claim, hops = Claim(question, answer, evidence), complexity.expected
            review = self.review(claim, sources, hops, pool, trace, shown=self.shown.value)
            stop, confidence = "confident" if review.passed else "unconfident", review.confidence
            if review.revised:
                stop, confidence = "revised", self.review.judge(review.claim, sources, hops, trace).confidence
            answer, evidence = review.claim.answer, _merged([*evidence, *review.claim.cited], sources)
            seen += review.found
        return conclude(answer, confidence, trace, evidence=evidence, seen=seen, stop=stop)

    def _plan(self, question: str, complexity: Complexity, trace: Trace) -> Plan:
        """The planner's steps; without planning the question itself."""
        if not self.planned.value:
            return Plan.of(question)[0]
        exemplars = self.exemplars(question, complexity)
        trace.add(Recalled(tuple(exemplar.question for exemplar in exemplars)))
        shown = [
            dspy.Example(question=exemplar.question, steps=demonstrated(exemplar.sub_questions)).with_inputs("question")
            for exemplar in exemplars
        ]
        reply = self.planner(question=question, demos=[*self.planner.demos, *shown])
        plan, beyond = Plan.of(question, reply.steps)
        asked, thoughts = zip(*((step.question, step.thought) for step in plan.steps), strict=True)
        trace.add(Decomposed(asked, beyond, thoughts))
        return plan

    def _act(
        self, question: str, step: Step, acts: Mapping[int, Act], complexity: Complexity, pool: Pool, trace: Trace
    ) -> Act:
        """Take one step: search, answer with citations, review."""
        asked = self._ask(question, step, acts, trace)
        hits = self.search(asked, pool, trace)
        sources = Candidates(hit.passage for hit in hits[: self.shown.value])
        claim = Claim(asked, UNKNOWN)
        if hits:
            reply = self.step_answerer(question=asked, sources=sources.show())
            answer, cited, invalid = read_cited(reply.answer, reply.cited, sources)
            claim = Claim(asked, answer, cited)
            trace.add(StepAnswered(step.number, asked, answer, facts(cited), invalid))
        if not self.reviewed.value:
            return Act(claim, False, tuple(hits))
        review = self.review(claim, sources, complexity.expected, pool, trace, shown=self.shown.value)
        return Act(review.claim, review.claim.answer != claim.answer, (*hits, *review.found))

    def _ask(self, question: str, step: Step, acts: Mapping[int, Act], trace: Trace) -> str:
        """A step's question with the earlier answers in it, reworded if one of those was revised."""
        claims = {number: act.claim for number, act in acts.items()}
        asked = step.question
        if any(acts[number].revised for number in step.needs):
            steps = trajectory(claims)
            reply = self.refiner(question=question, trajectory=steps, next_question=asked)
            refined, cut = tidy(reply.refined_question)
            asked = refined if refined != UNKNOWN else asked
            trace.add(Refined(step.number, asked, cut))
        return bind(asked, claims)


def _merged(cited: Sequence[Evidence], sources: Candidates) -> tuple[Evidence, ...]:
    """Each citation once, in its order; a passage that is cited whole stands for its sentences."""
    evidence, _ = sources.resolve(dict.fromkeys(sources.ids(cited)))
    return tuple(evidence)


def _sparse(retriever: Retriever | None) -> Retriever | None:
    return cast(Retriever | None, retriever.source) if isinstance(retriever, ChainRetriever) else retriever
