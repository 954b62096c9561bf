"""The generated corpus: the same on every machine, as ambiguous as it says, its questions answerable."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice

import pytest

from polyhop.bench.generated import GeneratedCorpus

SIZE = 3_000
_DIGEST = "b99553e1aeb7"


@pytest.fixture(scope="module")
def corpus() -> GeneratedCorpus:
    return GeneratedCorpus(SIZE)


def test_the_same_everywhere(corpus: GeneratedCorpus) -> None:
    def digest(made: GeneratedCorpus) -> str:
        return sha256(repr([*islice(made, 100), *made.questions(20)]).encode()).hexdigest()[:12]

    assert digest(corpus) == _DIGEST
    assert digest(GeneratedCorpus(300)) != digest(GeneratedCorpus(300, seed=1))
