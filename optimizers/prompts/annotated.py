"""Demos from a dataset's annotations: for each agent, with its own inputs and outputs, and without a call.

Decompositions (MuSiQue, the sample) make demos for analyzers and planners, supporting facts for agents that choose
evidence, answers for agents that answer and verify. An agent registers once, with `demo_of` and its signature; it is
found by its fields, whatever its instructions have become. Agents of other programs get demos if the questions have all
their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import dspy

from ... import signatures
from ...data.errors import PolyhopError
from ...data.passages import Evidence, Passage, Retriever
from ...data.pool import PassagePool
from ...data.text import title_key
from ...eval.gold import gold_in_passages
from ...programs.candidates import Candidates
from ...programs.par_rag import demonstrated
from ...signatures import NumberedPassages
from ..exemplars import from_musique
from .registry import CompileJob, by_preset, register

MOST_WORDS = 400
"""Longer demos are left out."""

_PASSAGE_WORDS = 260  # of all passages in a demo
_DISTRACTORS = 3
_FOUND = 20  # passages searched for, for a question without passages of its own
_CONFIDENT = 0.95

Demo = dict[str, Any]
Maker = Callable[["SolvedQuestion", int], Demo | None]
M = TypeVar("M", bound=Maker)


@register(
    "labeled",
    "demos from annotations: decompositions, supporting facts, answers",
    "demos",
    by_preset(train=(100, 200, 200), val=(0, 0, 0), demos=(2, 3, 4)),
    runs=lambda n: 0,
)
def labeled(job: CompileJob) -> dspy.Module:
    """`dspy.LabeledFewShot`, agent by agent: DSPy would give all agents the questions themselves, which lack the fields
    of agents in the middle of a program and so are not shown."""
    known = gold_demos(job.student, job.trainset)
    if not any(known.values()):
        raise PolyhopError("the questions have no annotations to make demos from")
    for name, predictor in job.student.named_predictors():
        compiled = dspy.LabeledFewShot(k=job.numbers["demos"]).compile(predictor, trainset=known[name])
        predictor.demos = compiled.demos if known[name] else []
    return job.student


def gold_demos(program: dspy.Module, questions: Sequence[dspy.Example]) -> dict[str, list[dspy.Example]]:
    """Demos for each agent, by its name; none for an agent whose output no annotation tells.

    Passages come from the question's own pool, or from the program's retriever.
    """
    retriever = getattr(getattr(program, "search", None), "retriever", None)
    if getattr(retriever, "source", retriever) is None:  # a chain without an index searches the question's own pool
        retriever = None
    cases = [case for case in (solved(question, retriever) for question in questions) if case is not None]
    return {name: list(_demos(predictor.signature, cases, questions)) for name, predictor in program.named_predictors()}


def _demos(
    signature: type[dspy.Signature], cases: Iterable[SolvedQuestion], questions: Iterable[dspy.Example]
) -> Iterator[dspy.Example]:
    make = _MAKERS.get(frozenset(signature.fields))
    if make is None:
        for question in questions:
            given = {"answer": next(iter(question.get("answers") or ()), None), **question}
            if all(given.get(name) is not None for name in signature.fields):
                yield dspy.Example({name: given[name] for name in signature.fields})
        return
    for n, case in enumerate(cases):
        if (made := make(case, n)) is not None:
            demo = {name: made[name] for name in signature.fields}
            if sum(len(str(value).split()) for value in demo.values()) <= MOST_WORDS:
                yield dspy.Example(demo)


# --- questions with their solutions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SolvedStep:
    """A sub-question as the planner writes it, with answers in place of references (``asked``), and its solution."""

    question: str
    asked: str
    answer: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class SolvedQuestion:
    """A question with its annotated solution. There are no steps without a decomposition, and no evidence if the texts
    are missing or too long; ``passages`` are the gold passages and a few others, as a search ranks them.
    """

    question: str
    answer: str
    steps: tuple[SolvedStep, ...]
    evidence: tuple[Evidence, ...] = ()
    passages: tuple[Passage, ...] = ()

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates(self.passages)

    @property
    def sub_questions(self) -> list[str]:
        return [step.question for step in self.steps] or [self.question]

    @property
    def task(self) -> Demo:
        """The first inputs of most agents."""
        return {"question": self.question, "sub_questions": self.sub_questions}

    @property
    def trajectory(self) -> list[str]:
        return [f"#{n} {step.asked} -> {step.answer}" for n, step in enumerate(self.steps, 1)]

    @property
    def wrong(self) -> str | None:
        """A plausible wrong answer: that of an earlier step."""
        right = title_key(self.answer)
        return next((step.answer for step in self.steps if title_key(step.answer) != right), None)

    def show(self, evidence: Sequence[Evidence] | None = None) -> NumberedPassages:
        return self.candidates.show(evidence)

    def ids(self, evidence: Sequence[Evidence]) -> list[str]:
        return self.candidates.ids(evidence)

    def marked(self) -> Demo:
        """All passages, those of the evidence first, with its sentences marked."""
        used = dict.fromkeys(Evidence(item.passage) for item in self.evidence)
        shown = [*used, *(Evidence(passage) for passage in self.passages if Evidence(passage) not in used)]
        return {"passages": self.candidates.show(shown, self.evidence)}

    def parted(self) -> tuple[list[Evidence], list[Evidence]]:
        """The evidence of all passages but the last, and of the last; the first is empty if there is only one."""
        last = self.evidence[-1].passage
        first = [item for item in self.evidence if item.passage != last]
        return first, [item for item in self.evidence if item.passage == last]

    def answered(self, cite: bool = True) -> Demo:
        """The outputs of an agent that answers: the reasoning names the steps and cites the evidence."""
        if not self.steps:
            reasoning = f"The evidence says so in {self._cited(self.evidence)}." if cite else f"It is {self.answer}."
        else:
            cited = [f" {self._cited(step.evidence)}" if cite and step.evidence else "" for step in self.steps]
            pairs = zip(self.steps, cited, strict=True)
            reasoning = " ".join(f"{step.asked} {step.answer}{ids}." for step, ids in pairs)
        return {"reasoning": reasoning, "answer": self.answer, "confidence": _CONFIDENT}

    def _cited(self, evidence: Sequence[Evidence]) -> str:
        return " ".join(f"[{id}]" for id in self.ids(evidence))


def solved(example: dspy.Example, retriever: Retriever | None = None) -> SolvedQuestion | None:
    """The annotated solution of a question; None if it has no answer. The retriever finds passages for a question
    without its own.
    """
    answers = example.get("answers") or (example.get("answer"),)
    if example.get("answerable") is False or not answers[0] or str(answers[0]).lower() == "unknown":
        return None
    question, answer = str(example.question), str(answers[0])
    pool = example.get("pool") or ()
    passages = list(pool.passages if isinstance(pool, PassagePool) else pool)
    if not passages and retriever is not None:
        queries = [question, *(step.asked for step in _steps(example, []))]
        hits = [hit for found in retriever.search_many(queries, _FOUND) for hit in found]
        passages = list({hit.passage.id: hit.passage for hit in hits}.values())
    evidence = _gold_evidence(example, passages)
    steps = _steps(example, evidence)
    if steps:
        evidence = list(dict.fromkeys(item for step in steps for item in step.evidence))
    shown = _shown(question, passages, {item.passage.id for item in evidence}) if evidence else ()
    if not shown:
        steps = tuple(SolvedStep(step.question, step.asked, step.answer) for step in steps)
    return SolvedQuestion(question, answer, steps, tuple(evidence) if shown else (), shown)


def _gold_evidence(example: dspy.Example, passages: Sequence[Passage]) -> list[Evidence]:
    """The gold facts, if all of them are among the passages."""
    gold = gold_in_passages(example, passages)
    known = {passage.id: passage for passage in passages}
    if not gold.passages or any(id not in known for id in gold.passages):
        return []
    sentences = [fact for fact in gold.facts if fact.sentence is not None]
    if any(fact.sentence >= len(known[fact.passage_id].sentences) for fact in sentences if fact.sentence is not None):
        return []  # benchmarks have a few sentence numbers that are out of range
    whole = set(gold.passages) - {fact.passage_id for fact in sentences}
    return [
        *(Evidence(known[fact.passage_id], fact.sentence) for fact in sentences),
        *(Evidence(known[id]) for id in gold.passages if id in whole),
    ]


def _steps(example: dspy.Example, evidence: Sequence[Evidence]) -> tuple[SolvedStep, ...]:
    """The decomposition in words; empty if there is none, or if a step has an invalid reference."""
    given = example.get("sub_questions") or ()
    if not given or any(not getattr(step, "answer", "") for step in given):
        return ()
    try:
        plan = next(from_musique([example]), None)
    except ValueError:
        return ()
    if plan is None:
        return ()
    steps: list[SolvedStep] = []
    for text, step in zip(plan.sub_questions, given, strict=True):
        asked = text
        for number, earlier in reversed(list(enumerate(steps, 1))):  # "#12" before "#1"
            asked = asked.replace(f"#{number}", earlier.answer)
        own = [item for item in evidence if item.passage.id == step.passage_id]
        steps.append(SolvedStep(text, asked, step.answer, tuple(_narrowed(item, step.answer) for item in own)))
    return tuple(steps)


def _narrowed(item: Evidence, answer: str) -> Evidence:
    """For a whole passage, its first sentence with the answer, if there is one."""
    if item.sentence is not None:
        return item
    key = f" {title_key(answer)} "
    matching = (n for n, text in enumerate(item.passage.sentences) if key in f" {title_key(text)} ")
    return Evidence(item.passage, next(matching, None))


def _shown(question: str, passages: Sequence[Passage], gold: set[str]) -> tuple[Passage, ...]:
    """The gold passages and the first few others of a search, in its order; none if the gold passages are too long."""
    ranked = [hit.passage for hit in PassagePool(passages).search(question, max(1, len(passages)))]
    left = _PASSAGE_WORDS - sum(_length(passage) for passage in ranked if passage.id in gold)
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


# --- a demo for each agent -------------------------------------------------------------------------------------------
# A maker returns at least the fields of its agents. `n` counts the questions, so that the demos of an agent show its
# different cases in turn.

_MAKERS: dict[frozenset[str], Maker] = {}


def demo_of(*agents: Any, steps: int = 0, evidence: bool = False) -> Callable[[M], M]:
    """Register the decorated function as the maker of demos for agents with these signatures, from questions with at
    least so many ``steps`` and, if needed, evidence.
    """

    def add(make: M) -> M:
        def checked(case: SolvedQuestion, n: int) -> Demo | None:
            return make(case, n) if len(case.steps) >= steps and (case.evidence or not evidence) else None

        _MAKERS.update({frozenset(agent.fields): checked for agent in agents})
        return make

    return add


@demo_of(
    signatures.AnalyzeQuestion,
    signatures.PlanResearch,
    signatures.PlanSteps,
    signatures.DrawRoadmap,
    signatures.RouteQuestion,
    steps=1,
)
def _plan(case: SolvedQuestion, n: int) -> Demo:
    route, query = ("single", case.question) if len(case.steps) == 1 else ("plan", "none")
    plan = {"steps": demonstrated(case.sub_questions), "roadmap": case.sub_questions}
    return {**case.task, **plan, "route": route, "query": query}


@demo_of(signatures.RefineQuestion, steps=2)
def _refine(case: SolvedQuestion, n: int) -> Demo | None:
    last = case.steps[-1]
    if last.question == last.asked:
        return None
    refined = {"next_question": last.question, "refined_question": last.asked}
    return {"question": case.question, "trajectory": case.trajectory[:-1], **refined}


@demo_of(signatures.SelectEvidence, evidence=True)
def _select(case: SolvedQuestion, n: int) -> Demo:
    return {**case.task, "candidates": case.show(), "selected": [], "keep": case.ids(case.evidence)}


@demo_of(signatures.AddEvidence, evidence=True)
def _add(case: SolvedQuestion, n: int) -> Demo:
    """The last passage is missing; every third time nothing is."""
    first, last = case.parted()
    selected, added = (first, last) if first and n % 3 < 2 else (list(case.evidence), [])
    return {**case.task, "candidates": case.show(), "selected": case.ids(selected), "add": case.ids(added)}


@demo_of(signatures.GatherEvidence, evidence=True)
def _gather(case: SolvedQuestion, n: int) -> Demo:
    """Every second time the passage of the last step is not found, so that its question is required."""
    steps = case.steps or (SolvedStep(case.question, case.question, case.answer, case.evidence),)
    lacking = {item.passage for item in steps[-1].evidence} if n % 2 and len(steps) > 1 else set()
    found = Candidates(passage for passage in case.passages if passage not in lacking)
    there = [[item for item in step.evidence if item.passage not in lacking] for step in steps]
    answers = [
        "unknown"
        if lacking and step is steps[-1]
        else " ".join([step.answer, *(f"[{id}]" for id in found.ids(items)[:1])])
        for step, items in zip(steps, there, strict=True)
    ]
    return {
        **case.task,
        "answers_so_far": [],
        "searched": [],
        "passages": found.show(),
        "answers": answers,
        "keep": found.ids(item for item in case.evidence if item.passage not in lacking),
        "required": [steps[-1].asked] if lacking else [],
    }


@demo_of(signatures.FilterPassages, evidence=True)
def _filter(case: SolvedQuestion, n: int) -> Demo:
    return {"question": case.question, "passages": case.show(), **_useful(case, case.evidence)}


@demo_of(signatures.FilterForObjective, steps=1, evidence=True)
def _filter_for_objective(case: SolvedQuestion, n: int) -> Demo:
    """The objective is one of the steps; the evidence of later steps is kept, too."""
    at = n % len(case.steps)
    needed = [item for step in case.steps[at:] for item in step.evidence]
    return {**_filter(case, n), "objective": case.steps[at].asked, **_useful(case, needed)}


def _useful(case: SolvedQuestion, evidence: Sequence[Evidence]) -> Demo:
    """A filter's reply: a line on each passage, and the numbers of those to keep."""
    ids = case.ids(list(dict.fromkeys(Evidence(item.passage) for item in evidence)))
    thoughts = dict.fromkeys(case.ids([Evidence(passage) for passage in case.passages]), "does not help")
    thoughts |= dict.fromkeys(ids, "is needed for the answer")
    for step in case.steps:
        for item in step.evidence:
            if (id := case.ids([Evidence(item.passage)])[0]) in ids:
                thoughts[id] = f"tells: {step.asked} {step.answer}"
    return {"thoughts": "\n".join(f"{id}: {text}" for id, text in thoughts.items()), "useful": list(map(int, ids))}


@demo_of(signatures.DecideNext, steps=2, evidence=True)
def _decide(case: SolvedQuestion, n: int) -> Demo:
    """In turn: the last step is still to be searched for, and everything is found."""
    done = n % 2 == 1
    found, last = case.steps if done else case.steps[:-1], case.steps[-1]
    known = " ".join(f"{step.asked} {step.answer}." for step in found)
    return {
        "question": case.question,
        "roadmap": case.sub_questions,
        "passages": case.show([Evidence(item.passage) for step in found for item in step.evidence]),
        "queries": [f'"{step.asked}" - 1 kept' for step in found],
        "thought": f"{known} That is enough." if done else f"{known} Next: {last.asked}",
        "action": "answer" if done else "retrieve",
        "query": "none" if done else last.asked,
    }


@demo_of(signatures.FilterSpans, evidence=True)
def _filter_spans(case: SolvedQuestion, n: int) -> Demo | None:
    if any(item.sentence is None for item in case.evidence):
        return None
    return {
        "question": case.question,
        "known": [],
        "required": [step.asked for step in case.steps] or [case.question],
        "passages": case.show(),
        "spans": [f"{id} {item.text}" for id, item in zip(case.ids(case.evidence), case.evidence, strict=True)],
        "supported": [],
    }


@demo_of(signatures.AssessEvidence, evidence=True)
def _assess(case: SolvedQuestion, n: int) -> Demo:
    """In turn: enough, and a passage too few."""
    first, _ = case.parted()
    incomplete = bool(first) and n % 2 == 1
    evidence = case.show(first if incomplete else case.evidence)
    return {"question": case.question, "evidence": evidence, "sufficiency": 0.2 if incomplete else 1.0}


@demo_of(signatures.AnswerDirectly)
def _answer_directly(case: SolvedQuestion, n: int) -> Demo:
    return {"question": case.question, **case.answered(cite=False)}


@demo_of(
    signatures.AnswerFromPassages,
    signatures.AnswerFromContext,
    evidence=True,
)
@demo_of(signatures.AnswerFromTrajectory, steps=1, evidence=True)
def _answer(case: SolvedQuestion, n: int) -> Demo:
    known = [f"{item.passage.title}: {item.text}" for item in case.evidence]
    read = {"passages": case.show(), "evidence": case.show(case.evidence)}
    return {**case.task, **read, **case.answered(), "known": known, "notes": [], "trajectory": case.trajectory}


@demo_of(signatures.AnswerStep, steps=1)
def _answer_step(case: SolvedQuestion, n: int) -> Demo | None:
    step = case.steps[n % len(case.steps)]
    if not step.evidence:
        return None
    cited = case.ids(list(dict.fromkeys(Evidence(item.passage) for item in step.evidence)))
    return {"question": step.asked, "sources": case.show(), "cited": cited, "answer": step.answer}


@demo_of(signatures.AnswerWithCitations, evidence=True)
def _answer_with_citations(case: SolvedQuestion, n: int) -> Demo:
    return {**case.task, **case.marked(), **case.answered(), "citations": case.ids(case.evidence)}


@demo_of(signatures.VerifyAnswer, signatures.JudgeAccuracy, evidence=True)
def _verify(case: SolvedQuestion, n: int) -> Demo:
    """In turn: a right answer, and that of an earlier step."""
    wrong = case.wrong if n % 2 else None
    return {
        **case.task,
        **case.marked(),
        "reasoning": case.answered()["reasoning"],
        "evidence": case.show(case.evidence),
        "proposed_answer": wrong or case.answer,
        "answer": wrong or case.answer,
        "correction": case.answer,
        "attribution": "contradictory" if wrong else "attributable",
        "accuracy": 1 - _CONFIDENT if wrong else _CONFIDENT,
    }


@demo_of(signatures.JudgeAttribution, evidence=True)
def _judge_attribution(case: SolvedQuestion, n: int) -> Demo:
    """In turn: all of the evidence, a passage too few, and the answer of an earlier step."""
    first, _ = case.parted()
    wrong = case.wrong if n % 3 == 2 else None
    partial = bool(first) and n % 3 == 1
    return {
        "question": case.question,
        "evidence": case.show(first if partial else case.evidence),
        "answer": wrong or case.answer,
        "attribution": "contradictory" if wrong else "extrapolatory" if partial else "attributable",
    }


@demo_of(signatures.ReviseAnswer, evidence=True)
def _revise(case: SolvedQuestion, n: int) -> Demo:
    return {
        "question": case.question,
        "sources": case.show(),
        "draft": (case.wrong if n % 2 else None) or "unknown",
        "reason": case.answered()["reasoning"],
        "decision": "revised",
        "answer": case.answer,
        "cited": case.ids(list(dict.fromkeys(Evidence(item.passage) for item in case.evidence))),
    }
