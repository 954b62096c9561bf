"""The generated corpus is the same on every machine."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice

from polyhop.bench.generated import GeneratedCorpus


def test_the_same_everywhere() -> None:
    corpus = GeneratedCorpus(3_000)
    text = repr([*islice(corpus, 100), *corpus.questions(20)])
    assert sha256(text.encode()).hexdigest()[:12] == "b99553e1aeb7"
