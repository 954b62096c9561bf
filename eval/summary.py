"""From the lines of a run to its numbers: ``summary.json``, the TREC files and the official prediction files.

Everything is computed from the lines in the order of the questions, so that the numbers do not depend on how often the
run was stopped, on threads, or on which question was finished first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import dspy
import numpy as np
import numpy.typing as npt

from ..engines.costs import sum_costs
from . import trec
from .folder import SCHEMA, SUMMARY, Line, RunFolder, read_manifest, write_json
from .scoring import METRICS
from .statistics import intervals, percentile_interval, percentiles
from .submissions import Submission

COSTS = ("lm_calls", "lm_calls_critical_path", "searches", "tokens_in", "tokens_out", "tokens", "cost_usd")
"""What a question costs; the summary has the means."""

RUN, QRELS = "run.trec", "qrels.trec"

_LISTED = 20  # kinds of failure
_RESAMPLES = 2_000  # the ends of an interval are then good to about a twentieth of its length

Floats = npt.NDArray[np.float64]


def files_of(submission: Submission | None) -> tuple[str, ...]:
    """The files of a finished run that are made from its lines, beside the summary."""
    return (RUN, QRELS, *(submission.files if submission else ()))


def finish(folder: RunFolder, skipped: int, questions: Iterable[dspy.Example], submission: Submission | None) -> Line:
    """Write everything that is derived from the lines; the summary last, because it says that the run is finished."""
    trec.write_run(folder.path / RUN, ((line["id"], line["ranking"]) for line in folder.lines()), tag="polyhop")
    trec.write_qrels(folder.path / QRELS, ((line["id"], line["gold"]) for line in folder.lines()))
    official = _official(folder, questions, submission) if submission else None
    summary = summarize(folder.lines(), folder.questions, skipped) | {"official": official}
    if simulation := read_manifest(folder.path).get("simulation"):
        summary["simulation"] = simulation
    write_json(folder.path / SUMMARY, summary)
    return summary


def summarize(lines: Iterable[Line], count: int, skipped: int) -> dict[str, Any]:
    """The numbers of a run.

    ``metrics`` has the means over all questions that have such a value, a failure as 0, and ``intervals`` their 95%
    bootstrap intervals; ``by_hops`` and ``by_kind`` have the same for parts of the questions. ``by_agent`` has what
    each agent cost in all, ``incidents`` how often a request had to be repeated or shortened, and why. Only ``timing``,
    ``incidents`` and the metrics that begin with ``seconds`` differ when the same run is made again.
    """
    columns = {name: np.full(count, np.nan) for name in (*METRICS, *COSTS)}
    seconds, failed = np.zeros(count), np.zeros(count, dtype=bool)
    not_found = 0
    hops, kinds, failures = [], [], Counter[tuple[str, str]]()
    incidents, agents, priced = Counter[str](), dict[str, Mapping[str, float]](), True
    for row, line in enumerate(lines):
        for name, value in (*line["scores"].items(), *line["costs"].items()):
            if name in columns:
                columns[name][row] = value
        seconds[row] = line["costs"]["seconds"]
        if "error" in line:
            failed[row] = True
            failures[line["error"]["cause"], line["error"]["message"]] += 1
        incidents.update(line.get("incidents", {}))
        priced = priced and "cost_usd" in line["costs"]
        for agent, costs in line.get("costs_by_agent", {}).items():
            agents[agent] = sum_costs([agents[agent], costs]) if agent in agents else costs
        not_found += line["gold_not_found"]
        hops.append(_name(line["hops"]))
        kinds.append(_name(line["kind"]))
    if not priced:  # a part of what it cost is no cost
        del columns["cost_usd"]
    columns = {name: column for name, column in columns.items() if not np.isnan(column).all()}
    total = _part(columns, failed, slice(None))
    total["counts"] |= {"skipped": skipped, "gold_not_found": not_found}
    for rank, value in percentiles(seconds.tolist(), (50, 95)).items():
        total["metrics"][f"seconds_p{rank:.0f}"] = value
        total["intervals"][f"seconds_p{rank:.0f}"] = list(percentile_interval(seconds.tolist(), rank))
    return {
        "schema": SCHEMA,
        **total,
        "failures": [
            {"cause": cause, "message": message, "count": number}
            for (cause, message), number in sorted(failures.items(), key=lambda item: (-item[1], item[0]))[:_LISTED]
        ],
        "incidents": dict(sorted(incidents.items())),
        "by_agent": {agent: dict(costs) for agent, costs in sorted(agents.items())},
        "by_hops": _parts(columns, failed, hops),
        "by_kind": _parts(columns, failed, kinds),
        "totals": {name: float(np.nansum(columns[name])) for name in COSTS if name in columns},
        "timing": {
            "seconds_mean": float(seconds.mean()),
            "seconds_total": float(seconds.sum()),
        },
    }


def _name(value: object) -> str:
    return "unknown" if value is None else str(value)


def _parts(columns: dict[str, Floats], failed: npt.NDArray[np.bool_], names: Sequence[str]) -> dict[str, Any]:
    if set(names) <= {"unknown"}:
        return {}
    labels = np.array(names)
    return {name: _part(columns, failed, np.flatnonzero(labels == name)) for name in sorted(set(names))}


def _part(
    columns: dict[str, Floats], failed: npt.NDArray[np.bool_], rows: npt.NDArray[np.intp] | slice
) -> dict[str, Any]:
    questions, failures = len(failed[rows]), int(failed[rows].sum())
    part = {name: column[rows] for name, column in columns.items()}
    known = {name: column for name, column in part.items() if not np.isnan(column).all()}
    found = intervals(cast(Mapping[str, Sequence[float]], known), resamples=_RESAMPLES)
    return {
        "counts": {"questions": questions, "answered": questions - failures, "failed": failures},
        "metrics": {name: value.mean for name, value in found.items()},
        "intervals": {name: [value.low, value.high] for name, value in found.items()},
    }


# --- official --------------------------------------------------------------------------------------------------------


class _Pairs:
    """(prediction, gold) in the authors' terms, read anew each time."""

    def __init__(self, folder: RunFolder, questions: Iterable[dspy.Example], submission: Submission) -> None:
        self._folder, self._questions, self._submission = folder, questions, submission

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for example, line in zip(self._questions, self._folder.lines(), strict=True):
            yield self._submission.prediction(**line["official"]), self._submission.gold(example)


def _official(folder: RunFolder, questions: Iterable[dspy.Example], submission: Submission) -> dict[str, Any]:
    pairs = _Pairs(folder, questions, submission)
    for name, write in submission.files.items():
        write(folder.path / name, pairs)
    try:
        return submission.evaluate(pairs)
    except ValueError as error:  # half of a MuSiQue-Full pair, say: the authors' script has no number for that
        return {"none": str(error)}
