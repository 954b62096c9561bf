"""Embedding can be killed, and vectors belong to one build and one encoder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyhop.data.dense import DenseIndex, Encoder, MiniLM, embed_index, encode
from polyhop.data.errors import IndexFault, PolyhopError
from polyhop.data.lucene.index import build_index
from polyhop.data.lucene.layout import IndexManifest
from polyhop.data.passages import Passage

from .hashing import Hashing, build, file, records


def test_files_and_progress(tmp_path: Path) -> None:
    path = build(tmp_path, [*records(100), {"id": "untitled", "text": "moon"}])
    encoder, told = Hashing(), list[tuple[int, int]]()
    vectors = embed_index(path, encoder, batch=40, on_progress=lambda done, rows: told.append((done, rows)))
    assert (vectors.rows, vectors.size) == (101, 101 * 16 * 2)
    assert told == [(0, 101), (40, 101), (80, 101), (101, 101)]
    assert max(encoder.calls) == 40
    build_name = IndexManifest.read(path).lucene_folder.removeprefix("lucene-")
    names = {name.name for name in path.glob("vectors-*")}
    assert names == {f"vectors-{build_name}-tests-hashing.f16", f"vectors-{build_name}-tests-hashing.json"}
    assert file(path).stat().st_size == vectors.size
    with DenseIndex(path, encoder) as index:
        assert index.search("moon", 1)[0].passage == Passage("untitled", "", "moon")
        expected = [f"{p.title}. {p.text}" if p.title else p.text for p in index._lucene.stored(range(101))]
        assert index.rows(range(101)) == pytest.approx(encode(encoder, expected), abs=1e-3)
    before, encoder = file(path).read_bytes(), Hashing()
    assert embed_index(path, encoder) == vectors
    assert (encoder.calls, file(path).read_bytes()) == ([], before)


def test_rebuilding_drops_the_vectors(own: Path, tmp_path: Path) -> None:
    old = file(own).name
    with DenseIndex(own, Hashing()) as reader:
        build(tmp_path, records(5))
        assert not list(own.glob("vectors-*"))
        assert len(reader.search("moon river", 1000)) == 1000  # who has it open keeps it
    with pytest.raises(IndexFault, match="has no vectors"):
        DenseIndex(own, Hashing())
    embed_index(own, Hashing())
    assert file(own).name != old
    assert len(DenseIndex(own, Hashing())) == 5


def test_a_build_that_fails_keeps_them(own: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(PolyhopError):
        build_index([tmp_path / "empty.jsonl"], own)
    assert len(DenseIndex(own, Hashing())) == 1000


def test_only_our_files_are_removed(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"text": "moon"}\n')
    for name in ("vectors-of-mine.f16", "vectors-0123456789ab.json", "vectors-0123456789ab-x.npz"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(IndexFault, match="has other files"):
            build_index([corpus], folder)
        assert (folder / name).read_text() == "mine"


KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from polyhop.data.dense import embed_index
from hashing import Hashing
class Slow(Hashing):
    def __call__(self, texts):
        time.sleep(0.02)
        return super().__call__(texts)
embed_index(sys.argv[2], Slow(), batch=8, on_progress=lambda done, rows: print(done, flush=True))
"""


def test_a_killed_run_is_resumed(own: Path, built: Path) -> None:
    whole = file(built).read_bytes()
    for path in own.glob("vectors-*"):
        path.unlink()
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(own)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    while int(running.stdout.readline() or 10**9) < 100:
        pass
    with pytest.raises(IndexFault, match="Another build"):
        embed_index(own, Hashing())
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    with file(own).open("ab") as half:
        half.write(b"half a row")
    kept = file(own).stat().st_size // 32
    assert 100 <= kept < 1000
    with pytest.raises(IndexFault, match=r"not finished.*embed_index"):
        DenseIndex(own, Hashing())
    told: list[int] = []
    encoder = Hashing()
    embed_index(own, encoder, batch=8, on_progress=lambda done, rows: told.append(done))
    assert told[0] == kept // 8 * 8
    assert sum(encoder.calls) == 1000 - told[0] + 1  # and a first one, which tells the dimension
    assert file(own).read_bytes() == whole


@pytest.mark.parametrize("other", [Hashing(dimension=8), Hashing("tests/hashing", 17)])
def test_the_remains_of_another_model_are_not_kept(own: Path, other: Encoder) -> None:
    next(own.glob("vectors-*.json")).unlink()
    vectors = embed_index(own, other)
    assert file(own).stat().st_size == vectors.size == 1000 * 2 * vectors.dimension
    assert DenseIndex(own, other).search("moon", 5)


def test_a_full_disk(own: Path) -> None:
    code = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from polyhop.data.dense import embed_index
from polyhop.data.errors import IndexFault
from hashing import Hashing
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    embed_index(sys.argv[2], Hashing("tests/other"))
except IndexFault as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(own)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "could not be written" in done.stdout, done.stderr
    assert embed_index(own, Hashing("tests/other")).rows == 1000


def test_a_folder_that_cannot_be_locked(own: Path) -> None:
    (own / ".lock").unlink()
    (own / ".lock").mkdir()
    with pytest.raises(IndexFault, match="could not be written"):
        embed_index(own, Hashing("tests/other"))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("measured by Linux's /proc")
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from polyhop.data.dense import DenseIndex, embed_index
def resident(kind):
    return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith(kind))
class Flat:
    name, dimension = "tests/flat", 4096
    def __call__(self, texts):
        return np.ones((len(texts), self.dimension), np.float32)
samples = []
embed_index(sys.argv[2], Flat(), on_progress=lambda done, rows: samples.append(resident("RssAnon")))
index = DenseIndex(sys.argv[2], Flat())
index.search("moon", 10)
print(samples[len(samples) // 3], samples[-1], resident("RssAnon"), file=sys.stdout)
"""
    path = build(tmp_path, records(30_000))  # 250 MB of vectors, 500 MB as float32
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    early, late, searched = map(int, done.stdout.split())
    assert late < early + 60
    assert searched < late + 150


def test_what_is_missing_or_damaged(own: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexFault, match=r"another encoder \(tests-hashing\), not of tests/other.*embed_index"):
        DenseIndex(own, Hashing("tests/other"))
    rows = file(own)
    os.truncate(rows, rows.stat().st_size - 1)
    with pytest.raises(IndexFault, match=r"31,999 of 32,000 bytes"):
        DenseIndex(own, Hashing())
    embed_index(own, Hashing())
    assert DenseIndex(own, Hashing()).search("moon", 1)
    with pytest.raises(IndexFault, match="the model has changed"):
        DenseIndex(own, Hashing(dimension=8)).search("moon", 1)
    about = rows.with_suffix(".json")
    for content, message in (
        ("{", "cannot be read"),
        ("{}", "cannot be read"),
        ("[1]", "cannot be read"),
        ('{"encoder": "tests-hashing", "dimension": 16, "rows": 1000}', "are needed"),
        ('{"encoder": "tests/hashing", "dimension": 16, "rows": 999}', "are needed"),
    ):
        about.write_text(content)
        with pytest.raises(IndexFault, match=message):
            DenseIndex(own, Hashing())
    rows.unlink()
    with pytest.raises(IndexFault, match="has no vectors|another encoder"):
        DenseIndex(own, Hashing())
    embed_index(own, Hashing())
    assert DenseIndex(own, Hashing()).search("moon", 1)
    for path in own.glob("vectors-*"):
        path.unlink()
    with pytest.raises(IndexFault, match=r"has no vectors"):
        DenseIndex(own, Hashing())
    with pytest.raises(IndexFault, match=r"has no vectors. Add them: polyhop index --dense .*ix$"):
        DenseIndex(own, Hashing(MiniLM.name))
    for missing in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(IndexFault, match="Build one"):
            embed_index(missing, Hashing())
        assert not (missing / ".lock").exists()


def test_encoders_that_misbehave(own: Path) -> None:
    class Bad(Hashing):
        def __init__(self, made: Any) -> None:
            super().__init__("tests/bad")
            self.made = made

        def __call__(self, texts: Sequence[str], /) -> Any:
            return self.made

    several: list[Any] = [[1.0, 2.0], [[1.0]] * 3, [[float("nan")]], [[]], np.zeros((0, 4))]
    for made in several:
        with pytest.raises(ValueError, match="the encoder tests/bad must return 1 rows"):
            embed_index(own, Bad(made))
    with pytest.raises(ValueError, match="batch must be positive"):
        embed_index(own, Hashing(), batch=0)
