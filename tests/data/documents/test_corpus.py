"""Every kind of corpus, and every way in which one can be wrong."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from polyhop.data.documents.corpus import Corpus
from polyhop.data.errors import DataError, Problem
from polyhop.data.passages import Passage, content_id

from ..reading import placed

LINES = (
    b'{"id": "1", "title": "Rome", "text": "Rome is the capital of Italy."}\n'
    b'{"title": "Paris", "sentences": ["Paris is in France.", " It lies on the Seine."]}\n'
)


def read(*paths: Path) -> tuple[list[tuple[Passage, str]], list[Problem]]:
    problems: list[Problem] = []
    return list(placed(Corpus(paths, on_problem=problems.append))), problems


def made(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_records_of_other_tools(tmp_path: Path) -> None:
    records = [
        {"id": "dpr", "contents": '"Rome"\nA city.'},
        {"id": "titled", "title": "Rome", "contents": "A city.\nOld."},
        {"id": 7, "text": "No title.", "metadata": {"kept": True}},
        {
            "id": None,
            "page_content": "LangChain.",
            "metadata": {"source": "docs/guide.pdf", "page": 3},
            "type": "Document",
        },
        {"id": "w", "title": "Abstract", "text": ["One sentence.", "Another."]},
        {"lc": 1, "type": "constructor", "id": ["langchain", "Document"], "kwargs": {"page_content": "Dumped."}},
        {"id_": "llama", "text": "LlamaIndex.", "metadata": {"title": "Guide", "file_name": "x.md"}},
        {"id_": "node", "text_resource": {"text": "A node.", "mimetype": None}, "metadata": {"file_name": "y.md"}},
        {"id": "hay\n\u202e", "content": "Haystack.", "meta": {"file_name": "notes.txt"}, "score": None},
    ]
    passages, problems = read(made(tmp_path / "c.jsonl", "\n".join(map(json.dumps, records)).encode()))
    assert not problems
    assert [(passage.id, passage.title, passage.text) for passage, _ in passages] == [
        ("dpr", "Rome", "A city."),
        ("titled", "Rome", "A city.\nOld."),
        ("7", "", "No title."),
        (content_id("guide", "LangChain."), "guide", "LangChain."),
        ("w", "Abstract", "One sentence. Another."),
        (content_id("", "Dumped."), "", "Dumped."),
        ("llama", "Guide", "LlamaIndex."),
        ("node", "y", "A node."),
        ("hay", "notes", "Haystack."),
    ]
    assert passages[2][0].metadata == {"kept": True}
    assert passages[3][0].metadata == {"source": "docs/guide.pdf", "page": 3}
    assert passages[4][0].given_sentences == ("One sentence.", "Another.")
    listed, problems = read(made(tmp_path / "list.json", json.dumps(records[3:]).encode()))
    assert [passage.id for passage, _ in listed] == [passage.id for passage, _ in passages[3:]]
    assert not problems


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"title": "Rome", "text": ', "not JSON"),
        (b'{"title": "Rome"}', "neither 'text' nor 'sentences'"),
        (b'{"title": " ", "text": ""}', "title and text are empty"),
        (b'{"text": "x", "id": "' + b"i" * 600 + b'"}', "longer than 512"),
        (b"7", "must be an object"),
    ],
)
@pytest.mark.parametrize("at", [1, 4])
def test_bad_records_are_reported_and_left_out(tmp_path: Path, line: bytes, reason: str, at: int) -> None:
    """One strange record does not decide for all, also not the first."""
    file = made(tmp_path / "c.jsonl", LINES + b"\n" + line + b"\n" if at == 4 else line + b"\n" + LINES)
    passages, [problem] = read(file)
    assert [passage.title for passage, _ in passages] == ["Rome", "Paris"]
    assert problem.where == f"c.jsonl:{at}"
    assert reason in problem.reason
    with pytest.raises(DataError, match=rf"c\.jsonl:{at}: "):
        list(Corpus([file], strict=True))


def test_a_mixed_folder(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    files = {
        "a/x.md": b"Intro.\n\n## The *Title* ##\n\nBody.\n",
        "a/bad.txt": b"\xcf\xf0\xe8\xe2\xe5\xf2",
        "a/binary.txt": b"a\x00b",
        "README": "Größe zählt.".encode(),
        "b.txt": "Grüße.".encode(),
        "run": b"#!/bin/sh\necho",
        "x.txt.gz": gzip.compress(b"Packed."),
        "c.csv": b"service,owner\nLedger,Ada",
        "d.csv": b"title,text\nTarn,A town.",
        "e.jsonl": b'{"id": "r", "text": "Record."}\nnot json',
        "empty.md": b" \n",
        ".git/c.txt": b"hidden",
        "g.html": b"<h1>G</h1><p>Page.",
        "d.xyz": b"?",
        "large.txt": b" " * ((32 << 20) + 1),
    }
    for name, content in files.items():
        made(folder / name, content)
    os.mkfifo(folder / "pipe.md")  # reading it would block
    problems: list[Problem] = []
    corpus = Corpus([folder], on_problem=problems.append)
    assert [(passage.title, passage.text, where) for passage, where in placed(corpus)] == [
        ("README", "Größe zählt.", "notes/README"),
        ("The Title", "Intro. Body.", "notes/a/x.md"),
        ("b", "Grüße.", "notes/b.txt"),
        ("c", "service: Ledger; owner: Ada.", "notes/c.csv"),
        ("Tarn", "A town.", "notes/d.csv:2"),
        ("", "Record.", "notes/e.jsonl:1"),
        ("G", "Page.", "notes/g.html"),
    ]
    assert corpus.share == 1.0
    assert {problem.where: (problem.reason.partition(": ")[0], problem.kind) for problem in problems} == {
        "notes/run": ("without a suffix, and not a text in UTF-8", "other"),
        "notes/x.txt.gz": ("compressed", "other"),
        "notes/d.xyz": ("no reader for files of the kind .xyz", "other"),
        "notes/a/bad.txt": ("not UTF-8 (byte 1)", "damaged"),
        "notes/a/binary.txt": ("a binary file", "damaged"),
        "notes/e.jsonl:2": ("not JSON", "damaged"),
        "notes/empty.md": ("empty", "damaged"),
        "notes/large.txt": ("it is larger than 32 MB", "damaged"),
        "notes/pipe.md": ("is not a regular file", "damaged"),
    }
    [(single, _)], _ = read(folder / "b.txt")
    assert (single.id, single.title, single.text) == ("b.txt", "b", "Grüße.")


def test_a_heading_that_most_pages_share_is_no_title(tmp_path: Path) -> None:
    banner = '<h1 align="center"><b>Kiln</b> &amp; Co</h1>\n\n'
    files = {
        "a.md": f"{banner}## Heat\n\nIt is hot.\n\n### More\n\nVery.",
        "b.md": f"{banner}No heading follows.",
        "c.html": f"{banner}<p>Of clay.<h2 id=x>Ash</h2><p>Grey.",
        "d.md": "# Clay\n\nBrown.",
        "sub/README.md": f"{banner}## Use\n\nFire it.",  # the only one there
    }
    for name, content in files.items():
        made(tmp_path / "docs" / name, content.encode())
    passages = {where: passage for passage, where in read(tmp_path / "docs")[0]}
    assert {name: passages[f"docs/{name}"].title for name in files} == {
        "a.md": "Heat",
        "b.md": "b",
        "c.html": "Ash",
        "d.md": "Clay",
        "sub/README.md": "Kiln & Co",
    }
    assert passages["docs/a.md"].text == "It is hot. More: Very."
    assert passages["docs/c.html"].anchors == ("x",)


@pytest.mark.parametrize("name", [b"caf\xe9.jsonl", b"caf\xe9.txt", b"notes\xe9/a.txt"])
def test_names_that_are_not_utf_8(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(name)
    made(path, b'{"title": "Ada", "text": "Odes."}\n')
    corpus = Corpus([path.parent if b"/" in name else path])
    for passage, where in placed(corpus):
        f"{passage.id} {passage.title} {where} {corpus.names}".encode()
    assert corpus.names[0].count("\ufffd") == 1


PACKED = gzip.compress(b"".join(b'{"text": "passage %d %d"}\n' % (n, n * 7919 % 10007) for n in range(3000)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.jsonl.gz", PACKED[:-200], "ended"),
        ("c.jsonl", None, "not a regular file"),  # reading it would block
        ("missing.jsonl", b"", "no file or folder"),
        ("notes/a.png", b"", "has no file of a kind that is read"),
    ],
    ids=range(4),
)
def test_what_is_no_corpus(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is None:
        os.mkfifo(tmp_path / name)
    elif name != "missing.jsonl":
        made(tmp_path / name, content)
    path = tmp_path / name.partition("/")[0]
    with pytest.raises(DataError, match=message) as error:
        list(Corpus([path]))
    assert path.name in str(error.value)


def texts(count: int, words: int) -> bytes:
    """JSON Lines of records with that many words."""
    return b"".join(
        json.dumps({"id": f"r{n}", "text": f"Thing {n} is here. " * (words // 4)}).encode() + b"\n"
        for n in range(count)
    )


def test_documents_are_split_and_passages_are_not(tmp_path: Path) -> None:
    made(tmp_path / "notes" / "long.txt", b"A short sentence. " * 100)
    passages, _ = read(tmp_path / "notes")
    assert [passage.id for passage, _ in passages] == [f"notes/long.txt#{n}" for n in (1, 2, 3)]
    assert {where for _, where in passages} == {"notes/long.txt"}
    short = made(tmp_path / "passages.jsonl", texts(9, 200) + texts(1, 1600).replace(b"r0", b"long"))
    assert [passage.id for passage, _ in read(short)[0]] == [*(f"r{n}" for n in range(9)), "long"]
    long = made(tmp_path / "documents.jsonl", texts(5, 400))
    assert [passage.id for passage, _ in read(long)[0]][:5] == ["r0#1", "r0#2", "r0#3", "r0#4", "r1#1"]
    handbook = made(tmp_path / "mixed.jsonl", texts(9, 40) + texts(1, 2400).replace(b"r0", b"book"))
    assert [passage.id for passage, _ in read(handbook)[0]][8:11] == ["r8", "book#1", "book#2"]


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    folder, other = tmp_path / "notes", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "a.md").write_text("# A\nInside.")
    (folder / "again.md").symlink_to(folder / "a.md")
    (other / "secret.txt").write_text("Outside.")
    (folder / "secret.txt").symlink_to(other / "secret.txt")
    (folder / "other").symlink_to(other)
    (folder / "code.js").symlink_to(other / "secret.txt")
    (folder / "broken.md").symlink_to(folder / "missing.md")
    (folder / "loop").symlink_to(folder)
    (folder / "self").symlink_to("self")
    problems: list[Problem] = []
    corpus = Corpus([folder], on_problem=problems.append)
    assert {passage.text for passage, _ in placed(corpus)} == {"Inside."}
    assert {problem.where: problem.reason.split(":")[0] for problem in problems} == {
        "notes/broken.md": "is not a regular file",
        "notes/self": "a link out of the folder, or to itself",
        "notes/code.js": "a link out of the folder, or to itself",
        "notes/other": "a link out of the folder, or to itself",
        "notes/secret.txt": "a link out of the folder, or to itself",
    }
    assert [problem.where for problem in problems if problem.kind == "damaged"] == [
        *("notes/broken.md", "notes/other", "notes/secret.txt", "notes/self"),
    ]
    assert [passage.text for passage, _ in placed(Corpus([folder / "secret.txt"]))] == ["Outside."]  # asked for
