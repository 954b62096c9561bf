"""What a command searches, and the questions that it asks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import dspy
import typer

from ..data.benchmarks import SAMPLE, find_benchmark, recognize_file
from ..data.errors import PolyhopError
from ..data.lucene.bm25 import BM25Index
from ..data.lucene.layout import HOME, PROBLEMS, index_above, index_of, newest_segments
from ..data.passages import Passage
from ..data.pool import PassagePool
from ..data.sample import sample_passages
from ..data.text import ends_path, plain
from ..eval.folder import RunManifest, files_of, read_records
from ..eval.gold import ABSTENTIONS, gold_facts
from ..eval.questions import Questions, is_code
from ..eval.run import evaluate
from ..programs.run import ABSTAIN_BELOW
from ..programs.search import retriever_kind
from ..programs.tunable import Tunable
from .options import Index, ProgramOptions
from .program import Named
from .results import evaluation_bar
from .terminal import warn
from .tracking import tracked

_LOOKED_AT = 1_000  # questions
_SHOWN = 5  # warnings about gold passages


def open_source(index: Path) -> BM25Index | PassagePool:
    """An index, or the sample corpus in memory."""
    if str(index) == SAMPLE and not index.exists():
        return PassagePool(sample_passages())
    return BM25Index(index)


def own_index() -> Path | None:
    """The index of $POLYHOP_INDEX, or `index_above`; None if there is none."""
    named = os.environ.get("POLYHOP_INDEX")
    return Path(named) if named else index_above()


def chosen_index(index: Path | None) -> Path:
    """What is searched: an index or the sample, by default `own_index`; for a folder of documents, its own index. In a
    terminal, a folder that has none is indexed if the user agrees.
    """
    index = index or own_index()
    folder = index or Path()
    inner = index_of(folder)
    if newest_segments(inner) or not inner.is_dir():
        return inner
    inside = folder / HOME
    if not in_terminal():
        command = f"polyhop index {folder} --out {inside}" if index else "polyhop index"
        raise PolyhopError(
            f"nothing to search in {folder.resolve()}: '{command}' makes an index of its documents, --index DIR names "
            "another, and --index sample is the sample corpus"
        )
    typer.confirm(f"{folder.resolve()} has no index. Index its documents now?", default=True, abort=True, err=True)
    from .index import index as build  # which reads documents

    build(Index(names=(str(folder),), out=inside))
    return inside


def in_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # a service may have none


def dataset_of(file: str | None) -> str:
    """The default dataset: the format of the file, or the sample."""
    return "own" if is_code(file) else recognize_file(file) if file else SAMPLE


def split_of(dataset: str, split: str | None) -> str | None:
    """The split that is asked: of the sample by default its dev set."""
    return split or ("dev" if dataset.casefold() == SAMPLE else None)


def setting_of(
    dataset: str, setting: str | None, index: Path | None, file: str | None, program: Named | None = None
) -> tuple[Path | None, Any]:
    """The index that is searched, and the setting: by default the questions' own contexts without an index; questions
    without contexts take `own_index`. The setting is None if a program of the user's own searches elsewhere."""
    if setting == "distractor" and index is not None:
        raise PolyhopError("The setting distractor searches the questions' own contexts: leave --index out.")
    if program and program.own and not (setting or index or program.searches):
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
            index = own_index()
    return index, setting or ("distractor" if index is None and benchmark.has_contexts else "open")


class Source:
    """The questions, and what is searched for their answers."""

    def __init__(self, questions: Questions, index: Path | None) -> None:
        self.questions = questions
        self.index: BM25Index | None = None
        self.searched: BM25Index | PassagePool | None = None
        self.look_up: Callable[[str], list[Passage]] | None = None
        if index is not None or questions.dataset == SAMPLE:
            self.searched = open_source(index or Path(SAMPLE))
        if isinstance(self.searched, BM25Index):
            self.index, self.look_up = self.searched, self.searched.named
        elif pool := self.searched:
            self.look_up = lambda title: [passage for passage in pool.passages if passage.title == title]

    def program(self, named: Named, options: ProgramOptions) -> dspy.Module:
        """A program, which searches. Where all questions have answers, it does not abstain unless it is told to."""
        program = named.build(self.searched, options)
        if self.searched is None and self.questions.setting == "open" and retriever_kind(program) != "none":
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

    def evaluate(
        self, program: dspy.Module, name: str, out: Path | None, *, file: Path | None = None, **options: Any
    ) -> dict[str, Any]:
        """Run a program over the questions, with a progress bar.

        Args:
            name: What the program is called.
            file: The program's artifact.
            options: Those of `polyhop.eval.run.evaluate`.
        """
        index, asked = self.index, self.questions
        files = files_of(questions=asked.file, aliases=asked.aliases, index=index.path if index else None, program=file)
        searched = index.manifest if index else None
        manifest = RunManifest.of(
            program, asked, name=name, timeout=options.get("timeout"), index=searched, files=files
        )
        with tracked(name, manifest.to_json(), out, traces=True) as record, evaluation_bar(name) as show:
            options |= {"look_up": self.look_up, "manifest": manifest, "on_progress": show}
            try:
                summary = evaluate(program, asked, out, **options)
            except KeyboardInterrupt:
                if out is not None:
                    done, count = sum(1 for _ in read_records(out)), manifest.questions.count
                    state = f"{done} of {count} questions are done; run the same command again to resume."
                    typer.echo(f"{out}: {state}", err=True)
                raise
            record({**summary["metrics"], "counts": summary["counts"], "totals": summary["totals"]})
            return summary

    def check_gold(self, questions: Iterable[dspy.Example]) -> None:
        """Warn on stderr about gold passages of your own questions that are missing from the index.

        Raises:
            PolyhopError: a name is that of several documents, or the index has none of them.
        """
        index, missing, some_found = self.index, list[tuple[str, str]](), False
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
                some_found = some_found or bool(documents)
                if not documents:
                    missing.append((where, fact.title))
        if missing and not some_found:
            listed = ", ".join(repr(name) for _, name in missing[:_SHOWN])
            raise PolyhopError(f"no gold passage is in {index.path}: is it the right --index? Gold is {listed}")
        for where, name in missing[:_SHOWN]:
            names = [title for hit in index.search(name, 10) for title in (hit.passage.title, hit.passage.id)]
            near = (f"is it {title!r}?" for title in get_close_matches(name, names, n=1))
            hint = next((f": {text}" for text in (*_why_left_out(index, name), *near)), "")
            warn(f"{where}: {name!r} names no passage of the index{hint}")
        if len(missing) > _SHOWN:
            warn(f"... {len(missing)} names of gold passages in total")


def _why_left_out(index: BM25Index, name: str) -> Iterator[str]:
    """Why an index has no file of a name, if it was skipped; and what to name instead of a copy."""
    with suppress(OSError), (index.manifest.home(index.path) / PROBLEMS).open(encoding="utf-8") as file:
        for problem in map(json.loads, file):
            if ends_path(problem["where"], name):
                instead = f"; name {problem['other']!r} instead" if "other" in problem else ""
                yield f"it was left out: {plain(problem['reason'])}{instead}"
