"""Embedding can be killed, and vectors belong to one build and one encoder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyhop.data.dense import DEFAULT_MODEL, DenseIndex, embed_index, encode
from polyhop.data.errors import IndexFault
from polyhop.data.lucene.update import update_index
from polyhop.data.passages import Passage

from ..lucene.anserini import manifest_of
from .hashing import Hashing, build, file, records


def test_files_and_progress(tmp_path: Path) -> None:
    path = build(tmp_path, [*records(100), {"id": "untitled", "text": "moon"}])
    encoder, told = Hashing(), list[tuple[int, int]]()
    vectors = embed_index(path, encoder, batch=40, on_progress=lambda done, rows: told.append((done, rows)))
    assert (vectors.rows, vectors.size) == (101, 101 * 16 * 2)
    assert told == [(0, 101), (40, 101), (80, 101), (101, 101)]
    assert max(encoder.calls) == 40
    home = manifest_of(path).home(path)
    assert [name.name for name in home.glob("vectors-*")] == ["vectors-tests%2Fhashing.npy"]
    assert np.load(file(path)).shape == (101, 16)
    with DenseIndex(path, encoder) as index:
        assert index.search("moon", 1)[0].passage == Passage("untitled", "", "moon")
        expected = [f"{p.title}. {p.text}" if p.title else p.text for p in index._lucene.stored(range(101))]
        assert index.rows(range(101)) == pytest.approx(encode(encoder, expected), abs=1e-3)
    before, encoder = file(path).read_bytes(), Hashing()
    assert embed_index(path, encoder) == vectors
    assert (encoder.calls, file(path).read_bytes()) == ([1], before)


@pytest.mark.parametrize("updates", [1, 2])
def test_after_an_update_only_what_is_new_is_encoded(tmp_path: Path, updates: int) -> None:
    path, corpus = build(tmp_path, records(60)), tmp_path / "new.jsonl"
    embed_index(path, Hashing())
    vectors = {record["id"]: row for record, row in zip(records(60), np.load(file(path)), strict=True)}
    for n in range(updates):
        update_index(path, delete=[f"p{n:05}"], compact=True)
        corpus.write_text(json.dumps({"id": f"new{n}", "title": "Title 1", "text": f"moon {n}"}) + "\n")
        update_index(path, add=[corpus])
    with pytest.raises(IndexFault, match="has no vectors"):
        DenseIndex(path, Hashing())
    encoder = Hashing()
    assert embed_index(path, encoder, batch=16).rows == 60
    assert sum(encoder.calls) == 2 + updates  # the first passage and a known one tell whether the model is the same
    with DenseIndex(path, encoder) as index:
        for row, passage in enumerate(index._lucene.stored(range(60))):
            if passage.id in vectors:
                assert index.rows([row])[0] == pytest.approx(vectors[passage.id], abs=1e-6)
        assert index.search("title 1. moon 0", 1)[0].passage.id == "new0"
    left = sorted(path.name for path in file(path).parent.glob("*.npy"))
    assert left == ["keys-tests%2Fhashing.npy", "vectors-tests%2Fhashing.npy"]


def assert_encoded(path: Path, encoder: Hashing) -> None:
    """Each passage has the vector of its own text."""
    with DenseIndex(path, encoder) as index:
        texts = [f"{passage.title}. {passage.text}" for passage in index._lucene.stored(range(len(index)))]
        assert index.rows(range(len(index))) == pytest.approx(encode(encoder, texts), abs=1e-3)


class Shifted(Hashing):
    """Another model of the same name and dimension."""

    def _word(self, word: str) -> Any:
        return super()._word(f"{word}!")


@pytest.mark.parametrize(("encoder", "calls"), [(Shifted(), 2 + 19), (Hashing(dimension=8), 1 + 19)])
def test_another_model_of_the_same_name_encodes_all_again(tmp_path: Path, encoder: Hashing, calls: int) -> None:
    path = build(tmp_path, records(20))
    embed_index(path, Hashing())
    update_index(path, delete=["p00003"])
    assert embed_index(path, encoder, batch=8).dimension == encoder.dimension
    assert sum(encoder.calls) == calls
    assert_encoded(path, encoder)


def test_keys_without_their_vectors_are_not_used(tmp_path: Path) -> None:
    """As a process leaves them that is killed after the keys, and before the vectors."""
    path = build(tmp_path, records(20))
    embed_index(path, Hashing())
    update_index(path, delete=["p00003"])
    [earlier] = path.glob("polyhop/*/earlier-keys-*.npy")
    keys = earlier.with_name(earlier.name.removeprefix("earlier-"))
    np.save(keys, np.arange(19, dtype=np.uint64))
    update_index(path, delete=["p00004"])
    encoder = Hashing()
    embed_index(path, encoder)
    assert sum(encoder.calls) == 2  # the pair of the state before the last one
    assert_encoded(path, encoder)


def test_an_interrupted_run_is_resumed(own: Path, built: Path) -> None:
    whole = file(built).read_bytes()
    part = file(own).with_name(f"{file(own).name}.part")
    file(own).unlink()

    def stop(done: int, rows: int) -> None:
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_index(own, Hashing(), batch=8, on_progress=stop)
    vectors = np.load(part, "r+")
    kept = int(np.argmin(vectors.any(axis=1)))
    assert 100 <= kept < 1000
    vectors[kept : kept + 3] = 1  # half a batch
    vectors.flush()
    kept = (kept + 3) // 8 * 8
    with pytest.raises(IndexFault, match="has no vectors of .*Add them, or resume: polyhop index --dense"):
        DenseIndex(own, Hashing())
    told: list[int] = []
    encoder = Hashing()
    embed_index(own, encoder, batch=8, on_progress=lambda done, rows: told.append(done))
    assert told[0] == kept
    assert sum(encoder.calls) == 1000 - kept + 1  # and a first one, which tells the dimension
    assert file(own).read_bytes() == whole


@pytest.mark.parametrize("other", [Hashing(dimension=8), Shifted()])
def test_the_remains_of_another_model_are_not_kept(own: Path, other: Hashing) -> None:
    file(own).rename(file(own).with_name(f"{file(own).name}.part"))
    vectors = embed_index(own, other)
    assert np.load(file(own)).shape == (vectors.rows, vectors.dimension) == (1000, other.dimension)
    assert DenseIndex(own, other).search("moon", 5)


def test_what_is_missing_or_damaged(own: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexFault, match=r"no vectors of tests/other .*tests/hashing.*--encoder tests/other"):
        DenseIndex(own, Hashing("tests/other"))
    with pytest.raises(IndexFault, match="the model has changed"):
        DenseIndex(own, Hashing(dimension=8)).search("moon", 1)
    rows = file(own)
    whole = rows.read_bytes()
    arrays = np.ones((999, 16), "<f2"), np.ones((1000, 16), "<f4"), np.ones(1000, "<f2"), np.array([{}])
    for damage in (b"", b"x" * 200, whole[:-1], *arrays):
        if isinstance(damage, bytes):
            rows.write_bytes(damage)
        else:
            np.save(rows, damage)
        with pytest.raises(IndexFault, match=r"vectors of the index .* are (damaged|not those)"):
            DenseIndex(own, Hashing())
    embed_index(own, Hashing())
    assert rows.read_bytes() == whole
    rows.unlink()
    with pytest.raises(IndexFault, match=r"has no vectors of .*Add them, or resume: polyhop index --dense .*ix$"):
        DenseIndex(own, Hashing(DEFAULT_MODEL))
    for missing in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(IndexFault, match="Build one"):
            embed_index(missing, Hashing())
        assert not (missing / "polyhop").exists()


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
