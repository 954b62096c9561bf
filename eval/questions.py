"""The questions of a run, read anew in each iteration, so that they need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.benchmarks import PREFIX, SAMPLE, Setting, find_benchmark, load_questions
from ..data.errors import Problem

if TYPE_CHECKING:
    import dspy

_KEPT = 5  # problems, to show


@dataclass(eq=False)
class Questions:
    """The questions of a benchmark; the arguments are those of `load_questions`.

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

    def _note(self, problem: Problem) -> None:
        self.skipped += 1
        if len(self.problems) < _KEPT:
            self.problems.append(problem)
