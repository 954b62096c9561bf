"""What every retriever does: pages are slices of the whole, and copies, pickles and threads find the same."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.dense import DenseIndex, embed_index
from polyhop.data.fusion import FusedRetriever
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.passages import Retriever
from polyhop.data.pool import PassagePool

from .chain.searching import QUESTIONS
from .chain.world import WORLD, indexed
from .dense.hashing import Hashing

ASKED = [*QUESTIONS, "", "What is it?", "moon", "moon \ud800 \x00 river"]
RETRIEVERS = ["pool", "index", "dense", "chain of pool", "chain of index", "chain with vectors", "fused"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BM25Index]:
    with indexed(WORLD, tmp_path_factory.mktemp("world")) as opened:
        embed_index(opened.path, Hashing())
        yield opened


def made(name: str, index: BM25Index) -> Retriever:
    """A retriever that has not searched yet."""
    pool = PassagePool(WORLD)
    if name in ("pool", "index"):
        return pool if name == "pool" else index
    if name.startswith("chain of"):
        return ChainRetriever(pool if name.endswith("pool") else index)
    dense = DenseIndex(index.path, Hashing())
    if name == "dense":
        return dense
    return ChainRetriever(index, vectors=dense) if name.startswith("chain") else FusedRetriever([index, dense, pool])


@pytest.mark.parametrize("name", RETRIEVERS)
def test_what_every_retriever_does(name: str, index: BM25Index) -> None:
    retriever = made(name, index)
    assert isinstance(retriever, Retriever)
    wholes = [retriever.search(question, 50) for question in ASKED]
    for question, hits in zip(ASKED, wholes, strict=True):
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert len({hit.passage.id for hit in hits}) == len(hits)
        for k, offset in ((1, 0), (7, 0), (5, 3), (25, 25), (3, 10**9)):
            assert retriever.search(question, k, offset) == hits[offset : offset + k]
    for k, offset in ((0, 0), (-1, 0), (1, -1)):
        with pytest.raises(ValueError, match=f"k must be positive and offset not negative, got k={k}, offset={offset}"):
            retriever.search("moon", k, offset)
    for same in (copy.copy(retriever), copy.deepcopy(retriever), pickle.loads(pickle.dumps(retriever))):
        assert [same.search(question, 50) for question in ASKED[::4]] == wholes[::4]
    shared, interval = made(name, index), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(lambda question: shared.search(question, 50), ASKED)) == wholes
    finally:
        sys.setswitchinterval(interval)
