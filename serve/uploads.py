"""Documents that clients add: each is kept in a folder, which the index follows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from ..data.errors import PolyhopError, Problem
from ..data.lucene.bm25 import BM25Index
from ..data.lucene.update import update_index
from ..data.text import clean
from ..engines.replies import explain
from .service import Record, Service, ServiceError

LARGEST_UPLOAD = 32 << 20
"""Bytes of a document."""

_LONGEST_NAME = 150  # characters


class Uploads:
    """Adds documents to the index of a service, one after the other. A document with a known name is replaced.

    Args:
        folder: Where the documents are kept.
    """

    def __init__(self, service: Service, index: BM25Index, folder: Path) -> None:
        self._service, self._index, self._folder = service, index, folder
        self._one = asyncio.Lock()  # from its first byte, so that one document is in memory

    async def add(self, name: str, body: AsyncIterator[bytes]) -> Record:
        """The passages ``added``, ``deleted`` and in ``total``, and ``problems``.

        Raises:
            ServiceError: the name is not that of a file, or the document cannot be read.
        """
        is_file = name.strip() and Path(name).name == name and not name.startswith(".")
        if not is_file or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise ServiceError("question", f"{name[:80]!r} cannot be the name of a document, such as notes.md")
        name = clean(name)
        try:
            async with self._one:
                content = b"".join([part async for part in body])
                changes = await self._service.in_thread(partial(self._indexed, name, content))
        except (PolyhopError, OSError) as error:
            raise ServiceError("question", explain(error)) from error
        return {"name": name, **changes, "total": len(self._index)}

    def _indexed(self, name: str, content: bytes) -> Record:
        """Keep and index a document; the one before is back if it cannot be read."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / name
        before = file.read_bytes() if file.is_file() else None
        self._write(file, content)
        added, deleted, problems = self._update()
        id = re.escape(clean(f"{self._folder.resolve().name}/{name}"))
        of_file = [problem for problem in problems if re.fullmatch(rf"{id}(:\d+)?", problem.where)]  # or a line of it
        if of_file and of_file[0].kind != "duplicate" and not added:
            if before is None:
                file.unlink()
            else:
                self._write(file, before)
            self._update()
            raise PolyhopError(f"{name}: {of_file[0].reason}")
        texts = [problem.reason if problem in of_file else f"{problem.where}: {problem.reason}" for problem in problems]
        return {"added": added, "deleted": deleted, "problems": texts}

    def _write(self, file: Path, content: bytes) -> None:
        new = self._folder / f".new.{file.name}"  # a hidden file, which is not indexed
        new.write_bytes(content)
        new.replace(file)  # a server that is killed here leaves one of the documents whole

    def _update(self) -> tuple[int, int, list[Problem]]:
        problems = list[Problem]()
        changes = update_index(self._index.path, folders=[self._folder], on_problem=problems.append)
        return changes.added, changes.deleted, problems
