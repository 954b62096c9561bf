"""What differs between two programs, line by line. Both are states as artifacts hold them, so that artifacts that no
longer load can be compared, too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..data.text import split_sentences
from ..eval.folder import flat
from .artifact import Manifest, State, range_of


class Change(NamedTuple):
    """The lines of a parameter that only the one program has, and those that only the other has."""

    removed: list[str]
    added: list[str]


def diff(before: State, after: State) -> dict[str, Change]:
    """The changes from one program to another, by parameter: sentences of instructions, demos, exemplars, values."""
    sides = [{name: _lines(each) for name, each in state.items()} for state in (before, after)]
    return _changes(*sides)


def about(before: Manifest, after: Manifest) -> dict[str, Change]:
    """The changes in how two artifacts came to be: scores, spending, settings, versions, models."""
    known = [flat(each.model_dump(exclude={"agents", "hash", "state"})) for each in (before, after)]
    return _changes(*({name: [_shown(value)] for name, value in each} for each in known))


def _changes(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> dict[str, Change]:
    found = {}
    for name in dict.fromkeys([*before, *after]):
        old, new = Counter(before.get(name, ())), Counter(after.get(name, ()))
        if old != new:
            found[name] = Change([*(old - new).elements()], [*(new - old).elements()])
    return found


def _lines(parameter: Mapping[str, Any]) -> list[str]:
    if "value" in parameter:
        return [f"{_shown(parameter['value'])} ({range_of(parameter)})"]
    if "exemplars" in parameter:
        return [_shown(each) for each in parameter["exemplars"]]
    if "demos" in parameter:
        instructions = parameter.get("signature", {}).get("instructions", "")
        return [*split_sentences(instructions), *map(_shown, parameter["demos"])]
    return [f"{name}: {_shown(value)}" for name, value in flat(parameter)]


def _shown(value: Any) -> str:
    """A text as it is, a real number with four significant digits, anything else as JSON."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
