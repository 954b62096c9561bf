"""Building is atomic, exclusive and frugal; checking finds what searching does not."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.errors import CorpusError, IndexFault, Problem
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import BuildProgress, build_index, check_index
from polyhop.data.lucene.jvm import autoclass, call
from polyhop.data.lucene.layout import SCHEMA, IndexManifest
from polyhop.data.passages import Passage, Place

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


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_build(tmp_path: Path, write: Write) -> None:
    seen: list[BuildProgress] = []
    corpus = write()
    manifest = build_index([corpus], tmp_path / "deep" / "ix", on_progress=seen.append)
    assert (manifest.passages, manifest.malformed, manifest.duplicates) == (3, 0, 0)
    assert manifest.corpus == ("corpus.jsonl",)
    assert str(tmp_path) not in (tmp_path / "deep" / "ix" / "manifest.json").read_text()
    assert IndexManifest.read(tmp_path / "deep" / "ix") == manifest
    assert files(tmp_path / "deep" / "ix") == {"manifest.json", "problems.jsonl", ".lock", manifest.lucene_folder}
    assert seen[-1] == BuildProgress(1.0, 3)
    assert found(tmp_path / "deep" / "ix", "capital of France") == ["p", "r"]


def test_the_corpus_hash_is_of_the_passages(tmp_path: Path, write: Write) -> None:
    import gzip

    plain = write()
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    one, same = (build_index([path], tmp_path / path.stem).corpus_hash for path in (plain, packed))
    other = build_index([write(RECORDS[:2])], tmp_path / "other").corpus_hash
    assert one == same != other


def test_what_is_left_out(tmp_path: Path, write: Write) -> None:
    untitled = {"text": "Without title or id."}
    problems: list[Problem] = []
    corpus = write([*RECORDS, {"title": 1, "text": "x"}, {"id": "p", "text": "Another p."}, untitled, untitled])
    manifest = build_index([corpus, corpus], tmp_path / "ix", on_problem=problems.append)
    assert (manifest.passages, manifest.malformed, manifest.duplicates) == (4, 2, 8)
    assert problems[:3] == [
        Problem("corpus.jsonl:4", "'title' must be a string, got int"),
        Problem("corpus.jsonl:5", "the same id 'p' as corpus.jsonl:2", "duplicate"),
        Problem("corpus.jsonl:7", "the same title and text as corpus.jsonl:6", "duplicate"),
    ]
    listed = [json.loads(line) for line in (tmp_path / "ix" / "problems.jsonl").read_text().splitlines()]
    ranked = sorted(problems, key=lambda problem: problem.kind)  # the damaged first
    assert listed == [{"where": each.where, "reason": each.reason, "kind": each.kind} for each in ranked]
    with BM25Index(tmp_path / "ix") as index:
        assert index.passage("p").title == "Paris"


@pytest.mark.parametrize("bad", [{"title": 1, "text": "x"}, RECORDS[0]])
def test_strict(tmp_path: Path, write: Write, bad: dict[str, Any]) -> None:
    with pytest.raises(CorpusError, match=r"corpus\.jsonl:4: "):
        build_index([write([*RECORDS, bad])], tmp_path / "ix", strict=True)
    assert not (tmp_path / "ix").exists()


def test_splitting(tmp_path: Path, write: Write) -> None:
    manifest = build_index([write()], tmp_path / "ix", max_words=4)
    assert (manifest.passages, manifest.documents, manifest.max_words, manifest.split) == (6, 3, 4, "everything")
    with BM25Index(tmp_path / "ix") as index:
        assert index.passage("r#2") == Passage("r#2", "Rome", "of Italy.", ("of Italy.",), Place("r"))
        assert [passage.id for passage in index.named("r")] == ["r#1", "r#2"]


@pytest.mark.parametrize("records", [[], [{"title": 1, "text": "x"}]])
def test_an_empty_corpus_leaves_nothing(tmp_path: Path, write: Write, records: list[dict[str, Any]]) -> None:
    with pytest.raises(CorpusError, match=r"No passage in corpus\.jsonl"):
        build_index([write(records)], tmp_path / "deep" / "ix")
    assert not (tmp_path / "deep").exists()
    build_index([write()], tmp_path / "ix")
    before = files(tmp_path / "ix")
    with pytest.raises(CorpusError):
        build_index([write(records)], tmp_path / "ix")
    assert files(tmp_path / "ix") == before
    assert found(tmp_path / "ix", "Rome") == ["r"]


def test_rebuilding_replaces_and_readers_go_on(tmp_path: Path, write: Write) -> None:
    build_index([write()], tmp_path / "ix")
    with BM25Index(tmp_path / "ix") as reader:
        before = reader.pinned()
        manifest = build_index([write(RECORDS[:1])], tmp_path / "ix")
        assert [hit.passage.id for hit in before.search("capital city", 5)] == ["t", "p", "r"]
        assert [hit.passage.id for hit in reader.search("capital city", 5)] == ["r"]
    assert found(tmp_path / "ix", "capital city") == ["r"]
    assert files(tmp_path / "ix") == {"manifest.json", "problems.jsonl", ".lock", manifest.lucene_folder}


def test_foreign_folders_are_refused(tmp_path: Path, write: Write) -> None:
    for name in ("thesis.tex", "manifest.json"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("{}")
        with pytest.raises(IndexFault, match="has other files"):
            build_index([write()], folder)
        assert files(folder) == {name}
    with pytest.raises(IndexFault, match="is a file"):
        build_index([write()], write())
    (tmp_path / "empty").mkdir()
    build_index([write()], tmp_path / "empty")
    (tmp_path / "empty" / "README").write_text("about this index")
    build_index([write()], tmp_path / "empty")


def test_arguments(tmp_path: Path, write: Write) -> None:
    with pytest.raises(ValueError, match="max_words"):
        build_index([write()], tmp_path / "ix", max_words=-1)


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
    while int(build.stdout.readline()) < 5000:
        pass
    return build


def stop(build: subprocess.Popen[str], how: signal.Signals) -> str:
    build.send_signal(how)
    return build.communicate(timeout=60)[1]


@pytest.mark.parametrize("fresh", [True, False])
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
    assert len(list(out.glob("lucene-*/"))) == (1 if fresh else 2)
    if fresh:
        with pytest.raises(IndexFault, match="is incomplete"):
            BM25Index(out)
    else:
        assert found(out, "capital") == ["p", "r"]
    manifest = build_index([write(RECORDS[:2])], out)
    assert files(out) == {"manifest.json", "problems.jsonl", ".lock", manifest.lucene_folder}


def test_an_interrupted_build_cleans_up(tmp_path: Path, write: Write) -> None:
    said = stop(start_build(write(large(), "large.jsonl"), tmp_path / "ix"), signal.SIGINT)
    assert "KeyboardInterrupt" in said
    assert not (tmp_path / "ix").exists()


def test_a_full_disk(tmp_path: Path, write: Write) -> None:
    code = """
import resource, sys
from polyhop.data.errors import IndexFault
from polyhop.data.lucene.index import build_index
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    build_index([sys.argv[1]], sys.argv[2])
except IndexFault as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(write(large(5000))), str(tmp_path / "ix")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "could not be written" in done.stdout, done.stderr
    assert not (tmp_path / "ix").exists()


def test_builds_leave_no_thread_in_java(tmp_path: Path, write: Write) -> None:
    beans = call(autoclass("java.lang.management.ManagementFactory"), "getThreadMXBean")
    corpus = write()
    build_index([corpus], tmp_path / "ix")
    before = call(beans, "getThreadCount")
    for _ in range(5):
        build_index([corpus], tmp_path / "ix")
    assert call(beans, "getThreadCount") <= before


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
    import shutil

    return Path(shutil.copytree(sound, tmp_path / "ix"))


def part(index: Path, suffix: str) -> Path:
    return next((index / IndexManifest.read(index).lucene_folder).glob(f"*{suffix}"))


def test_a_sound_index(sound: Path) -> None:
    report = check_index(sound)
    assert (report.problems, report.manifest.passages) == ((), 3000)


@pytest.mark.parametrize("suffix", [".doc", ".fdt", ".tim", ".nvd"])
def test_overwritten_bytes_are_found(damaged: Path, suffix: str) -> None:
    path = part(damaged, suffix)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(byte ^ 0xFF for byte in content[middle : middle + 64])
    path.write_bytes(content)
    assert check_index(damaged).problems


@pytest.mark.parametrize("suffix", [".fdt", ".tim", ".si"])
def test_truncated_files(damaged: Path, suffix: str) -> None:
    path = part(damaged, suffix)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(IndexFault, match="damaged .*polyhop index"):
        BM25Index(damaged)
    assert check_index(damaged).problems


@pytest.mark.parametrize("suffix", [".fdt", "segments_1"])
def test_deleted_files(damaged: Path, suffix: str) -> None:
    part(damaged, suffix).unlink()
    with pytest.raises(IndexFault, match="damaged"):
        BM25Index(damaged)
    assert check_index(damaged).problems


def test_damaged_folders(damaged: Path, tmp_path: Path) -> None:
    manifest = IndexManifest.read(damaged)
    manifest.model_copy(update={"passages": 5}).write(damaged)
    with pytest.raises(IndexFault, match="3000 of its 5 passages"):
        BM25Index(damaged)
    for schema, message in ((SCHEMA - 1, f"has format {SCHEMA - 1}"), (99, "has format 99"), ("x", "not the manifest")):
        (damaged / "manifest.json").write_text(json.dumps({**manifest.to_json(), "schema": schema}))
        with pytest.raises(IndexFault, match=message):
            BM25Index(damaged)
    (damaged / "manifest.json").write_text(json.dumps({"schema": SCHEMA}))
    with pytest.raises(IndexFault, match="passages: Field required"):
        BM25Index(damaged)
    (damaged / "manifest.json").write_text('{"pass')
    with pytest.raises(IndexFault, match="cannot be read"):
        BM25Index(damaged)
    with pytest.raises(IndexFault, match="There is no index at"):
        BM25Index(tmp_path / "nowhere")
    with pytest.raises(IndexFault, match="a folder without an index"):
        BM25Index(tmp_path)
    with pytest.raises(IndexFault, match="is a file"):
        check_index(damaged / "manifest.json")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path, write: Write) -> None:
    code = """
import sys
from polyhop.data.lucene.index import build_index
def resident():
    return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmRSS"))
samples = []
build_index([sys.argv[1]], sys.argv[2], on_progress=lambda progress: samples.append(resident()))
print(samples[len(samples) // 3], samples[-1])
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("measured by Linux's /proc")
    started = time.monotonic()
    command = [sys.executable, "-c", code, str(write(large(20_000))), str(tmp_path / "ix")]
    early, late = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert late < early + 60, (early, late, time.monotonic() - started)


def test_a_manifest_that_contradicts_the_index_is_found(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"title": "Rome", "text": "A city."}\n')
    build_index([corpus], tmp_path / "index")
    manifest = tmp_path / "index" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"passages": 1', '"passages": 99'))
    assert check_index(tmp_path / "index").problems == ("it has 1 passages, but its manifest says 99",)


def test_files_of_one_name_in_two_folders_are_two_passages(tmp_path: Path) -> None:
    for folder, text in (("a", "Kestrels hover."), ("b", "Owls are silent.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "README.md").write_text(text)
    manifest = build_index([tmp_path / "a", tmp_path / "b"], tmp_path / "index")
    assert (manifest.passages, manifest.duplicates) == (2, 0)


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_checking_and_opening_an_index_write_nothing(tmp_path: Path) -> None:
    corpus, index = tmp_path / "corpus.jsonl", tmp_path / "index"
    corpus.write_text('{"title": "Rome", "text": "A city."}\n')
    lucene = index / build_index([corpus], index).lucene_folder
    (lucene / "write.lock").unlink(missing_ok=True)
    before = files_in(tmp_path)
    assert not check_index(index).problems
    BM25Index(index).close()
    assert files_in(tmp_path) == before
    lucene.rename(tmp_path / "outside")
    for link in (False, True):
        if link:
            lucene.symlink_to(tmp_path / "outside")
        before = files_in(tmp_path)
        for use in (BM25Index, check_index):
            with pytest.raises(IndexFault, match="The folder lucene-.* is missing"):
                use(index)
        assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, '{"schema": true}', '{"schema": 2, "polyhop": "a\\nb"}', '{"schema": 1, "passages": 1e400}', "[1]"],
)
def test_a_manifest_of_nonsense_is_one_clear_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(IndexFault, match="manifest|has format 2, written by polyhop a b;") as raised:
        BM25Index(tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("folder", ["../outside", "/tmp", "lucene-/../../outside", "lucene-x/y", "", ".", 3, None])
def test_a_manifest_reaches_nothing_outside(folder: Any, tmp_path: Path, write: Write) -> None:
    (tmp_path / "outside").mkdir()
    index = tmp_path / "ix"
    manifest = build_index([write()], index).to_json()
    (index / "manifest.json").write_text(json.dumps({**manifest, "lucene_folder": folder}))
    before = files_in(tmp_path)
    for use in (BM25Index, check_index):
        with pytest.raises(IndexFault, match="lucene_folder"):
            use(index)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("created", ["yesterday", "2026-01-01T00:00:00"])
def test_a_manifest_tells_the_moment_of_its_build(created: str, tmp_path: Path, write: Write) -> None:
    build_index([write()], tmp_path / "ix")
    file = tmp_path / "ix" / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "created": created}))
    with pytest.raises(IndexFault, match="created: "):
        IndexManifest.read(tmp_path / "ix")


def test_a_manifest_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(IndexFault, match="not a regular file"):
        BM25Index(tmp_path)
