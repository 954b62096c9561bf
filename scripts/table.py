"""`polyhop table`: programs on several benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from .options import ModelsOption, PresetOption, RetrieverOption, label
from .text import file_name, in_markdown, new_table

PROGRAMS = (
    *("direct", "naive", "full_context", "set_selection", "ircot"),
    *("prism", "kair", "par_rag", "c3po", "polyhop", "oracle"),
)

WITHOUT_SEARCH = ("direct", "oracle")  # known without importing the programs

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

    def run(self, program: str, retriever: str | None = None, preset: str | None = None) -> str:
        """The name of a run's folder: the program, the questions' file, the index and the retriever."""
        searched = self.index.name if self.index else "distractor"
        parts = (label(program, preset), self.dataset, self.questions.name.split(".")[0], searched, retriever)
        return "-".join(file_name(part) for part in parts if part)


def table(
    on: Annotated[list[str], typer.Option(metavar="DATASET:FILE[:INDEX]", help="A benchmark; may be repeated.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the runs; an interrupted table resumes.")],
    program: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|DIR", help="[default: all programs; with --preset those that have it]"),
    ] = None,
    lm: ModelsOption = None,
    retriever: RetrieverOption = None,
    preset: PresetOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions of each.")] = None,
    seed: Annotated[int | None, typer.Option(help="With --limit: N random questions instead.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs in parallel.")] = 1,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Evaluate programs on several benchmarks, and print one table for each.

    Every row is a run of `polyhop evaluate` in DIR, for `polyhop compare`.
    """
    from rich.console import Console
    from rich.progress import track

    settings = [TableSetting.parse(text) for text in on]
    cells = [(setting, name) for setting in settings for name in program or _programs(preset)]
    twice = [f"{name} on {setting.name}" for setting, name in cells if cells.count((setting, name)) > 1]
    folders = {cell: out / cell[0].run(cell[1], retriever, preset) for cell in cells}
    if twice or len(set(folders.values())) < len(cells):
        raise typer.BadParameter("two of these runs have the same folder: " + (twice[0] if twice else "same names"))
    options = [part for spec in lm or () for part in ("--lm", spec)]
    options += ["--limit", str(limit)] if limit else []
    options += ["--seed", str(seed)] if seed is not None else []
    options += ["--preset", preset] if preset else []
    console = Console(stderr=True)
    with ThreadPoolExecutor(jobs) as pool:
        runs = pool.map(lambda cell: _run(cell[0], cell[1], folders[cell], options, retriever), cells)
        try:
            found = list(track(runs, "programs", len(cells), console=console, disable=not console.is_terminal))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):  # the running processes receive it, too
                typer.echo(f"{out}: finished questions are saved; run the same command again to resume.", err=True)
            pool.shutdown(cancel_futures=True)
            raise
    summaries = dict(zip(cells, found, strict=True))
    for setting in settings:
        rows = {label(name, preset): summary for (where, name), summary in summaries.items() if where == setting}
        _print(setting, rows, markdown)


def _programs(preset: str | None) -> list[str]:
    """All programs; with a preset those that have it."""
    if not preset:
        return list(PROGRAMS)
    from ..programs import PROGRAMS as known

    return [name for name in PROGRAMS if known[name].paper_retriever]


def _run(
    setting: TableSetting, program: str, folder: Path, options: Sequence[str], retriever: str | None
) -> dict[str, Any]:
    """Evaluate one program in its own process, unless its run is finished."""
    command = [sys.executable, "-m", "polyhop.scripts.main", "evaluate", "--json", "--out", str(folder)]
    command += ["--dataset", setting.dataset, "--questions", str(setting.questions), "--program", program]
    command += ["--index", str(setting.index)] if setting.index else []
    command += ["--retriever", retriever] if retriever and program not in WITHOUT_SEARCH else []
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).removeprefix("error: ")
        raise PolyhopError(f"{program} on {setting.name}: {said}")
    return dict(json.loads(done.stdout))


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
