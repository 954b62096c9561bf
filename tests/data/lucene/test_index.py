"""Building is atomic, exclusive and frugal; checking finds what searching does not."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import DataError, IndexFault
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import BuildProgress, build_index, check_index
from polyhop.data.lucene.jvm import autoclass, call
from polyhop.data.lucene.layout import stamp
from polyhop.data.lucene.update import update_index
from polyhop.data.passages import Passage

from .anserini import manifest_of

RECORDS: list[dict[str, Any]] = [
    {"id": "r", "title": "Rome", "text": "Rome is the capital of Italy."},
    {"id": "p", "title": "Paris", "text": "Paris is the capital of France."},
    {"id": "t", "title": "Paris, Texas", "text": "Paris is also a city in Texas."},
]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_records(records: list[dict[str, Any]] = RECORDS, name: str = "corpus.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    return write_records


def large(count: int = 30_000) -> list[dict[str, Any]]:
    chance = random.Random(0)
    words = [f"w{n}" for n in range(2000)]
    return [{"id": str(n), "title": f"T{n}", "text": " ".join(chance.choices(words, k=60))} for n in range(count)]


def found(index: Path, query: str) -> list[str]:
    with BM25Index(index) as opened:
        return [hit.passage.id for hit in opened.search(query, 10)]


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_a_build_adds_one_folder_to_lucenes_files(tmp_path: Path, write: Write) -> None:
    seen: list[BuildProgress] = []
    out = tmp_path / "deep" / "ix"
    manifest = build_index([write()], out, on_progress=seen.append)
    assert (manifest.passages, manifest.malformed, manifest.duplicates) == (3, 0, 0)
    assert (manifest.corpus, list(manifest.chain)) == (("corpus.jsonl",), [manifest.generation])
    assert manifest_of(out) == manifest
    home = out / "polyhop" / manifest.generation
    assert {path.name for path in home.iterdir()} == {"manifest.json", "problems.jsonl", "chain"}
    assert str(tmp_path) not in (home / "manifest.json").read_text()
    assert {path.name for path in (out / "polyhop").iterdir()} == {".lock", manifest.generation}
    assert {name for name in os.listdir(out) if not name.startswith("_0")} == {"segments_1", "write.lock", "polyhop"}
    assert seen[-1] == BuildProgress(1.0, 3)
    assert found(out, "capital of France") == ["p", "r"]


def test_passages_of_a_document_have_ids_of_their_own(tmp_path: Path, write: Write) -> None:
    build_index([write()], tmp_path / "ix", max_words=4)
    with BM25Index(tmp_path / "ix") as index:
        assert index.passage("r#2").text == "of Italy."


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ([], {}, r"corpus\.jsonl cannot be read: it is empty"),
        ([{"title": 1, "text": "x"}], {}, r"No passage in corpus\.jsonl"),
        ([*RECORDS, {"title": 1, "text": "x"}], {"strict": True}, r"corpus\.jsonl:4: "),
        ([*RECORDS, RECORDS[0]], {"strict": True}, r"corpus\.jsonl:4: "),
        (RECORDS, {"max_words": -1}, "max_words"),
    ],
)
def test_a_build_that_fails_leaves_what_was_there(
    tmp_path: Path, write: Write, records: list[dict[str, Any]], options: dict[str, Any], message: str
) -> None:
    with pytest.raises((DataError, ValueError), match=message):
        build_index([write(records)], tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()
    build_index([write()], tmp_path / "ix")
    before = files_in(tmp_path / "ix")
    with pytest.raises((DataError, ValueError), match=message):
        build_index([write(records)], tmp_path / "ix", **options)
    assert files_in(tmp_path / "ix") == before
    assert found(tmp_path / "ix", "Rome") == ["r"]


def test_folders_of_others_are_refused(tmp_path: Path, write: Write) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("mine")
    call(autoclass("io.anserini.index.SimpleIndexer")(str(tmp_path / "theirs")), "close")
    for folder, message in (
        (tmp_path / "thesis", r"has other files \(thesis.tex\)"),
        (tmp_path / "theirs", "an index that polyhop has not made"),
        (write(), "is a file"),
    ):
        before = files_in(folder)
        with pytest.raises(IndexFault, match=message):
            build_index([write()], folder)
        assert files_in(folder) == before
    (tmp_path / "empty").mkdir()
    build_index([write()], tmp_path / "empty")
    (tmp_path / "empty" / "README").write_text("about this index")
    build_index([write()], tmp_path / "empty")


# --- stopped builds --------------------------------------------------------------------------------------------------

BUILD = """
import sys
from polyhop.data.lucene.index import build_index
build_index([sys.argv[1]], sys.argv[2], on_progress=lambda progress: print(progress.passages, flush=True))
"""


def start_build(corpus: Path, out: Path) -> subprocess.Popen[str]:
    """A build in a process of its own, in the middle of its work."""
    command = [sys.executable, "-c", BUILD, str(corpus), str(out)]
    build = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert build.stdout is not None
    while int(build.stdout.readline()) < 1000:
        pass
    return build


def stop(build: subprocess.Popen[str], how: signal.Signals) -> str:
    build.send_signal(how)
    return build.communicate(timeout=60)[1]


@pytest.mark.parametrize("fresh", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_killed_build_is_no_index_and_costs_none(tmp_path: Path, write: Write, fresh: bool) -> None:
    out = tmp_path / "ix"
    if not fresh:
        build_index([write()], out)
    build = start_build(write(large(), "large.jsonl"), out)
    try:
        with pytest.raises(IndexFault, match="Another build"):
            build_index([write()], out)
    finally:
        stop(build, signal.SIGKILL)
    if fresh:
        with pytest.raises(IndexFault, match="its build was stopped"):
            BM25Index(out)
    else:
        assert found(out, "capital") == ["p", "r"]
    manifest = build_index([write(RECORDS[:2])], out)
    assert {path.name for path in (out / "polyhop").iterdir()} == {".lock", manifest.generation}
    assert len(list(out.glob("*.fdt"))) == 1
    assert check_index(out).problems == ()


def test_an_interrupted_build_cleans_up(tmp_path: Path, write: Write) -> None:
    said = stop(start_build(write(large(), "large.jsonl"), tmp_path / "ix"), signal.SIGINT)
    assert "KeyboardInterrupt" in said
    assert not (tmp_path / "ix").exists()


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(record) + "\n" for record in large(3000)))
    build_index([corpus], folder / "ix")
    return folder / "ix"


@pytest.fixture
def damaged(sound: Path, tmp_path: Path) -> Path:
    """A copy of an index, to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "ix"))


def use_all(index: Path) -> None:
    """Search in every way; only an `IndexFault` may come of it."""
    with suppress(IndexFault), BM25Index(index) as opened:
        chain = ChainRetriever(opened)
        for query in ("w1 w2 w3", "w7 T5", "T17"):
            opened.search(query, 20)
            chain.search(query, 5)
            opened.named("T17")


@pytest.mark.parametrize(
    "change", ["flip", *(pytest.param(each, marks=pytest.mark.slow) for each in ("cut", "empty")), "delete"]
)
def test_damage_to_any_file_is_found_and_never_more_than_a_fault(damaged: Path, change: str) -> None:
    assert check_index(damaged).problems == ()
    for path in sorted(path for path in damaged.rglob("*") if path.is_file()):
        if path.name in (".lock", "write.lock", "problems.jsonl"):
            continue
        content = path.read_bytes()
        path.unlink()
        if change != "delete":
            middle = len(content) // 2
            flipped = bytes(byte ^ 0xFF for byte in content[middle : middle + 8])
            parts = {"flip": content[:middle] + flipped + content[middle + 8 :], "cut": content[:middle], "empty": b""}
            path.write_bytes(parts[change])
        use_all(damaged)
        try:
            problems = check_index(damaged).problems
        except IndexFault as fault:
            problems = (str(fault),)
        assert problems, path
        path.unlink(missing_ok=True)
        path.write_bytes(content)
    assert check_index(damaged).problems == ()


def test_stored_text_that_changed_on_the_disk_is_never_shown(tmp_path: Path) -> None:
    records = [{"id": f"r{n}", "title": f"Mill {n}", "text": f"Mill {n} was bought in {1900 + n}."} for n in range(9)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    build_index([tmp_path / "c.jsonl"], tmp_path / "ix")

    def read() -> list[Passage]:
        with BM25Index(tmp_path / "ix") as opened:
            return list(opened.stored(range(9)))

    right, (file,) = read(), (tmp_path / "ix").glob("*.fdt")
    content, refused = file.read_bytes(), 0
    tried = range(0, len(content), 7)
    for at in tried:
        file.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        try:
            assert read() == right, at
        except IndexFault:
            refused += 1
    assert refused > 0.7 * len(tried)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("passages", 5),
        ("chain", {}),
        ("chain", {"../outside": {}}),
        ("chain", {"0123456789abcdef": {}}),
        ("generation", "0123456789abcdef"),
        ("schema", 11),
        ("documents", 0),  # of which one is deleted
        (None, None),
    ],
)
def test_a_manifest_that_is_wrong_is_one_clear_line(damaged: Path, field: str | None, value: Any) -> None:
    """Of an index of another version, too."""
    manifest = manifest_of(damaged)
    file = manifest.home(damaged) / "manifest.json"
    file.write_text(json.dumps({**manifest.to_json(), field: value}) if field else '{"pass')
    before = files_in(damaged.parent)

    def use() -> None:
        with BM25Index(damaged) as opened:
            _ = opened.store
        update_index(damaged, delete=["1"])

    with pytest.raises(IndexFault) as raised:
        use()
    assert "\n" not in str(raised.value)
    assert field != "schema" or "Build it again: polyhop index CORPUS --out" in str(raised.value)
    assert files_in(damaged.parent) == before


def test_numbers_of_commits_have_36_digits(tmp_path: Path) -> None:
    for name in ("segments_1", "segments_z", "segments_10", "pending_segments_11"):
        (tmp_path / name).touch()
    assert (stamp(tmp_path) or ("",))[0] == "segments_10"


def test_checking_and_opening_an_index_write_nothing(damaged: Path) -> None:
    (damaged / "write.lock").unlink()
    before = files_in(damaged)
    assert not check_index(damaged).problems
    BM25Index(damaged).close()
    assert files_in(damaged) == before
