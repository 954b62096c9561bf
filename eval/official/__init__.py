"""The benchmarks' official evaluators: the same numbers under the same names, and their prediction files.

One module per family (hotpotqa with 2WikiMultihopQA and HoVer, musique, squad with TriviaQA, NQ-open and PopQA,
multihop_rag), all of one shape:

    Prediction, Gold         plain values: strings, numbers, tuples
    score(prediction, gold)  one question: the authors' metrics by their names, as fractions

A missing prediction (``None``) scores 0 and counts in every mean, as in the scripts. The rules of the benchmarks differ
in small ways that change published numbers; the docstrings list them. `submissions` makes the predictions, the means in
the units and rounding of the authors' scripts, and the files: ASCII, since the scripts open them in the platform's
encoding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..folder import replacing

Pairs = Iterable[tuple[Any, Any]]
"""(prediction, gold) of all questions."""


def write_object(path: Path, value: Any) -> None:
    with replacing(path) as file:
        json.dump(value, file)
        file.write("\n")


def write_lines(path: Path, records: Iterable[Any]) -> None:
    with replacing(path) as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def means(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every value over the rows that have it.

    Raises:
        ValueError: there are no rows.
    """
    totals: dict[str, float] = {}
    counts: dict[str, int] = {}
    for row in rows:
        for name, value in row.items():
            totals[name] = totals.get(name, 0.0) + value
            counts[name] = counts.get(name, 0) + 1
    if not counts:
        raise ValueError("there are no questions to evaluate")
    return {name: total / counts[name] for name, total in totals.items()}


def mean_of(
    score: Callable[[Any, Any], Mapping[str, float]], unit: int = 1, digits: int | None = None
) -> Callable[[Pairs], dict[str, float]]:
    """The evaluation of all questions: the means of a score, in a unit (100 for percent), perhaps rounded."""

    def evaluate(pairs: Pairs) -> dict[str, float]:
        total = means(score(prediction, gold) for prediction, gold in pairs)
        scaled = {name: unit * value for name, value in total.items()}
        return scaled if digits is None else {name: round(value, digits) for name, value in scaled.items()}

    return evaluate
