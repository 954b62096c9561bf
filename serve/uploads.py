"""Documents that clients add: each is kept in a folder, which the index follows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..data.documents.walk import walk
from ..data.errors import PolyhopError, Problem
from ..data.lucene.update import update_index
from ..data.text import clean
from ..engines.replies import explain
from .service import Record, Service, ServiceError

LARGEST_UPLOAD = 32 << 20
"""Bytes of a document."""

_MOST = 8  # documents that are received or wait; further ones are refused
_LONGEST_NAME = 150  # characters


class Uploads:
    """Adds documents to the index of a service, one after the other. A document with a known name is replaced.

    Args:
        folder: Where the documents are kept.
    """

    def __init__(self, service: Service, index: Path, folder: Path) -> None:
        self._service, self._index, self._folder = service, index, folder
        self._one = asyncio.Lock()
        self._count = 0

    async def add(self, name: str, body: AsyncIterator[bytes]) -> Record:
        """The passages ``added``, ``deleted`` and in ``total``, and ``problems``.

        Raises:
            ServiceError: the name is not that of a file, the document cannot be read, or others come first.
        """
        is_file = name.strip() and Path(name).name == name and not name.startswith(".")
        if not is_file or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise ServiceError("question", f"{name[:80]!r} cannot be the name of a document, such as notes.md")
        name = clean(name)
        if self._count >= _MOST:
            raise ServiceError("busy", "other documents are being added: try again in a minute")
        self._count += 1
        try:
            content = b"".join([part async for part in body])
            async with self._one:
                changes = await self._service.in_thread(partial(self._indexed, name, content))
        except (PolyhopError, OSError) as error:
            raise error if isinstance(error, ServiceError) else ServiceError("question", explain(error)) from error
        finally:
            self._count -= 1
        return {"name": name, **changes, "total": len(self._service.source)}

    def _indexed(self, name: str, content: bytes) -> Record:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / name
        before = file.read_bytes() if file.is_file() else None  # a pipe would never end
        try:
            self._write(file, content)
            if not any(path.name == name for path, _ in walk(self._folder)):
                raise PolyhopError(f"{name} would not be read in a folder: give it another name")
            return self._updated(name)
        except BaseException:
            if before is None:
                file.unlink(missing_ok=True)
            else:
                self._write(file, before)
            with suppress(PolyhopError):  # what was read of it is in the index
                update_index(self._index, folders=[self._folder])
            raise

    def _write(self, file: Path, content: bytes) -> None:
        new = self._folder / f".new.{file.name}"  # a hidden file, which is not indexed
        new.write_bytes(content)
        new.replace(file)  # a server that is killed here leaves one of the documents whole

    def _updated(self, name: str) -> Record:
        problems = list[Problem]()
        changes = update_index(self._index, folders=[self._folder], on_problem=problems.append)
        id = re.escape(clean(f"{self._folder.resolve().name}/{name}"))
        own = [problem for problem in problems if re.fullmatch(rf"{id}(:\d+)?", problem.where)]  # or a line of it
        if own and own[0].kind != "duplicate" and not changes.added:
            raise PolyhopError(f"{name}: {own[0].reason}")
        texts = [problem.reason if problem in own else f"{problem.where}: {problem.reason}" for problem in problems]
        return {"added": changes.added, "deleted": changes.deleted, "problems": texts}
