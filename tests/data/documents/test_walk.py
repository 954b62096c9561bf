"""Which files of a folder are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from polyhop.data.documents.walk import walk


def tree(root: Path, *names: str) -> Path:
    for name in names:
        file, _, content = name.partition("=")
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(content or f"Text of {file}.")
    return root


def names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path, reason in walk(folder) if not reason]


def test_what_is_left_out(tmp_path: Path) -> None:
    folder = tree(
        tmp_path / "docs",
        *("a.md", ".hidden.md", ".git/x.md", "node_modules/x/readme.md", "sub/__pycache__/x.txt", "sub/b.txt"),
        *("ix/write.lock", "ix/polyhop/words", "old/segments_1", "old/polyhop/1/problems.jsonl"),
        *("sub/build/out.md", "sub/keep.log", "sub/other.log", "x.tmp.md"),
        *(".gitignore=build/\n*.tmp.md\n*.log", "sub/.polyhopignore=!keep.log"),
    )
    assert names(folder) == ["a.md", "sub/b.txt", "sub/keep.log"]


def test_rules_of_the_checkout_count_unless_they_name_the_folder(tmp_path: Path) -> None:
    tree(
        tmp_path,
        ".git/config",
        ".gitignore=*.out.md\n/data\n",
        "docs/a.md",
        "docs/b.out.md",
        "data/c.md",
        "data/d.out.md",
    )
    assert names(tmp_path / "docs") == ["a.md"]
    assert names(tmp_path / "data") == ["c.md", "d.out.md"]  # named, so it is wanted


def test_rules_with_many_stars_take_no_time(tmp_path: Path) -> None:
    long = "a" * 200
    assert names(tree(tmp_path, f"{long}.md", ".polyhopignore=" + "*a" * 30 + "b")) == [f"{long}.md"]


@pytest.mark.parametrize(
    ("rules", "why"),
    [("*.md\n" * 20_000, "it is larger than 64 kB"), ("[[[:alpha:]", "failed to add"), (None, "is not a regular file")],
)
def test_rules_that_are_not_followed_are_told(rules: str | None, why: str, tmp_path: Path) -> None:
    tree(tmp_path, "a.md")
    if rules is None:
        os.mkfifo(tmp_path / ".gitignore")
    else:
        (tmp_path / ".gitignore").write_text(rules)
    reasons = {path.name: reason for path, reason in walk(tmp_path)}
    assert reasons["a.md"] == ""
    assert why in reasons[".gitignore"]
