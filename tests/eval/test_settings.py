"""The manifest names what a program searches with, so that two runs with different retrievers are two runs."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.chain import ChainRetriever, ChainWeights
from polyhop.data.fusion import FusedRetriever
from polyhop.data.passages import Hit, Passage
from polyhop.data.pool import PassagePool
from polyhop.eval.settings import ProgramSettings
from polyhop.programs import Naive

POOL = PassagePool([Passage.of("Paris", "Paris is a city.")])


class Model:
    name = "tests/model"


class Vectors:
    """A retriever with an encoder."""

    encoder = Model()
    manifest = None
    vectors = "not the vectors of a chain"

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        return []


def manifest(program: Any) -> dict[str, Any]:
    program_: dict[str, Any] = ProgramSettings.of(program, "x").to_json()
    return program_


VECTORS: Any = Vectors()


@pytest.mark.parametrize(
    ("retriever", "told"),
    [
        (None, None),
        (POOL, "PassagePool"),
        (ChainRetriever(POOL), "ChainRetriever"),
        (ChainRetriever(), "ChainRetriever"),
        (FusedRetriever([POOL, POOL]), "FusedRetriever+PassagePool+PassagePool"),
        (VECTORS, "Vectors tests/model"),
        (FusedRetriever([POOL, VECTORS]), "FusedRetriever+PassagePool+Vectors tests/model"),
        (ChainRetriever(POOL, vectors=VECTORS), "ChainRetriever tests/model"),
    ],
)
def test_the_retriever_is_named(retriever: Any, told: str | None) -> None:
    assert manifest(Naive(retriever))["retriever"] == told


def test_the_weights_of_a_chain_are_among_the_tunables() -> None:
    one, other = (Naive(ChainRetriever(POOL, ChainWeights(link=link))) for link in (0.25, 0.5))
    assert manifest(one)["tunables"]["search.chain['link']"] == 0.25
    assert manifest(other)["tunables"]["search.chain['link']"] == 0.5
    assert manifest(one)["state_hash"] != manifest(other)["state_hash"]
    adaptive = Naive(ChainRetriever(POOL, ChainWeights(link=0.25), adaptive=True))
    assert manifest(adaptive)["tunables"]["search.chain['adaptive']"] is True
    assert manifest(adaptive)["state_hash"] != manifest(one)["state_hash"]
