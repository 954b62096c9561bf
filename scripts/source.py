"""The questions that a command asks, and what is searched for their answers."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.errors import PolyhopError
from .options import sample_pool

if TYPE_CHECKING:
    import dspy

    from ..data.bm25 import BM25Index
    from ..data.passages import Passage
    from ..data.pool import PassagePool
    from ..eval.questions import Questions


class Setting(StrEnum):
    distractor = "distractor"
    open = "open"


def setting_of(dataset: str, setting: Setting | None, index: Path | None) -> Any:
    """What is searched: by default the index if there is one, else the questions' own contexts.

    Raises:
        PolyhopError: both are asked for.
    """
    from ..data.benchmarks import find_benchmark

    if setting is Setting.distractor and index is not None:
        raise PolyhopError("The setting distractor searches the questions' own contexts: leave --index out.")
    has_contexts = dataset.casefold() != "sample" and find_benchmark(dataset).has_contexts
    default = "distractor" if index is None and has_contexts else "open"
    return setting.value if setting else default


class Source:
    """The questions, and what is searched for their answers."""

    def __init__(self, questions: Questions, index: Path | None) -> None:
        self.questions = questions
        self.index: BM25Index | None = None
        self.searched: BM25Index | PassagePool | None = None
        self.look_up: Callable[[str], list[Passage]] | None = None
        self.path = index
        if index is not None:
            from ..data.bm25 import BM25Index

            self.index = self.searched = BM25Index(index)
            self.look_up = self.index.titled
        elif questions.dataset == "sample":
            pool = self.searched = sample_pool()
            self.look_up = lambda title: [passage for passage in pool.passages if passage.title == title]

    def check(self, name: str, program: dspy.Module) -> None:
        """
        Raises:
            PolyhopError: the program would have nothing to search.
        """
        if self.searched is None and self.questions.setting == "open" and hasattr(program, "search"):
            raise PolyhopError(
                f"{name} has nothing to search: name an --index"
                + (", or use --setting distractor." if self.questions.have_contexts else ".")
            )
