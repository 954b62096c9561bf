"""`polyhop table`: programs on several benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from .options import ModelsOption, RetrieverOption, WorkersOption, build_program, label
from .source import Source, setting_of
from .text import file_name, in_markdown, new_table

_COLUMNS = (
    "evidence_precision evidence_recall evidence_f1 passage_recall@5 answer_em answer_f1 lm_calls "
    "lm_calls_critical_path seconds"
).split()


@dataclass(frozen=True)
class TableSetting:
    """A benchmark file, searched in an index or in the questions' own contexts."""

    dataset: str
    questions: Path
    index: Path | None = None

    @classmethod
    def parse(cls, text: str) -> TableSetting:
        """Read ``DATASET:FILE`` or ``DATASET:FILE:INDEX``."""
        parts = text.split(":")
        if len(parts) not in (2, 3) or not all(parts):
            raise typer.BadParameter(f"{text!r} is not DATASET:FILE or DATASET:FILE:INDEX")
        return cls(parts[0], Path(parts[1]), Path(parts[2]) if parts[2:] else None)

    @property
    def name(self) -> str:
        return f"{self.dataset} {'open' if self.index else 'distractor'}"

    def source(self, limit: int | None, seed: int | None) -> Source:
        """Its questions, and what is searched."""
        from ..eval.questions import Questions

        setting = setting_of(self.dataset, None, self.index)
        file = str(self.questions)
        return Source(Questions(self.dataset, file, setting=setting, limit=limit, seed=seed), self.index)

    def run(self, program: str, retriever: str | None = None) -> str:
        """The name of a run's folder: the program, the questions' file, the index and the retriever."""
        searched = self.index.name if self.index else "distractor"
        parts = (label(program), self.dataset, self.questions.name.split(".")[0], searched, retriever)
        return "-".join(file_name(part) for part in parts if part)


def table(
    on: Annotated[list[str], typer.Option(metavar="DATASET:FILE[:INDEX]", help="A benchmark; may be repeated.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the runs; an interrupted table resumes.")],
    program: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|DIR", help="[default: all programs]"),
    ] = None,
    lm: ModelsOption = None,
    retriever: RetrieverOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions of each.")] = None,
    seed: Annotated[int | None, typer.Option(help="With --limit: N random questions instead.")] = None,
    workers: WorkersOption = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Evaluate programs on several benchmarks, and print one table for each.

    Every row is a run of `polyhop evaluate` in DIR, for `polyhop compare`.
    """
    from ..eval.cluster import workers_of
    from ..programs import PROGRAMS

    settings = [TableSetting.parse(text) for text in on]
    cells = [(setting, name) for setting in settings for name in program or PROGRAMS]
    twice = [f"{name} on {setting.name}" for setting, name in cells if cells.count((setting, name)) > 1]
    folders = {cell: out / cell[0].run(cell[1], retriever) for cell in cells}
    if twice or len(set(folders.values())) < len(cells):
        raise typer.BadParameter("two of these runs have the same folder: " + (twice[0] if twice else "same names"))
    executor = workers_of(workers, 1, None)
    for setting in settings:
        source, rows = setting.source(limit, seed), dict[str, dict[str, Any]]()
        for name in program or PROGRAMS:
            searches = name not in PROGRAMS or PROGRAMS[name].searches
            built = build_program(name, source.searched, lm or (), retriever=retriever if searches else None)
            source.check(name, built)
            called, folder = label(name), folders[setting, name]
            try:
                rows[called] = source.evaluate(built, called, folder, executor=executor)
            except PolyhopError as error:
                raise PolyhopError(f"{name} on {setting.name}: {error}") from error
        _print(setting, rows, markdown)


def _print(setting: TableSetting, summaries: Mapping[str, Mapping[str, Any]], markdown: bool) -> None:
    count = next(iter(summaries.values()))["counts"]["questions"]
    rows = [[name, *_cells(summary)] for name, summary in summaries.items()]
    print_table(f"{setting.name}, {count} questions", _COLUMNS, rows, markdown)


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


def _cells(summary: Mapping[str, Any]) -> Iterator[str]:
    """The values of a row; the first one with the number of failures."""
    from ..eval.metrics import quantity

    means = {**summary["metrics"], "seconds": summary["timing"]["seconds_mean"]}
    failed = summary["counts"]["failed"]
    for number, name in enumerate(_COLUMNS):
        text = quantity(name).text(means.get(name))
        yield f"{text} ({failed} failed)" if failed and number == 0 else text
