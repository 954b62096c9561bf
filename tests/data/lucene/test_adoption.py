"""Indexes of Anserini and Pyserini: open as they are, adopted without a change, searched like polyhop's own."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import IndexFault, PolyhopError
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import adopt_index, build_index
from polyhop.data.lucene.jvm import autoclass, call, open_directory
from polyhop.data.passages import Hit, Passage
from polyhop.data.sample import sample_passages
from polyhop.scripts.main import app

from .anserini import anserini_index, manifest_of

PARIS = {"id": "p", "contents": "Paris\nParis is the capital of France."}
ROME = {"id": "r", "contents": "Rome\nRome is the capital of Italy, with running fountains."}


def as_pyserini(passage: Passage) -> dict[str, Any]:
    return {**passage.to_record(), "contents": f"{passage.title}\n{passage.text}"}


def found(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# --- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", ["storeRaw", "storeContents"])
def test_what_is_stored_is_read(tmp_path: Path, stored: str) -> None:
    folder = anserini_index(tmp_path / "ix", [PARIS, ROME], **{stored: True})
    with BM25Index(folder) as index:
        assert len(index) == 2
        [hit] = index.search("running fountains", 5)
        assert hit.passage == Passage("r", "Rome", "Rome is the capital of Italy, with running fountains.")
        assert index.passage("r") == hit.passage
        assert index.named("r") == [hit.passage]


def test_nothing_stored(tmp_path: Path) -> None:
    folder = anserini_index(tmp_path / "ix", [PARIS, ROME])
    for use in (BM25Index, adopt_index):
        with pytest.raises(IndexFault, match="stores no text"):
            use(folder)
    assert not (folder / "polyhop").exists()


def test_other_lucene_indexes_are_refused(tmp_path: Path) -> None:
    config = autoclass("org.apache.lucene.index.IndexWriterConfig")()
    writer = autoclass("org.apache.lucene.index.IndexWriter")(open_directory(tmp_path), config)
    document = autoclass("org.apache.lucene.document.Document")()
    call(document, "add", autoclass("org.apache.lucene.document.StoredField")("name", "x"))
    call(writer, "addDocument", document)
    call(writer, "close")
    with pytest.raises(IndexFault, match="not a BM25 index of Anserini or Pyserini"):
        BM25Index(tmp_path)


# --- adopting --------------------------------------------------------------------------------------------------------


def large(count: int) -> list[Passage]:
    chance = random.Random(0)
    words = [f"w{n}" for n in range(500)]
    return [Passage.of(f"Title {n}", " ".join(chance.choices(words, k=40)), id=f"d{n}") for n in range(count)]


def append(folder: Path, other: Path, deleted: str) -> None:
    """Add the segments of another index, and delete the documents with a stem."""
    config = autoclass("org.apache.lucene.index.IndexWriterConfig")()
    call(config, "setMergePolicy", autoclass("org.apache.lucene.index.NoMergePolicy").INSTANCE)
    writer = autoclass("org.apache.lucene.index.IndexWriter")(open_directory(folder), config)
    call(writer, "addIndexes", open_directory(other))
    term = autoclass("org.apache.lucene.index.Term")("contents", deleted)
    call(writer, "deleteDocuments", autoclass("org.apache.lucene.search.TermQuery")(term))
    call(writer, "close")


def test_an_adopted_index_is_searched_like_polyhops_own(tmp_path: Path) -> None:
    """Also with several segments and deleted documents."""
    passages = [*sample_passages(), *large(900)]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(passage.to_record()) + "\n" for passage in passages), "utf-8")
    build_index([corpus], tmp_path / "own")

    obsolete = [{"id": f"obsolete-{n}", "contents": f"Title {n}\nobsolete"} for n in range(100)]
    mixed = [*obsolete[:50], *map(as_pyserini, passages[:600]), *obsolete[50:]]
    folder = anserini_index(tmp_path / "theirs", mixed, storeRaw=True)
    more = anserini_index(tmp_path / "more", map(as_pyserini, passages[600:]), storeRaw=True)
    append(folder, more, deleted="obsolet")
    before = contents(folder)
    with BM25Index(folder) as unadopted, pytest.raises(PolyhopError, match=f"polyhop index --adopt {folder}"):
        ChainRetriever(unadopted)
    result = CliRunner().invoke(app, ["index", "--adopt", str(folder)])
    assert (result.exit_code, f"{len(passages):,}" in result.output) == (0, True), result.output
    assert contents(folder) == before
    assert "is sound" in CliRunner().invoke(app, ["index", "--check", str(folder)]).output

    with BM25Index(tmp_path / "own") as own, BM25Index(folder) as theirs:
        assert len(theirs) == len(passages)
        assert theirs._lucene.has_deletions
        assert theirs.has_titles
        assert not theirs.search("obsolete", 1)
        for passage in passages[:300:15]:
            question = f"Who founded the company that {passage.title} belongs to?"
            chains = (ChainRetriever(index).search(question, 3) for index in (theirs, own))
            assert len({tuple(hit.passage for hit in chain) for chain in chains}) == 1
        for n in range(0, 900, 37):
            assert theirs.titled(f"title {n}") == own.titled(f"title {n}") != []
        for query in ("Where was the owner of Kestrel born?", "w1 w2 w3", "Title 7"):
            # Lucene counts deleted documents until they are merged away, so scores differ in the third decimal.
            assert [hit.passage for hit in theirs.search(query, 5)] == [hit.passage for hit in own.search(query, 5)]


# --- Pyserini's own indexes ------------------------------------------------------------------------------------------


def test_a_prebuilt_index_in_pyserinis_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path))
    name = "lucene-index.wikipedia-dpr-100w.20210120.d1b9e6.7b58c08da992b2ea7e96667f0b176651"
    folder = anserini_index(tmp_path / "indexes" / name, [PARIS, ROME], storeRaw=True)
    with BM25Index("pyserini:wikipedia-dpr-100w") as index:
        assert index.path == folder
        assert [hit.passage.title for hit in index.search("Rome", 1)] == ["Rome"]
    assert manifest_of(folder).corpus == (name,)


def test_an_unknown_prebuilt_index() -> None:
    with pytest.raises(IndexFault, match="no BM25 index 'wikipedia-dpr-100': is it wikipedia-dpr-100w"):
        BM25Index("pyserini:wikipedia-dpr-100")
