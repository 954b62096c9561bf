"""The questions of a command, and what is searched for their answers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..data.errors import PolyhopError
from ..data.text import ends_path
from .evaluation_view import evaluation_bar
from .home import is_index
from .index import HOME
from .options import SAMPLE, open_source, searches
from .text import warn
from .tracking import tracked

if TYPE_CHECKING:
    import dspy

    from ..data.lucene.bm25 import BM25Index
    from ..data.passages import Passage
    from ..data.pool import PassagePool
    from ..eval.questions import Questions


_LOOKED_AT = 1_000  # questions
_SHOWN = 5  # warnings about gold passages


class Setting(StrEnum):
    distractor = "distractor"
    open = "open"


def dataset_of(file: str | None) -> str:
    """The default dataset: the format of the file, or the sample."""
    from ..data.benchmarks import recognize_file
    from ..eval.questions import is_code

    return "own" if is_code(file) else recognize_file(file) if file else "sample"


def setting_of(
    dataset: str, setting: Setting | None, index: Path | None, file: str | None, programs: Iterable[str] = ()
) -> tuple[Path | None, Any]:
    """The index that is searched, and the setting: by default the questions' own contexts without an index; questions
    without contexts take the index of $POLYHOP_INDEX or of the current folder. The setting is None if nothing is
    searched here, by programs of the user's own that search elsewhere."""
    from ..data.benchmarks import find_benchmark
    from ..eval.questions import Questions

    if setting is Setting.distractor and index is not None:
        raise PolyhopError("The setting distractor searches the questions' own contexts: leave --index out.")
    if programs and not (setting or index or any(":" not in name or searches(name) for name in programs)):
        return None, None
    if dataset.casefold() == "sample":
        return index, setting.value if setting else "open"
    benchmark = find_benchmark(dataset)
    has_contexts = benchmark.has_contexts
    if index is None and setting is not Setting.distractor:
        if benchmark.name == "own" and file:
            first = next(iter(Questions(dataset, file, limit=1)), None)
            has_contexts = first is not None and first.get("pool") is not None
        if setting or not has_contexts:
            home = Path(HOME) if is_index(Path(HOME)) else None
            index = Path(os.environ["POLYHOP_INDEX"]) if os.environ.get("POLYHOP_INDEX") else home
    default = "distractor" if index is None and benchmark.has_contexts else "open"
    return index, setting.value if setting else default


class Source:
    """The questions, and what is searched for their answers."""

    def __init__(self, questions: Questions, index: Path | None) -> None:
        from ..data.lucene.bm25 import BM25Index

        self.questions = questions
        self.index: BM25Index | None = None
        self.searched: BM25Index | PassagePool | None = None
        self.look_up: Callable[[str], list[Passage]] | None = None
        self.path = index
        if index is not None or questions.dataset == "sample":
            self.searched = open_source(index or Path(SAMPLE))
        if isinstance(self.searched, BM25Index):
            self.index = self.searched
            self.path = self.index.path
            self.look_up = self.index.named
        elif pool := self.searched:
            self.path = None
            self.look_up = lambda title: [passage for passage in pool.passages if passage.title == title]

    def check(self, name: str, program: dspy.Module, settings: Iterable[str] = ()) -> None:
        """Raise if a program has nothing to search; keep it from abstaining where all questions have answers."""
        from ..programs.search import retriever_kind

        if self.searched is None and self.questions.setting == "open" and retriever_kind(program) != "none":
            raise PolyhopError(
                f"{name} has nothing to search: name an --index"
                + (", or use --setting distractor." if self.questions.have_contexts else ".")
            )
        from ..programs.run import ABSTAIN_BELOW
        from ..programs.tunable import Tunable

        threshold = getattr(program, "abstain_below", None)
        is_set = any(setting.startswith("abstain_below=") for setting in settings)
        if (
            isinstance(threshold, Tunable)
            and threshold.value == ABSTAIN_BELOW
            and not is_set
            and self._always_has_an_answer
        ):
            threshold.value = 0.0

    @cached_property
    def _always_has_an_answer(self) -> bool:
        """Whether a benchmark scores guesses only: then programs do not abstain by default."""
        from ..eval.gold import ABSTENTIONS

        first = islice(self.questions, _LOOKED_AT)
        return self.questions.dataset not in ("own", "sample") and not any(
            example.get("answerable") is False or set(example.answers) & set(ABSTENTIONS) for example in first
        )

    def evaluate(
        self,
        program: dspy.Module,
        name: str,
        out: Path | None,
        *,
        file: Path | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Run a program over the questions, with a progress bar.

        Args:
            name: What the program is called.
            file: The program's artifact.
            options: Those of `polyhop.eval.run.evaluate`.
        """
        from ..eval.records import read_records
        from ..eval.run import evaluate
        from ..eval.settings import RunManifest, files_of

        manifest = RunManifest.of(
            program,
            self.questions,
            name=name,
            timeout=timeout,
            index=self.index.manifest if self.index else None,
            files=files_of({"questions": self.questions.file, "index": self.path, "program": file}),
        )
        with tracked(name, manifest.to_json(), out, traces=True) as record, evaluation_bar(name) as show:
            known: dict[str, Any] = {"timeout": timeout, "look_up": self.look_up, "manifest": manifest}
            try:
                summary = evaluate(program, self.questions, out, on_progress=show, **known, **options)
            except KeyboardInterrupt:
                if out is not None:
                    done, count = sum(1 for _ in read_records(out)), manifest.questions.count
                    told = f"{out}: {done} of {count} questions are done; run the same command again to resume."
                    typer.echo(told, err=True)
                raise
            record({**summary["metrics"], "counts": summary["counts"], "totals": summary["totals"]})
            return summary

    def check_gold(self, questions: Iterable[dspy.Example]) -> None:
        """Warn on stderr about gold passages of your own questions that are missing from the index.

        Raises:
            PolyhopError: a name is that of several documents.
        """
        index = self.index
        if index is None or self.questions.dataset != "own":
            return
        missing, ambiguous = list[str](), list[str]()
        for example in questions:
            for fact in dict.fromkeys(fact.passage for fact in example.gold if fact.text is None):
                documents = list(dict.fromkeys(passage.document for passage in index.named(fact.title)))
                where = f"{example.where}: {fact.title!r}"
                if len(documents) > 1:
                    listed = ", ".join(documents[:_SHOWN]) + (", ..." if len(documents) > _SHOWN else "")
                    ambiguous.append(f"{where} names {len(documents)} documents: {listed}")
                elif not documents:
                    missing.append(f"{where} names no passage of the index{_near(index, fact.title)}")
        for problem in missing[:_SHOWN]:
            warn(problem)
        if len(missing) > _SHOWN:
            warn(f"... {len(missing)} names of gold passages in total")
        if ambiguous:
            more = f" ({len(ambiguous) - 1} more names are ambiguous)" if len(ambiguous) > 1 else ""
            raise PolyhopError(f"{ambiguous[0]}. Give more of the path, or words of the passage as text{more}.")


def _near(index: BM25Index, name: str) -> str:
    """What a name may stand for: the document in whose place another was left out, or one with a similar name."""
    from ..data.lucene.layout import PROBLEMS

    with suppress(OSError, ValueError), (index.manifest.home(index.path) / PROBLEMS).open(encoding="utf-8") as file:
        for problem in map(json.loads, file):
            if problem.get("other") and ends_path(problem["where"], name):
                return f": it has {problem['reason']}"
    names = [each for hit in index.search(name, 10) for each in (hit.passage.title, hit.passage.id)]
    near = get_close_matches(name, names, n=1)
    return f": is it {near[0]!r}?" if near else ""
