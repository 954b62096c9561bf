"""A living index: what changes, what stays, and what readers see of it."""

from __future__ import annotations

import json
import pickle
import random
import signal
import subprocess
import sys
import time
from functools import partialmethod
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.dense import DenseIndex, embed_index
from polyhop.data.errors import DataError, IndexFault, Problem
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import adopt_index, build_index, check_index
from polyhop.data.lucene.jvm import autoclass, call, open_directory
from polyhop.data.lucene.update import update_index

from ..dense.hashing import Hashing
from ..documents.office_files import write_pdf
from .anserini import manifest_of

LONG = "A long sentence about the mill by the river. " * 30
NOTES = {
    "notes/heron.md": f"# Heron\n\nThe heron lives in Tarn. {LONG}",
    "notes/sub/stork.md": "# Stork\n\nThe stork lives in Vale.",
    "notes/data.jsonl": '{"id": "r1", "text": "A record of egrets."}\n{"id": "r2", "text": "A record of cranes."}\n',
    "notes/table.csv": "bird,town\nIbis,Tarn\n",
}


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    put(tmp_path, NOTES)
    build_index([tmp_path / "notes"], tmp_path / "ix")
    return tmp_path / "ix"


def contents(index: Path) -> dict[str, str]:
    """All passages by id, as a search finds them and as they are stored."""
    with BM25Index(index) as opened:
        query = "heron stork egrets cranes ibis mill grebe record"
        found = {hit.passage.id: hit.passage.searched for hit in opened.search(query, 1000)}
        assert len(found) == len(opened)
        # The chain retriever's rows belong to the same passages.
        chain = ChainRetriever(opened)
        for hit in opened.search(query, 1000):
            [best, *_] = chain.search(hit.passage.searched[:200], 1)
            assert best.passage.id in found
        return found


def fresh(root: Path, *names: str) -> dict[str, str]:
    out = root / "fresh"
    build_index([root / name for name in names or ("notes",)], out)
    return contents(out)


def test_an_update_gives_what_a_new_index_would_have(tmp_path: Path, index: Path) -> None:
    put(
        tmp_path,
        {
            "notes/heron.md": f"# Heron\n\nThe heron lives in Vale. {LONG} {LONG}",
            "notes/new/grebe.md": "# Grebe\n\nThe grebe is new.",
            "notes/data.jsonl": '{"id": "r2", "text": "A record of cranes."}\n'
            '{"id": "r3", "text": "A record of ibis."}\n',
        },
    )
    (tmp_path / "notes/sub/stork.md").unlink()
    changes = update_index(index, folders=[tmp_path / "notes"])
    assert contents(index) == fresh(tmp_path)
    manifest = manifest_of(index)
    assert (changes.manifest, changes.documents) == (manifest, 5)
    assert manifest.documents == manifest_of(tmp_path / "fresh").documents
    assert (manifest.updates, check_index(index).problems) == (1, ())
    again = update_index(index, folders=[tmp_path / "notes"])
    assert again == (manifest, 0, 0, 0, 0)
    kept = {path.name for path in (index / "polyhop").iterdir() if path.is_dir()}
    assert kept == {manifest.generation, *manifest.chain}


def test_add_a_file_of_a_folder_and_delete_by_id_or_file(tmp_path: Path, index: Path) -> None:
    put(tmp_path, {"notes/sub/grebe.md": "# Grebe\n\nA grebe.", "other.txt": "A mill elsewhere."})
    update_index(index, add=[tmp_path / "notes/sub/grebe.md", tmp_path / "other.txt"])
    assert contents(index).keys() == fresh(tmp_path, "notes", "other.txt").keys()
    assert manifest_of(index).corpus == ("notes", "other.txt")
    assert update_index(index, delete=["notes/sub/grebe.md", "other.txt"]).deleted == 2
    (tmp_path / "notes/sub/grebe.md").unlink()
    before = contents(index)
    assert update_index(index, delete=["heron.md"]).deleted == sum("heron.md" in id for id in before) > 1
    for name in ("r1", str(tmp_path / "notes/sub/stork.md")):
        assert update_index(index, delete=[name]).deleted == 1
    assert contents(index).keys() == {"r2", "notes/table.csv"}
    # What was deleted is not in the index, so an update brings it back.
    assert update_index(index, folders=[tmp_path / "notes"]).documents == 3
    assert contents(index) == before


def test_a_segment_that_vanishes_moves_no_words(tmp_path: Path, index: Path) -> None:
    """Lucene drops one without passages, which renumbers those that follow."""
    for name in ("grebe", "tern"):
        put(tmp_path, {f"notes/{name}.md": f"# {name}\n\nA {name}."})
        update_index(index, add=[tmp_path / f"notes/{name}.md"])
    update_index(index, delete=["grebe.md"])
    with BM25Index(index) as opened:
        assert [passage.id for passage in opened.titled("tern")] == ["notes/tern.md"]


def test_what_cannot_be_changed_changes_nothing(tmp_path: Path, index: Path) -> None:
    put(tmp_path, {"notes/other/stork.md": "# Stork\n\nAnother stork."})
    update_index(index, add=[tmp_path / "notes/other/stork.md"])
    before, state = contents(index), manifest_of(index)
    for change, message in (
        ({"delete": ["r1", "missing.md"]}, "has no document 'missing.md'"),
        ({"delete": ["stork.md"]}, "'stork.md' names several documents, such as notes/.* and notes/"),
        ({"delete": list({id.partition("#")[0] for id in before})}, "Nothing would be left"),
        ({"folders": [tmp_path / "other.txt"]}, "is not a folder"),
    ):
        with pytest.raises(IndexFault, match=message):
            update_index(index, **change)
    problems: list[Problem] = []
    assert update_index(index, add=[tmp_path / "notes/heron.md"], on_problem=problems.append).added == 0
    assert [problem.reason for problem in problems] == [
        "the id 'notes/heron.md' is in the index: --update replaces what has changed"
    ]
    assert (contents(index), manifest_of(index)) == (before, state)
    with pytest.raises(IndexFault, match="no index"):
        update_index(tmp_path / "nothing", delete=["x"])


def texts(index: Path) -> list[str]:
    with BM25Index(index) as opened:
        found = sorted(hit.passage.text for hit in opened.search("always x0 y0 z0", 1000))
        assert len(found) == len(opened)
        return found


def said(words: str, suffix: str) -> str:
    """A document of 60 different words in a format."""
    text = " ".join(f"{words}{n}" for n in range(60)) + "."
    return {".html": f"<h1>T</h1><p>{text}", ".md": f"# T\n\n{text}", ".txt": f"T\n=\n\n{text}"}[suffix]


@pytest.mark.parametrize("seed", [11, pytest.param(0, marks=pytest.mark.slow)])
def test_copies_and_twins_are_those_of_a_new_index(tmp_path: Path, seed: int) -> None:
    """Files come, go, move and change, in three formats; the same texts are in the index as in a new one."""
    choose = random.Random(seed)
    root = tmp_path / "notes"
    names = [
        f"notes/{folder}{stem}{suffix}"
        for folder in ("", "z/")
        for stem in "abc"
        for suffix in (".html", ".md", ".txt")
    ]
    put(
        tmp_path,
        {
            "notes/always.md": "Always here.",
            **{name: said(choose.choice("xy"), Path(name).suffix) for name in names[::2]},
        },
    )
    index = tmp_path / "ix"
    build_index([root], index)
    for step in range(12):
        for name in choose.sample(names, 3):
            path = tmp_path / name
            if path.exists() and choose.random() < 0.5:
                path.unlink()
            else:
                path.write_text(said(choose.choice("xyz"), path.suffix))
        update_index(index, folders=[root])
        build_index([root], tmp_path / "fresh")
        assert texts(index) == texts(tmp_path / "fresh"), (seed, step)
    assert check_index(index).problems == ()


def test_a_page_that_lost_its_text_is_told_each_time(tmp_path: Path) -> None:
    root, index = tmp_path / "notes", tmp_path / "ix"
    linked = f"<p>The stork.<nav>{'<a href=x>A link to another page.</a> ' * 60}</nav>"
    put(tmp_path, {"notes/a.html": f"<p>The heron.<footer>{LONG}</footer>", "notes/b.html": linked})
    write_pdf(root / "c.pdf", ["The mill."])
    with (root / "c.pdf").open("ab") as file:
        file.write(b"9 0 obj <</Filter/FlateDecode>>stream\nx\nendstream endobj")
    for change in (
        lambda **told: build_index([root], index, **told),
        lambda **told: update_index(index, folders=[root], **told),
    ):
        problems: list[Problem] = []
        change(on_problem=problems.append)
        assert [(each.where, each.kind) for each in problems] == [
            ("notes/a.html", "partial"),
            ("notes/c.pdf", "partial"),
        ]
    assert contents(index).keys() == {"notes/a.html", "notes/b.html", "notes/c.pdf"}


def none_converted(jobs: Any, on_wait: Any) -> Any:
    for job, path in jobs:
        assert path is None
        yield job, None


def test_what_became_unreadable_is_gone_and_what_cannot_be_opened_stays(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, notes = contents(index), tmp_path / "notes"
    (notes / "sub/stork.md").write_bytes(b"a\x00b")
    (notes / "data.jsonl").write_text('{"id": "r1", "text": "A record of egrets."}\n{"id": "r2"\n')
    for unreadable in (2, 0):  # it is not converted again
        problems: list[Problem] = []
        assert update_index(index, folders=[notes], on_problem=problems.append).unreadable == unreadable
        assert [problem.where for problem in problems] == ["notes/data.jsonl:2", "notes/sub/stork.md"]
        monkeypatch.setattr("polyhop.data.documents.corpus.conversions", none_converted)
    monkeypatch.undo()
    assert contents(index) == fresh(tmp_path)
    put(tmp_path, NOTES)
    update_index(index, folders=[notes])
    for closed in ("table.csv", "sub"):

        def refuse(path: Path, *given: Any, refused: str = closed, does: Any = None, **options: Any) -> Any:
            if path.name == refused:
                raise PermissionError(13, "Permission denied")
            return does(path, *given, **options)

        for name in ("open", "iterdir"):
            monkeypatch.setattr(Path, name, partialmethod(refuse, does=getattr(Path, name)))
        assert update_index(index, folders=[notes], on_problem=problems.append).documents == 0
        assert problems.pop().where == f"notes/{closed}"
        monkeypatch.undo()
    with pytest.raises(IndexFault, match="heron.md is still in its folder"):
        update_index(index, folders=[tmp_path / "notes"], delete=["heron.md"])
    assert contents(index) == before
    (tmp_path / "notes/heron.md").unlink()
    assert update_index(index, folders=[tmp_path / "notes"], delete=["heron.md"]).deleted


def test_a_first_heading_that_pages_come_to_share_is_no_title(tmp_path: Path) -> None:
    def titles() -> list[str]:
        with BM25Index(tmp_path / "ix") as index:
            return sorted(hit.passage.title for hit in index.search("heron", 9))

    put(tmp_path, {f"docs/{name}.md": f"# Birds\n\n## {name}\n\nIt is a heron." for name in "AB"})
    build_index([tmp_path / "docs"], tmp_path / "ix")
    assert titles() == ["Birds", "Birds"]
    put(tmp_path, {"docs/C.md": "# Birds\n\n## C\n\nIt is a heron."})
    assert update_index(tmp_path / "ix", folders=[tmp_path / "docs"]).documents == 3
    assert titles() == ["A", "B", "C"]
    (tmp_path / "docs/A.md").unlink()
    update_index(tmp_path / "ix", folders=[tmp_path / "docs"])
    assert titles() == ["Birds", "Birds"]


def test_open_retrievers_see_a_change_at_their_next_search(tmp_path: Path, index: Path) -> None:
    with BM25Index(index) as opened:
        chain, view, pinned = ChainRetriever(opened), opened.with_bm25(k1=1.2), opened.pinned()
        put(tmp_path, {"notes/grebe.md": "# Grebe\n\nThe grebe is new."})
        update_index(index, folders=[tmp_path / "notes"])
        update_index(index, delete=["r1"])
        for retriever in (opened, chain, view, pickle.loads(pickle.dumps(opened))):
            assert retriever.search("grebe", 1)[0].passage.id == "notes/grebe.md"
            assert "r1" not in {hit.passage.id for hit in retriever.search("egrets record", 5)}
        assert opened.store is opened.store  # opened once
        assert not pinned.search("grebe", 1)
        assert pinned.search("egrets", 1)[0].passage.id == "r1"
        assert len(opened) == len(pinned)


def test_a_file_and_the_record_that_is_first_keep_their_id(tmp_path: Path) -> None:
    """As in a new index, whatever the order of the changes."""
    owl = json.dumps({"id": "r1", "text": "An owl of the wood."})
    put(tmp_path, {"notes/m.jsonl": f'{{"id": "notes/tern.md", "text": "A false tern."}}\n{owl}\n'})
    build_index([tmp_path / "notes"], tmp_path / "ix")
    put(tmp_path, {"notes/tern.md": "# Tern\n\nA tern of the mill.", "notes/a.jsonl": owl.replace("wood", "mill")})
    for _ in range(3):
        told: list[Problem] = []
        update_index(tmp_path / "ix", folders=[tmp_path / "notes"], on_problem=told.append)
        assert sorted(problem.kind for problem in told) == ["duplicate", "duplicate"]
        with BM25Index(tmp_path / "ix") as opened:
            found = {hit.passage.id: hit.passage.text for hit in opened.search("tern owl", 10)}
            assert found == {"notes/tern.md": "A tern of the mill.", "r1": "An owl of the mill."}
            assert len(opened) == 2
    told = []
    build_index([tmp_path / "notes"], tmp_path / "new", on_problem=told.append)
    assert len(told) == 2
    assert contents(tmp_path / "new") == contents(tmp_path / "ix")


def test_two_folders_of_one_name_and_a_folder_in_another_are_refused(tmp_path: Path, index: Path) -> None:
    put(tmp_path, {"other/notes/gull.md": "# Gull\n\nA gull of the mill.", "other/notes/heron.md": "# Another"})
    other, before = tmp_path / "other" / "notes", contents(index)
    with pytest.raises(DataError, match="have one name.*Index the folder above them"):
        build_index([tmp_path / "notes", other], tmp_path / "both")
    with pytest.raises(IndexFault, match="has 1 of the 4 files that the index has of a folder notes"):
        update_index(index, add=[other])
    with pytest.raises(IndexFault, match="has 1 of the 4 files"):
        update_index(index, folders=[other])
    with pytest.raises(IndexFault, match="is in a folder that was indexed: --update .*notes$"):
        update_index(index, add=[tmp_path / "notes" / "sub"])
    with pytest.raises(IndexFault, match="is in a folder that was indexed"):
        update_index(index, folders=[tmp_path / "notes" / "sub"])
    assert contents(index) == before
    for name in ("heron.md", "data.jsonl", "table.csv"):  # most of its files: it is the same folder
        (tmp_path / "notes" / name).unlink()
    put(tmp_path, {"notes/gull.md": "# Gull"})
    assert update_index(index, folders=[tmp_path / "notes"]).added == 1
    (tmp_path / "moved").mkdir()
    (tmp_path / "notes").rename(tmp_path / "moved" / "notes")
    put(tmp_path, {"moved/notes/swan.md": "# Swan"})
    assert update_index(index, folders=[tmp_path / "moved" / "notes"]).added == 1


def test_many_updates_are_merged(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.data.lucene.update._MOST_SEGMENTS", 5)
    for n in range(8):
        put(
            tmp_path,
            {f"notes/n{n}.md": f"# N{n}\n\nThe grebe {n}.", "notes/heron.md": f"# Heron\n\nThe heron {n}. {LONG}"},
        )
        update_index(index, folders=[tmp_path / "notes"])
    assert check_index(index).problems == ()
    assert len(list(index.rglob("*.si"))) <= 5
    assert len(list((index / "polyhop").glob("*/chain"))) <= 5
    assert contents(index) == fresh(tmp_path)
    with BM25Index(index) as living, BM25Index(tmp_path / "fresh") as new:
        question = "Where does the grebe 7 live?"
        assert [hit.passage.id for hit in ChainRetriever(living).search(question, 3)][:1] == [
            hit.passage.id for hit in ChainRetriever(new).search(question, 3)
        ][:1]


def test_vectors_are_made_again(tmp_path: Path, index: Path) -> None:
    embed_index(index, Hashing())
    with DenseIndex(index, Hashing()) as dense, BM25Index(index) as opened:
        chain = ChainRetriever(opened, vectors=dense)
        update_index(index, delete=["r1"])
        assert not list(index.rglob("vectors-*"))
        assert "r1" in {hit.passage.id for hit in dense.search("egrets", 100)}  # still the state of the vectors
        assert "r1" in {hit.passage.id for hit in chain.search("egrets", 100)}
    with pytest.raises(IndexFault, match="has no vectors"):
        DenseIndex(index, Hashing())
    embed_index(index, Hashing())
    with DenseIndex(index, Hashing()) as dense:
        assert {hit.passage.id for hit in dense.search("egrets", 100)} == contents(index).keys()


def test_readers_in_other_threads_never_fail(tmp_path: Path, index: Path) -> None:
    done, errors, seen = Event(), list[Exception](), set[str]()

    def read(retriever: Any) -> None:
        try:
            while not done.is_set():
                seen.update(hit.passage.id for hit in retriever.search("grebe heron Tarn", 5))
        except Exception as error:  # noqa: BLE001  # told at the end
            errors.append(error)

    with BM25Index(index) as opened:
        retrievers = [opened, ChainRetriever(opened), opened.with_bm25(b=0.5), ChainRetriever(opened.with_bm25(b=0.7))]
        threads = [Thread(target=read, args=(retriever,)) for retriever in retrievers]
        for thread in threads:
            thread.start()
        for n in range(3):
            put(tmp_path, {f"notes/grebe{n}.md": f"# Grebe {n}\n\nThe grebe {n} lives in Tarn."})
            update_index(index, folders=[tmp_path / "notes"])
            assert f"notes/grebe{n}.md" in {hit.passage.id for hit in opened.search("grebe", 10)}
        done.set()
        for thread in threads:
            thread.join()
    assert not errors
    assert "notes/grebe0.md" in seen


@pytest.mark.slow
@pytest.mark.parametrize("index", [3], indirect=True)
def test_killed_updates_leave_the_index_before_or_after(tmp_path: Path, index: Path) -> None:
    code = (
        "import sys; from polyhop.data.lucene.update import update_index; "
        "update_index(sys.argv[1], folders=[sys.argv[2]])"
    )
    choose = random.Random(3)
    for n in range(10):
        before = contents(index)
        put(
            tmp_path,
            {f"notes/k{n}.md": f"# K{n}\n\nThe grebe {n}. {LONG}", "notes/heron.md": f"# Heron\n\n{n}. {LONG}"},
        )
        process = subprocess.Popen([sys.executable, "-c", code, str(index), str(tmp_path / "notes")])
        time.sleep(choose.uniform(0.3, 2.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert check_index(index).problems == ()
        assert contents(index) in (before, fresh(tmp_path))
        update_index(index, folders=[tmp_path / "notes"])
        assert contents(index) == fresh(tmp_path)
        manifest = manifest_of(index)
        kept = {path.name for path in (index / "polyhop").iterdir() if path.is_dir()}
        assert kept == {manifest.generation, *manifest.chain}


def test_a_change_by_another_program_is_told(tmp_path: Path, index: Path) -> None:
    """The words of the chain retriever belong to other documents then. Adopted, it is an index of others."""
    config = autoclass("org.apache.lucene.index.IndexWriterConfig")()
    writer = autoclass("org.apache.lucene.index.IndexWriter")(open_directory(index), config)
    term = autoclass("org.apache.lucene.index.Term")("id", "r1")
    call(writer, "updateDocuments", term, autoclass("java.util.ArrayList")())
    call(writer, "forceMerge", 1)
    call(writer, "close")
    for use in (BM25Index, check_index, lambda path: update_index(path, delete=["r2"])):
        with pytest.raises(IndexFault, match=f"has changed since polyhop wrote to it.*index --adopt {index}"):
            use(index)
    adopt_index(index)
    with BM25Index(index) as adopted:
        assert ChainRetriever(adopted).search("A record of cranes", 1)[0].passage.id == "r2"
    with pytest.raises(IndexFault, match="was not made by polyhop"):
        update_index(index, delete=["r2"])
