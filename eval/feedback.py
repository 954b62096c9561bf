"""Textual feedback for prompt optimizers that reflect, such as GEPA.

    dspy.GEPA(metric=with_feedback(metrics.joint_f1), ...)

GEPA asks for feedback on one agent at a time. `feedback` registers the aspects for an agent's role; an agent without
an entry gets the feedback for the whole program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dspy

from ..data.passages import Fact, Passage
from ..programs.trace import Added, Selected
from .metrics import Attempt, Metric, attempt_of, joint_f1
from .scoring import exact_match

_MOST_NAMED = 5  # passages or sentences listed in one sentence
_LONGEST_QUOTE = 200  # characters

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
        own = self.metric.feedback
        return dspy.Prediction(score=score, feedback=own(attempt) if own else explain(gold, pred, pred_name))


def explain(example: dspy.Example, prediction: dspy.Prediction, agent: str | None = None) -> str:
    """What is right and what is missing, in a sentence or two per aspect.

    Args:
        agent: The name of a predictor ("selector", "answerer.predict", ...); by default, the whole program.
    """
    review = Review(attempt_of(example, prediction), prediction)
    role = next((part for part in (agent or "").split(".") if part in AGENTS), "")
    texts = [aspect(review) for aspect in AGENTS[role]]
    return " ".join(text for text in texts if text) or answer(review)


@dataclass(frozen=True)
class Review:
    """A prediction compared with the gold."""

    attempt: Attempt
    prediction: dspy.Prediction  # its trace has the steps of the agents

    @cached_property
    def kept(self) -> tuple[Fact, ...]:
        """The final evidence."""
        return tuple(item.fact for item in self.attempt.output.evidence)

    @cached_property
    def wanted(self) -> tuple[Fact, ...]:
        """The gold sentences; the gold passages where no sentences are known."""
        return self.attempt.gold.facts or tuple(Fact(id) for id in self.attempt.gold.passages)

    @cached_property
    def _passages(self) -> dict[str, Passage]:
        known = [*(self.attempt.example.get("pool") or ()), *self.attempt.output.ranking]
        return {passage.id: passage for passage in known}

    def steps(self, kind: type[Any]) -> list[Any]:
        trace = self.prediction.get("trace")
        return [step for step in trace.flat() if isinstance(step, kind)] if trace is not None else []

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
        ids = {passage.id for passage in self.attempt.output.ranking}
        return [fact for fact in facts if fact.passage_id in ids]

    def title(self, id: str) -> str:
        return f'"{self._passages[id].title or id}"' if id in self._passages else f'"{id}"'

    def quoted(self, facts: Iterable[Fact]) -> str:
        """The titles and sentences of some facts."""
        return _listed(map(self._quote, facts))

    def _quote(self, fact: Fact) -> str:
        passage = self._passages.get(fact.passage_id)
        if passage is None or fact.sentence is None or fact.sentence >= len(passage.sentences):
            return self.title(fact.passage_id)
        text = passage.sentences[fact.sentence]
        short = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE].rsplit(" ", 1)[0] + " ..."
        return f"{self.title(fact.passage_id)} ({short})"


def _listed(names: Iterable[str]) -> str:
    given = list(dict.fromkeys(names))
    more = f" and {len(given) - _MOST_NAMED} more" if len(given) > _MOST_NAMED else ""
    return ", ".join(given[:_MOST_NAMED]) + more


# --- aspects; "" is the whole program --------------------------------------------------------------------------------


@feedback("", "answerer")
def answer(review: Review) -> str:
    given, answers = review.attempt.output.answer, review.attempt.gold.answers
    if exact_match(given, answers):
        return f'The answer "{given}" is right.'
    quoted = [f'"{text}"' for text in answers]
    also = f" (or {_listed(quoted[1:])})" if quoted[1:] else ""
    verdict = f'The answer "{given}" is wrong: expected {quoted[0] if quoted else "none"}{also}.'
    if review.attempt.answer.f1:
        verdict += " It shares words with that: give exactly the name, date or phrase that is asked for."
    return verdict


@feedback("answerer")
def grounds(review: Review) -> str:
    """Whether the answerer had the gold evidence."""
    if not review.wanted:
        return ""
    if missing := review.missing(review.kept):
        return f"The evidence did not contain {review.quoted(missing)}, so the answer could not be found in it."
    return f"The evidence was complete: the answer follows from {review.quoted(review.wanted)}."


@feedback("analyzer")
def decomposition(review: Review) -> str:
    hops = review.attempt.example.get("sub_questions") or ()
    texts = [hop if isinstance(hop, str) else hop.question for hop in hops]
    numbered = " ".join(f"({n}) {text}" for n, text in enumerate(texts, 1))
    return f"Sub-questions that lead to the answer: {numbered}" if hops else ""


@feedback("", "analyzer")
def search(review: Review) -> str:
    """Gold passages that the search did not find."""
    wanted = [Fact(id) for id in review.attempt.gold.passages]
    found = review.found(wanted)
    if missing := [fact for fact in wanted if fact not in found]:
        return f"The search did not find {review.quoted(missing)}: ask for what these are about by name."
    return "The search found all needed passages." if wanted else ""


@feedback("", "analyzer")
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


@feedback("selector", "gatherer")
def selections(review: Review) -> str:
    """What each round dropped and kept; the evidence if the trace has no rounds."""
    texts = []
    for step in review.steps(Selected):
        if dropped := review.found(review.missing(step.kept)):
            texts.append(f"Round {step.round} dropped {review.quoted(dropped)}, which the answer needs.")
        if irrelevant := review.irrelevant(step.kept):
            texts.append(f"Round {step.round} kept what the answer does not need: {review.quoted(irrelevant)}.")
    if texts or not review.steps(Selected):
        return " ".join(texts) or evidence(review)
    return "The selection kept what was needed of the candidates, and nothing irrelevant."


@feedback("adder")
def additions(review: Review) -> str:
    """What each round missed and added; the evidence if the trace has no rounds."""
    texts = []
    kept: dict[int, Collection[Fact]] = {step.round: step.kept for step in review.steps(Selected)}
    for step in review.steps(Added):
        there = {*kept.get(step.round, ()), *step.added}
        if left_out := review.found(review.missing(there)):
            texts.append(f"Round {step.round} should have added {review.quoted(left_out)}.")
        if irrelevant := review.irrelevant(step.added):
            texts.append(f"Round {step.round} added what the answer does not need: {review.quoted(irrelevant)}.")
    if texts or not review.steps(Added):
        return " ".join(texts) or evidence(review)
    return "Nothing was left to add, and nothing irrelevant was added."
