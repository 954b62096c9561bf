"""PAR-RAG (arXiv 2504.16787): Plan, then Act, then Review.

The question's complexity chooses the planner's exemplars and weights the judges of the review. Each step of the plan is
searched for, answered with citations and reviewed. The next question is refined with the answers before it. The final
answer is concluded from the steps, and judged once more.

    #1 Who directed Vertigo?    #2 Who directed Psycho?    #3 Where was #1 born?

The paper leaves open, and its public code settles, that both judges read what an answer cites, that the threshold is
0.75, and that the reviser reads what the second search finds. Open in both are the function alpha(h)
(`polyhop.programs.confidence`) and the exemplars: here 24 plans of our own. The prompts are ours.

It differs:
- steps that do not refer to one another run in parallel (#1 and #2), so a question is refined if it refers to others;
- the estimator of complexity is a logistic regression, not BERT, unless you give your own (``estimator``);
- exemplars are similar in form, not in topic (`polyhop.programs.exemplars`);
- credibility is judged by an agent with AttrScore's classes, unless you give a model (``credibility``); an answer
  without citations is extrapolatory without a call;
- the reviser reads the draft;
- answers replace the references that are left; the question describes an unknown answer;
- a step whose search finds nothing is unknown without a call, and at most `MAX_STEPS` steps are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, cast

import dspy

from ..data.chain import ChainRetriever
from ..data.passages import Retriever
from ..data.references import references, replace_references
from ..signatures import AnswerFromTrajectory, AnswerStep, PlanSteps, RefineQuestion
from .agent import Agent
from .candidates import Candidates, ids
from .complexity import HOPS, Complexity, ComplexityEstimator, Estimator
from .exemplars import Exemplars
from .prediction import UNKNOWN, conclude, nothing_found, read_answer, tidy
from .program import Program, register
from .review import CitedAnswer, CredibilityModel, Review, read_cited
from .run import Pool, current, record, together
from .search import Search
from .trace import Decomposed, Estimated, Recalled, Refined, StepAnswered
from .tunable import integer, switch

MAX_STEPS = 8


@register("par_rag")
class ParRag(Program):
    """Plan the question, take the steps of the plan, review every answer. Evidence consists of passages.

    LM calls: 1 for the plan, 3 per step, 3 for the final answer; 1 more for each step's answer that does not pass, and
    for each question that refers to another. In sequence: 1 for the plan, 2 to 4 per level of the plan, 2 for the final
    answer. Searches: 1 per step and per step's answer that does not pass.

    Args:
        retriever: For questions without a pool of their own.
        k: Passages per search.
        shown: How many of them an agent reads.
        review_retriever: For the review, meant to be sparse; by default the BM25 source of a `ChainRetriever`, else the
            same retriever.
        estimator: Of the complexity. If it is not a DSPy parameter, as `ComplexityEstimator` is, artifacts cannot hold
            it.
        credibility: Judges attribution in place of the agent.

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
        estimator: Estimator | None = None,
        credibility: CredibilityModel | None = None,
    ) -> None:
        super().__init__(abstain_below=0.0)
        self.search = Search(retriever, k)
        self.shown = integer(shown, 1, 50)
        self.planned = switch(True)
        self.misjudged = integer(0, -3, 3, usual=(0, 0))
        self.estimator = estimator or ComplexityEstimator()
        self.exemplars = Exemplars(count=1)
        self.planner = Agent(PlanSteps)
        self.step_answerer = Agent(AnswerStep)
        self.review = Review(review_retriever or _sparse(retriever), k, credibility)
        self.refiner = Agent(RefineQuestion)
        self.answerer = Agent(AnswerFromTrajectory)

    @classmethod
    def over(cls, retriever: Retriever | None = None, sparse: Retriever | None = None) -> Self:
        return cls(retriever, review_retriever=sparse)

    def forward(self, question: str, pool: Pool = None) -> dspy.Prediction:
        """Answer a question over its own ``pool``, or over the retriever if it has none."""
        estimated = self.estimator(question)
        record(Estimated(estimated.probabilities))
        complexity = Complexity.of(min(max(estimated.hops + self.misjudged.value, HOPS[0]), HOPS[-1]))

        done: dict[int, CitedAnswer] = {}
        for level in levels(self._plan(question, complexity)):
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
        weighed, status = self.review.judge(CitedAnswer(question, answer, evidence), complexity.hops)
        stop = "confident" if weighed.passed else "unconfident"
        return conclude(answer, weighed.confidence, evidence=evidence, stop=stop, status=status)

    def _plan(self, question: str, complexity: Complexity) -> list[PlanStep]:
        """The planner's steps; without planning the question itself."""
        if not self.planned.value:
            return [PlanStep(1, question)]
        exemplars = self.exemplars(question, complexity)
        record(Recalled(tuple(exemplar.question for exemplar in exemplars)))
        shown = [
            dspy.Example(question=exemplar.question, steps=demonstrated(exemplar.sub_questions)).with_inputs("question")
            for exemplar in exemplars
        ]
        reply = self.planner(question=question, demos=[*self.planner.demos, *shown])
        plan, surplus = read_plan(question, reply.steps)
        asked, thoughts = tuple(step.question for step in plan), tuple(step.thought for step in plan)
        record(Decomposed(asked, surplus, thoughts))
        return plan

    def _act(
        self, question: str, step: PlanStep, done: Mapping[int, CitedAnswer], complexity: Complexity
    ) -> CitedAnswer:
        """Take one step: refine its question, search, answer with citations, review."""
        asked = step.question
        if any(number in done for number in step.needs):
            reply = self.refiner(question=question, trajectory=trajectory(done), next_question=asked)
            refined, cut = tidy(reply.refined_question)
            asked = refined if refined != UNKNOWN else asked
            record(Refined(step.number, asked, cut))
        asked = bind(asked, done)
        sources = Candidates(hit.passage for hit in self.search(asked)[: self.shown.value])
        draft = CitedAnswer(asked, UNKNOWN)
        if sources.passages:
            reply = self.step_answerer(question=asked, sources=sources.show())
            answer, cited, invalid = read_cited(reply.answer, reply.cited, sources)
            draft = CitedAnswer(asked, answer, cited)
            record(StepAnswered(step.number, asked, answer, ids(cited), invalid))
        reviewed: CitedAnswer = self.review(draft, complexity.hops, self.shown.value)
        return reviewed


def _sparse(retriever: Retriever | None) -> Retriever | None:
    return cast(Retriever | None, retriever.source) if isinstance(retriever, ChainRetriever) else retriever


# --- the plan ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanStep:
    """One lookup; ``number`` counts from 1."""

    number: int
    question: str
    thought: str = ""

    @property
    def needs(self) -> tuple[int, ...]:
        """The earlier steps whose answers it refers to."""
        return tuple(number for number in references(self.question) if 0 < number < self.number)


def read_plan(question: str, steps: Iterable[Mapping[str, str]]) -> tuple[list[PlanStep], tuple[str, ...]]:
    """The first `MAX_STEPS` steps of a planner's reply, and the surplus questions.

    Steps without a question are skipped; if none is left, the question itself is the only step.
    """
    asked = [
        (text, " ".join(step.get("thought", "").split()))
        for step in steps
        if (text := " ".join(step.get("question", "").split()))
    ]
    kept = asked[:MAX_STEPS] or [(question, "")]
    surplus = tuple(text for text, _ in asked[MAX_STEPS:])
    return [PlanStep(number, *step) for number, step in enumerate(kept, 1)], surplus


def levels(plan: Sequence[PlanStep]) -> list[list[PlanStep]]:
    """The steps in the order in which they can be taken; those of one level are independent."""
    depth: dict[int, int] = {}
    found: dict[int, list[PlanStep]] = {}
    for step in plan:
        depth[step.number] = 1 + max((depth[number] for number in step.needs), default=0)
        found.setdefault(depth[step.number], []).append(step)
    return [found[n] for n in sorted(found)]


def bind(question: str, answers: Mapping[int, CitedAnswer]) -> str:
    """A question with answers in place of its references; an unknown answer is described by its question."""

    def text(number: int) -> str | None:
        found = answers.get(number)
        if found is None:
            return None
        return found.answer if found.answer != UNKNOWN else f'the answer to "{found.question.rstrip("?. ")}"'

    return replace_references(question, text)


def trajectory(answers: Mapping[int, CitedAnswer]) -> list[str]:
    """Questions and answers in the order of the steps, as agents read them."""
    return [f"#{number} {found.question} -> {found.answer}" for number, found in sorted(answers.items())]


def demonstrated(sub_questions: Iterable[str]) -> list[dict[str, str]]:
    """A solved question's sub-questions as a planner's reply."""
    steps = [PlanStep(number, question) for number, question in enumerate(sub_questions, 1)]
    return [{"thought": _dependence(step.needs), "question": step.question} for step in steps]


def _dependence(needs: tuple[int, ...]) -> str:
    if not needs:
        return "Needs nothing before it."
    *others, last = map(str, needs)
    return (
        f"Needs the answers of steps {', '.join(others)} and {last}." if others else f"Needs the answer of step {last}."
    )
