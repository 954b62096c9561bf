"""Documents are converted in processes of their own: what is wrong with one costs that one only."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from polyhop.data.documents import processes
from polyhop.data.documents.html import Text
from polyhop.data.documents.processes import conversions

from .office_files import write_docx, write_pdf

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def converted(*paths: Path) -> list[str]:
    """The first line of each, or what is wrong with it."""
    lines = []
    for path, (job, text) in zip(paths, conversions((path, path) for path in paths), strict=True):
        assert job == path
        assert text is not None
        lines.append(text.lines[0].text if isinstance(text, Text) else str(text))
    return lines


def test_documents_come_in_their_order_and_jobs_without_one_pass_through(tmp_path: Path) -> None:
    names = [f"{n}.{suffix}" for n in range(10) for suffix in ("txt", "md", "html")]
    for name in names:
        (tmp_path / name).write_text(f"Number {name}.")
    (tmp_path / "bad.txt").write_bytes(b"a\x00b")
    paths = [tmp_path / name for name in (*names, "bad.txt", "none.md")]
    assert converted(*paths) == [*(f"Number {name}." for name in names), "a binary file", "No such file or directory"]
    assert list(conversions((n, None) for n in range(50))) == [(n, None) for n in range(50)]


@pytest.mark.parametrize("suffix", [".md", ".pdf"])
def test_a_document_without_end_costs_itself_only(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / f"a{suffix}"
    if suffix == ".pdf":
        write_pdf(slow, ["word " * 15] * 10_000)
    else:
        slow.write_text("<p>a b <a \n" * 100_000)
    (tmp_path / "small.txt").write_text("After.")
    monkeypatch.setattr(processes, "_LONGEST", 0.02)
    monkeypatch.setattr(processes, "_IDLE", [])
    assert converted(slow, tmp_path / "small.txt") == ["its conversion took too long", "After."]


@pytest.mark.slow
def test_a_bomb_costs_itself_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Word file that unpacks to 480 MB."""
    monkeypatch.setattr(processes, "_A_MEGABYTE", 0.0)
    write_docx(tmp_path / "a.docx", [("", "x")])
    parts, paragraph = io.BytesIO((tmp_path / "a.docx").read_bytes()), b"<w:p><w:r><w:t>a b c</w:t></w:r></w:p>"
    with zipfile.ZipFile(parts) as old, zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            start, mark, end = old.read(name).partition(b"<w:p>")
            new.writestr(name, start + paragraph * ((480 << 20) // len(paragraph) if mark else 0) + mark + end)
    good = [tmp_path / f"{n}.pdf" for n in range(8)]
    for path in good:
        write_pdf(path, [f"Number {path.stem}."])
    first, *others = converted(tmp_path / "a.docx", *good)
    assert first.startswith(("its conversion", "too large"))
    assert others == [f"Number {n}." for n in range(8)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_is_left_after_a_kill(tmp_path: Path) -> None:
    """Of a command that was killed in the middle of a long document, or was stopped."""
    write_pdf(tmp_path / "slow.pdf", ["word " * 15] * 30_000)
    code = """
import sys; from pathlib import Path; from polyhop.data.documents import processes
processes._LONGEST = 1
list(processes.conversions([(0, Path(sys.argv[1]))], lambda job: print(job, flush=True)))
"""

    def running() -> set[str]:
        ids = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    arguments, parts = (entry / "cmdline").read_bytes(), (entry / "stat").read_text().rsplit(")", 1)
                except OSError:
                    continue
                if b"polyhop.data.documents.processes" in arguments and parts[1].split()[0] != "Z":
                    ids.add(entry.name)
        return ids

    before = running()
    for stop in (signal.SIGINT, signal.SIGKILL):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "slow.pdf")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout
            process.stdout.readline()
            os.kill(process.pid, stop)
        end = time.monotonic() + 60
        while running() - before and time.monotonic() < end:
            time.sleep(0.1)
        assert not running() - before
