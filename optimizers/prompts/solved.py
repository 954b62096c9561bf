"""A question as its dataset solves it: steps with answers, the evidence, and a few passages around that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dspy

from ...data.passages import Evidence, Passage, Retriever
from ...data.pool import PassagePool
from ...data.text import title_key
from ...eval.gold import gold_of
from ...programs.candidates import Candidates
from ...signatures import NumberedPassages
from ..exemplars import from_musique

_MOST_WORDS = 260  # of the passages that are shown
_DISTRACTORS = 3
_FOUND = 20  # passages that are searched for, for a question that brings none


Demo = dict[str, Any]
Agents = Mapping[Any, Callable[["Solved", int], Demo | None]]
"""By signature, the demo that a solved question makes for the agent. The number counts the questions, so that the demos
of an agent show its different cases."""


@dataclass(frozen=True)
class Step:
    """One sub-question: as the planner writes it, with the answers in place of references, its answer and evidence."""

    question: str
    asked: str
    answer: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Solved:
    """A question with its solution.

    Attributes:
        steps: Empty where the dataset has no decomposition.
        evidence: In the order of the steps, or of the dataset; empty where the texts are not at hand, or too long.
        passages: With evidence and without, as a search ranks them.
    """

    question: str
    answer: str
    steps: tuple[Step, ...]
    evidence: tuple[Evidence, ...] = ()
    passages: tuple[Passage, ...] = ()

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates(self.passages)

    @property
    def sub_questions(self) -> list[str]:
        return [step.question for step in self.steps] or [self.question]

    @property
    def wrong(self) -> str | None:
        """An answer that one could take for the right one: that of an earlier step."""
        right = title_key(self.answer)
        return next((step.answer for step in self.steps if title_key(step.answer) != right), None)

    def show(self, evidence: Sequence[Evidence] | None = None) -> NumberedPassages:
        return self.candidates.show(evidence)

    def ids(self, evidence: Sequence[Evidence]) -> list[str]:
        return self.candidates.ids(evidence)

    def others(self) -> NumberedPassages:
        """The passages without evidence."""
        used = {item.passage.id for item in self.evidence}
        return self.show([Evidence(passage) for passage in self.passages if passage.id not in used])

    def parted(self) -> tuple[list[Evidence], list[Evidence]]:
        """The evidence without its last passage, and that of the last; the first is empty where there is only one."""
        last = self.evidence[-1].passage if self.evidence else None
        return (
            [item for item in self.evidence if item.passage != last],
            [item for item in self.evidence if item.passage == last],
        )

    @property
    def task(self) -> Demo:
        """What most agents are given first."""
        return {"question": self.question, "sub_questions": self.sub_questions}

    @property
    def trajectory(self) -> list[str]:
        return [f"#{n} {step.asked} -> {step.answer}" for n, step in enumerate(self.steps, 1)]

    def reasoning(self, cite: bool = True) -> str:
        """The steps with their answers, and the ids of the evidence."""
        if not self.steps:
            return f"The evidence says so in {self._cited(self.evidence)}." if cite else f"It is {self.answer}."
        told = [
            f"{step.asked} {step.answer}{f' {self._cited(step.evidence)}' if cite and step.evidence else ''}."
            for step in self.steps
        ]
        return " ".join(told)

    def _cited(self, evidence: Sequence[Evidence]) -> str:
        return " ".join(f"[{id}]" for id in self.ids(evidence))


def solved(example: dspy.Example, retriever: Retriever | None = None) -> Solved | None:
    """What the dataset knows of a question; None if it has no answer.

    Args:
        retriever: Where passages come from, if the question brings none.
    """
    answers = example.get("answers") or (example.get("answer"),)
    if example.get("answerable") is False or not answers[0] or str(answers[0]).lower() == "unknown":
        return None
    question, answer = str(example.question), str(answers[0])
    pool = example.get("pool") or ()
    passages = list(pool.passages if isinstance(pool, PassagePool) else pool)
    if not passages and retriever is not None:
        passages = _found(example, retriever)
    evidence = _evidence(example, passages)
    steps = _steps(example, evidence)
    if steps:
        evidence = list(dict.fromkeys(item for step in steps for item in step.evidence))
    shown = _shown(question, passages, {item.passage.id for item in evidence}) if evidence else ()
    if not shown:
        steps = tuple(Step(step.question, step.asked, step.answer) for step in steps)
    return Solved(question, answer, steps, tuple(evidence) if shown else (), shown)


def _found(example: dspy.Example, retriever: Retriever) -> list[Passage]:
    """What a search for the question and for each of its steps brings."""
    asked = [example.question, *(step.asked for step in _steps(example, []))]
    hits = [hit for found in retriever.search_many(asked, _FOUND) for hit in found]
    return list({hit.passage.id: hit.passage for hit in hits}.values())


def _evidence(example: dspy.Example, passages: Sequence[Passage]) -> list[Evidence]:
    """The gold facts, if all of them are among the passages."""
    gold = gold_of(example, passages)
    known = {passage.id: passage for passage in passages}
    if not gold.passages or any(id not in known for id in gold.passages):
        return []
    sentences = [fact for fact in gold.facts if fact.sentence is not None]
    if any(fact.sentence >= len(known[fact.passage_id].sentences) for fact in sentences if fact.sentence is not None):
        return []  # a few benchmarks count sentences that are not there
    whole = set(gold.passages) - {fact.passage_id for fact in sentences}
    return [
        *(Evidence(known[fact.passage_id], fact.sentence) for fact in sentences),
        *(Evidence(known[id]) for id in gold.passages if id in whole),
    ]


def _steps(example: dspy.Example, evidence: Sequence[Evidence]) -> tuple[Step, ...]:
    """The decomposition in words; empty if there is none, or if a step refers to none before it."""
    given = example.get("sub_questions") or ()
    if not given or any(not getattr(step, "answer", "") for step in given):
        return ()
    try:
        plan = next(from_musique([example]), None)
    except ValueError:
        return ()
    if plan is None:
        return ()
    steps: list[Step] = []
    for text, step in zip(plan.sub_questions, given, strict=True):
        asked = text
        for number, earlier in reversed(list(enumerate(steps, 1))):  # "#12" before "#1"
            asked = asked.replace(f"#{number}", earlier.answer)
        own = [item for item in evidence if item.passage.id == step.passage_id]
        steps.append(Step(text, asked, step.answer, tuple(_narrowed(item, step.answer) for item in own)))
    return tuple(steps)


def _narrowed(item: Evidence, answer: str) -> Evidence:
    """Of a passage that counts as a whole the first sentence that has the answer, if one has."""
    if item.sentence is not None:
        return item
    key = f" {title_key(answer)} "
    telling = (n for n, text in enumerate(item.passage.sentences) if key in f" {title_key(text)} ")
    return Evidence(item.passage, next(telling, None))


def _shown(question: str, passages: Sequence[Passage], gold: set[str]) -> tuple[Passage, ...]:
    """The gold passages and a few others that a search finds first, in its order; none if they are too long."""
    ranked = [hit.passage for hit in PassagePool(passages).search(question, max(1, len(passages)))]
    left = _MOST_WORDS - sum(_length(passage) for passage in ranked if passage.id in gold)
    if left < 0:
        return ()
    kept = set(gold)
    for passage in ranked:
        if passage.id not in kept and len(kept) < len(gold) + _DISTRACTORS and _length(passage) <= left:
            kept.add(passage.id)
            left -= _length(passage)
    return tuple(passage for passage in ranked if passage.id in kept)


def _length(passage: Passage) -> int:
    """In words, with ids."""
    return len(passage.title.split()) + len(passage.text.split()) + len(passage.sentences) + 1
