"""The files of a folder of documents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from warnings import catch_warnings, simplefilter

from pathspec import GitIgnoreSpec

from .errors import Problem
from .files import read_bytes

SKIPPED = frozenset(("node_modules", "__pycache__", "__MACOSX"))
_LONGEST_LIST = 1 << 16  # bytes of a .gitignore
_OUTSIDE = "a link out of the folder: name its target, if you want it read"

_Rules = tuple[tuple[Path, GitIgnoreSpec], ...]  # the folders from the outermost, each with its .gitignore


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


def _rules_of(folder: Path) -> _Rules:
    try:
        lines = read_bytes(folder / ".gitignore", _LONGEST_LIST).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    with catch_warnings():
        simplefilter("ignore", FutureWarning)  # a set such as "[a--z]", which Python may read otherwise one day
        return ((folder.resolve(), GitIgnoreSpec.from_lines(filter(_is_rule, lines))),)


def _is_rule(line: str) -> bool:
    """Whether a line can be understood; git passes over the others."""
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True


def _rules_above(home: Path) -> _Rules:
    checkout = next((folder for folder in (home, *home.parents) if (folder / ".git").exists()), home)
    above = [folder for folder in home.parents if folder.is_relative_to(checkout)]
    found = [rules for folder in reversed(above) for rules in _rules_of(folder)]
    return tuple(
        (folder, rules)
        for folder, rules in found
        if not any(_ignored(each, True, ((folder, rules),)) for each in (home, *above) if each != folder)
    )


def _ignored(path: Path, is_folder: bool, rules: _Rules) -> bool:
    """Whether the rules nearest to a path leave it out."""
    for folder, rule in reversed(rules):
        if path.is_relative_to(folder):
            name = path.relative_to(folder).as_posix() + "/" * is_folder
            if (excludes := rule.check_file(name).include) is not None:
                return excludes
    return False
