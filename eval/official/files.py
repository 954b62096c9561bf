"""JSON files, written atomically and entry by entry, and means over questions.

JSON is written in ASCII, with escapes: the official scripts open files in the platform's default encoding.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

T = TypeVar("T")


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A text file that replaces ``path`` at the end of the block; after an exception ``path`` is unchanged."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_sections(path: Path, items: Iterable[T], sections: Mapping[str, Callable[[T], tuple[str, Any]]]) -> None:
    """Write ``{section: {key: value, ...}, ...}``; each section maps an item to (key, value), ``None`` is left out."""
    if isinstance(items, Iterator):
        raise TypeError("the predictions are read once per section: pass a list, not an iterator")
    with replacing(path) as file:
        file.write("{")
        for n, (name, entry) in enumerate(sections.items()):
            file.write(f"{',' if n else ''}\n{json.dumps(name)}: ")
            _write_object(file, map(entry, items))
        file.write("\n}\n")


def write_object(path: Path, entries: Iterable[tuple[str, Any]]) -> None:
    """Write ``{key: value, ...}``; an entry whose value is ``None`` is left out."""
    with replacing(path) as file:
        _write_object(file, entries)
        file.write("\n")


def _write_object(file: TextIO, entries: Iterable[tuple[str, Any]]) -> None:
    separator = "{\n"
    for key, value in entries:
        if value is not None:
            file.write(f"{separator}{json.dumps(key)}: {json.dumps(value)}")
            separator = ",\n"
    file.write("{}" if separator == "{\n" else "\n}")


def write_list(path: Path, records: Iterable[Any]) -> None:
    """Write ``[record, ...]``."""
    with replacing(path) as file:
        separator = "[\n"
        for record in records:
            file.write(separator + json.dumps(record))
            separator = ",\n"
        file.write("[]\n" if separator == "[\n" else "\n]\n")


def write_lines(path: Path, records: Iterable[Any]) -> None:
    """Write one record per line."""
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
