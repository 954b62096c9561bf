"""Differences between two programs: prompts, demos, exemplars, tunables, and how they came to be.

Both sides are states as artifacts hold them, so artifacts that no longer load can be compared too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

from ..eval.folder import flat
from .artifact import Manifest, State, range_of

Piece = tuple[Literal["=", "-", "+"], str]
"""A stretch of text that is unchanged, removed or added."""

_MIN_RATIO = 0.5  # texts with less in common count as rewritten


@dataclass(frozen=True)
class Change:
    """A parameter that both programs have: the words of both instructions if they differ, what only one of them has
    (demos of an agent, exemplars of a memory), and both values of anything else."""

    instructions: tuple[Piece, ...] = ()
    removed: tuple[dict[str, Any], ...] = ()
    added: tuple[dict[str, Any], ...] = ()
    values: tuple[Any, Any] | None = None
    range: str = ""


@dataclass(frozen=True)
class Difference:
    """The changes from one program to another, by parameter, and in the manifest (``about``)."""

    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    changes: dict[str, Change] = field(default_factory=dict)
    about: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether the two programs do the same."""
        return not (self.only_before or self.only_after or self.changes)


def diff(before: State, after: State, manifests: tuple[Manifest | None, Manifest | None] = (None, None)) -> Difference:
    """The changes from one program to another."""
    shared = [name for name in before if name in after and before[name] != after[name]]
    changes = {name: _change(before[name], after[name]) for name in shared}
    return Difference(
        tuple(name for name in before if name not in after),
        tuple(name for name in after if name not in before),
        {name: change for name, change in changes.items() if change != Change()},
        _about(*manifests),
    )


def words(before: str, after: str) -> tuple[Piece, ...]:
    """The changes word by word, or as a whole for texts with little in common."""
    old, new = re.findall(r"\s+|\S+", before), re.findall(r"\s+|\S+", after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _MIN_RATIO:
        return ("-", before), ("+", after)
    pieces: list[Piece] = []
    removed = added = ""
    for kind, a, b, c, d in matcher.get_opcodes():
        took, put = "".join(old[a:b]), "".join(new[c:d])
        if kind != "equal" or ((removed or added) and took.isspace()):  # a space between two changes is part of them
            removed, added = removed + took, added + put
            continue
        pieces += [("-", removed), ("+", added), ("=", took)]
        removed = added = ""
    return tuple(piece for piece in (*pieces, ("-", removed), ("+", added)) if piece[1])


def _change(before: Mapping[str, Any], after: Mapping[str, Any]) -> Change:
    for items in ("demos", "exemplars"):
        if items in before and items in after:
            texts = [(each.get("signature") or {}).get("instructions", "") for each in (before, after)]
            instructions = words(*texts) if texts[0] != texts[1] else ()
            return Change(instructions, _missing(before[items], after[items]), _missing(after[items], before[items]))
    if "value" in before and "value" in after:
        then, now = range_of(before), range_of(after)
        return Change(values=(before["value"], after["value"]), range=then if then == now else f"{then}, now {now}")
    return Change(values=(before, after))


def _missing(items: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The items that are not among others, counting repetitions."""
    left, missing = list(others), []
    for item in items:
        if item in left:
            left.remove(item)
        else:
            missing.append(item)
    return tuple(missing)


def _about(before: Manifest | None, after: Manifest | None) -> dict[str, tuple[Any, Any]]:
    if before is None or after is None:
        return {}
    old, new = (dict(flat(each.model_dump(exclude={"agents", "hash", "state"}))) for each in (before, after))
    return {name: (old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)}
