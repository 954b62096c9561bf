"""`polyhop table`: programs on several benchmarks, or the experiments of a paper with its figures beside ours."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..app.named import NamedProgram, models_of, paying
from ..app.task import Task, setting_of
from ..data.benchmarks import PREFIX
from ..data.errors import PolyhopError, first_error
from ..data.files import read_bytes
from ..data.text import plain
from ..engines.costs import FREE
from ..eval.metrics import quantity
from ..eval.questions import Questions
from ..programs import PROGRAMS
from .options import Table
from .results import run_questions
from .terminal import file_name, in_markdown, new_console, new_table

_COLUMNS = (
    "evidence_precision evidence_recall evidence_f1 passage_recall@5 answer_em answer_f1 lm_calls "
    "lm_calls_critical_path seconds"
).split()
_QUESTIONS = 500  # of each dataset, where a paper does not say


class Row(BaseModel):
    """A program with tunables that are ``set``, or a figure of the paper only, which has no program. ``published``:
    dataset, then metric, then the figure as the source gives it."""

    model_config = ConfigDict(extra="forbid")

    name: str
    program: str = ""
    set: dict[str, bool | int | float | str] = {}
    published: dict[str, dict[str, str]] = {}

    @property
    def settings(self) -> tuple[str, ...]:
        """As --set takes them."""
        return tuple(f"{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in self.set.items())


class Paper(BaseModel):
    """What a paper measures: a TOML file in ``docs/papers``. ``datasets`` says of each where to get it, ``models``
    wrote the published figures, on so many ``questions`` of each dataset (None if the source does not say); ``notes``
    are what the figures do not say."""

    model_config = ConfigDict(extra="forbid")

    title: str
    arxiv: str
    models: str = "models that our source does not name"
    retriever: str  # also of the baselines
    questions: int | None = None
    metrics: list[str]
    datasets: dict[str, str]
    rows: list[Row] = Field(min_length=1)
    notes: list[str] = []

    @classmethod
    def read(cls, file: Path) -> Paper:
        """Raises: PolyhopError: the file cannot be read, or describes no paper."""
        try:
            return cls.model_validate(tomllib.loads(read_bytes(file).decode("utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            why = first_error(error) if isinstance(error, ValidationError) else getattr(error, "strerror", error)
            raise PolyhopError(f"{file} is no paper: {why}") from error


@dataclass(frozen=True)
class Benchmark:
    """A file of questions, or ``hub:NAME``, searched in an index or in the questions' own contexts."""

    dataset: str
    questions: str
    index: Path | None = None

    def __str__(self) -> str:
        return f"{self.dataset} {'open' if self.index else 'distractor'}"


def read_benchmark(text: str) -> Benchmark:
    """Read ``DATASET:FILE``, ``DATASET:FILE:INDEX`` or ``DATASET:hub:NAME``."""
    dataset, _, rest = text.partition(":")
    questions, _, index = (rest, "", "") if rest.startswith(PREFIX) else rest.partition(":")
    if not dataset or not questions or text.endswith(":") or ":" in index:
        raise typer.BadParameter(f"{text!r} is not DATASET:FILE or DATASET:FILE:INDEX")
    return Benchmark(dataset, questions, Path(index) if index else None)


def table(options: Table) -> None:
    paper = Paper.read(options.paper) if options.paper else None
    names = options.program or ([row.program for row in paper.rows if row.program] if paper else PROGRAMS)
    programs = {name: NamedProgram(name) for name in names}
    if paper and not options.program:
        rows = paper.rows
    else:
        rows = [Row(name=named.label, program=name) for name, named in programs.items()]
    benchmarks = [read_benchmark(text) for text in options.on]
    if not benchmarks:
        needed = "".join(f"\n  {name}: {source}" for name, source in paper.datasets.items()) if paper else ""
        raise typer.BadParameter(f"name the questions with --on DATASET:FILE[:INDEX]{needed}")
    limit, seed = options.limit, options.seed
    if paper:
        limit, seed = limit or paper.questions or _QUESTIONS, seed or 0
    folders = {(benchmark, row.name): _folder(row, benchmark, options) for benchmark in benchmarks for row in rows}
    if len(set(folders.values())) < len(benchmarks) * len(rows):
        raise typer.BadParameter("two of these runs have the same folder: rename a program or a file")
    models, metrics = set[str](), paper.metrics if paper else _COLUMNS
    with paying(options, options.out) as pay:
        for benchmark in benchmarks:
            index, setting = setting_of(benchmark.dataset, None, benchmark.index, benchmark.questions)
            questions = Questions(benchmark.dataset, benchmark.questions, setting=setting, limit=limit, seed=seed)
            task, summaries = Task(questions, index), dict[str, dict[str, Any]]()
            task.check_gold(questions)
            for row in (row for row in rows if row.program):
                named = programs[row.program]
                retriever = options.retriever or (paper.retriever if paper else None)
                changes = {"retriever": retriever if named.searches else None, "set": (*row.settings, *options.set)}
                try:
                    program = task.program(named, options.model_copy(update=changes))
                    pay(program)
                    run = folders[benchmark, row.name]
                    summaries[row.name] = run_questions(task, program, row.name, run, **options.how)
                except PolyhopError as error:
                    raise PolyhopError(f"{row.name} on {benchmark}: {error}") from error
                models |= {model.model for model in models_of(program)}
            count = next(iter(summaries.values()))["counts"]["questions"]
            title = f"{benchmark}, {count:,} questions" + (": ours (published)" if paper else "")
            cells = [[row.name, *_cells(metrics, row, benchmark.dataset, summaries.get(row.name))] for row in rows]
            _print(title, metrics, cells, options.markdown)
    if paper:
        typer.echo(f"{paper.title} (arXiv {paper.arxiv})")
        typer.echo(f"Models: here {', '.join(sorted(models))}; published with {paper.models}.")
        if models <= set(FREE):
            typer.echo("The keyless engine is not a language model: its figures say nothing about the paper.")
        typer.echo("".join(f"{note}\n" for note in paper.notes), nl=False)


def _folder(row: Row, benchmark: Benchmark, options: Table) -> Path:
    """The folder of a run, by the row, the questions' file, the index and the retriever."""
    searched = benchmark.index.name if benchmark.index else "distractor"
    file = Path(benchmark.questions).name.split(".")[0]
    parts = (row.name, benchmark.dataset, file, searched, options.retriever)
    return options.out / "-".join(file_name(part) for part in parts if part)


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> None:
    """Print rows, each with its name first, below the labels of metrics and costs."""
    headings = [quantity(name).label for name in columns]
    if markdown:
        typer.echo(f"| {in_markdown(title)} | {' | '.join(headings)} |\n|---|{'---:|' * len(headings)}")
        typer.echo("".join(f"| {' | '.join(map(in_markdown, row))} |\n" for row in rows))
        return
    shown = new_table(title, "", *headings)
    for row in rows:
        shown.add_row(plain(row[0]), *row[1:])
    new_console().print(shown)


def _cells(metrics: Sequence[str], row: Row, dataset: str, summary: Mapping[str, Any] | None) -> Iterator[str]:
    """The values of a row, with those of the paper; the first one with the number of failures."""
    means = {**summary["metrics"], "seconds": summary["timing"]["seconds_mean"]} if summary else {}
    failed = summary["counts"]["failed"] if summary else 0
    published = row.published.get(dataset, {})
    for number, name in enumerate(metrics):
        text = quantity(name).text(means.get(name)) or ("-" if published or not summary else "")
        text += f" ({published[name]})" if name in published else ""
        yield f"{text} ({failed} failed)" if failed and number == 0 else text
