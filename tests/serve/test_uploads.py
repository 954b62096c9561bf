"""Documents that clients add: they are found at once, and their names lead nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from polyhop.app.named import NamedProgram
from polyhop.app.options import ProgramOptions
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.serve.app import create_app
from polyhop.serve.service import Service
from polyhop.serve.uploads import LARGEST_UPLOAD, Uploads

from .conftest import ask, listening

ADA, KESTREL = "# Ada Berg\n\nAda Berg works for Kestrel.", "# Kestrel\n\nKestrel was founded by Otto Lind in 2004."


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ada.md").write_text(ADA)
    build_index([tmp_path / "notes"], tmp_path / "index")
    return tmp_path / "index"


@pytest.fixture
def address(index: Path) -> Any:
    source = BM25Index(index)
    program = NamedProgram("polyhop").build(source, ProgramOptions(lm=("lexical",)))
    service = Service(lambda name: program, ["polyhop"], source, index="mine")
    with listening(create_app(service, uploads=Uploads(service, source, index.parent / "added"))) as address:
        yield address


def add(address: str, name: str, content: bytes) -> httpx.Response:
    return httpx.post(f"{address}/index", params={"name": name}, content=content, timeout=60)


def test_a_document_is_found_at_once(address: str) -> None:
    question = "Who founded the company that Ada Berg works for?"
    assert ask(address, question).json()["answer"] != "Otto Lind"
    reply = add(address, "kestrel.md", KESTREL.encode())
    assert (reply.status_code, reply.json()["added"], reply.json()["total"]) == (200, 1, 2)
    assert ask(address, question).json()["answer"] == "Otto Lind"
    changed = add(address, "kestrel.md", KESTREL.replace("Otto Lind", "Mia Falk").encode()).json()
    assert (changed["added"], changed["deleted"], changed["total"]) == (1, 1, 2)
    assert ask(address, question).json()["answer"] == "Mia Falk"


def test_names_lead_nowhere_else(address: str, index: Path) -> None:
    before = sorted(index.parent.rglob("*.md"))
    for name in ("../x.md", "/etc/x.md", "a/b.md", ".hidden.md", "", " ", "..", "a\0.md", f"{'a' * 148}.md"):
        reply = add(address, name, ADA.encode())
        assert (reply.status_code, "cannot be the name of a document" in reply.text) == (422, True)
    assert sorted(index.parent.rglob("*.md")) == before
    assert add(address, f"{'a' * 147}.md", KESTREL.encode()).status_code == 200


def test_what_cannot_be_read_is_refused_and_not_kept(address: str, index: Path) -> None:
    assert add(address, "kestrel.md", KESTREL.encode()).status_code == 200
    unread = {"broken.pdf": b"%PDF-1.4 broken", "x.exe": b"MZ", "x.md:7:y": b"MZ", "kestrel.md": b""}
    for name, content in unread.items():
        reply = add(address, name, content)
        assert reply.status_code == 422, (name, reply.text)
    assert [file.name for file in (index.parent / "added").iterdir()] == ["kestrel.md"]
    assert (index.parent / "added" / "kestrel.md").read_text() == KESTREL
    assert httpx.get(f"{address}/index").json()["passages"] == 2
    assert add(address, "large.md", b"a" * (LARGEST_UPLOAD + 1)).status_code == 413


def test_uploads_are_off_by_default(start: Callable[..., str]) -> None:
    reply = add(start(), "a.md", ADA.encode())
    assert (reply.status_code, "start it with --uploads DIR" in reply.text) == (403, True)


def test_documents_are_added_in_the_page(address: str, visit: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "kestrel.md").write_text(KESTREL)
    page = visit(address)
    page.wait_for_selector("#add:not([hidden])")
    page.set_input_files("#files", tmp_path / "kestrel.md")
    page.wait_for_selector("text=kestrel.md: 1 passage added")
    page.wait_for_selector("text=mine · 2 passages")
