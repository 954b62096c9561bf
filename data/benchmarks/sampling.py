"""Samples that depend on the questions' ids alone.

A question's id and the seed give a number in [0, 1), on every machine and in any order. The smallest numbers are the
sample, so a sample of 50 is part of the sample of 100. Both questions of a MuSiQue-Full pair have the same number.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, TypeVar

T = TypeVar("T")


def sample(examples: Iterable[T], size: int, seed: int) -> list[T]:
    """``size`` examples (or all, if fewer) without replacement, in the given order; holds only those in memory."""
    kept: list[tuple[float, int, T]] = []  # the largest number on top
    for position, example in enumerate(examples):
        item = (-_number(example, seed), -position, example)
        if len(kept) < size:
            heapq.heappush(kept, item)
        else:
            heapq.heappushpop(kept, item)
    return [example for _, _, example in sorted(kept, key=lambda item: -item[1])]


def _number(example: Any, seed: int) -> float:
    id = example if isinstance(example, str) else getattr(example, "official_id", None) or example.id
    return int.from_bytes(blake2b(f"sample {seed}\n{id}".encode(), digest_size=8).digest()) / 2**64
