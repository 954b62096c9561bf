"""Which files of a folder are read, not the hidden ones, nor what a .gitignore or .polyhopignore names; and as what."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from warnings import catch_warnings

import re2
from pathspec import GitIgnoreSpec

from ..files import FORMATS, LINES, check_regular, read_bytes
from ..records import TEXTS
from ..text import clean
from .decode import looks_like_text

SKIPPED = frozenset(("node_modules", "__pycache__", "__MACOSX"))
_LISTS, _LONGEST_LIST = (".gitignore", ".polyhopignore"), 1 << 16  # with at most so many bytes
_LINEAR = "re2"  # time, however many stars a rule has
_UNFOLLOWED = "its rules are not followed, so that files may be read that it leaves out"
UNOPENED = "it cannot be opened"
_OUTSIDE = "a link out of the folder, or to itself: name its target, if you want it read"

_Rules = tuple[tuple[Path, GitIgnoreSpec], ...]  # of the lists that count in a folder, the nearest first

_RANKS = [suffix for suffix, form in FORMATS.items() if form != "table"]  # of one document in several formats
_WORD = re.compile(r"\.(?:[A-Z][A-Za-z]{2,}|\w*-.*)")  # for a suffix; those of code are shorter, or in small letters
_README = re.compile(r"(?:README|NEWS|ANNOUNCE|CHANGES|INSTALL|TODO|FAQ|NOTES|COPYING|AUTHORS)\b")
_RECORDS = re.compile(rb'\s*(?:(?:\[\s*)?\{\s*"|\x1f\x8b)')  # how JSON of records begins, or what is packed
_START = 1 << 16  # bytes that tell what a file is


class Source(NamedTuple):
    """A file to read."""

    path: Path
    name: str  # in reports, and of a document its id: the file's name, with its folder if a folder was given
    is_document: bool
    size: int  # bytes
    in_folder: bool

    @property
    def format(self) -> tuple[int, str]:
        """The rank of a document's format, and what its twins have in common: the name without the formats, and without
        the folder in which Sphinx keeps the sources of its pages ("_sources/library/os.rst.txt" of
        "library/os.html")."""
        name, rank = self.name.replace("/_sources/", "/"), len(_RANKS)
        while self.is_document and (suffix := PurePosixPath(name).suffix) and suffix.lower() in _RANKS:
            name, rank = name.removesuffix(suffix), _RANKS.index(suffix.lower())
        return rank, name


def walk(folder: Path) -> list[tuple[Path, str]]:
    """The files below a folder in the order of their names, each with the reason why it cannot be read, or "".

    Left out are hidden files and folders, `SKIPPED`, indexes, and what a .gitignore or .polyhopignore names: of the
    folder, of those below it, and of those above it in the same checkout, unless these name the folder itself. Links
    are not followed out of it.
    """
    home = folder.resolve()
    files, waiting = list[tuple[Path, str]](), [(home, _rules_above(home))]
    while waiting:
        here, rules = waiting.pop()
        try:
            inside = list(here.iterdir())
        except OSError:
            files.append((here, UNOPENED))
            continue
        if here != home and any(path.name == "write.lock" or path.name.startswith("segments_") for path in inside):
            continue  # an index of Lucene, perhaps the one that is being built
        nearest, unread = _rules_of(here)
        rules, files = (*nearest, *rules), files + unread
        for path in inside:
            is_folder = path.is_dir()
            if path.name.startswith(".") or path.name in SKIPPED or _is_ignored(path, is_folder, rules):
                continue
            if path.is_symlink() and _leads_out(path, home):
                files.append((path, _OUTSIDE))
            elif not is_folder:
                files.append((path, ""))
            elif not path.is_symlink():  # a folder inside is read where it is
                waiting.append((path, rules))
    return sorted(files, key=lambda file: file[0].parts)


def _leads_out(link: Path, home: Path) -> bool:
    try:
        return not link.resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # to itself
        return True


def _rules_of(folder: Path) -> tuple[_Rules, list[tuple[Path, str]]]:
    """The rules of its lists, of which the later rule counts; and the lists that cannot be followed, with why."""
    lines, unread = list[str](), list[tuple[Path, str]]()
    for path in filter(os.path.lexists, (folder / name for name in _LISTS)):
        try:
            check_regular(path)
            rules = read_bytes(path, _LONGEST_LIST).decode("utf-8", "replace").splitlines()
            with catch_warnings(action="ignore", category=FutureWarning):  # of odd brackets
                GitIgnoreSpec.from_lines(rules, backend=_LINEAR)
            lines += rules
        except (OSError, ValueError, re.error, re2.error) as error:
            reason = getattr(error, "strerror", None) or str(error).removeprefix(f"{path} ")
            unread.append((path, f"{_UNFOLLOWED}: {reason}"))
    return ((folder, GitIgnoreSpec.from_lines(lines, backend=_LINEAR)),) if lines else (), unread


def _rules_above(home: Path) -> _Rules:
    checkout = next((folder for folder in (home, *home.parents) if (folder / ".git").exists()), home)
    above = [folder for folder in home.parents if folder.is_relative_to(checkout)]
    above_rules = (rule for folder in above for rule in _rules_of(folder)[0])
    return tuple(rule for rule in above_rules if not any(_is_ignored(path, True, (rule,)) for path in (home, *above)))


def _is_ignored(path: Path, is_folder: bool, rules: _Rules) -> bool:
    """Whether the nearest rules that speak of a path leave it out."""
    for folder, spec in rules:
        if path.is_relative_to(folder):
            name = clean(path.relative_to(folder).as_posix()) + "/" * is_folder
            if (excludes := spec.check_file(name).include) is not None:
                return excludes
    return False


# --- kinds of files ---


def suffix_of(path: Path) -> str:
    """The suffix in small letters; "" where it is a word of the name, as in "kiln.FAQ" and "README.kiln"."""
    suffix = path.suffix.lower()
    is_word = _WORD.fullmatch(path.suffix) or (_README.match(path.name) and suffix != ".gz")
    return "" if is_word and suffix not in (*FORMATS, *LINES) else suffix


def why_unread(path: Path) -> str:
    """Why nobody expects that a file of a folder is read, or ""."""
    suffix = suffix_of(path)
    if suffix in (*FORMATS, *LINES):
        return ""
    if suffix == ".gz":
        return "" if Path(path.stem).suffix.lower() in LINES else "compressed: unpack it, if you want it read"
    if suffix or not path.is_file():
        return f"no reader for files of the kind {suffix}"
    with suppress(OSError), path.open("rb") as file:
        if not looks_like_text(file.read(_START)):
            kind = path.suffix.lower()
            return f"no reader for files of the kind {kind}" if kind else "without a suffix, and not a text in UTF-8"
    return ""


def source_of(path: Path, name: str, in_folder: bool) -> Source:
    """A file to read; one without a suffix may have records.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    check_regular(path)
    suffix = suffix_of(path)
    is_document = suffix in FORMATS
    if not suffix:
        with path.open("rb") as file:
            is_document = not _RECORDS.match(file.read(_START))
    if FORMATS.get(suffix) == "table":  # of documents, or of records
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            names = re.split("[,;\t]", file.readline(1 << 20).casefold())
        is_document = {*TEXTS, "sentences"}.isdisjoint(name.strip(' "\r\n') for name in names)
    return Source(path, name, is_document, path.stat().st_size, in_folder)
