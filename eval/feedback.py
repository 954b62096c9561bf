"""Textual feedback for prompt optimizers that reflect, such as GEPA.

    dspy.GEPA(metric=with_feedback(metrics.joint_f1), ...)

GEPA asks for feedback on one call of an agent at a time. It is told what the annotations ask for in this call
(`polyhop.eval.faults`), and how the question ended. Where the annotations tell nothing of an agent, it gets the
feedback for the whole program. `feedback` registers more for an agent's role.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dspy

from ..data.passages import Evidence, Fact, Passage
from .faults import faults, listed, missing, quote
from .metrics import Attempt, Metric, attempt_of, joint_f1
from .scoring import counted, exact_match, fact_in

Aspect = Callable[["Review"], str]

AGENTS: dict[str, tuple[Aspect, ...]] = {}
"""The aspects by the role of an agent: the name of its predictor in the program."""


def feedback(*roles: str) -> Callable[[Aspect], Aspect]:
    """Register a function of a `Review` as feedback for the agents of some roles, after what they already have."""

    def register(aspect: Aspect) -> Aspect:
        for role in roles:
            AGENTS[role] = (*AGENTS.get(role, ()), aspect)
        return aspect

    return register


def with_feedback(metric: Metric = joint_f1) -> FeedbackMetric:
    """The metric with textual feedback."""
    return FeedbackMetric(metric)


@dataclass(frozen=True)
class FeedbackMetric:
    """A DSPy metric that returns ``dspy.Prediction(score, feedback)``, as GEPA needs it.

    While exemplars are collected (a trace without the name of an agent) it returns a bool, as every `Metric`.
    """

    metric: Metric

    def __call__(
        self,
        gold: dspy.Example,
        pred: dspy.Prediction,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> dspy.Prediction | bool:
        attempt = attempt_of(gold, pred)
        score = self.metric.function(attempt)
        if trace is not None and pred_name is None:
            return self.metric.reached(score)
        own, call = (
            self.metric.feedback,
            next(((p.signature, given, reply) for p, given, reply in pred_trace or ()), None),
        )
        return dspy.Prediction(score=score, feedback=own(attempt) if own else explain(gold, pred, pred_name, call))


Call = tuple[type[dspy.Signature], Mapping[str, Any], Mapping[str, Any]]
"""The signature, the inputs and the reply of one call of an agent."""


def explain(
    example: dspy.Example, prediction: dspy.Prediction, agent: str | None = None, call: Call | None = None
) -> str:
    """What is right and what is missing, in a sentence or two per aspect.

    Args:
        agent: The name of a predictor ("selector", "answerer.predict", ...); by default, the whole program.
        call: A call of this agent, to judge its reply by what it saw.
    """
    review = Review(attempt_of(example, prediction), prediction)
    role = next((part for part in (agent or "").split(".") if part in AGENTS), "")
    texts = [aspect(review) for aspect in AGENTS[role]] if role else []
    if call is not None and (told := _of_call(review, *call)):
        texts = [told, answer(review), *texts]
    texts = texts or [aspect(review) for aspect in AGENTS[""]]
    return " ".join(text for text in texts if text) or answer(review)


def _of_call(review: Review, signature: type[dspy.Signature], inputs: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """The faults of one reply; empty if the annotations do not tell what it should be."""
    example, seen = review.attempt.example, review.attempt.output.ranking
    found = faults(example, seen, signature, inputs, own)
    if found is None:
        return ""
    return " ".join([*(found.values() or ["This reply has no fault."]), missing(example, seen, inputs)]).strip()


@dataclass(frozen=True)
class Review:
    """A prediction compared with the gold."""

    attempt: Attempt
    prediction: dspy.Prediction  # its trace has the steps of the agents

    @cached_property
    def kept(self) -> tuple[Fact, ...]:
        """The final evidence."""
        return tuple(self._counted(item) for item in self.attempt.output.evidence)

    def _counted(self, item: Evidence) -> Fact:
        return fact_in(self.attempt.gold.passages, item.passage, item.sentence)

    @cached_property
    def wanted(self) -> tuple[Fact, ...]:
        """The gold sentences; the gold passages where no sentences are known."""
        return self.attempt.gold.facts or tuple(Fact(id) for id in self.attempt.gold.passages)

    @cached_property
    def _known(self) -> list[Passage]:
        return [*(self.attempt.example.get("pool") or ()), *self.attempt.output.ranking]

    @cached_property
    def _titles(self) -> dict[str, str]:
        return {counted(self.attempt.gold.passages, passage): passage.title for passage in self._known}

    def missing(self, facts: Collection[Fact]) -> list[Fact]:
        """The gold facts that are not among ``facts``; a whole passage includes its sentences."""
        passages = {fact.passage_id for fact in facts}
        whole = {fact.passage_id for fact in facts if fact.sentence is None}
        return [
            fact
            for fact in self.wanted
            if fact.passage_id not in (passages if fact.sentence is None else whole) and fact not in facts
        ]

    def irrelevant(self, facts: Iterable[Fact]) -> list[Fact]:
        """The facts that are not gold."""
        gold = self.attempt.gold
        by_passage = not gold.facts
        return [
            fact
            for fact in facts
            if (fact.passage_id not in gold.passages if fact.sentence is None or by_passage else fact not in gold.facts)
        ]

    def found(self, facts: Iterable[Fact]) -> list[Fact]:
        """The facts whose passages the search found."""
        ids = {counted(self.attempt.gold.passages, passage) for passage in self.attempt.output.ranking}
        return [fact for fact in facts if fact.passage_id in ids]

    def title(self, id: str) -> str:
        return f'"{self._titles.get(id) or id}"'

    def quoted(self, facts: Iterable[Fact]) -> str:
        """The titles and sentences of some facts."""
        return listed(map(self._quote, facts))

    def _quote(self, fact: Fact) -> str:
        items = (Evidence(passage, n) for passage in self._known for n in range(len(passage.sentences)))
        found = next((item for item in items if self._counted(item) == fact), None)
        return self.title(fact.passage_id) + (f" ({quote(found.text)})" if found else "")


# --- aspects; "" is the whole program --------------------------------------------------------------------------------


@feedback("")
def answer(review: Review) -> str:
    given, answers = review.attempt.output.answer, review.attempt.gold.answers
    if exact_match(given, answers):
        return f'The answer "{given}" is right.'
    quoted = [f'"{text}"' for text in answers]
    also = f" (or {listed(quoted[1:])})" if quoted[1:] else ""
    verdict = f'The answer "{given}" is wrong: expected {quoted[0] if quoted else "none"}{also}.'
    if review.attempt.answer.f1:
        verdict += " It shares words with that: give exactly the name, date or phrase that is asked for."
    return verdict


@feedback("")
def search(review: Review) -> str:
    """Gold passages that the search did not find."""
    wanted = [Fact(id) for id in review.attempt.gold.passages]
    found = review.found(wanted)
    if missing := [fact for fact in wanted if fact not in found]:
        return f"The search did not find {review.quoted(missing)}: ask for what these are about by name."
    return "The search found all needed passages." if wanted else ""


@feedback("")
def evidence(review: Review) -> str:
    """The final evidence, sentence by sentence."""
    if not review.wanted:
        return f"No evidence was needed, but {len(review.kept)} pieces were kept." if review.kept else ""
    missing, irrelevant = review.missing(review.kept), review.irrelevant(review.kept)
    if not missing and not irrelevant:
        return "The evidence is complete and has nothing irrelevant in it."
    texts = [f"The final evidence misses {review.quoted(missing)}." if missing else "The evidence is complete."]
    if irrelevant:
        texts.append(f"It also contains what the answer does not need: {review.quoted(irrelevant)}.")
    return " ".join(texts)
