"""The files of a folder of documents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import translate
from pathlib import Path
from typing import NamedTuple

from .errors import Problem
from .files import read_bytes

SKIPPED = frozenset(("node_modules", "__pycache__", "__MACOSX"))
_LONGEST_LIST = 1 << 16  # bytes of a .gitignore
_OUTSIDE = "a link out of the folder: name its target, if you want it read"


class _Rule(NamedTuple):
    """A line of a .gitignore. Names are matched by `fnmatch`, whose time is bounded: a pattern such as ``*a*a*a*b``
    keeps a plain regular expression, as libraries make it, busy for ever.
    """

    excludes: bool
    folders_only: bool
    names: tuple[re.Pattern[str] | None, ...]  # of each part of a path; None for "**", any number of folders

    @classmethod
    def of(cls, line: str) -> _Rule | None:
        """None for a line without a rule."""
        text = line.rstrip(" ")
        if text.endswith("\\") and text != line:
            text += " "
        excludes = not text.startswith("!")
        parts = [part for part in text.removeprefix("!").split("/") if part]
        if not parts or text.startswith("#"):
            return None
        if "/" not in text.rstrip("/"):
            parts.insert(0, "**")
        if parts[-1] == "**":
            parts.append("*")
        kept = [part for n, part in enumerate(parts) if part != "**" or n == 0 or parts[n - 1] != "**"]
        names = tuple(None if part == "**" else re.compile(translate(_ESCAPED.sub(_escape, part))) for part in kept)
        return cls(excludes, text.endswith("/"), names)

    def matches(self, parts: tuple[str, ...]) -> bool:
        """Whether the rule names the path with these parts."""
        reached = {0}  # numbers of names that may come next
        for part in parts:
            reached |= {at + 1 for at in reached if at < len(self.names) and self.names[at] is None}
            reached = {
                at if name is None else at + 1
                for at in reached
                if at < len(self.names) and ((name := self.names[at]) is None or name.match(part))
            }
        return len(self.names) in reached


_ESCAPED = re.compile(r"\\(.)|\[\^")
_Rules = tuple[tuple[Path, tuple[_Rule, ...]], ...]


def walk(folder: Path) -> Iterator[Path | Problem]:
    """The files below a folder in the order of their names, and what cannot be looked at.

    Left out are hidden files and folders, `SKIPPED`, and what a .gitignore names: of the folder, of those below it, and
    of those above it in the same checkout, unless these name the folder itself. Links are not followed out of it.
    """
    home = folder.resolve()
    waiting = [_entries(folder, _rules_above(home))]
    while waiting:
        found = next(waiting[-1], None)
        if found is None:
            waiting.pop()
            continue
        path, rules = found
        inside = path.relative_to(folder)
        name = (Path(home.name) / inside).as_posix()
        if rules is None:
            yield Problem(name, "it cannot be read")
            continue
        is_folder = path.is_dir()
        if path.name.startswith(".") or path.name in SKIPPED or _ignored(home / inside, is_folder, rules):
            continue
        try:
            is_outside = path.is_symlink() and not path.resolve().is_relative_to(home)
        except (OSError, RuntimeError):
            yield Problem(name, "a link to itself")
            continue
        if is_outside:
            yield Problem(name, _OUTSIDE)
        elif not is_folder:
            yield path
        elif not path.is_symlink():  # a folder inside is read where it is
            waiting.append(_entries(path, rules))


def _entries(folder: Path, rules: _Rules) -> Iterator[tuple[Path, _Rules | None]]:
    """What is in a folder, with the rules for it; the folder itself, without rules, if it cannot be read."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        yield folder, None
        return
    rules = (*rules, *_rules_of(folder))
    yield from ((folder / name, rules) for name in names)


def _escape(found: re.Match[str]) -> str:
    """A character after a backslash, or the start of a set that is negated, as `fnmatch` writes it."""
    if found[1] is None:
        return "[!"
    return f"[{found[1]}]" if found[1] in "*?[" else found[1]


def _rules_of(folder: Path) -> _Rules:
    try:
        lines = read_bytes(folder / ".gitignore", _LONGEST_LIST).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return ((folder.resolve(), tuple(rule for line in lines if (rule := _Rule.of(line)))),)


def _rules_above(home: Path) -> _Rules:
    checkout = next((folder for folder in (home, *home.parents) if (folder / ".git").exists()), home)
    above = [folder for folder in home.parents if folder.is_relative_to(checkout)]
    found = [rule for folder in reversed(above) for rule in _rules_of(folder)]
    return tuple(
        (folder, rules)
        for folder, rules in found
        if not any(_ignored(each, True, ((folder, rules),)) for each in (home, *above) if each != folder)
    )


def _ignored(path: Path, is_folder: bool, rules: _Rules) -> bool:
    """Whether the rules nearest to a path leave it out."""
    for folder, those in reversed(rules):
        if not path.is_relative_to(folder):
            continue
        parts = path.relative_to(folder).parts
        for rule in reversed(those):
            if (is_folder or not rule.folders_only) and rule.matches(parts):
                return rule.excludes
    return False
