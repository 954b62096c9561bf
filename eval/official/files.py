"""JSON files, written atomically, and means over questions.

JSON is written in ASCII, with escapes: the official scripts open files in the platform's default encoding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..folder import replacing


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
