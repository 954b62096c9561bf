"""JSON files written an entry at a time, whole or not at all.

Everything is ASCII, with escapes: the official scripts open files in whatever encoding the machine prefers.
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
    """A text file that takes the place of ``path`` when the block ends; after an exception ``path`` is as before."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_sections(path: Path, items: Iterable[T], sections: Mapping[str, Callable[[T], tuple[str, Any]]]) -> None:
    """Write ``{section: {key: value, ...}, ...}``; each section maps an item to (key, value), ``None`` is left out.

    Raises:
        TypeError: ``items`` is an iterator; it is gone through once for every section.
    """
    if isinstance(items, Iterator):
        raise TypeError("the predictions are gone through once a section: give a list, not an iterator")
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
    """Write one record a line."""
    with replacing(path) as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: the file is not JSON; the message names it.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from error


def read_lines(path: Path) -> Iterator[Any]:
    """The records of a file that has one a line; empty lines do not count.

    Raises:
        ValueError: a line is not JSON; the message names it.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise ValueError(f"{path}, line {number} is not JSON: {error}") from error
