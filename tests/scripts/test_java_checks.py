"""What `polyhop doctor` looks at in Java: a search, an index, its vectors."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from polyhop.data.lucene.index import build_index
from polyhop.data.lucene.layout import IndexManifest
from polyhop.scripts import checks
from polyhop.scripts.checks import Status


def test_java_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmxnonsense")
    found = checks.check_java()
    assert (found.status, found.fix) == (Status.failed, "unset JAVA_TOOL_OPTIONS")
    assert "does not start" in found.found


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
    path = next(index.glob("lucene-*/*.fdt"))
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
    build = IndexManifest.read(index).lucene_folder.removeprefix("lucene-")
    for name, size in (("cut", 3), ("unfinished", 8), ("whole", 8)):
        file = index / f"vectors-{build}-tests-{name}.f16"
        file.write_bytes(bytes(size))
        if name != "unfinished":
            said = {"encoder": f"tests/{name}", "dimension": 2, "rows": 2}
            file.with_suffix(".json").write_text(json.dumps(said))
    _, cut, unfinished, whole = checks.check_index_folder(index)
    assert (cut.status, "is damaged" in cut.found) == (Status.failed, True)
    assert (unfinished.status, f"polyhop index --dense {index}" in unfinished.fix) == (Status.failed, True)
    assert whole == checks.ok("vectors", "2 of 2 dimensions by tests/whole")
