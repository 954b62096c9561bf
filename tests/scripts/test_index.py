"""`polyhop index`, as a user meets it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.dense import DEFAULT_MODEL, DenseIndex
from polyhop.data.errors import IndexFault

from .cli import done, polyhop, records, refused

CORPUS = b"""{"id": "r", "title": "Rome", "text": "Rome is the capital of Italy."}
{"id": "r", "title": "Rome again", "text": "x"}
nonsense
{"title": "Paris", "sentences": ["Paris is the capital of France."]}
"""
run = partial(polyhop, "index")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(CORPUS)
    return path


def test_build_and_check(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.scripts.index._LINE_EVERY", 0.0)
    built = done("index", corpus, "--out", tmp_path / "ix", "--max-words", 100)
    assert "passages  2\n" in built.stdout
    assert "skipped   1 damaged; 1 duplicate\n" in built.stdout
    assert "corpus.jsonl:2: the same id 'r' as corpus.jsonl:1" in built.stderr
    assert "corpus.jsonl:3: not JSON" in built.stderr
    progress = [line.partition(",")[0] for line in built.stderr.splitlines() if line.startswith("indexing: ")]
    assert 0 < len(progress) == len(set(progress)) <= 10  # without a terminal, a line for each tenth
    for checked in (run("--check", tmp_path / "ix"), run("--check", "--out", tmp_path / "ix")):
        assert (checked.exit_code, checked.stderr) == (0, "")
        assert "is sound: 2 passages" in checked.stdout
    path = next((tmp_path / "ix").glob("*.fdt"))
    path.write_bytes(path.read_bytes()[:40] + b"\x00" * 8 + path.read_bytes()[48:])
    damaged = run("--check", tmp_path / "ix")
    assert (damaged.exit_code, "damaged" in damaged.stderr) == (1, True)
    assert "polyhop index CORPUS --out" in damaged.stderr


def test_what_is_skipped_is_counted_by_reason(tmp_path: Path) -> None:
    folder, out = tmp_path / "docs", tmp_path / "ix"
    folder.mkdir()
    for n in range(1500):
        (folder / f"{n:04}.py").touch()
        (folder / f"{n // 2:04}.png").touch()
    for n in range(8):
        (folder / f"z{n}.pdf").write_bytes(b"%PDF-1.4 nonsense")
    (folder / "zz.md").write_bytes(b"a\x00b")
    (folder / "Makefile").touch()
    for name in ("a.md", "b.md"):
        (folder / name).write_text("# Ledger\n\nAda Berg owns it.")
    built = done("index", folder, "--out", out)
    names = "1,500 .py (0000.py, 0001.py, ...), 750 .png (0000.png, 0001.png, ...), 1 without a suffix (Makefile)"
    other = f"2,251 without a reader: {names}"
    assert f"skipped   9 damaged; 1 duplicate; {other}\n" in built.stdout
    told = [line.split(": ")[:2] for line in built.stderr.splitlines()]
    assert [name for name, _ in told[:5]] == [f"  docs/z{n}.pdf" for n in range(5)]
    assert told[5][0] == "  all of them"
    assert ".py" not in built.stderr  # nobody expects it
    listed = records(next(out.glob("polyhop/*/problems.jsonl")))
    assert Counter(each["kind"] for each in listed) == {"damaged": 9, "other": 2251, "duplicate": 1}


def test_a_subfolder_changes_the_index_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs" / "sub").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("# Ledger\n\nAda Berg owns it.")
    monkeypatch.chdir(tmp_path / "docs")
    done("index")
    monkeypatch.chdir("sub")
    Path("b.md").write_text("# Mill\n\nOtto Lind owns it.")
    assert "1 document: 1 passage added" in run("--update").stdout
    assert "passages  1\n" in run("--delete", "b.md").stdout
    assert [path.name for path in Path().iterdir()] == ["b.md"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("{corpus} --out {ix} --strict", 1, "corpus.jsonl:3: not JSON"),
        ("missing.jsonl --out {ix}", 1, "There is no file or folder"),
        ("{corpus} --out .", 1, "has other files (corpus.jsonl)"),
        ("--check {ix}", 1, "There is no index at"),
        ("--check", 1, "There is no index at .polyhop"),
        ("--check {ix} iy", 2, "name one index"),
        ("--delete --out {ix}", 2, "name what to delete"),
        ("{corpus} --out {ix} --max-words -1", 2, "max-words: Input"),
        ("--dense", 1, "make dense"),
        ("--dense {corpus} {ix}", 2, "name one index"),
        ("--dense --check {ix}", 2, "--adopt, --check and --dense"),
        ("{corpus} --out {ix} --dense", 1, "make dense"),
    ],
)
def test_errors(
    arguments: str, status: int, message: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polyhop.data.dense.find_spec", lambda name: None)
    told = refused("index", *arguments.format(corpus=corpus.name, ix="ix").split(), status=status)
    assert message in " ".join(told.split())
    assert not (tmp_path / "ix").exists()  # told before anything was built


class Lengths:
    """An encoder that needs nothing: how long a text is, and how many words it has."""

    def __init__(self, name: str = "default") -> None:
        self.name = name.replace(DEFAULT_MODEL, "tests/lengths")

    def __call__(self, texts: Sequence[str], /) -> list[tuple[int, int]]:
        return [(len(text), len(text.split())) for text in texts]


def test_dense_afterwards(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.data.dense.SentenceEncoder", Lengths)
    encoder: Any = Lengths("tests/lengths")
    assert "There is no index at" in refused("index", "--dense", tmp_path / "ix")
    run(corpus, "--out", tmp_path / "ix")
    with pytest.raises(IndexFault, match="polyhop index --dense"):
        DenseIndex(tmp_path / "ix", encoder)
    made = run("--dense", tmp_path / "ix")
    assert (made.exit_code, made.stderr) == (0, "")
    assert "encoder   tests/lengths\n" in made.stdout
    assert "passages/s)\n" in made.stdout
    assert DenseIndex(tmp_path / "ix", encoder).search("Rome", 1)
    assert "already complete" in run("--dense", "--out", tmp_path / "ix").stdout
    assert "encoder   tests/other\n" in run("--dense", tmp_path / "ix", "--encoder", "tests/other").stdout
