"""Whether two searches ask the same questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

import dspy


def fingerprint(questions: Iterable[dspy.Example]) -> str:
    """A hash of all fields of some examples, in their order; the same in every process."""
    digest = blake2b(digest_size=16)
    for example in questions:
        digest.update(json.dumps(_plain(dict(example.items())), sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """What JSON can say of a value; of what it knows nothing about, the kind."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(item), sort_keys=True) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump())
    return type(value).__qualname__
