"""The details of questions, packed: whole traces are read only when a question is opened.

A chunk is a JSON list of some questions' details, gzipped, in base64. A page of 5,000 questions so holds a few
megabytes that the browser need not look into, instead of fifty that it would have to parse.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

SIZE = 64
"""Questions in a chunk: about 100 kB, which a browser inflates in a few milliseconds."""


class Chunks:
    """Packs details as they come and keeps them on disk until the page is written; use it in a ``with`` block."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  # closed by __exit__
        self._ends = [0]
        self._open: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, details: Any) -> None:
        self._open.append(details)
        if len(self._open) == SIZE:
            self.close()

    def close(self) -> None:
        """End the chunk, so that the next one begins with what is added next."""
        if self._open:
            packed = gzip.compress(json.dumps(self._open, separators=(",", ":")).encode(), mtime=0)
            self._file.write(b64encode(packed))
            self._ends.append(self._file.tell())
            self._open = []

    def __iter__(self) -> Iterator[str]:
        """The chunks, one after the other."""
        self._file.seek(0)
        for start, end in zip(self._ends, self._ends[1:], strict=False):
            yield self._file.read(end - start).decode()
