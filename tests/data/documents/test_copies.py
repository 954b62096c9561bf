"""Files that say the same: copies, and one document in several formats."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pypdf import PdfReader, PdfWriter

from polyhop.data.errors import Problem
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index

from .office_files import write_docx, write_pdf

WORDS = (
    "The ledger service is owned by Ada Berg, who lives in Tarn. It runs at night and closes the books of the mill. "
    "Otto Lind wrote the first version in the spring, when the old one had lost a day of payments."
)
OTHER = (
    "A kiln is an oven for clay. Potters in Vale fire theirs twice a week, with wood from the forest above the lake. "
    "Their bowls are blue, since the sand of the shore has copper in it, as the school found out."
)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".pdf":
        write_pdf(path, [f"{sentence}." for sentence in text.rstrip(".").split(". ")])
    elif path.suffix == ".docx":
        write_docx(path, [("", text)])
    elif path.suffix == ".html":
        path.write_text(f"<title>Page</title><body><h1>Ledger</h1><p>{text}</p></body>")
    elif path.suffix == ".md":
        path.write_text(f"# Ledger\n\n{text}\n")
    else:
        path.write_text(f"Ledger\n\n{text}\n")


def read(folder: Path, damaged: int = 0) -> tuple[set[str], dict[str, str]]:
    """The documents of an index, and what is left out with the document in its place."""
    problems: list[Problem] = []
    build_index([folder], folder.with_name("ix"), on_problem=problems.append)
    with BM25Index(folder.with_name("ix")) as index:
        documents = {hit.passage.document for hit in index.search("ledger kiln overview warden", 100)}
    faults = [problem.reason for problem in problems if problem.kind == "damaged"]
    assert (len(faults), len(set(faults))) == (damaged, min(damaged, 1))  # a copy of a damaged file is damaged too
    return documents, {problem.where: problem.other for problem in problems if problem.kind == "duplicate"}


@pytest.mark.parametrize(
    ("rich", "poor"),
    [
        ("a.html", "a.txt"),
        ("a.html", "a.md"),
        ("a.md", "a.txt"),
        ("a.docx", "a.pdf"),
        ("a.txt", "a.pdf"),
        ("lib/os.path.html", "_sources/lib/os.path.rst.txt"),
        ("Z.html", "Z.MD.txt"),
    ],
)
def test_one_format_of_a_document_is_read(rich: str, poor: str, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    put(folder / rich, WORDS)
    put(folder / poor, WORDS + " See also the log.")
    put(folder / "other.md", OTHER)
    assert read(folder) == ({f"docs/{rich}", "docs/other.md"}, {f"docs/{poor}": f"docs/{rich}"})


def test_files_of_one_name_that_differ_are_both_read(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    put(folder / "a.html", "An overview.")
    put(folder / "a.md", WORDS)  # of which the page has nothing
    put(folder / "b.html", OTHER)
    put(folder / "b.md", f"{OTHER} {WORDS} {WORDS.lower()}")  # of which the page has a third
    put(folder / "c.v1.html", WORDS.upper())
    put(folder / "sub/c.v1.txt", WORDS.upper())  # elsewhere
    assert read(folder) == (
        {f"docs/{name}" for name in ("a.html", "a.md", "b.html", "b.md", "c.v1.html", "sub/c.v1.txt")},
        {},
    )


def test_copies_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    for name in ("a.md", "deep/b.md", "c.txt"):
        put(folder / name, WORDS)
    write_pdf(folder / "d.pdf", [WORDS])
    for name in ("x.pdf", "y.pdf"):
        (folder / name).write_bytes(b"%PDF-1.4 nonsense")
    for n in range(2):  # the same text in other bytes
        writer = PdfWriter(clone_from=PdfReader(folder / "d.pdf"))
        writer.add_metadata({"/CreationDate": f"D:2020010{n + 1}000000Z"})
        out = io.BytesIO()
        writer.write(out)
        (folder / f"e{n}.pdf").write_bytes(out.getvalue())
    assert (folder / "e0.pdf").read_bytes() != (folder / "e1.pdf").read_bytes()
    documents, left_out = read(folder, damaged=2)
    assert documents == {"docs/a.md", "docs/c.txt", "docs/d.pdf"}
    assert left_out == {
        "docs/deep/b.md": "docs/a.md",
        "docs/e0.pdf": "docs/d.pdf",
        "docs/e1.pdf": "docs/d.pdf",
    }


def test_a_page_that_leads_elsewhere_is_no_copy(tmp_path: Path) -> None:
    for name, link in (("a.md", "evil.md"), ("b.md", "good.md"), ("c.md", "good.md")):
        path = tmp_path / "docs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Ledger\n\nIts warden is [Ada Berg]({link}).")
    assert read(tmp_path / "docs") == ({"docs/a.md", "docs/b.md"}, {"docs/c.md": "docs/b.md"})
