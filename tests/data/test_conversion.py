"""Conversions in processes of their own: their order, their bounds, and what one that fails costs the others."""

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

from polyhop.data import conversion
from polyhop.data.conversion import conversions
from polyhop.data.converters import Text, Unreadable
from polyhop.scripts.studies.folder.files import write_docx, write_pdf


def converted(*paths: Path, seconds: float = 60) -> list[Text | Unreadable]:
    found = list(conversions(((path, path) for path in paths), seconds=seconds))
    assert [path for path, _ in found] == list(paths)
    return [text for _, text in found if text]


def first_line(text: Text | Unreadable) -> str:
    return text.lines[0].text if isinstance(text, Text) else str(text)


def test_the_order_is_that_of_the_jobs(tmp_path: Path) -> None:
    names = [f"{n}{suffix}" for n in range(5) for suffix in (".docx", ".pdf", ".txt")]
    for name in names:
        if name.endswith("docx"):
            write_docx(tmp_path / name, [("", name)])
        elif name.endswith("pdf"):
            write_pdf(tmp_path / name, [f"{name} is here."])
        else:
            (tmp_path / name).write_text(name)
    found = converted(*(tmp_path / name for name in names), tmp_path / "gone.md", tmp_path / names[0])
    assert [first_line(text).removesuffix(" is here.") for text in found] == [
        *names,
        "No such file or directory",
        names[0],
    ]


def test_jobs_without_a_document_pass_through() -> None:
    assert list(conversions((n, None) for n in range(50))) == [(n, None) for n in range(50)]


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".md", ".html", ".pdf"])
def test_a_document_without_end_costs_itself_only(suffix: str, tmp_path: Path) -> None:
    """Whatever keeps a parser busy; here the time is too short for any document."""
    slow = tmp_path / f"a{suffix}"
    if suffix == ".pdf":
        write_pdf(slow, ["word " * 15] * 10_000)
    else:
        slow.write_text("<a " * 20_000)
    (tmp_path / "small.md").write_text("After.")
    found = converted(slow, tmp_path / "small.md", seconds=1e-3)
    assert [first_line(text) for text in found] == ["its conversion took more than 0.001 s", "After."]


@pytest.mark.skipif(sys.platform == "win32", reason="has no timer of computing")
def test_a_small_document_may_not_compute_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_COMPUTING", 0.05)
    monkeypatch.setattr(conversion, "_COMPUTING_A_MB", 0.0)
    write_pdf(tmp_path / "slow.pdf", ["word " * 15] * 10_000)
    (tmp_path / "quick.md").write_text("Quick.")
    slow, quick = converted(tmp_path / "slow.pdf", tmp_path / "quick.md")
    assert "of computing, much for its size" in first_line(slow)
    assert first_line(quick) == "Quick."


def bomb(path: Path, megabytes: int) -> None:
    """A Word file that unpacks to so many megabytes, within the bounds of `polyhop.data.converters`."""
    write_docx(path, [("", "x")])
    parts = io.BytesIO(path.read_bytes())
    with zipfile.ZipFile(parts) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "word/document.xml":
                paragraph = b"<w:p><w:r><w:t>a b c</w:t></w:r></w:p>"
                start, _, end = content.partition(b"<w:p>")
                content = start + paragraph * (megabytes * (1 << 20) // len(paragraph)) + b"<w:p>" + end
            new.writestr(name, content)


@pytest.mark.slow
def test_a_bomb_costs_itself_only(tmp_path: Path) -> None:
    bomb(tmp_path / "a.docx", 480)
    good = []
    for n in range(8):
        good.append(tmp_path / f"{n}.pdf")
        write_pdf(good[-1], [f"Number {n}."])
    found = converted(tmp_path / "a.docx", *good, seconds=30)
    assert isinstance(found[0], Unreadable)
    assert [first_line(text) for text in found[1:]] == [f"Number {n}." for n in range(8)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_is_left_after_a_kill(tmp_path: Path) -> None:
    """Of a command that was killed in the middle of a long document, or was stopped."""
    write_pdf(tmp_path / "slow.pdf", ["word " * 15] * 30_000)
    code = """
import sys; from pathlib import Path; from polyhop.data.conversion import conversions
list(conversions([(0, Path(sys.argv[1]))], lambda job: print(job, flush=True), 20))
"""

    def running() -> list[str]:
        found = []
        for each in Path("/proc").iterdir():
            if each.name.isdigit():
                try:
                    arguments, parts = (each / "cmdline").read_bytes(), (each / "stat").read_text().rsplit(")", 1)
                except OSError:
                    continue
                if b"polyhop.data.conversion" in arguments and parts[1].split()[0] != "Z":
                    found.append(each.name)
        return found

    before = set(running())
    for stop, wait in ((signal.SIGINT, 5), (signal.SIGKILL, 25)):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "slow.pdf")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout
            process.stdout.readline()
            os.kill(process.pid, stop)
        end = time.monotonic() + wait
        while set(running()) - before and time.monotonic() < end:
            time.sleep(0.1)
        assert not set(running()) - before


@pytest.mark.slow
def test_headings_count_for_the_size_of_a_document(tmp_path: Path) -> None:
    headings = "".join(f"<h{level}>{str(level) * 199}</h{level}>" for level in range(1, 7))
    (tmp_path / "a.html").write_text(headings + "<p>Ok." * 160_000)
    assert str(*converted(tmp_path / "a.html")) == "its text is larger than 32 MB: split it"
