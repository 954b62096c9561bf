"""Shards rank as one index does, are lost and come back, and end with the process that builds them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from shutil import copytree, move

import pytest
from typer.testing import CliRunner

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import IndexFault
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import BuildProgress, build_index, check_index, leave_out_damaged
from polyhop.data.lucene.layout import IndexManifest
from polyhop.data.lucene.shards import shard_of
from polyhop.data.lucene.update import update_index
from polyhop.data.passages import Hit, Retriever
from polyhop.eval.settings import RunManifest
from polyhop.programs import Naive
from polyhop.scripts.main import app

SHARDS = 3
PLACES = ("Tarn", "Vale", "Mere Abbey", "Holm")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People and towns that mention one another; some with the same words."""
    chance, path = random.Random(1), tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    words = [f"word{n}" for n in range(200)]
    records = [
        {"title": f"Ada {n} Berg", "text": f"She was born in {chance.choice(PLACES)}. {' '.join(life)}"}
        for n in range(300)
        for life in (chance.choices(words, k=3 * (n % 17 + 1) if n % 20 else 0),)
    ]
    records += [
        {"title": name, "text": f"{name} is a town where Ada {n} Berg lived{end}"}
        for end in ("", ".")
        for n, name in enumerate(PLACES)
    ]
    path.write_text("".join(json.dumps({"id": str(n), **record}) + "\n" for n, record in enumerate(records)))
    return path


@pytest.fixture(scope="module")
def whole(corpus: Path) -> Path:
    build_index([corpus], corpus.parent / "whole")
    return corpus.parent / "whole"


@pytest.fixture(scope="module")
def built(corpus: Path) -> Path:
    build_index([corpus], corpus.parent / "built", shards=SHARDS)
    return corpus.parent / "built"


@pytest.fixture
def sharded(built: Path, tmp_path: Path) -> Path:
    return Path(copytree(built, tmp_path / "ix"))


def ranked(retriever: Retriever, query: str) -> list[tuple[str, float]]:
    hits: list[Hit] = retriever.search(query, 100 if isinstance(retriever, BM25Index) else 20)
    return [(hit.passage.id, hit.score) for hit in hits]


def same_rankings(one: Path, other: Path) -> bool:
    queries = [
        "Where was Ada 17 Berg born?",
        "Who was born in the town where Ada 2 Berg lived?",
        "born",
        "Mere Abbey town",
    ]
    with BM25Index(one) as first, BM25Index(other) as second:
        pairs = ((first, second), (ChainRetriever(first), ChainRetriever(second)))
        return all(ranked(a, query) == ranked(b, query) != [] for query in queries for a, b in pairs)


def test_ids_scores_and_ties_are_those_of_one_index(whole: Path, sharded: Path, tmp_path: Path) -> None:
    assert [len(list(sharded.glob(f"shard-{n}/lucene-*/chain/words"))) for n in range(SHARDS)] == [1] * SHARDS
    assert same_rankings(whole, sharded)
    new = tmp_path / "new.jsonl"
    new.write_text('{"id": "x", "title": "Ada 17 Berg", "text": "She was born in Holm, and so was Mere Abbey."}\n')
    one = tmp_path / "one"
    build_index([whole.parent / "corpus.jsonl"], one)
    for index in (one, sharded):
        changes = update_index(index, add=[new], delete=["3"])
        assert (changes.added, changes.deleted, len(BM25Index(index))) == (1, 1, 308)
    assert same_rankings(one, sharded)
    assert check_index(sharded).problems == ()


def test_more_shards_than_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The heron lives in Tarn.")
    build_index([tmp_path / "a.txt"], tmp_path / "ix", shards=SHARDS)
    assert check_index(tmp_path / "ix").problems == ()
    (tmp_path / "b.txt").write_text("The stork lives in Vale.")
    update_index(tmp_path / "ix", add=[tmp_path / "b.txt"], delete=["a.txt"])
    with BM25Index(tmp_path / "ix") as index:
        assert [hit.passage.id for hit in ChainRetriever(index).search("heron stork", 5)] == ["b.txt"]


def test_a_rebuild_may_have_other_shards(sharded: Path, whole: Path, corpus: Path) -> None:
    with BM25Index(sharded) as opened:
        for count in (2, 1):
            build_index([corpus], sharded, shards=count)
            assert len(list(sharded.rglob("lucene-*"))) == count
            assert len(opened.search("born", 5)) == 5
            assert same_rankings(whole, sharded)
    assert not list(sharded.glob("shard-*"))


# --- lost shards -----------------------------------------------------------------------------------------------------


def test_a_lost_shard_is_an_error_or_a_marked_partial_result(sharded: Path, whole: Path, tmp_path: Path) -> None:
    move(sharded / "shard-1", tmp_path / "elsewhere")
    with pytest.raises(IndexFault, match=r"shard-1/lucene-\w+ of .* is missing.*polyhop index --partial"):
        BM25Index(sharded)
    assert "shard-1" in check_index(sharded).problems[0]
    manifest = leave_out_damaged(sharded)
    left = [str(n) for n in range(308) if shard_of(str(n), SHARDS) != 1]
    with BM25Index(sharded) as index:
        assert index.manifest.left_out == "without shard-1 of 3"
        assert sorted(hit.passage.id for hit in index.search("born Ada Berg town", 999)) == sorted(left)
        assert {hit.passage.id for hit in ChainRetriever(index).search("Where was Ada 17 Berg born?", 9)} <= set(left)
        run = RunManifest.of(Naive(index), [], index=index.manifest)
    assert manifest.passages == len(left)
    assert (run.index or {})["lost"] == [1]
    with pytest.raises(IndexFault, match="without shard-1 of 3"):
        update_index(sharded, delete=["0"])
    shown = CliRunner().invoke(app, ["ask", "Where was Ada 17 Berg born?", "--index", str(sharded), "--json"])
    assert "results are partial" in shown.stderr
    assert json.loads(shown.stdout)["index"].endswith("ix without shard-1 of 3")
    move(tmp_path / "elsewhere", sharded / "shard-1")
    assert "sound again" in check_index(sharded).problems[0]
    again = CliRunner().invoke(app, ["index", "--partial", str(sharded)])
    assert "is searched as a whole: 308 passages" in again.stdout
    assert same_rankings(whole, sharded)


@pytest.mark.parametrize("name", ["*.tim", "chain/words"])
def test_a_damaged_shard_is_left_out(sharded: Path, name: str) -> None:
    [file] = sharded.glob(f"shard-2/lucene-*/{name}")
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(IndexFault, match="is damaged .*shard-2.*polyhop index --partial"):
        BM25Index(sharded)
    assert "shard 2" in check_index(sharded).problems[0]
    assert leave_out_damaged(sharded).lost == (2,)
    assert BM25Index(sharded).search("born", 3)


def test_nothing_is_left_of_an_index_without_a_sound_shard(sharded: Path, whole: Path) -> None:
    for folder in sharded.glob("shard-*"):
        move(folder, sharded.parent / folder.name)
    with pytest.raises(IndexFault, match="no sound shard"):
        leave_out_damaged(sharded)
    assert IndexManifest.read(sharded).lost is None
    with pytest.raises(IndexFault, match="has no shards"):
        leave_out_damaged(whole)


# --- processes -------------------------------------------------------------------------------------------------------


def many(tmp_path: Path) -> Path:
    path = tmp_path / "many.jsonl"
    path.write_text("".join(f'{{"title": "T{n}", "text": "word{n} common"}}\n' for n in range(50_000)))
    return path


def test_a_killed_process_fails_the_build(tmp_path: Path) -> None:
    def kill(progress: BuildProgress) -> None:
        for process in active_children():
            process.kill()

    with pytest.raises(IndexFault, match="process that writes the index has ended"):
        build_index([many(tmp_path)], tmp_path / "ix", shards=2, on_progress=kill)
    assert not (tmp_path / "ix").exists()


BUILD = """
import sys
from polyhop.data.lucene.index import build_index
if __name__ == "__main__":
    build_index([sys.argv[1]], sys.argv[2], shards=2, on_progress=lambda progress: print(progress.passages, flush=True))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads Linux's /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_build(tmp_path: Path, how: signal.Signals) -> None:
    script = tmp_path / "build.py"
    script.write_text(BUILD)
    command = [sys.executable, str(script), str(many(tmp_path)), str(tmp_path / "ix")]
    build = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert build.stdout is not None
    assert int(build.stdout.readline()) > 0
    workers = Path(f"/proc/{build.pid}/task/{build.pid}/children").read_text().split()
    assert len(workers) >= 2
    build.send_signal(how)
    build.communicate()
    until = time.monotonic() + 120
    while any(map(_runs, workers)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(_runs, workers))
    assert (tmp_path / "ix").exists() == (how is signal.SIGKILL)
    build_index([many(tmp_path)], tmp_path / "ix", shards=2)
    assert len(list((tmp_path / "ix").rglob("lucene-*"))) == 2


def _runs(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
