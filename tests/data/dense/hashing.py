"""A small encoder, and indexes with its vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from polyhop.data.dense import DenseIndex
from polyhop.data.lucene.index import build_index
from polyhop.data.passages import Hit


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


def file(index: Path) -> Path:
    [found] = index.glob("polyhop/*/vectors-*.npy")
    return found


def found(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


def ranked(index: DenseIndex, query: str) -> list[tuple[str, float]]:
    """Every passage by brute force, without the index's own search."""
    vectors = np.load(file(index.path)).astype(np.float32)
    asked = Hashing()([query])[0].astype(np.float32)
    scores = [float(np.dot(row, asked / np.linalg.norm(asked))) for row in vectors]
    order = sorted(range(len(scores)), key=lambda n: (-scores[n], n))
    passages = index._lucene.stored(order)
    return [(passage.id, scores[n]) for passage, n in zip(passages, order, strict=True)]
