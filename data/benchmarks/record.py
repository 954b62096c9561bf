"""One JSON object of a benchmark file, read field by field; what is wrong with a field is said in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..text import clean


class Malformed(ValueError):
    """A record that is not in the benchmark's format. The message is the reason."""


class Record:
    """A JSON object and the place it came from.

    Readers take the names that a field goes by; the first that has a value counts. A null is no value.

    Args:
        value: What was parsed.
        where: The file and the line, or the number of the record: ``"dev.jsonl:17"``.
        path: The place inside the record, for messages: ``"paragraphs[3]"``.

    Raises:
        Malformed: the value is not an object.
    """

    def __init__(self, value: object, where: str, path: str = "") -> None:
        if not isinstance(value, Mapping):
            raise Malformed(f"{path or 'the record'} must be an object, not {_kind(value)}")
        self._fields = value
        self.where = where
        self.path = path

    @property
    def place(self) -> str:
        """Where the object stands: the record, and the place inside of it."""
        return f"{self.where}, {self.path}" if self.path else self.where

    def has(self, *names: str) -> bool:
        """Whether any of these fields has a value."""
        return self._find(names)[1] is not None

    def holds(self, name: str, kind: type) -> bool:
        """Whether the field has a value of this type (str, list, Mapping)."""
        return isinstance(self._fields.get(name), kind)

    def error(self, name: str, reason: str) -> Malformed:
        """What to raise for a field: its place in the record, and the reason."""
        return Malformed(f"{self.path}.{name} {reason}" if self.path else f"{name} {reason}")

    def text(self, *names: str, blank: bool = False) -> str:
        """A text that is there and, unless ``blank`` is allowed, has something in it."""
        text = self.maybe_text(*names)
        if text is None:
            raise self.error(names[0], "is missing")
        if not blank and not text.strip():
            raise self.error(names[0], "is empty")
        return text

    def maybe_text(self, *names: str) -> str | None:
        """A text, or None if there is none."""
        name, value = self._find(names)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.error(name, f"must be a string, not {_kind(value)}")
        return clean(value)

    def maybe_id(self, *names: str) -> str | None:
        """An id: a text that is not blank, or an integer, which becomes one; None if there is none."""
        name, value = self._find(names)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return None if value is None else self.text(name)

    def id(self, *names: str) -> str:
        """An id that is there."""
        found = self.maybe_id(*names)
        if found is None:
            raise self.error(names[0], "is missing")
        return found

    def integer(self, name: str) -> int:
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(name, f"must be an integer, not {_kind(value)}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self._fields.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, f"must be true or false, not {_kind(value)}")
        return value

    def texts(self, *names: str) -> tuple[str, ...]:
        """A list of texts; empty if there is none."""
        name, value = self._find(names)
        if value is None:
            return ()
        if not _is_list(value) or not all(isinstance(text, str) for text in value):
            raise self.error(name, "must be a list of strings")
        return tuple(clean(text) for text in value)

    def items(self, name: str, separator: str | None = None) -> list[str | Record]:
        """A value or a list of values: texts, numbers as texts, and objects; empty if there is none.

        Args:
            separator: What sets the items apart where the value is one text.
        """
        value = self._fields.get(name)
        if isinstance(value, str) and separator:
            value = [item.strip() for item in value.split(separator) if item.strip()]
        path = f"{self.path}.{name}" if self.path else name
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [_item(item, self.where, f"{path}[{i}]") for i, item in enumerate(value)]
        return [] if value is None else [_item(value, self.where, path)]

    def within(self, *names: str) -> Record:
        """An object inside this one."""
        name, value = self._find(names)
        return Record(value, self.where, f"{self.path}.{name}" if self.path else name)

    def rows(self, name: str, *columns: str) -> list[Record]:
        """A table: the same in each of the layouts in which benchmarks are handed around.

        A list of objects; a list of lists, whose items are named by ``columns``; an object of equally long columns, as
        the Hugging Face hub stores it; or any of these as a string of JSON. Empty if there is no value.
        """
        value = self._fields.get(name)
        path = f"{self.path}.{name}" if self.path else name
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError) as error:
                raise Malformed(f"{path} is a string, but not of JSON: {error}") from error
        if value is None:
            return []
        if isinstance(value, Mapping):
            value = _transposed(value, path)
        if not _is_list(value):
            raise Malformed(f"{path} must be a list, not {_kind(value)}")
        return [Record(_named(row, columns, f"{path}[{i}]"), self.where, f"{path}[{i}]") for i, row in enumerate(value)]

    def _find(self, names: Sequence[str]) -> tuple[str, Any]:
        for name in names:
            value = self._fields.get(name)
            if value is not None:
                return name, value
        return names[0], None


def _item(value: object, where: str, path: str) -> str | Record:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if not isinstance(value, Mapping):
        raise Malformed(f"{path} cannot be {_kind(value)}")
    return Record(value, where, path)


def _named(row: object, columns: Sequence[str], path: str) -> object:
    if not isinstance(row, list | tuple) or not columns:
        return row
    if len(row) != len(columns):
        raise Malformed(f"{path} must be [{', '.join(columns)}], but has {len(row)} items")
    return dict(zip(columns, row, strict=True))


def _transposed(columns: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    if not all(_is_list(column) for column in columns.values()):
        raise Malformed(f"{path} must be a list, or an object of lists")
    if len({len(column) for column in columns.values()}) > 1:
        raise Malformed(f"{path}: the columns {', '.join(columns)} differ in length")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _kind(value: object) -> str:
    """What JSON calls the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, Mapping) else "a list"
