"""`polyhop index`, as a user meets it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from polyhop.data.dense import DEFAULT_MODEL, DenseIndex
from polyhop.data.errors import IndexFault
from polyhop.scripts.main import app

CORPUS = b"""{"id": "r", "title": "Rome", "text": "Rome is the capital of Italy."}
{"id": "r", "title": "Rome again", "text": "x"}
nonsense
{"title": "Paris", "sentences": ["Paris is the capital of France."]}
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(CORPUS)
    return path


def run(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(app, ["index", *map(str, arguments)])


def test_build_and_check(corpus: Path, tmp_path: Path) -> None:
    built = run(corpus, "--out", tmp_path / "ix", "--max-words", 100)
    assert built.exit_code == 0, built.output
    assert "passages  2\n" in built.stdout
    assert "skipped   1 damaged; 1 duplicate\n" in built.stdout
    assert "corpus.jsonl:2: the same id 'r' as corpus.jsonl:1" in built.stderr
    assert "corpus.jsonl:3: not JSON" in built.stderr
    for checked in (run("--check", tmp_path / "ix"), run("--check", "--out", tmp_path / "ix")):
        assert (checked.exit_code, checked.stderr) == (0, "")
        assert "is sound: 2 passages" in checked.stdout


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
    built = run(folder, "--out", out)
    assert built.exit_code == 0, built.output
    other = "2,251 without a reader: 1,500 .py, 750 .png, 1 without a suffix"
    assert f"skipped   9 damaged; 1 duplicate; {other}\n" in built.stdout
    told = [line.split(": ")[:2] for line in built.stderr.splitlines()]
    assert told[0] == ["  docs/b.md", "the same text as docs/a.md"]
    assert [name for name, _ in told[1:5]] == [f"  docs/z{n}.pdf" for n in range(4)]
    assert told[5][0] == "  all of them"
    assert ".py" not in built.stderr  # nobody expects it
    listed = [json.loads(line) for line in next(out.glob("polyhop/*/problems.jsonl")).read_text().splitlines()]
    assert [each["kind"] for each in listed] == ["damaged"] * 9 + ["other"] * 2251 + ["duplicate"]


def test_a_line_now_and_then_where_there_is_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.scripts.index._LINE_EVERY", 0.0)
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"Ada Berg owns {name}.")
    built = run(tmp_path / "a.md", tmp_path / "b.md", "--out", tmp_path / "ix")
    lines = [line for line in built.stderr.splitlines() if line.startswith("indexing: ")]
    assert re.fullmatch(r"indexing: \d+%.*, [01] passages, a\.md", lines[0])
    assert lines[-1] == "indexing: 100%, 2 passages, merging"


def test_passages_that_are_too_long_are_pointed_out(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("A sentence of some words. " * 2_000)
    advice = "of 1 passages only the first 20,000 characters are read: split them with --max-words 120"
    assert advice in run(book, "--out", tmp_path / "ix", "--max-words", 0).stderr
    assert "are read" not in run(book, "--out", tmp_path / "ix").stderr


def test_damage(corpus: Path, tmp_path: Path) -> None:
    run(corpus, "--out", tmp_path / "ix")
    path = next((tmp_path / "ix").glob("*.fdt"))
    path.write_bytes(path.read_bytes()[:40] + b"\x00" * 8 + path.read_bytes()[48:])
    checked = run("--check", tmp_path / "ix")
    assert checked.exit_code == 1
    assert "is damaged" in checked.stderr
    assert "polyhop index CORPUS --out" in checked.stderr


def test_errors(corpus: Path, tmp_path: Path) -> None:
    cases: list[tuple[list[str | Path], int, str]] = [
        ([corpus, "--out", tmp_path / "ix", "--strict"], 1, "corpus.jsonl:3: not JSON"),
        ([tmp_path / "missing.jsonl", "--out", tmp_path / "ix"], 1, "There is no file or folder"),
        ([corpus, "--out", tmp_path], 1, "has other files (corpus.jsonl)"),
        (["--check", tmp_path / "ix"], 1, "There is no index at"),
        (["--check"], 1, "There is no index at .polyhop"),
        (["--check", tmp_path / "ix", tmp_path / "iy"], 2, "name one index"),
        (["--delete", "--out", tmp_path / "ix"], 2, "name what to delete"),
        ([corpus, "--out", tmp_path / "ix", "--max-words", "-1"], 2, "max-words"),
    ]
    for arguments, status, message in cases:
        result = run(*arguments)
        assert result.exit_code == status, result.output
        assert message in " ".join(result.stderr.split())
        assert "Traceback" not in result.output
    assert not (tmp_path / "ix").exists()


class Lengths:
    """An encoder that needs nothing: how long a text is, and how many words it has."""

    def __init__(self, name: str = "default") -> None:
        self.name = name.replace(DEFAULT_MODEL, "tests/lengths")

    def __call__(self, texts: Sequence[str], /) -> list[tuple[int, int]]:
        return [(len(text), len(text.split())) for text in texts]


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Lengths:
    """In place of the default encoder, whose packages are an extra."""
    replace_default(monkeypatch)
    return Lengths("tests/lengths")


def replace_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.data.dense.SentenceEncoder", Lengths)


def test_dense_afterwards(corpus: Path, tmp_path: Path, encoder: Lengths) -> None:
    run(corpus, "--out", tmp_path / "ix")
    with pytest.raises(IndexFault, match="polyhop index --dense"):
        DenseIndex(tmp_path / "ix", encoder)
    made = run("--dense", tmp_path / "ix")
    assert (made.exit_code, made.stderr) == (0, "")
    assert "encoder   tests/lengths\n" in made.stdout
    assert "passages/s)\n" in made.stdout
    assert DenseIndex(tmp_path / "ix", encoder).search("Rome", 1)
    again = run("--dense", "--out", tmp_path / "ix")
    assert "already complete" in again.stdout
    assert "encoder   tests/other\n" in run("--dense", tmp_path / "ix", "--encoder", "tests/other").stdout


def test_dense_errors(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.data.dense.find_spec", lambda name: None)
    cases: list[tuple[list[str | Path], int, str]] = [
        (["--dense"], 1, "make dense"),
        (["--dense", corpus, tmp_path / "ix"], 2, "name one index"),
        (["--dense", "--check", tmp_path / "ix"], 2, "--adopt, --check and --dense"),
        (["--dense", tmp_path / "ix"], 1, "make dense"),
        ([corpus, "--out", tmp_path / "ix", "--dense"], 1, "make dense"),
    ]
    for arguments, status, message in cases:
        result = run(*arguments)
        assert result.exit_code == status, result.output
        assert message in " ".join(result.stderr.split())
        assert "Traceback" not in result.output
    assert not (tmp_path / "ix").exists()  # told before anything was built
    replace_default(monkeypatch)
    missing = run("--dense", tmp_path / "ix")
    assert (missing.exit_code, "There is no index at" in missing.stderr) == (1, True)
