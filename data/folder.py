"""Which files of a folder are read: not the hidden ones, nor what a .gitignore or .polyhopignore names."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from pathspec import GitIgnoreSpec

from .files import read_bytes

SKIPPED = frozenset(("node_modules", "__pycache__", "__MACOSX"))
_LISTS, _LONGEST_LIST = (".gitignore", ".polyhopignore"), 1 << 16  # with at most so many bytes
_OUTSIDE = "a link out of the folder, or to itself: name its target, if you want it read"

_Rules = dict[Path, GitIgnoreSpec]  # of a .gitignore, by its folder


def walk(folder: Path) -> list[tuple[Path, str]]:
    """The files below a folder in the order of their names, each with the reason why it cannot be read, or "".

    Left out are hidden files and folders, `SKIPPED`, indexes, and what a .gitignore or .polyhopignore names: of the
    folder, of those below it, and of those above it in the same checkout, unless these name the folder itself. Links
    are not followed out of it.
    """
    home = folder.resolve()
    rules, found, waiting = _rules_above(home), list[tuple[Path, str]](), [home]
    while waiting:
        here = waiting.pop()
        try:
            inside = list(here.iterdir())
        except OSError:
            found.append((here, "it cannot be read"))
            continue
        if here != home and any(each.name == "write.lock" or each.name.startswith("segments_") for each in inside):
            continue  # an index of Lucene, perhaps the one that is being built
        rules[here] = _rules_of(here)
        for path in inside:
            is_folder = path.is_dir()
            if path.name.startswith(".") or path.name in SKIPPED or _is_ignored(path, is_folder, rules):
                continue
            if path.is_symlink() and _leads_out(path, home):
                found.append((path, _OUTSIDE))
            elif not is_folder:
                found.append((path, ""))
            elif not path.is_symlink():  # a folder inside is read where it is
                waiting.append(path)
    return sorted(found, key=lambda each: each[0].parts)


def _leads_out(link: Path, home: Path) -> bool:
    try:
        return not link.resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # to itself
        return True


def _rules_of(folder: Path) -> GitIgnoreSpec:
    """The rules of its lists, of which the later rule counts; none if one is malformed."""
    lines = list[str]()
    for name in _LISTS:
        with suppress(OSError):
            lines += read_bytes(folder / name, _LONGEST_LIST).decode("utf-8", "replace").splitlines()
    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):
        return GitIgnoreSpec([])


def _rules_above(home: Path) -> _Rules:
    checkout = next((folder for folder in (home, *home.parents) if (folder / ".git").exists()), home)
    above = [folder for folder in home.parents if folder.is_relative_to(checkout)]
    found = {folder: _rules_of(folder) for folder in above}
    return {
        folder: rules
        for folder, rules in found.items()
        if not any(_is_ignored(each, True, {folder: rules}) for each in (home, *above))
    }


def _is_ignored(path: Path, is_folder: bool, rules: _Rules) -> bool:
    """Whether the rules nearest to a path leave it out."""
    for folder in path.parents:
        if folder in rules:
            name = path.relative_to(folder).as_posix() + "/" * is_folder
            if (excludes := rules[folder].check_file(name).include) is not None:
                return excludes
    return False
