"""Plans of solved questions, shown to a planner before a similar question (PAR-RAG, arXiv 2504.16787).

    exemplars = Exemplars()                                        # a part of a program, like `Search`
    shown = exemplars(question, estimate_complexity(question))     # the most similar comes last
    planner(question=question, demos=[*planner.demos, *as_demos(shown)])

A plan teaches the form of a question, not its topic: "Where was the director of Solaris born?" is planned like "Where
was the author of Emma born?". So similarity is TF-IDF over words and pairs of words with names masked
(`polyhop.data.form`), among questions of the same complexity as in the paper. The paper uses all-MiniLM-L6-v2, which
compares topics.

`polyhop.scripts.training.exemplars` fills a memory. The default one holds 24 plans written for the package.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import dspy
from dspy.predict.parameter import Parameter

from ..data.errors import PolyhopError
from ..data.files import read_bytes
from ..data.form import masked
from ..data.references import references
from ..data.text import title_key
from .agent import Part
from .complexity import HOPS, Complexity
from .tunable import choice, integer

SHIPPED = Path(__file__).with_name("exemplars.jsonl")
HEADER = {"polyhop": "exemplars", "version": 1}


@dataclass(frozen=True)
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

    question: str
    sub_questions: tuple[str, ...]
    hops: int
    source: str = ""

    def __post_init__(self) -> None:
        texts = (self.question, *self.sub_questions)
        if len(texts) < 2 or not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValueError("an exemplar needs a question and at least one sub-question")
        if isinstance(self.hops, bool) or self.hops not in HOPS:
            raise ValueError(f"an exemplar has 1 to 4 hops, not {self.hops!r}")
        if not isinstance(self.source, str):
            raise ValueError(f"the source of an exemplar is a text, not {self.source!r}")
        for n, text in enumerate(self.sub_questions):
            for reference in references(text):
                if not 1 <= reference <= n:
                    raise ValueError(f"sub-question {n + 1} refers to #{reference}, which is not an earlier one")

    @classmethod
    def from_record(cls, record: Any) -> Exemplar:
        """Raises: ValueError: the record is not the JSON object of an exemplar."""
        if not isinstance(record, dict) or not isinstance(record.get("sub_questions"), list):
            raise ValueError('an exemplar is {"question": ..., "sub_questions": [...], "hops": ...}')
        if unknown := record.keys() - {"question", "sub_questions", "hops", "source"}:
            raise ValueError(f"an exemplar has no field {sorted(unknown)[0]!r}")
        return cls(
            record.get("question", ""), tuple(record["sub_questions"]), record.get("hops", 0), record.get("source", "")
        )

    def to_record(self) -> dict[str, Any]:
        return {**asdict(self), "sub_questions": list(self.sub_questions)}


class ExemplarMemory(Parameter):
    """Exemplars as a DSPy parameter, saved and loaded with the program's JSON state; teleprompters keep them.

    Args:
        exemplars: By default those of the package.
    """

    def __init__(self, exemplars: Iterable[Exemplar] | None = None) -> None:
        self._exemplars = None if exemplars is None else tuple(exemplars)
        self._vectors: _FormVectors | None = None

    @property
    def exemplars(self) -> tuple[Exemplar, ...]:
        return _shipped().exemplars if self._exemplars is None else self._exemplars

    def similarities(self, question: str) -> list[float]:
        """The cosine of a question with each exemplar."""
        if self._exemplars is None:
            return _shipped().similarities(question)
        if self._vectors is None:
            self._vectors = _FormVectors([exemplar.question for exemplar in self._exemplars])
        return self._vectors.similarities(question)

    def joined(self, others: Iterable[Exemplar]) -> ExemplarMemory:
        """A memory with further exemplars; of those with the same question the first is kept."""
        found: dict[str, Exemplar] = {}
        for each in (*self.exemplars, *others):
            found.setdefault(title_key(each.question), each)
        return ExemplarMemory(found.values())

    def reset(self) -> None:
        """Keep the exemplars: teleprompters call this to clear demos."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        return {"exemplars": [exemplar.to_record() for exemplar in self.exemplars]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Raises: ValueError: an exemplar is malformed; the memory is unchanged."""
        self._exemplars, self._vectors = tuple(Exemplar.from_record(record) for record in state["exemplars"]), None

    def __deepcopy__(self, memo: dict[int, Any]) -> ExemplarMemory:
        twin = ExemplarMemory(self._exemplars)
        twin._vectors = self._vectors
        return twin

    def save(self, path: Path) -> None:
        """Write JSON lines: a header, then one exemplar per line."""
        lines = (json.dumps(line, ensure_ascii=False) for line in (HEADER, *map(Exemplar.to_record, self.exemplars)))
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> ExemplarMemory:
        try:
            return cls(read_exemplars(read_bytes(path), path))
        except OSError as error:
            raise PolyhopError(f"cannot read the exemplars in {path}: {error}") from error

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
        if mode == "same complexity" and allowed:
            distance = [abs(exemplar.hops - complexity.hops) for exemplar in memory]
            nearest = min(distance[i] for i in allowed)
            allowed = [i for i in allowed if distance[i] == nearest]
        if mode == "random":
            value = {i: _draw(question, memory[i].question) for i in allowed}
        else:
            value = dict(enumerate(self.memory.similarities(question)))
        best = heapq.nlargest(count, allowed, key=value.__getitem__)  # stable
        return [memory[i] for i in reversed(best)]


def as_demos(exemplars: Iterable[Exemplar], plan: str = "sub_questions") -> list[dspy.Example]:
    """Exemplars as demos of a predictor from ``question`` to the output ``plan``, such as `AnalyzeQuestion`'s."""
    return [
        dspy.Example({"question": exemplar.question, plan: list(exemplar.sub_questions)}).with_inputs("question")
        for exemplar in exemplars
    ]


def read_exemplars(data: bytes, path: Path) -> tuple[Exemplar, ...]:
    """The exemplars in the content of a file.

    Raises:
        PolyhopError: it has another header, or a malformed line.
    """
    header, *lines = data.removesuffix(b"\n").split(b"\n")
    if _parsed(header) != HEADER:
        raise PolyhopError(f"{path} has no exemplars of version 1: its first line is not {HEADER}")
    found = []
    for number, line in enumerate(lines, 2):
        try:
            found.append(Exemplar.from_record(_parsed(line)))
        except ValueError as error:
            raise PolyhopError(
                f"{path}, line {number} is damaged: {error}. Fix the line, or make the file again."
            ) from error
    return tuple(found)


@cache
def _shipped() -> ExemplarMemory:
    return ExemplarMemory.load(SHIPPED)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _draw(question: str, other: str) -> float:
    """A pseudo-random number that depends on the two questions only."""
    return int.from_bytes(blake2b(f"{question}\n{other}".encode(errors="replace"), digest_size=8).digest()) / 2**64


class _FormVectors:
    """An inverted index of TF-IDF vectors of masked questions.

    Not scikit-learn's: importing it takes longer than answering a question.
    """

    def __init__(self, questions: Sequence[str]) -> None:
        import numpy as np

        self._size = len(questions)
        counted = [_terms(question) for question in questions]
        found = Counter(term for terms in counted for term in terms)
        self._idf = {term: 1 + math.log((1 + len(questions)) / (1 + count)) for term, count in found.items()}
        postings: dict[str, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
        for i, terms in enumerate(counted):
            for term, weight in self._vector(terms).items():
                postings[term][0].append(i)
                postings[term][1].append(weight)
        self._postings = {term: (np.array(at), np.array(weights)) for term, (at, weights) in postings.items()}

    def similarities(self, question: str) -> list[float]:
        """The cosine with each question."""
        import numpy as np

        scores = np.zeros(self._size)
        for term, weight in self._vector(_terms(question)).items():
            if term in self._postings:
                at, weights = self._postings[term]
                scores[at] += weight * weights
        similar: list[float] = scores.tolist()
        return similar

    def _vector(self, terms: Counter[str]) -> dict[str, float]:
        """A unit vector; unknown terms have the highest IDF."""
        highest = 1 + math.log(1 + self._size)
        weights = {term: (1 + math.log(count)) * self._idf.get(term, highest) for term, count in terms.items()}
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
        return {term: weight / length for term, weight in weights.items()}


def _terms(question: str) -> Counter[str]:
    """Words and pairs of words of the masked question, with its boundaries."""
    words = ["^", *masked(question).split(), "$"]
    return Counter([*words[1:-1], *(f"{left} {right}" for left, right in pairwise(words))])
