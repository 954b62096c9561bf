"""Write passages to a Lucene index, with Anserini's fields and analysis.

Anserini's own `SimpleIndexer` is not used because it has no unanalyzed fields, by which documents are looked up.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import ujson

from ..chain.store import Bools, StoreWriter
from ..documents.corpus import Version
from ..passages import Passage
from .bm25 import sealed
from .jvm import analyzer, attach, autoclass, call, call_long, lucene_class, open_directory
from .layout import (
    CONTENTS,
    DOCUMENT,
    ID,
    RAW,
    STORE,
    TEXT,
    VERSION,
    IndexManifest,
    generation_of,
    newest_segments,
    publish,
)

_BUFFER_MB = 32.0  # that Lucene buffers before it writes a segment; more is not faster
_BATCH = 256  # passages handed to Lucene at a time


class IndexWriter:
    """Writes passages in their order to Lucene, in a thread of its own, and for the chain retriever beside it.

    Nothing is seen before `commit`; an exception inside the ``with`` block discards everything. A failure in Lucene is
    raised as a Java exception, possibly some passages later. No two writers of a process may run at the same time.

    Args:
        index: The folder of the index.
        unfinished: That of `polyhop.data.lucene.layout.writing`.
        create: Replace the index; else its segments stay as they are until `merge`.
    """

    def __init__(self, index: Path, unfinished: Path, *, create: bool) -> None:
        attach()
        self._index, self._unfinished = index, unfinished
        self._config = lucene_class("index.IndexWriterConfig")(analyzer("en"))
        call(self._config, "setRAMBufferSizeMB", _BUFFER_MB)
        call(self._config, "setUseCompoundFile", False)
        mode = lucene_class("index.IndexWriterConfig$OpenMode")
        call(self._config, "setOpenMode", mode.CREATE if create else mode.APPEND)
        if create:
            self._merge_in_order()
        else:
            call(self._config, "setMergePolicy", lucene_class("index.NoMergePolicy").INSTANCE)
        self._lucene = lucene_class("index.IndexWriter")(open_directory(index), self._config)
        self._document = _Document()
        self._store = StoreWriter(unfinished / STORE)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="polyhop-index")
        self._writing: Future[None] | None = None
        self._batch: list[tuple[Passage, Version]] = []

    def add(self, passage: Passage, version: Version) -> None:
        """Add a passage with the version of its document."""
        self._batch.append((passage, version))
        if len(self._batch) == _BATCH:
            self._write()

    def delete(self, field: str, keyword: str) -> None:
        """Delete the passages with a keyword that were there before."""
        self._flush()
        term = lucene_class("index.Term")(field, keyword)
        # Replaces them by no document: pyjnius cannot choose between the two methods `deleteDocuments`.
        call_long(self._lucene, "updateDocuments", term, autoclass("java.util.ArrayList")())

    def reader(self) -> Any:
        """A reader of what the next commit will have; the caller closes it."""
        self._flush()
        return call_long(lucene_class("index.DirectoryReader"), "open", self._lucene)

    def merge(self) -> None:
        """Merge into one segment, for the fastest searches."""

        def merge() -> None:
            attach()
            call_long(self._lucene, "forceMerge", 1)

        self._flush()
        self._merge_in_order()
        self._pool.submit(merge).result()  # in a thread, so that Ctrl-C does not wait for it

    def merge_stores(self, stores: Mapping[Path, Mapping[str, str]], live: Bools) -> None:
        """Begin the words of the new passages with those of the ``live`` passages of earlier generations."""
        self._flush()
        hashes = self._store.finish()
        added = (self._unfinished / STORE).rename(self._unfinished / "added")
        self._store = StoreWriter(self._unfinished / STORE)
        self._store.copy({**stores, added: hashes}, live)
        shutil.rmtree(added)

    def commit(self, manifest: dict[str, Any], chain: Mapping[str, dict[str, str]] | None = None) -> IndexManifest:
        """Replace the state of the index.

        Args:
            manifest: Of the new state, but for what names its files.
            chain: The generations before whose passages it still has.
        """
        self._flush()
        hashes = self._store.finish()
        note = autoclass("java.util.HashMap")()
        call(note, "put", "polyhop", str(manifest["polyhop"]))
        call(self._lucene, "setLiveCommitData", call(note, "entrySet"))  # also makes a commit of no other change
        call_long(self._lucene, "prepareCommit")
        prepared = newest_segments(self._index, "pending_segments_")
        generation = generation_of(self._index / str(prepared))
        made = IndexManifest(generation=generation, chain={**(chain or {}), generation: hashes}, **manifest)
        publish(self._index, self._unfinished, made, lambda: call_long(self._lucene, "commit"))
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        call_long(self._lucene, "rollback")  # discards what was not committed; stops a merge
        self._pool.shutdown(cancel_futures=True)

    def _flush(self) -> None:
        self._write()
        self._write()  # waits

    def _write(self) -> None:
        if self._writing:
            self._writing.result()
            self._writing = None
        if self._batch:
            batch, self._batch = self._batch, []
            self._writing = self._pool.submit(self._add, batch)
            self._store.add(passage for passage, _ in batch)

    def _add(self, batch: Iterable[tuple[Passage, Version]]) -> None:
        attach()
        for passage, version in batch:
            call_long(self._lucene, "addDocument", self._document.fill(passage, version))

    def _merge_in_order(self) -> None:
        # Merges neighboring segments only, unlike the default, which would change the order.
        call(self._config, "setMergePolicy", lucene_class("index.LogDocMergePolicy")())


class _Document:
    """A Lucene document that is refilled for each passage, which is cheaper than new objects across JNI."""

    def __init__(self) -> None:
        keyword = lucene_class("document.StringField")
        store = lucene_class("document.Field$Store")
        self._bytes = lucene_class("util.BytesRef")
        self._tie_break = lucene_class("document.BinaryDocValuesField")(ID, self._bytes(b""))
        options = lucene_class("index.IndexOptions")
        counted = lucene_class("document.FieldType")()
        call(counted, "setIndexOptions", options.DOCS_AND_FREQS)
        as_text = "(Ljava/lang/String;Ljava/lang/CharSequence;Lorg/apache/lucene/index/IndexableFieldType;)V"
        self._contents = lucene_class("document.Field")(CONTENTS, "", counted, signature=as_text)
        self._analyzers = dict[str, Any]()
        self._fields = [
            keyword(ID, "", store.YES),
            self._contents,
            lucene_class("document.StoredField")(RAW, ""),
            *(keyword(name, "", store.NO) for name in (VERSION, TEXT, *[DOCUMENT] * 4)),
        ]
        self._document = lucene_class("document.Document")()
        for field in (self._tie_break, *self._fields):
            call(self._document, "add", field)

    def fill(self, passage: Passage, version: Version) -> Any:
        record = ujson.dumps(passage.to_record(), ensure_ascii=False, escape_forward_slashes=False)
        names = [""] * 4
        if passage.place or "/" in passage.id:  # the document, and the ends of its path
            parts = passage.document.split("/")
            names = [passage.document, *("/".join(parts[-size:]) for size in (3, 2, 1))]
        call(self._tie_break, "setBytesValue", self._bytes(passage.id.encode()))
        values = passage.id, passage.searched, sealed(record), version.content, version.text, *names
        for field, value in zip(self._fields, values, strict=True):
            call(field, "setStringValue", value)
        stream = None
        if passage.language != "en":
            if passage.language not in self._analyzers:
                self._analyzers[passage.language] = analyzer(passage.language)
            stream = call(self._analyzers[passage.language], "tokenStream", CONTENTS, passage.searched)
        call(self._contents, "setTokenStream", stream)
        return self._document
