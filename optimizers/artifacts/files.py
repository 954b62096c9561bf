"""How the files of an artifact are read and written: strictly, since one may come from anywhere.

Whatever is wrong with a file ends in an `ArtifactError`.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...data.errors import PolyhopError

_LARGEST = 256 * 2**20  # bytes of a file
_DEEPEST = 32  # levels of lists and objects
_LONGEST = 1_500  # characters of a message
_WIDEST = 2**63  # of a whole number


class ArtifactError(PolyhopError):
    """An artifact cannot be saved, read, or loaded into a program; the message says what to do, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class ArtifactWarning(UserWarning):
    """An artifact loads, but something differs from when it was saved."""


def one_line(text: str) -> str:
    """A text for the terminal: names that stand in an artifact must not be able to drive it, nor to fill it."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def read_bytes(path: Path) -> bytes:
    """The bytes of a file of an artifact.

    Raises:
        ArtifactError: there is none, or no plain file of a size that one has.
    """
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise ArtifactError(f"{path} is no plain file: an artifact consists of nothing else")
        if found.st_size > _LARGEST:
            raise ArtifactError(f"{path} has {found.st_size:,} bytes: no artifact has files like that")
        return path.read_bytes()
    except FileNotFoundError:
        raise ArtifactError(f"{path.parent} is no complete artifact: {path.name} is missing") from None
    except (OSError, ValueError) as error:
        raise ArtifactError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def parse(data: bytes, where: Path | str) -> Any:
    """The JSON value in some bytes.

    Raises:
        ArtifactError: they are not JSON, or such as no artifact holds: with a number that is none or does not fit,
            with half a character, twice the same name in an object, or nested without end.
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_distinct)
        check(value)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{where} is damaged: {_short(error)}") from error
    return value


def check(value: Any, place: str = "", depth: int = 0) -> None:
    """Whether a value is JSON of the kind that an artifact holds.

    Raises:
        ValueError: it is not; says where and why.
    """
    at = f" at {place}" if place else ""
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} levels{at[:60]}")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"half a character (a lone surrogate){at}") from None
    elif isinstance(value, int):
        if not -_WIDEST < value < _WIDEST:
            raise ValueError(f"a number that is too large{at}")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number that JSON has{at}")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                raise ValueError(f"{name!r} is no name that JSON has{at}")
            check(name, place, depth)
            check(item, f"{place}.{name}" if place else name, depth + 1)
    elif isinstance(value, list | tuple):
        for n, item in enumerate(value):
            check(item, f"{place}[{n}]", depth + 1)
    else:
        raise ValueError(f"a {type(value).__name__}, which JSON has not{at}")


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number that JSON has")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"a number that is too large: {text[:20]}")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("an object has the same name twice")
    return value


def _short(error: BaseException) -> str:
    return "nested without end" if isinstance(error, RecursionError) else " ".join(str(error).split())[:200]


def encode(value: Any, where: str) -> bytes:
    """JSON as it stands in an artifact, for people to read.

    Raises:
        ArtifactError: the value is none that JSON has.
    """
    try:
        check(value)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{where} cannot be saved: {_short(error)}") from error
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n"


def hash_of(value: Any) -> str:
    """The SHA-256 of bytes, of a text, or of a JSON value whatever the order of its names."""
    if isinstance(value, bytes):
        return sha256(value).hexdigest()
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return sha256(text.encode()).hexdigest()
