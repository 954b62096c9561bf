"""The last measurement of a joint run: the program at its start and the best one, on questions that no stage saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy

from ...eval.gold import LookUp
from ...eval.records import read_records
from ...eval.run import RunProgress, evaluate
from ...eval.settings import RunManifest
from ...eval.statistics import Interval, compare, interval


def measure_both(
    programs: Mapping[str, Callable[[], dspy.Module]],
    questions: Sequence[dspy.Example],
    metric: str,
    out: Path,
    *,
    threads: int,
    look_up: LookUp | None,
    seed: int,
    on_progress: Callable[[str, RunProgress], None],
) -> dict[str, Any]:
    """Scores with intervals, and the paired test; each program gets a run of its own, which `polyhop compare` takes.

    Args:
        programs: Makes the program at the start, which comes first, and the best one if it is another; by the names of
            their runs.
        metric: The name of the one that was tuned for.
        out: A folder for the runs; those that it has are continued.
    """
    runs: dict[str, Any] = {}
    scores: dict[str, list[float]] = {}
    for name, make in programs.items():
        program, folder = make(), out / name
        summary = evaluate(
            program,
            questions,
            folder,
            threads=threads,
            look_up=look_up,
            manifest=RunManifest.of(program, questions, name=name),
            on_progress=lambda progress, name=name: on_progress(name, progress),  # type: ignore[misc]
        )
        runs[name] = {key: summary[key] for key in ("metrics", "intervals", "counts")}
        scores[name] = [float(record.scores.get(metric, float("nan"))) for record in read_records(folder)]
    theirs, ours = (list(scores.values()) * 2)[:2]
    compared = compare(ours, theirs, seed=seed)
    return {
        "metric": metric,
        "start": interval(theirs)._asdict(),
        "best": interval(ours)._asdict(),
        "difference": compared.difference._asdict(),
        "p": compared.p_permutation,
        "runs": runs,
    }


def intervals_of(test: Mapping[str, Any]) -> dict[str, Interval]:
    """Of every metric of the best program."""
    run = list(test["runs"].values())[-1]
    known = run["intervals"]
    return {
        name: Interval(mean, *known[name])
        for name, mean in run["metrics"].items()
        if mean is not None and name in known
    }
