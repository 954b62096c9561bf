"""Write passages into the shards of an index, by one process or by several.

A shard is a Lucene index with the words of its passages beside it. A document belongs to the shard that the checksum of
its id gives: shards are of equal size in any order of documents, and an update knows where a document is. Shards are
read as one index (see `polyhop.data.lucene.readers`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self
from zlib import crc32

from ..chain.store import StoreWriter
from ..errors import IndexFault, PolyhopError
from ..passages import Passage
from .folder import write_faults
from .layout import STORE
from .writer import LuceneWriter

Batch = Sequence[tuple[Passage, str]]
"""Passages, each with the version of its document."""


def shard_of(document: str, shards: int) -> int:
    """The number of the shard that has a document."""
    return crc32(document.encode()) % shards


class ShardWriter(ExitStack):
    """Writes shards in this process; they are complete after the ``with`` block.

    Args:
        folders: An empty folder for each shard.
    """

    def __init__(self, folders: Mapping[int, Path]) -> None:
        super().__init__()
        # One thread for all, since Lucene's writers may not be called at the same time.
        self._pool = self.enter_context(ThreadPoolExecutor(1, thread_name_prefix="polyhop-index"))
        self._lucene = {n: self.enter_context(LuceneWriter(folder)) for n, folder in folders.items()}
        self._stores = {n: self.enter_context(StoreWriter(folder / STORE)) for n, folder in folders.items()}
        self._writing: Future[None] | None = None

    def write(self, shard: int, batch: Batch) -> None:
        """Add passages to a shard."""
        self._wait()
        self._writing = self._pool.submit(self._lucene[shard].add, batch)
        self._stores[shard].add(passage for passage, _ in batch)

    def commit(self) -> None:
        """Merge and sync all shards."""
        self._wait()
        for lucene in self._lucene.values():
            lucene.commit()

    def _wait(self) -> None:
        if self._writing:
            self._writing.result()


class ShardProcesses:
    """Writes shards in parallel processes, one for each processor; they end when this process does, however it ends.

    Args:
        folders: An empty folder for each shard.
        index: The folder of the index, for errors.

    Raises:
        IndexFault: a process cannot write, or has ended.
    """

    def __init__(self, folders: Sequence[Path], index: Path) -> None:
        count, shards = min(len(folders), os.cpu_count() or 1), list(enumerate(folders))
        self._processes = [_Process(dict(shards[first::count]), index) for first in range(count)]

    def write(self, shard: int, batch: Batch) -> None:
        """Send passages to the process of a shard; blocks while it is busy."""
        self._processes[shard % len(self._processes)].send((shard, batch))

    def commit(self) -> None:
        """Merge and sync all shards."""
        for process in self._processes:
            process.send(None)
        for process in self._processes:
            process.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.end()


class _Process:
    """A process that writes some shards. Its replies have a pipe of their own, to be read when it no longer listens."""

    def __init__(self, folders: dict[int, Path], index: Path) -> None:
        context = get_context("spawn")  # Java does not survive a fork
        theirs, self._requests = context.Pipe(duplex=False)
        self._replies, reply = context.Pipe(duplex=False)
        self._process = context.Process(target=_write, args=(theirs, reply, folders, index), daemon=True)
        self._process.start()
        theirs.close()
        reply.close()

    def send(self, request: tuple[int, Batch] | None) -> None:
        try:
            self._requests.send(request)
        except OSError:
            self.finish()

    def finish(self) -> None:
        """Wait for the end of its work."""
        try:
            error = self._replies.recv()
        except EOFError:
            error = IndexFault(
                "A process that writes the index has ended: memory may be short. A script must build shards under "
                "if __name__ == '__main__'."
            )
        if error:
            raise error

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def _write(requests: Connection, replies: Connection, folders: dict[int, Path], index: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    try:
        with write_faults(index), ShardWriter(folders) as writer:
            while request := requests.recv():
                writer.write(*request)
            writer.commit()
        replies.send(None)
    except EOFError:
        return  # the first process has ended
    except PolyhopError as error:
        replies.send(error)
