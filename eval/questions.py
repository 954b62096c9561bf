"""The questions of a run, read anew in each iteration, so that they need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import dspy

from ..data.benchmarks import PREFIX, SAMPLE, Setting, find_benchmark, load_questions, recognize_file
from ..data.errors import Problem
from ..data.importing import import_named

_KEPT = 5  # problems, to show


def is_code(source: str | None) -> bool:
    """Whether questions are named as ``FILE.py:NAME``."""
    return source is not None and ".py:" in source


def as_questions(examples: Iterable[dspy.Example]) -> Iterable[dspy.Example]:
    """Examples of any DSPy program, each with a ``question`` (by default its first input) and with texts for answers.

    Those without an answer get no ``answers`` if there is a metric of the user's own, which may read other fields.
    """
    return examples if isinstance(examples, Questions) else [_as_question(example) for example in examples]


def _as_question(example: dspy.Example) -> dspy.Example:
    from .metrics import METRICS

    more: dict[str, Any] = {}
    if not isinstance(example, dspy.Example) or example.get("answers") is not None:
        return example
    if example.get("question") is None:
        with suppress(ValueError):  # nobody said what the inputs are
            more["question"] = str(next(iter(example.inputs().values()), ""))
    answer = example.get("answer")
    if isinstance(answer, int | float):
        more["answer"] = str(answer)
    elif not isinstance(answer, str) and any(metric.own for metric in METRICS.values()):
        more["answers"] = ()
    return example.copy(**more) if more else example


@dataclass(eq=False)
class Questions:
    """The questions of a benchmark; the arguments are those of `load_questions`. ``Questions("q.jsonl")`` are those of
    a file, whose format is recognized; ``Questions("own", "FILE.py:NAME")`` are the examples in a list of Python.

    Attributes:
        dataset: The benchmark's name.
        skipped: How many records the last iteration skipped.
        problems: The first few of them.
    """

    dataset: str
    source: str | None = None
    _: KW_ONLY
    split: str | None = None
    setting: Setting | None = None
    limit: int | None = None
    seed: int | None = None
    strict: bool = False
    aliases: Path | None = None
    skipped: int = field(default=0, init=False)
    problems: list[Problem] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.source is None and Path(self.dataset).suffix:  # no benchmark has a dot in its name
            self.dataset, self.source = recognize_file(self.dataset), self.dataset
        self.dataset = SAMPLE if self.dataset.casefold() == SAMPLE else find_benchmark(self.dataset).name

    @property
    def file(self) -> Path | None:
        """Their file; None for a dataset on the hub."""
        return None if self.source is None or self.source.startswith(PREFIX) else Path(self.source)

    @property
    def have_contexts(self) -> bool:
        """Whether they have passages of their own."""
        return self.dataset != SAMPLE and find_benchmark(self.dataset).has_contexts

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments, for the manifest; a file by its name only."""
        source = self.file.name if self.file else self.source or (SAMPLE if self.dataset == SAMPLE else "hub")
        return {
            "source": source,
            "split": self.split,
            "setting": self.setting,
            "limit": self.limit,
            "seed": self.seed,
            **({"aliases": self.aliases.name} if self.aliases else {}),
        }

    def __iter__(self) -> Iterator[dspy.Example]:
        self.skipped, self.problems = 0, []
        if is_code(self.source):
            return iter(self._examples())
        return load_questions(
            self.dataset,
            self.source,
            split=self.split,
            setting=self.setting,
            limit=self.limit,
            seed=self.seed,
            strict=self.strict,
            aliases=self.aliases,
            on_problem=self._note,
        )

    def _examples(self) -> list[dspy.Example]:
        """Those of a list that the user's code has, or of a function that makes it."""
        found = import_named(str(self.source), "questions")
        examples = list(as_questions(found() if callable(found) else found))
        if self.seed is not None and self.limit is not None and self.limit < len(examples):
            return Random(self.seed).sample(examples, self.limit)
        return examples[: self.limit]

    def _note(self, problem: Problem) -> None:
        self.skipped += 1
        if len(self.problems) < _KEPT:
            self.problems.append(problem)
