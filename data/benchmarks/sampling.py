"""Samples and splits that depend on the questions' ids alone.

A question's id and the seed give a number in [0, 1), on every machine and in any order. The smallest numbers are the
sample, so a sample of 50 is part of the sample of 100; the numbers below a threshold are the dev split. Both questions
of a MuSiQue-Full pair have the same number.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, TypeVar

T = TypeVar("T")


def split_by_id(examples: Iterable[T], dev_share: float = 0.2, seed: int = 0) -> tuple[list[T], list[T]]:
    """Split examples (or their ids) into train and dev, each in the given order.

    Args:
        examples: With an ``id`` and optionally an ``official_id``; or strings.
        dev_share: The expected share of the dev split, in [0, 1].
        seed: Another seed gives another split.

    Returns:
        The train and the dev split.
    """
    train: list[T] = []
    dev: list[T] = []
    for example in examples:
        (dev if in_dev(example, dev_share, seed) else train).append(example)
    return train, dev


def in_dev(example: object, dev_share: float = 0.2, seed: int = 0) -> bool:
    """Whether `split_by_id` puts this example into the dev split; for streams."""
    if not 0 <= dev_share <= 1:
        raise ValueError(f"dev_share must be between 0 and 1, got {dev_share}")
    return _number(example, f"split {seed}") < dev_share


def sample(examples: Iterable[T], size: int, seed: int) -> list[T]:
    """``size`` examples (or all, if fewer) without replacement, in the given order; holds only those in memory."""
    kept: list[tuple[float, int, T]] = []  # the largest number on top
    for position, example in enumerate(examples):
        item = (-_number(example, f"sample {seed}"), -position, example)
        if len(kept) < size:
            heapq.heappush(kept, item)
        else:
            heapq.heappushpop(kept, item)
    return [example for _, _, example in sorted(kept, key=lambda item: -item[1])]


def _number(example: Any, purpose: str) -> float:
    id = example if isinstance(example, str) else getattr(example, "official_id", None) or example.id
    return int.from_bytes(blake2b(f"{purpose}\n{id}".encode(), digest_size=8).digest()) / 2**64
