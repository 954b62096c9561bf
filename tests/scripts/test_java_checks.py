"""What `polyhop doctor` looks at in Java: a search, an index, its vectors."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from polyhop.data.lucene.index import build_index
from polyhop.data.lucene.layout import IndexManifest
from polyhop.scripts import checks
from polyhop.scripts.checks import Status


def test_java_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmxnonsense")
    found = checks.check_java()
    assert (found.status, found.fix) == (Status.failed, "unset JAVA_TOOL_OPTIONS")
    assert "did not start" in found.found


def test_a_java_that_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = checks.check_java()
    assert (found.status, "ignored: JAVA_HOME=" in found.found) == (Status.warning, True)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_virtual_machine_that_takes_its_process_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = tmp_path / "python"
    crash.write_text(f"#!{sys.executable}\nimport os\nos.abort()\n")
    crash.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crash))
    found = checks.check_java()
    assert (found.status, found.found) == (
        Status.failed,
        "the Java process exited with status -6: no output",
    )


@pytest.fixture
def index(tmp_path: Path) -> Path:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"title": "Rome", "text": "Rome is in Italy."}\n{"title": "Paris", "text": "In France."}\n')
    build_index([corpus], tmp_path / "ix")
    return tmp_path / "ix"


def test_a_sound_index(index: Path) -> None:
    sound, vectors = checks.check_index_folder(index)
    assert sound.status is Status.ok
    assert "is intact: 2 passages, built today by polyhop" in sound.found
    assert vectors == checks.ok("vectors", f"none (optional: polyhop index --dense {index})")


def test_a_damaged_index(index: Path) -> None:
    path = next(index.glob("*.fdt"))
    path.write_bytes(path.read_bytes()[:40] + b"\x00" * 8 + path.read_bytes()[48:])
    (found,) = checks.check_index_folder(index)
    assert (found.status, found.fix) == (
        Status.failed,
        f"Build it again: polyhop index CORPUS --out {index}",
    )
    assert "is damaged" in found.found


def test_an_index_with_long_passages(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("A sentence of some words. " * 2_000)
    build_index([book], tmp_path / "ix", max_words=0)
    _, long, _ = checks.check_index_folder(tmp_path / "ix")
    assert (long.status, "--max-words" in long.fix) == (Status.warning, True)


def test_vectors(index: Path) -> None:
    home = IndexManifest.read(index).home(index)
    for name, rows in (("cut", 1), ("whole", 2)):
        np.save(home / f"vectors-tests%2F{name}.npy", np.ones((rows, 3), "<f2"))
    _, cut, whole = checks.check_index_folder(index)
    assert (cut.status, f"polyhop index --dense {index}" in cut.fix) == (Status.failed, True)
    assert whole.found.startswith("2 of 3 dimensions by tests/whole")
    assert whole.status is (Status.ok if find_spec("sentence_transformers") else Status.warning)
