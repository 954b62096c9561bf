"""The world of the chain tests, in an index and in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.pool import PassagePool

from .world import WORLD, indexed


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BM25Index]:
    with indexed(WORLD, tmp_path_factory.mktemp("world")) as index:
        yield index


@pytest.fixture(scope="module", params=["index", "pool"])
def source(request: pytest.FixtureRequest, world: BM25Index) -> BM25Index | PassagePool:
    return world if request.param == "index" else PassagePool(WORLD)


@pytest.fixture(scope="module")
def retriever(source: BM25Index | PassagePool) -> ChainRetriever:
    return ChainRetriever(source)
