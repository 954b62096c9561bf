"""The questions that are asked, and what is searched for their answers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import dspy

from ..data.benchmarks import SAMPLE, find_benchmark, recognize_file
from ..data.errors import PolyhopError
from ..data.lucene.bm25 import BM25Index
from ..data.lucene.layout import PROBLEMS
from ..data.passages import Passage
from ..data.pool import PassagePool
from ..data.text import ends_path, plain
from ..eval.gold import ABSTENTIONS, gold_facts
from ..eval.questions import Questions, is_code
from ..programs.run import ABSTAIN_BELOW
from ..programs.search import retriever_kind
from ..programs.tunable import Tunable
from .named import NamedProgram, default_index, open_source
from .options import ProgramOptions

_LOOKED_AT = 1_000  # questions
_SHOWN = 5  # warnings about gold passages


def dataset_of(file: str | None) -> str:
    """The default dataset: the format of the file, or the sample."""
    return "own" if is_code(file) else recognize_file(file) if file else SAMPLE


def split_of(dataset: str, split: str | None) -> str | None:
    """The split that is asked: of the sample by default its dev set."""
    return split or ("dev" if dataset.casefold() == SAMPLE else None)


def setting_of(
    dataset: str, setting: str | None, index: Path | None, file: str | None, program: NamedProgram | None = None
) -> tuple[Path | None, Any]:
    """The index that is searched, and the setting: by default the questions' own contexts without an index; questions
    without contexts take `default_index`. The setting is None if a program of the user's own searches elsewhere."""
    if setting == "distractor" and index is not None:
        raise PolyhopError("The setting distractor searches the questions' own contexts: leave --index out.")
    if program and program.code and not (setting or index or program.searches):
        return None, None
    if dataset.casefold() == SAMPLE:
        return index, setting or "open"
    benchmark = find_benchmark(dataset)
    has_contexts = benchmark.has_contexts
    if index is None and setting != "distractor":
        if benchmark.name == "own" and file:
            first = next(iter(Questions(dataset, file, limit=1)), None)
            has_contexts = first is not None and first.get("pool") is not None
        if setting or not has_contexts:
            index = default_index()
    return index, setting or ("distractor" if index is None and benchmark.has_contexts else "open")


class Task:
    """The questions, and what is searched for their answers.

    Attributes:
        source: An index or the sample corpus; None if each question has its own passages.
        index: The source, if it is an index.
        look_up: Finds the passages of the source by title; None without one.
    """

    def __init__(self, questions: Questions, index: Path | None) -> None:
        self.questions = questions
        self.source: BM25Index | PassagePool | None = None
        self.index: BM25Index | None = None
        self.look_up: Callable[[str], list[Passage]] | None = None
        if index is not None or questions.dataset == SAMPLE:
            self.source = open_source(index or Path(SAMPLE))
        if self.source is not None:
            self.look_up = self.source.named
        if isinstance(self.source, BM25Index):
            self.index = self.source

    def program(self, named: NamedProgram, options: ProgramOptions) -> dspy.Module:
        """A program, which searches. Where all questions have answers, it does not abstain unless it is told to."""
        program = named.build(self.source, options)
        if self.source is None and self.questions.setting == "open" and retriever_kind(program) != "none":
            other = ", or use --setting distractor" if self.questions.have_contexts else ""
            raise PolyhopError(f"{named.name} has nothing to search: name an --index{other}.")
        threshold: Any = getattr(program, "abstain_below", None)
        is_set = any(text.startswith("abstain_below=") for text in options.set)
        if isinstance(threshold, Tunable) and threshold.value == ABSTAIN_BELOW and not is_set and self._all_answered:
            threshold.value = 0.0
        return program

    @cached_property
    def _all_answered(self) -> bool:
        """Whether a benchmark scores guesses only: then programs do not abstain by default."""
        return self.questions.dataset not in ("own", SAMPLE) and not any(
            example.get("answerable") is False or set(example.answers) & set(ABSTENTIONS)
            for example in islice(self.questions, _LOOKED_AT)
        )

    def check_gold(self, questions: Iterable[dspy.Example]) -> None:
        """Warn about gold passages of your own questions that are missing from the index.

        Raises:
            PolyhopError: a name is that of several documents, or the index has none of them.
        """
        index, missing, is_any_there = self.index, list[tuple[str, str]](), False
        if index is None or self.questions.dataset != "own":
            return
        for example in questions:
            where = example.get("where") or plain(str(example.get("question")))[:80]  # examples of Python have no line
            for fact in dict.fromkeys(fact.passage for fact in gold_facts(example)):
                documents = list(dict.fromkeys(passage.document for passage in index.named(fact.title)))
                if len(documents) > 1 and fact.text is None:
                    listed = ", ".join(documents[:_SHOWN]) + (", ..." if len(documents) > _SHOWN else "")
                    raise PolyhopError(
                        f"{where}: {fact.title!r} names {len(documents)} documents: {listed}. Give its id, more of "
                        "the path, or words of the passage as text."
                    )
                is_any_there = is_any_there or bool(documents)
                if not documents:
                    missing.append((where, fact.title))
        if missing and not is_any_there:
            listed = ", ".join(repr(name) for _, name in missing[:_SHOWN])
            raise PolyhopError(f"no gold passage is in {index.path}: is it the right --index? Gold is {listed}")
        for where, name in missing[:_SHOWN]:
            why = _why_left_out(index, name)
            warnings.warn(f"{where}: {name!r} names no passage of the index{why}", stacklevel=2)
        if len(missing) > _SHOWN:
            warnings.warn(f"... {len(missing)} names of gold passages in total", stacklevel=2)


def problems_of(index: BM25Index) -> Iterator[dict[str, Any]]:
    """What was left out of an index, as far as that is recorded."""
    with suppress(OSError), (index.manifest.home(index.path) / PROBLEMS).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _why_left_out(index: BM25Index, name: str) -> str:
    """Why an index has no file of a name, if it was skipped; and what to name instead of a copy."""
    for problem in problems_of(index):
        if ends_path(problem["where"], name):
            instead = f"; name {problem['other']!r} instead" if "other" in problem else ""
            return f": it was left out: {plain(problem['reason'])}{instead}"
    return ""
