"""Runs held against each other on the questions that they share."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from .folder import RunError, read_lines, read_manifest
from .official.files import replacing
from .scoring import METRICS
from .statistics import Comparison, compare
from .summary import COSTS

SECONDS = "seconds"


@dataclass(frozen=True)
class Run:
    """One run as it is compared.

    Attributes:
        name: See `run_names`.
        questions: How many questions it has in all.
        done: How many of those are done.
    """

    name: str
    path: Path
    dataset: str | None
    questions: int
    done: int


class Row(NamedTuple):
    """One metric of one run on the shared questions that have such a value in both runs.

    Attributes:
        versus: The run against the first one; positive differences favour this one. None for the first.
    """

    metric: str
    run: str
    questions: int
    mean: float
    versus: Comparison | None


class Flip(NamedTuple):
    """A question that one run has exactly right and the first has not, or the other way round."""

    run: str
    gained: bool
    id: str
    question: str
    gold: str
    before: str
    after: str


@dataclass(frozen=True)
class Result:
    """What comparing some runs, the first of which is the baseline, came to."""

    runs: tuple[Run, ...]
    shared: int
    rows: tuple[Row, ...]
    flips: tuple[Flip, ...]

    def row(self, metric: str, run: str) -> Row | None:
        return next((row for row in self.rows if (row.metric, row.run) == (metric, run)), None)


def compare_runs(paths: Sequence[Path], metrics: Sequence[str] | None = None) -> Result:
    """Compare runs, finished or not, with the first of them.

    Args:
        metrics: By default all that the runs have.

    Raises:
        RunError: there are fewer than two runs, one cannot be read, they are of different datasets or share no
            question, or a metric is not known.
    """
    if len(paths) < 2:
        raise RunError("Name two runs or more: polyhop compare RUN RUN ...")
    unknown = [name for name in metrics or () if name not in (*METRICS, *COSTS, SECONDS)]
    if unknown:
        raise RunError(f"There is no metric {unknown[0]!r}. Known are {', '.join((*METRICS, *COSTS, SECONDS))}.")
    manifests = [read_manifest(path) for path in paths]
    known = run_names({path: manifest["program"] for path, manifest in zip(paths, manifests, strict=True)})
    names = [known[path] for path in paths]
    for path, manifest in zip(paths, manifests, strict=True):
        if manifest["dataset"] != manifests[0]["dataset"]:
            raise RunError(
                f"The runs are of different datasets: {paths[0]} of {manifests[0]['dataset']}, {path} of "
                f"{manifest['dataset']}."
            )
    tables = [{line["id"]: _kept(line) for line in read_lines(path)} for path in paths]
    ids = [id for id in tables[0] if all(id in table for table in tables[1:])]
    if not ids:
        raise RunError("The runs share no question that is done in all of them.")
    runs = tuple(
        Run(name, path, manifest["dataset"], manifest["questions"]["count"], len(table))
        for name, path, manifest, table in zip(names, paths, manifests, tables, strict=True)
    )
    rows = [
        row
        for metric in metrics or (*METRICS, *COSTS, SECONDS)
        for row in _rows(metric, names, [[table[id][2].get(metric, np.nan) for id in ids] for table in tables])
    ]
    flips = [
        flip
        for name, table in zip(names[1:], tables[1:], strict=True)
        for id in ids
        if (flip := _flip(name, id, tables[0][id], table[id]))
    ]
    return Result(runs, len(ids), tuple(rows), tuple(flips))


def run_names(programs: Mapping[Path, Mapping[str, Any]]) -> dict[Path, str]:
    """What runs are called: by their programs, as their manifests tell these, by their folders, or by their paths,
    whichever tells them apart."""
    named = {path: str(program.get("name")) for path, program in programs.items()}
    folders = {path: path.resolve().name for path in programs}
    whole = {path: str(path) for path in programs}
    return next((names for names in (named, folders) if len(set(names.values())) == len(names)), whole)


_Kept = tuple[str, str, dict[str, float], str]  # the question, the answer, the values, a gold answer


def _kept(line: dict[str, Any]) -> _Kept:
    answer = line["answer"] if "error" not in line else f"failed: {line['error']['message']}"
    return line["question"], answer, line["scores"] | line["costs"], (line["gold_answers"] or [""])[0]


def _rows(metric: str, names: Sequence[str], columns: Sequence[Sequence[float]]) -> list[Row]:
    first = np.array(columns[0], dtype=np.float64)
    rows = []
    for name, values in zip(names, columns, strict=True):
        column = np.array(values, dtype=np.float64)
        both = ~np.isnan(column) & ~np.isnan(first)
        if not both.any():
            return []
        versus = None if name == names[0] else compare(column[both].tolist(), first[both].tolist())
        rows.append(Row(metric, name, int(both.sum()), float(column[both].mean()), versus))
    return rows


def _flip(run: str, id: str, first: _Kept, other: _Kept) -> Flip | None:
    before, after = first[2]["answer_em"], other[2]["answer_em"]
    if before == after:
        return None
    return Flip(run, after > before, id, first[0], first[3], first[1], other[1])


# --- files -----------------------------------------------------------------------------------------------------------


def write_csv(path: Path, result: Result) -> None:
    """One line a metric and run, with everything that is known."""
    with replacing(path) as file:
        _write_csv(file, result)


def _write_csv(file: TextIO, result: Result) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow("metric run questions mean difference low high p_bootstrap p_permutation wins ties losses".split())
    for row in result.rows:
        known = row.versus
        more = [*known.difference, *known[1:]] if known else [""] * 8
        writer.writerow([row.metric, row.run, row.questions, row.mean, *more])


def write_latex(path: Path, result: Result) -> None:
    """A booktabs table: a column a run, scores in percent, a dagger where p < 0.05 (permutation) against the first."""
    names = [run.name for run in result.runs]
    lines = [
        f"% {result.shared} shared questions; \\dag: p < 0.05 against {_escaped(names[0])} (paired permutation test)",
        f"\\begin{{tabular}}{{l{'r' * len(names)}}}",
        "\\toprule",
        " & ".join(["", *map(_escaped, names)]) + " \\\\",
        "\\midrule",
    ]
    for metric in dict.fromkeys(row.metric for row in result.rows):
        cells = [_escaped(metric)]
        for name in names:
            row = result.row(metric, name)
            mark = "$^{\\dag}$" if row and row.versus and row.versus.p_permutation < 0.05 else ""
            cells.append(f"{_number(metric, row.mean)}{mark}" if row else "")
        lines.append(" & ".join(cells) + " \\\\")
    with replacing(path) as file:
        file.write("\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n")


def _number(metric: str, value: float) -> str:
    if metric in METRICS:
        return f"{100 * value:.1f}"
    return f"{value:.1f}" if value >= 10 or value == int(value) else f"{value:.3g}"


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "&%$#_{}" else {"\\": "/", "~": "-", "^": "-"}.get(c, c) for c in text)
