"""Passages into Lucene: Anserini's fields and analysis, a few JNI calls a passage.

Anserini's own `SimpleIndexer` takes whole batches across JNI and is a little faster, but has no un-analysed fields,
which look-ups by title need, and parses every record a second time.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

import ujson

from ..passages import Passage
from .jvm import attach, autoclass, call
from .layout import BARE_TITLE, CONTENTS, ID, RAW, TITLE, title_terms

_BATCH = 256  # passages handed to a thread at a time
_BUFFER_MB = 32.0  # what Lucene holds before it writes a segment; more is not faster


class LuceneWriter:
    """Writes passages to a new Lucene index; leaving the block by an exception discards what was written.

    What goes wrong in Lucene (the disk is full, say) arrives as a Java exception, perhaps some passages later.

    Args:
        folder: An existing, empty folder.
        threads: How many threads write. By default two: more wait for the Python side of the work.
    """

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        attach()
        config = autoclass("org.apache.lucene.index.IndexWriterConfig")(english_analyzer())
        call(config, "setRAMBufferSizeMB", _BUFFER_MB)
        call(config, "setUseCompoundFile", False)
        self._writer = autoclass("org.apache.lucene.index.IndexWriter")(open_directory(folder), config)
        self._threads = threads or min(2, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="polyhop-index")
        self._documents: SimpleQueue[_Document] = SimpleQueue()  # not in use at the moment, one for each thread
        for _ in range(self._threads):
            self._documents.put(_Document())
        self._batch: list[Passage] = []
        self._pending: deque[Future[None]] = deque()

    def add(self, passage: Passage) -> None:
        """Take a passage to be written soon; waits where passages come faster than they are written."""
        self._batch.append(passage)
        if len(self._batch) >= _BATCH:
            self._hand_over()

    def commit(self) -> None:
        """Write what is left, merge all to one segment (searches are fastest so), and make it durable."""
        self._hand_over()
        while self._pending:
            self._pending.popleft().result()
        self._pool.submit(self._merge).result()  # in a thread, so that Ctrl-C need not wait for it
        call(self._writer, "commit")

    def __enter__(self) -> LuceneWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._pool.shutdown()
            call(self._writer, "close")
        else:
            call(self._writer, "rollback")  # stops threads that are writing or merging
            self._pool.shutdown(cancel_futures=True)

    def _hand_over(self) -> None:
        if len(self._pending) > 2 * self._threads:
            self._pending.popleft().result()
        self._pending.append(self._pool.submit(self._write, self._batch))
        self._batch = []

    def _write(self, batch: list[Passage]) -> None:
        attach()
        document = self._documents.get()
        try:
            for passage in batch:
                call(self._writer, "addDocument", document.of(passage))
        finally:
            self._documents.put(document)

    def _merge(self) -> None:
        attach()
        call(self._writer, "forceMerge", 1)


class _Document:
    """A Lucene document whose fields are filled anew for each passage: cheaper than new objects across JNI."""

    def __init__(self) -> None:
        keyword = autoclass("org.apache.lucene.document.StringField")
        store = autoclass("org.apache.lucene.document.Field$Store")
        self._bytes = autoclass("org.apache.lucene.util.BytesRef")
        self._id = keyword(ID, "", store.YES)
        self._tie_break = autoclass("org.apache.lucene.document.BinaryDocValuesField")(ID, self._bytes(b""))
        counted = autoclass("org.apache.lucene.document.FieldType")()
        call(counted, "setIndexOptions", autoclass("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
        as_text = "(Ljava/lang/String;Ljava/lang/CharSequence;Lorg/apache/lucene/index/IndexableFieldType;)V"
        self._contents = autoclass("org.apache.lucene.document.Field")(CONTENTS, "", counted, signature=as_text)
        self._raw = autoclass("org.apache.lucene.document.StoredField")(RAW, "")
        self._title = keyword(TITLE, "", store.NO)
        self._bare_title = keyword(BARE_TITLE, "", store.NO)
        self._document = autoclass("org.apache.lucene.document.Document")()
        for field in (self._id, self._tie_break, self._contents, self._raw, self._title, self._bare_title):
            call(self._document, "add", field)

    def of(self, passage: Passage) -> Any:
        record = ujson.dumps(passage.to_record(), ensure_ascii=False, escape_forward_slashes=False)
        title, bare_title = title_terms(passage.title)
        call(self._id, "setStringValue", passage.id)
        call(self._tie_break, "setBytesValue", self._bytes(passage.id.encode()))
        call(self._contents, "setStringValue", f"{passage.title}\n{passage.text}")
        call(self._raw, "setStringValue", record)
        call(self._title, "setStringValue", title)
        call(self._bare_title, "setStringValue", bare_title)
        return self._document


def english_analyzer() -> Any:
    """Anserini's default: Lucene's English stop words and possessives, Porter stems."""
    return call(autoclass("io.anserini.analysis.DefaultEnglishAnalyzer"), "newDefaultInstance")


def open_directory(folder: Path) -> Any:
    """A folder as Lucene sees it."""
    # Absolute: Java resolves a relative path against the directory in which it was started.
    path = call(autoclass("java.io.File")(str(folder.absolute())), "toPath")
    return call(autoclass("org.apache.lucene.store.FSDirectory"), "open", path)
