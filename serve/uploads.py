"""Documents that clients add: each is kept in a folder, which the index follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from shutil import copyfile
from time import perf_counter
from typing import Any

from ..data.errors import PolyhopError, Problem
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

    def __init__(self, service: Service, index: Path, folder: Path) -> None:
        self._service, self._index, self._folder = service, index, folder
        self._one = asyncio.Lock()

    async def add(self, name: str, content: bytes) -> AsyncGenerator[Record]:
        """``progress`` events with the share ``done``, then ``indexed`` (passages ``added``, ``deleted``,
        and in ``total``) or ``error``.

        Raises:
            ServiceError: the name is not that of a file.
        """
        if Path(name).name != name or name.startswith(".") or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise ServiceError("question", f"{name[:80]!r} cannot be the name of a document, such as notes.md")
        start, told = perf_counter(), asyncio.Queue[Record]()
        loop = asyncio.get_running_loop()

        def tell(event: str, **rest: Any) -> None:
            record = {"event": event, "seconds": round(perf_counter() - start, 3), **rest}
            loop.call_soon_threadsafe(told.put_nowait, record)

        def work() -> None:
            try:
                tell("indexed", name=name, **self._indexed(name, content, tell), total=len(self._service.source))
            except (PolyhopError, OSError) as error:
                tell("error", kind="question", message=explain(error))

        async def in_turn() -> None:
            async with self._one:
                await self._service.in_thread(work)

        working = asyncio.create_task(in_turn())  # goes on if the client leaves
        event: Record = {"event": "progress"}
        while event["event"] == "progress":
            event = await told.get()
            yield event
        await working

    def _indexed(self, name: str, content: bytes, tell: Any) -> Record:
        from ..data.lucene.update import update_index

        self._folder.mkdir(parents=True, exist_ok=True)
        # Hidden files are not indexed. A server that is killed here leaves the document as it was, or the new one.
        file, before, new = (self._folder / f"{sign}{name}" for sign in ("", ".", ".new."))
        problems = list[Problem]()
        if replaced := file.exists():
            copyfile(file, before)
        try:
            new.write_bytes(content)
            new.replace(file)
            changes = update_index(
                self._index,
                folders=[self._folder],
                on_progress=lambda progress: tell("progress", done=progress.done),
                on_problem=problems.append,
            )
            problems = [each for each in problems if each.where.partition(":")[0].endswith(f"/{name}")]
            if problems and problems[0].kind != "duplicate" and not changes.added:
                raise PolyhopError(f"{name}: {problems[0].reason}")
        except BaseException:
            new.unlink(missing_ok=True)
            if replaced:
                before.replace(file)
            else:
                file.unlink(missing_ok=True)
            raise
        before.unlink(missing_ok=True)
        return {"added": changes.added, "deleted": changes.deleted, "problems": [each.reason for each in problems]}
