"""Plans of solved questions, shown to a planner before a similar question (PAR-RAG, arXiv 2504.16787).

    exemplars = Exemplars()                                 # a part of a program, like `Search`
    shown = exemplars(question, estimator(question))        # the most similar comes last

A plan teaches the form of a question, not its topic: "Where was the director of Solaris born?" is planned like "Where
was the author of Emma born?". So similarity is TF-IDF over words and pairs of words with names masked
(`polyhop.data.form`), among questions of the same complexity as in the paper. The paper uses all-MiniLM-L6-v2, which
compares topics.

`bench/exemplars.py` fills a memory. The default one holds 24 plans written for the package.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import dspy
from dspy.predict.parameter import Parameter
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, field_validator
from pydantic.dataclasses import dataclass

from ..data.files import read_bytes
from ..data.form import masked, references
from ..data.text import title_key
from .agent import Agent, Part
from .complexity import Complexity
from .run import record
from .trace import Recalled
from .tunable import choice, integer

SHIPPED = Path(__file__).with_name("exemplars.jsonl")

_Text = Annotated[str, StringConstraints(pattern=r"\S")]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Exemplar:
    """A solved question and its plan.

    Attributes:
        question: The question.
        sub_questions: The plan, in order; "#2" stands for the answer to the second.
        hops: Its complexity, 1 to 4.
        source: The origin of the plan: "own", "musique", a program, ...

    Raises:
        ValueError: a field is empty or of a wrong type, or a sub-question refers to a later one.
    """

    question: _Text
    sub_questions: Annotated[tuple[_Text, ...], Field(min_length=1)]
    hops: Annotated[int, Field(strict=True, ge=1, le=4)]
    source: str = ""

    @field_validator("sub_questions")
    @classmethod
    def _refers_back(cls, sub_questions: tuple[str, ...]) -> tuple[str, ...]:
        for n, text in enumerate(sub_questions):
            for reference in references(text):
                if not 1 <= reference <= n:
                    raise ValueError(f"sub-question {n + 1} refers to #{reference}, which is not an earlier one")
        return sub_questions


_EXEMPLAR = TypeAdapter(Exemplar)


class ExemplarMemory(Parameter):
    """Exemplars as a DSPy parameter, saved and loaded with the program's JSON state; teleprompters keep them.

    Args:
        exemplars: By default those of the package.
    """

    def __init__(self, exemplars: Iterable[Exemplar] | None = None) -> None:
        self.exemplars = _shipped() if exemplars is None else tuple(exemplars)

    def joined(self, others: Iterable[Exemplar]) -> ExemplarMemory:
        """A memory with further exemplars; of those with the same question the first is kept."""
        by_question: dict[str, Exemplar] = {}
        for exemplar in (*self.exemplars, *others):
            by_question.setdefault(title_key(exemplar.question), exemplar)
        return ExemplarMemory(by_question.values())

    def reset(self) -> None:
        """Keep the exemplars: teleprompters call this to clear demos."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        return {"exemplars": [_EXEMPLAR.dump_python(exemplar, mode="json") for exemplar in self.exemplars]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Raises: ValueError: an exemplar is malformed; the memory is unchanged."""
        self.exemplars = tuple(map(_EXEMPLAR.validate_python, state["exemplars"]))

    def __deepcopy__(self, memo: dict[int, Any]) -> ExemplarMemory:
        return ExemplarMemory(self.exemplars)

    def save(self, path: Path) -> None:
        """Write JSON lines, one per exemplar."""
        path.write_bytes(b"".join(_EXEMPLAR.dump_json(exemplar) + b"\n" for exemplar in self.exemplars))

    @classmethod
    def load(cls, path: Path) -> ExemplarMemory:
        """Raises: OSError, ValueError: there is no such file, or it has a line that is no exemplar."""
        return cls(map(_EXEMPLAR.validate_json, read_bytes(path).splitlines()))

    def __len__(self) -> int:
        return len(self.exemplars)

    def __repr__(self) -> str:
        return f"ExemplarMemory({len(self)} exemplars)"


class Exemplars(Part):
    """Chooses the exemplars to show for a question.

    Args:
        memory: The exemplars to choose from; by default those of the package.
        count: Maximum number to show.
        mode: "none"; "random", deterministic per question; "similar"; or "same complexity": the most similar of those
            with the same number of hops, or the nearest number.
    """

    def __init__(self, memory: Iterable[Exemplar] | None = None, count: int = 3, mode: str = "same complexity") -> None:
        super().__init__()
        self.memory = ExemplarMemory(memory)
        self.count = integer(count, 0, 8, needs=("mode", ("random", "similar", "same complexity")))
        self.mode = choice(mode, ("none", "random", "similar", "same complexity"))

    def forward(self, question: str, complexity: Complexity) -> list[Exemplar]:
        """The exemplars in the order to show them, the most similar last. The question itself is excluded."""
        mode, memory, count = self.mode.value, self.memory.exemplars, self.count.value
        if mode == "none" or not count:
            return []
        key = title_key(question)
        allowed = [i for i, exemplar in enumerate(memory) if title_key(exemplar.question) != key]
        if mode == "same complexity":
            distance = [abs(exemplar.hops - complexity.hops) for exemplar in memory]
            nearest = min((distance[i] for i in allowed), default=0)
            allowed = [i for i in allowed if distance[i] == nearest]
        worth: Sequence[Any] = _similarities(question, tuple(exemplar.question for exemplar in memory))
        if mode == "random":  # a number that depends on the two questions only
            texts = (f"{question}\n{exemplar.question}".encode(errors="replace") for exemplar in memory)
            worth = [blake2b(text, digest_size=8).digest() for text in texts]
        return [memory[i] for i in reversed(heapq.nlargest(count, allowed, key=worth.__getitem__))]  # stable


def plan_like(exemplars: Sequence[Exemplar], planner: Agent, question: str) -> dspy.Prediction:
    """The reply of a planner (`PlanSteps`) to a question, with exemplars as further demos."""
    record(Recalled(tuple(exemplar.question for exemplar in exemplars)))
    shown = []
    for exemplar in exemplars:
        steps = [*exemplar.sub_questions]
        shown.append(dspy.Example(question=exemplar.question, thought=dependence(steps), sub_questions=steps))
    reply: dspy.Prediction = planner(question=question, demos=[*planner.demos, *shown])
    return reply


def dependence(sub_questions: Sequence[str]) -> str:
    """How many steps a solved question has, and which of them need which, as a planner's thought."""
    needs = {step: sorted(set(references(text))) for step, text in enumerate(sub_questions, 1)}
    told = [f"step {step} needs step {' and '.join(map(str, others))}" for step, others in needs.items() if others]
    return "One step." if len(needs) == 1 else f"{len(needs)} steps: {', '.join(told) or 'none needs another'}."


@cache
def _shipped() -> tuple[Exemplar, ...]:
    return ExemplarMemory.load(SHIPPED).exemplars


# --- similarity of form. Not scikit-learn's: importing it takes longer than answering a question. ---------------------


def _similarities(question: str, others: tuple[str, ...]) -> list[float]:
    """The cosine of a question with each of others, times the same factor."""
    idf, vectors = _vectors(others)
    asked = {term: (1 + math.log(count)) * idf[term] for term, count in _terms(question).items() if term in idf}
    return [sum(weight * other.get(term, 0.0) for term, weight in asked.items()) for other in vectors]


@lru_cache(maxsize=8)
def _vectors(questions: tuple[str, ...]) -> tuple[dict[str, float], list[dict[str, float]]]:
    """The inverse document frequencies of terms, and the TF-IDF vectors of masked questions."""
    counts = [_terms(question) for question in questions]
    questions_with = Counter(term for terms in counts for term in terms)
    idf = {term: 1 + math.log((1 + len(questions)) / (1 + count)) for term, count in questions_with.items()}
    vectors = []
    for terms in counts:
        weights = {term: (1 + math.log(count)) * idf[term] for term, count in terms.items()}
        length = math.hypot(*weights.values())
        vectors.append({term: weight / length for term, weight in weights.items()})
    return idf, vectors


def _terms(question: str) -> Counter[str]:
    """Words and pairs of words of the masked question, with its boundaries."""
    words = ["^", *masked(question).split(), "$"]
    return Counter([*words[1:-1], *(f"{left} {right}" for left, right in pairwise(words))])
