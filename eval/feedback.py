"""What was missed, in words: the metric that GEPA reflects on.

    dspy.GEPA(metric=with_feedback(objectives.joint_f1), ...)

GEPA asks for feedback on one agent at a time. Each agent hears about its own work: the analyzer what the search did
not find, the Selector what it dropped and what it kept in vain, the Adder what it could have added, the answerer which
answer was expected and whether it had the evidence for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import dspy

from ..data.passages import Fact, Passage
from ..programs.trace import Added, Selected
from .gold import Gold, gold_of, passages_of
from .metrics import answer_f1, exact_match
from .objectives import Objective, joint_f1

_MOST_NAMED = 5  # passages or sentences listed in one sentence
_LONGEST_QUOTE = 200  # characters


def with_feedback(objective: Objective = joint_f1) -> Feedback:
    """The objective with words to its score."""
    return Feedback(objective)


@dataclass(frozen=True)
class Feedback:
    """A DSPy metric that returns ``dspy.Prediction(score, feedback)``, as GEPA wants it.

    Like any objective it returns a bool where exemplars are collected (a trace, and no agent named).
    """

    objective: Objective

    def __call__(
        self,
        gold: dspy.Example,
        pred: dspy.Prediction,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> dspy.Prediction | bool:
        score = self.objective.score(gold, pred)
        if trace is not None and pred_name is None:
            return score >= self.objective.threshold
        return dspy.Prediction(score=score, feedback=explain(gold, pred, pred_name))


def explain(example: dspy.Example, prediction: dspy.Prediction, agent: str | None = None) -> str:
    """What was right and what was missed, a sentence or two an aspect.

    Args:
        agent: The name of a program's agent ("selector", "answerer.predict", ...); everything if it is unknown.
    """
    review = _Review(example, prediction)
    aspects = {
        "analyzer": [review.decomposition, review.search, review.evidence],
        "selector": [review.selections],
        "adder": [review.additions],
        "answerer": [review.answer, review.grounds],
    }
    everything = [review.answer, review.search, review.evidence]
    known = next((part for part in (agent or "").split(".") if part in aspects), None)
    texts = [aspect() for aspect in (aspects[known] if known else everything)]
    return " ".join(text for text in texts if text) or review.answer()


class _Review:
    """One prediction held against what is right."""

    def __init__(self, example: dspy.Example, prediction: dspy.Prediction) -> None:
        self.example, self.prediction = example, prediction
        self.gold: Gold = gold_of(example, passages_of(prediction))
        self.kept = tuple(item.fact for item in prediction.evidence)
        self.found = {passage.id for passage in prediction.ranking}
        passages: list[Passage] = [*(example.get("pool") or ()), *prediction.ranking]
        self.passages = {passage.id: passage for passage in passages}
        self.wanted = self.gold.facts or tuple(Fact(id) for id in self.gold.passages)

    # --- aspects -----------------------------------------------------------------------------------------------------

    def answer(self) -> str:
        given, answers = self.prediction.answer, self.gold.answers
        if exact_match(given, answers):
            return f'The answer "{given}" is right.'
        quoted = [f'"{text}"' for text in answers]
        also = f" (or {_listed(quoted[1:])})" if quoted[1:] else ""
        verdict = f'The answer "{given}" is wrong: expected {quoted[0] if quoted else "none"}{also}.'
        if answer_f1(given, answers):
            verdict += " It shares words with that: give exactly the name, date or phrase that is asked for."
        return verdict

    def grounds(self) -> str:
        """Whether the answerer had what it needed."""
        missing = self._missing(self.kept)
        if not self.wanted:
            return ""
        if missing:
            return f"The evidence did not contain {self._quoted(missing)}, so the answer could not be read off it."
        return f"The evidence was complete: the answer follows from {self._quoted(self.wanted)}."

    def search(self) -> str:
        """Gold passages that never came up."""
        missing = [id for id in self.gold.passages if id not in self.found]
        if not missing:
            return "The search found all needed passages." if self.gold.passages else ""
        return f"The search did not find {_listed(map(self._title, missing))}: ask for what these are about by name."

    def evidence(self) -> str:
        """The final evidence set, by its sentences."""
        if not self.wanted:
            return f"No evidence was needed, but {len(self.kept)} pieces were kept." if self.kept else ""
        missing, vain = self._missing(self.kept), self._in_vain(self.kept)
        if not missing and not vain:
            return "The evidence is complete and has nothing irrelevant in it."
        texts = [f"The final evidence misses {self._quoted(missing)}."] if missing else ["The evidence is complete."]
        if vain:
            texts.append(f"It also contains what the answer does not need: {self._quoted(vain)}.")
        return " ".join(texts)

    def decomposition(self) -> str:
        hops = self.example.get("sub_questions") or ()
        texts = [hop if isinstance(hop, str) else hop.question for hop in hops]
        numbered = " ".join(f"({n}) {text}" for n, text in enumerate(texts, 1))
        return f"Sub-questions that lead to the answer: {numbered}" if hops else ""

    def selections(self) -> str:
        """What each round of the Selector dropped and kept; the evidence where no rounds are known."""
        texts = []
        for step in self._steps(Selected):
            dropped, vain = self._available(self._missing(step.kept)), self._in_vain(step.kept)
            if dropped:
                texts.append(f"Round {step.round} dropped {self._quoted(dropped)}, which the answer needs.")
            if vain:
                texts.append(f"Round {step.round} kept what the answer does not need: {self._quoted(vain)}.")
        if texts or not self._steps(Selected):
            return " ".join(texts) or self.evidence()
        return "The selection kept what was needed of the candidates, and nothing irrelevant."

    def additions(self) -> str:
        """What each round of the Adder left out and added in vain; the evidence where no rounds are known."""
        texts = []
        kept: dict[int, Collection[Fact]] = {step.round: step.kept for step in self._steps(Selected)}
        for step in self._steps(Added):
            there = {*kept.get(step.round, ()), *step.added}
            left_out, vain = self._available(self._missing(there)), self._in_vain(step.added)
            if left_out:
                texts.append(f"Round {step.round} should have added {self._quoted(left_out)}.")
            if vain:
                texts.append(f"Round {step.round} added what the answer does not need: {self._quoted(vain)}.")
        if texts or not self._steps(Added):
            return " ".join(texts) or self.evidence()
        return "Nothing was left to add, and nothing irrelevant was added."

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _steps(self, kind: type[Any]) -> list[Any]:
        trace = self.prediction.get("trace")
        return [step for step in trace.flat() if isinstance(step, kind)] if trace is not None else []

    def _missing(self, facts: Collection[Fact]) -> list[Fact]:
        """The gold facts that are not among some facts; a whole passage has all of its sentences."""
        passages = {fact.passage_id for fact in facts}
        whole = {fact.passage_id for fact in facts if fact.sentence is None}
        return [
            fact
            for fact in self.wanted
            if fact.passage_id not in (passages if fact.sentence is None else whole) and fact not in facts
        ]

    def _in_vain(self, facts: Iterable[Fact]) -> list[Fact]:
        """The facts that prove nothing."""
        return [fact for fact in facts if not self._useful(fact)]

    def _useful(self, fact: Fact) -> bool:
        if fact.sentence is None or not self.gold.facts:
            return fact.passage_id in self.gold.passages
        return fact in self.gold.facts

    def _available(self, facts: Iterable[Fact]) -> list[Fact]:
        return [fact for fact in facts if fact.passage_id in self.found]

    def _title(self, id: str) -> str:
        return f'"{self.passages[id].title or id}"' if id in self.passages else f'"{id}"'

    def _quoted(self, facts: Iterable[Fact]) -> str:
        return _listed(map(self._quote, facts))

    def _quote(self, fact: Fact) -> str:
        passage = self.passages.get(fact.passage_id)
        if passage is None or fact.sentence is None or fact.sentence >= len(passage.sentences):
            return self._title(fact.passage_id)
        text = passage.sentences[fact.sentence]
        short = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE].rsplit(" ", 1)[0] + " ..."
        return f"{self._title(fact.passage_id)} ({short})"


def _listed(names: Iterable[str]) -> str:
    given = list(dict.fromkeys(names))
    more = f" and {len(given) - _MOST_NAMED} more" if len(given) > _MOST_NAMED else ""
    return ", ".join(given[:_MOST_NAMED]) + more
