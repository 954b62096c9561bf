"""`polyhop table`: programs on several benchmarks, or the experiments of a paper with its figures beside ours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from ..eval.options import Limits, ProgramOptions, Resources
from .options import build_program, label, models_of, paying
from .source import Source, setting_of
from .text import file_name, in_markdown, new_table, warn

if TYPE_CHECKING:
    from .papers import Paper, Row

_COLUMNS = (
    "evidence_precision evidence_recall evidence_f1 passage_recall@5 answer_em answer_f1 lm_calls "
    "lm_calls_critical_path seconds"
).split()
_WITH_VECTORS = ("dense", "fused", "chain-dense")
_QUESTIONS = 500  # of each dataset, where a paper does not say


@dataclass(frozen=True)
class TableSetting:
    """A benchmark file, or ``hub:NAME``, searched in an index or in the questions' own contexts."""

    dataset: str
    questions: str
    index: Path | None = None

    @classmethod
    def parse(cls, text: str) -> TableSetting:
        """Read ``DATASET:FILE``, ``DATASET:FILE:INDEX`` or ``DATASET:hub:NAME``."""
        from ..data.benchmarks import PREFIX

        dataset, _, rest = text.partition(":")
        if rest.startswith(PREFIX):
            return cls(dataset, rest)
        parts = text.split(":")
        if len(parts) not in (2, 3) or not all(parts):
            raise typer.BadParameter(f"{text!r} is not DATASET:FILE or DATASET:FILE:INDEX")
        return cls(parts[0], parts[1], Path(parts[2]) if parts[2:] else None)

    @property
    def name(self) -> str:
        return f"{self.dataset} {'open' if self.index else 'distractor'}"

    def source(self, limit: int | None, seed: int | None) -> Source:
        """Its questions, and what is searched."""
        from ..eval.questions import Questions

        index, setting = setting_of(self.dataset, None, self.index, self.questions)
        return Source(Questions(self.dataset, self.questions, setting=setting, limit=limit, seed=seed), index)

    def folder(self, row: str, retriever: str | None = None) -> str:
        """The name of a run's folder: the row, the questions' file, the index and the retriever."""
        searched = self.index.name if self.index else "distractor"
        parts = (row, self.dataset, Path(self.questions).name.split(".")[0], searched, retriever)
        return "-".join(file_name(part) for part in parts if part)


def table(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the runs; an interrupted table resumes.")],
    paper: Annotated[
        Path | None,
        typer.Argument(metavar="PAPER.toml", help="The experiments of a paper (docs/papers).", show_default=False),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET:FILE[:INDEX]|DATASET:hub:NAME",
            help="A benchmark; may be repeated.  [default: those of the paper]",
        ),
    ] = None,
    benchmarks: Annotated[
        Path | None,
        typer.Option(envvar="POLYHOP_BENCHMARKS", metavar="DIR", help="The folder of a paper's benchmark files."),
    ] = None,
    program: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|DIR", help="[default: the rows of the paper; without one all programs]"),
    ] = None,
    *,
    options: ProgramOptions,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first N questions of each; N random ones with a paper.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --limit: N random questions instead.")] = None,
    resources: Resources,
    limits: Limits,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Evaluate programs on several benchmarks, and print one table for each; of a paper, also the published figures.

    Every row is a run of `polyhop evaluate` in DIR, for `polyhop compare`.
    """
    from ..programs import PROGRAMS
    from .papers import Paper, Row

    read = Paper.read(paper) if paper else None
    names = program or (None if read else list(PROGRAMS))
    rows = [Row(name=label(each), program=each) for each in names] if names else read.rows if read else []
    if read:
        limit, seed = limit or read.questions or _QUESTIONS, seed or 0
    settings = [TableSetting.parse(text) for text in on or ()] or (_local(read, benchmarks, out) if read else [])
    if not settings:
        raise typer.BadParameter("name a benchmark with --on, or a paper")
    retriever = options.retriever
    runs = {(setting, row.name): out / setting.folder(row.name, retriever) for setting in settings for row in rows}
    if len(set(runs.values())) < len(settings) * len(rows):
        raise typer.BadParameter("two of these runs have the same folder: rename a program or a file")
    threads, executor = resources.threads, resources.executor
    with paying(limits, out) as pay:
        for setting in settings:
            source, summaries, models = setting.source(limit, seed), dict[str, dict[str, Any]](), set[str]()
            if read and retriever is None and setting.index:
                _embed(read.retriever, setting.index)
            for row in (row for row in rows if row.program):
                searches = row.program not in PROGRAMS or PROGRAMS[row.program].searches
                try:
                    row_set = (f"{name}={_text(value)}" for name, value in row.set.items())
                    used = (retriever or (read.retriever if read else None)) if searches else None
                    changed = {"retriever": used, "set": (*row_set, *options.set)}
                    built = build_program(row.program, source.searched, options.model_copy(update=changed))
                    source.check(row.program, built, options.set)
                    pay(built)
                    folder = runs[setting, row.name]
                    summaries[row.name] = source.evaluate(built, row.name, folder, threads=threads, executor=executor)
                except PolyhopError as error:
                    raise PolyhopError(f"{row.name} on {setting.name}: {error}") from error
                models |= {model.model for model in models_of(built)}
            count = next(iter(summaries.values()))["counts"]["questions"]
            title = f"{setting.name}, {count:,} questions" + (": ours (published)" if read else "")
            metrics = read.metrics if read else _COLUMNS
            shown = [[row.name, *_cells(metrics, row, setting.dataset, summaries.get(row.name))] for row in rows]
            print_table(title, metrics, shown, markdown)
    for line in _differences(read, models, settings, retriever) if read else ():
        typer.echo(line)


def _local(paper: Paper, folder: Path | None, out: Path) -> list[TableSetting]:
    """The datasets of a paper whose files are in a folder; what is searched is indexed once.

    Raises:
        PolyhopError: there is none; the message tells which files to get.
    """
    from ..data.lucene.index import build_index

    found = {name: files.find(folder) for name, files in paper.datasets.items()}
    missing = [f"  {name}: {paper.datasets[name].source}" for name, files in found.items() if not files]
    if not any(found.values()):
        told = "\n".join(["the experiments need these files in a folder that --benchmarks names:", *missing])
        raise PolyhopError(f"{told}\nor name others: --on DATASET:FILE[:INDEX], --on DATASET:hub:OWNER/NAME[:CONFIG]")
    for line in missing:
        warn(f"left out, because {folder} lacks {line.strip()}")
    settings = []
    for name, files in found.items():
        if not files:
            continue
        questions, corpus = files
        index = out / "indexes" / name if corpus else None
        if index and corpus and not index.exists():
            build_index([corpus], index)
        settings.append(TableSetting(name, str(questions), index))
    return settings


def _embed(retriever: str, index: Path) -> None:
    """Add the vectors that a retriever needs to an index of this table."""
    from ..data.dense import embed_index

    if retriever in _WITH_VECTORS:
        embed_index(index)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> None:
    """Print rows, each with its name first, below the labels of metrics and costs."""
    from rich.console import Console

    from ..eval.metrics import quantity

    title, rows = plain(title), [[plain(row[0]), *row[1:]] for row in rows]
    headings = [quantity(name).label for name in columns]
    if markdown:
        typer.echo(f"| {in_markdown(title)} | {' | '.join(headings)} |\n|---|{'---:|' * len(headings)}")
        typer.echo("".join(f"| {' | '.join(map(in_markdown, row))} |\n" for row in rows))
        return
    shown = new_table(title, "", *headings)
    for row in rows:
        shown.add_row(*row)
    Console(markup=False, emoji=False).print(shown)


def _cells(metrics: Sequence[str], row: Row, dataset: str, summary: Mapping[str, Any] | None) -> Iterator[str]:
    """The values of a row, with those of the paper; the first one with the number of failures."""
    from ..eval.metrics import quantity

    means = {**summary["metrics"], "seconds": summary["timing"]["seconds_mean"]} if summary else {}
    failed = summary["counts"]["failed"] if summary else 0
    published = row.published.get(dataset, {})
    for number, name in enumerate(metrics):
        text = quantity(name).text(means.get(name)) or ("-" if published or not summary else "")
        text += f" ({published[name]})" if name in published else ""
        yield f"{text} ({failed} failed)" if failed and number == 0 else text


def _differences(
    paper: Paper, models: set[str], settings: Sequence[TableSetting], retriever: str | None
) -> Iterator[str]:
    """What differs from the paper, a sentence per line."""
    from ..engines.costs import FREE

    yield f"{paper.title} (arXiv {paper.arxiv})"
    yield f"Models: here {', '.join(sorted(models))}; published with {paper.models}."
    if models <= set(FREE):
        yield "The embedded engine is not a language model: its figures say nothing about the paper."
    searched = sorted({"an index" if setting.index else "the questions' own passages" for setting in settings})
    used = retriever or paper.retriever
    yield f"Searched: {' and '.join(searched)}, with {used}; published with {paper.retriever}."
    theirs = f"{paper.questions} of each dataset, which are not known" if paper.questions else "a number not given"
    yield f"The questions of the published figures: {theirs}."
    yield from paper.notes
