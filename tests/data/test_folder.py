"""Which files of a folder are read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from polyhop.data.corpora import Corpus
from polyhop.data.errors import Problem
from polyhop.data.folder import walk


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


@pytest.mark.parametrize(
    ("rule", "left_out"),
    [
        *(("*.md", "a.md sub/b.md sub/deep/c.md"), ("/*.md", "a.md"), ("sub/", "sub/b.md sub/deep/c.md")),
        *(("b.md/", ""), ("sub/*.md", "sub/b.md"), ("sub/**", "sub/b.md sub/deep/c.md"), ("*eep", "sub/deep/c.md")),
        ("sub/**/c.md", "sub/deep/c.md"),
        *(("*.md\n!b.md", "a.md sub/deep/c.md"), ("sub\n!b.md", "sub/b.md sub/deep/c.md")),
    ],
)
def test_the_rules_of_git(rule: str, left_out: str, tmp_path: Path) -> None:
    """As `git status --ignored` has them."""
    folder = tree(tmp_path / "docs", "a.md", "sub/b.md", "sub/deep/c.md", f".gitignore={rule}")
    assert {"a.md", "sub/b.md", "sub/deep/c.md"} - set(names(folder)) == set(left_out.split())


def test_rules_that_are_none(tmp_path: Path) -> None:
    rules = "\n".join(["[", "/", "**/" * 300, "*.out.md"])
    assert names(tree(tmp_path / "docs", "b.md", f".gitignore={rules}", "x.out.md"))[0] == "b.md"


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
    told = {path.name: reason for path, reason in walk(tmp_path)}
    assert told["a.md"] == ""
    assert why in told[".gitignore"]


def test_links_and_loops(tmp_path: Path) -> None:
    folder = tree(tmp_path / "docs", "a.md", "sub/b.md")
    (folder / "sub" / "loop").symlink_to(folder)
    (folder / "out").symlink_to(tmp_path)
    (folder / "broken.md").symlink_to(folder / "missing.md")
    for name, target in (("self", "self"), ("one.md", "two.md"), ("two.md", "one.md")):
        (folder / name).symlink_to(target)
    assert names(folder) == ["a.md", "broken.md", "sub/b.md"]
    endless = {"docs/self", "docs/one.md", "docs/two.md"}
    problems: list[Problem] = []
    assert [where for _, where in Corpus([folder], on_problem=problems.append)] == ["docs/a.md", "docs/sub/b.md"]
    assert {problem.where for problem in problems} == {"docs/broken.md", "docs/out"} | endless


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = tree(tmp_path / "docs", "a.md", "b.md", "closed/c.md")
    (folder / "b.md").chmod(0)
    (folder / "closed").chmod(0)
    problems: list[Problem] = []
    assert len(list(Corpus([folder], on_problem=problems.append))) == 1
    (folder / "closed").chmod(0o700)
    assert {problem.where for problem in problems} == {"docs/b.md", "docs/closed"}


def test_a_mixed_folder(tmp_path: Path) -> None:
    folder = tree(
        tmp_path / "mix",
        *(
            "a.md=# A\n\nText.",
            "b.jsonl={'id': 'r', 'text': 'Record.'}".replace("'", '"'),
            "c.csv=service,owner\nLedger,Ada",
        ),
        *("d.csv=title,text\nTarn,A town.", "e.zip", "f.png", "g.html=<h1>G</h1><p>Page.", "bad.jsonl=not json"),
    )
    os.mkfifo(folder / "pipe.md")
    problems: list[Problem] = []
    corpus = Corpus([folder], on_problem=problems.append)
    passages = list(corpus)
    assert corpus.share == 1.0
    assert [(passage.id if where[-1].isalpha() else passage.title, passage.text) for passage, where in passages] == [
        ("mix/a.md", "Text."),
        ("", "Record."),
        ("mix/c.csv", "Service: Ledger; Owner: Ada."),
        ("Tarn", "A town."),
        ("mix/g.html", "Page."),
    ]
    assert {problem.where: problem.reason.split(":")[0] for problem in problems} == {
        "mix/bad.jsonl:1": "not JSON",
        "mix/e.zip": "no reader for files of the kind .zip",
        "mix/f.png": "no reader for files of the kind .png",
        "mix/pipe.md": "is not a regular file",
    }


def test_names_that_are_not_utf8_are_read_and_shown_as_text(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.tmp\n")
    for name in (b"bad\xff.md", b"bad\xff.tmp"):
        with open(os.path.join(os.fsencode(tmp_path), name), "w") as file:
            file.write("# Tarn\n\nTarn is a town.\n")
    assert [os.fsencode(path.name) for path, _ in walk(tmp_path)] == [b"bad\xff.md"]
    assert [passage.document for passage, _ in Corpus([tmp_path])] == [f"{tmp_path.name}/bad\ufffd.md"]
