"""PAR-RAG (arXiv 2504.16787): Plan, then Act, then Review.

The question's complexity chooses the planner's exemplars and weights the judges of the review. Each step of the plan is
searched for, answered with citations and reviewed; if an answer was revised, the questions that build on it are
refined. The final answer is concluded from the steps and reviewed too.

    #1 Who directed Vertigo?    #2 Who directed Psycho?    #3 Where was #1 born?

The public code settles what the paper leaves open.

Deviations at the default settings, each with the tunable that removes it (`ParRag.paper_values`):

- only questions that refer to a revised answer are refined, and steps without references to one another run in parallel
  (#1 and #2); as published, steps are taken one by one, and each next question is refined (``refine``);
- alpha depends on the expected number of hops, not on the most probable one (``hops``);
- a final answer that does not pass is revised, and then judged again; as published, it is only judged (``repair``);
- those of the review (`polyhop.programs.review`).

Deviations that remain: the estimator of complexity is a logistic regression, not BERT, unless you give your own
(``estimator``). Exemplars are similar in form, not in topic (`polyhop.programs.exemplars`). Answers replace the
references that are left; the question describes an unknown answer. A step whose search finds nothing is unknown without
a call. At most `MAX_STEPS` steps are taken. The agent that concludes does not read the thoughts of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, cast

import dspy

from ..data.chain import ChainRetriever
from ..data.passages import Evidence, Retriever
from ..data.references import references, replace_references
from ..signatures import AnswerFromTrajectory, AnswerStep, PlanSteps, RefineQuestion
from .agent import Agent, Conditions
from .candidates import Candidates, facts
from .complexity import Complexity, ComplexityEstimator, Estimator
from .exemplars import Exemplars
from .prediction import UNKNOWN, Status, conclude, nothing_found, read_answer, tidy
from .program import Program, register
from .review import CitedAnswer, CredibilityModel, Review, ReviewResult
from .run import Pool, current, record, together
from .search import Search
from .trace import Decomposed, Estimated, Recalled, Refined, StepAnswered
from .tunable import choice, integer

MAX_STEPS = 8


@register("par_rag")
class ParRag(Program):
    """Plan the question, take the steps of the plan, review every answer. Evidence consists of sentences.

    LM calls: 1 for the plan, 3 per step, 3 for the final answer; 1 more for each answer that does not pass (3 for the
    final one) and for each question that is refined. In sequence: 1 for the plan, 2 per level of the plan (3 per step
    if every question is refined), 2 for the final answer. Searches: 1 per step and per answer that does not pass.

    Args:
        retriever: For questions without a pool of their own.
        k: Passages per search.
        shown: How many of them an agent reads.
        review_retriever: For the review, meant to be sparse; by default the BM25 source of a `ChainRetriever`, else the
            same retriever.
        estimator: Of the complexity. If it is not a DSPy parameter, as `ComplexityEstimator` is, artifacts cannot hold
            it.
        credibility: Judges attribution in place of the agent.

    ``refine`` says which questions are refined, ``hops`` which number of hops weighs the judges, and ``repair`` whether
    a final answer that does not pass is revised. ``planned`` and ``reviewed`` are the paper's ablations: without a plan
    the question is the only step; without a review every answer passes, with the answering agent's confidence.
    """

    shown_exemplars = ("planner",)
    conditions: ClassVar[Conditions] = {
        **dict.fromkeys(("exemplars.*", "refine"), ("planned", (True,))),
        **dict.fromkeys(
            ("repair", "review.judged", "review.reads", "review.search.*", "review.confidence.*"), ("reviewed", (True,))
        ),
        "hops": ("review.confidence.adaptive", (True,)),
    }
    paper_retriever: ClassVar[str] = "dense"
    paper_values: ClassVar[Mapping[str, Any]] = {
        "refine": "every",
        "hops": "predicted",
        "repair": False,
        "review.judged": "cited",
        "review.cites": "passage",
        "review.reads": "found",
        "review.confidence.least_accuracy": 0.0,
        "review.confidence.least_credibility": 0.0,
    }

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
        super().__init__()
        self.search = Search(retriever, k)
        self.shown = integer(shown, 1, 50)
        self.planned = choice(True, (True, False))
        self.reviewed = choice(True, (True, False))
        self.refine = choice("revised", ("revised", "every"))
        self.hops = choice("expected", ("expected", "predicted"))
        self.repair = choice(True, (True, False))
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
        complexity = self.estimator(question)
        record(Estimated(complexity.probabilities))
        hops = complexity.expected if self.hops.value == "expected" else float(complexity.hops)
        plan = self._plan(question, complexity)

        done: dict[int, _Outcome] = {}
        for level in levels(plan) if self.refine.value == "revised" else [[step] for step in plan]:
            tasks = [partial(self._act, question, step, dict(done), hops) for step in level]
            done |= zip((step.number for step in level), together(tasks), strict=True)
        outcomes = [done[step.number] for step in plan]
        if not current().seen:
            return nothing_found()

        cited = [item for outcome in outcomes for item in outcome.answer.cited]
        sources = Candidates(item.passage for item in cited)
        evidence = _merged(cited, sources)
        steps = trajectory({number: outcome.answer for number, outcome in done.items()})
        reply = self.answerer(question=question, trajectory=steps, evidence=sources.show(evidence))
        answer, confidence = read_answer(reply)

        stop = "plan done"
        status: Status = "not checked"
        if self.reviewed.value:
            draft = CitedAnswer(question, answer, evidence)
            if self.repair.value:
                review = self.review(draft, sources, hops, shown=self.shown.value)
            else:
                weighed, status = self.review.judge(draft, sources, hops)
                review = ReviewResult(draft, weighed.confidence, status)
            confidence, status = review.confidence, review.status
            stop = "confident" if status == "verified" else "unconfident"
            if review.revised:
                weighed, status = self.review.judge(review.answer, sources, hops)
                stop, confidence = "revised", weighed.confidence
            answer, evidence = review.answer.answer, _merged([*evidence, *review.answer.cited], sources)
        return conclude(answer, confidence, evidence=evidence, stop=stop, status=status)

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
        self,
        question: str,
        step: PlanStep,
        done: Mapping[int, _Outcome],
        hops: float,
    ) -> _Outcome:
        """Take one step: search, answer with citations, review."""
        asked = self._ask(question, step, done)
        hits = self.search(asked)
        sources = Candidates(hit.passage for hit in hits[: self.shown.value])
        draft = CitedAnswer(asked, UNKNOWN)
        if hits:
            reply = self.step_answerer(question=asked, sources=sources.show())
            answer, cited, invalid = self.review.read(reply.answer, reply.cited, sources)
            draft = CitedAnswer(asked, answer, cited)
            record(StepAnswered(step.number, asked, answer, facts(cited), invalid))
        if not self.reviewed.value:
            return _Outcome(draft, False)
        review = self.review(draft, sources, hops, shown=self.shown.value)
        return _Outcome(review.answer, review.answer.answer != draft.answer)

    def _ask(self, question: str, step: PlanStep, done: Mapping[int, _Outcome]) -> str:
        """A step's question with earlier answers filled in; refined if one of them was revised, or always."""
        answers = {number: outcome.answer for number, outcome in done.items()}
        asked = step.question
        if any(done[number].revised for number in step.needs) or (done and self.refine.value == "every"):
            reply = self.refiner(question=question, trajectory=trajectory(answers), next_question=asked)
            refined, cut = tidy(reply.refined_question)
            asked = refined if refined != UNKNOWN else asked
            record(Refined(step.number, asked, cut))
        return bind(asked, answers)


@dataclass(frozen=True)
class _Outcome:
    """A step that was taken: its answer, and whether the review changed it."""

    answer: CitedAnswer
    revised: bool


def _merged(cited: Sequence[Evidence], sources: Candidates) -> tuple[Evidence, ...]:
    """Each citation once, in order; a whole passage replaces its sentences."""
    evidence, _ = sources.resolve(dict.fromkeys(sources.ids(cited)))
    return tuple(evidence)


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
