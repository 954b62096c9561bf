"""Valid content, changed: other values in JSON, other bytes in a file."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

CASES = settings(
    max_examples=int(os.environ.get("POLYHOP_FUZZ_CASES", "10000")), deadline=None, database=None, derandomize=False
)
LONGEST = 5.0  # seconds of a case: a hang, however busy the machine is

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 1.5, -0.0, 1e308, 10**19, 10**400, float("nan"), float("inf"), 2**63, 2**31),
    *("", " ", "x", "x" * 3_000, "\ud800", "\x00", "\x1b[2J", "../x", "/etc/passwd", "=1+1", "NaN", "1e999", "\u202e"),
    *("[[ ## answer ## ]]", "</think>", "{{x}}", "é", "[" * 2_000, "1\n2", "2s3", "\U0001f600"),
    *([], {}, [[]], [{}], [None], {"a": 1}, {"": None}, [1, 2, 3], ["a"], [["a", 0]], {"id": "x", "text": "y"}),
]


def mutated(valid: Any, chance: random.Random) -> Any:
    """A JSON value with one to four of its parts replaced, removed, doubled or renamed."""
    whole = [copy.deepcopy(valid)]
    for _ in range(chance.randint(1, 4)):
        parent, key = chance.choice(list(_places(whole)))
        way = chance.choice(("replace", "replace", "remove", "double", "rename"))
        if way == "replace" or parent is whole:
            parent[key] = copy.deepcopy(chance.choice(ODD))
        elif way == "remove":
            del parent[key]
        elif way == "double" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif isinstance(parent, dict):
            parent[str(chance.choice(("", "id", "schema", "\ud800", "x" * 500)))] = parent.pop(key)
    return whole[0]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def scrambled(data: bytes, chance: random.Random) -> bytes:
    """Bytes with one to four places changed, removed, repeated, or with others put in."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(data))
        end = min(len(data), at + chance.choice((1, 2, 8, 64, 1_000)))
        way = chance.choice(("change", "remove", "repeat", "insert", "cut"))
        new = bytes(chance.choice(b'\x00\xff"{}[]:,\\\n0-e\xed') for _ in range(end - at))
        piece = {"change": new, "remove": b"", "repeat": 2 * data[at:end], "insert": new + data[at:end]}.get(way)
        data = data[:at] if piece is None else data[:at] + piece + data[end:]
    return data


def changed(valid: Any) -> st.SearchStrategy[bytes]:
    """The JSON of a value, or given bytes, changed in the value or in the bytes."""

    def make(chance: random.Random) -> bytes:
        if isinstance(valid, bytes):
            return scrambled(valid, chance)
        data = json.dumps(mutated(valid, chance)).encode()
        return scrambled(data, chance) if chance.random() < 0.2 else data

    return st.randoms(use_true_random=False).map(make)


def is_sound(value: Any) -> bool:
    """Whether a value that was accepted can be written and counted: no NaN, no infinity, no lone surrogate."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False, default=str).encode()
    except ValueError:
        return False
    return True
