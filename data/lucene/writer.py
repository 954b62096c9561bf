"""Write passages to a Lucene index, with Anserini's fields and analysis.

Anserini's own `SimpleIndexer` is not used because it has no unanalyzed fields, which title look-ups need.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import ujson

from ..corpora import Version
from ..passages import Passage
from .jvm import attach, autoclass, call, call_long, english_analyzer, open_directory
from .layout import CONTENTS, DOCUMENT, ID, RAW, TEXT, VERSION, DerivedFields, document_names

_BUFFER_MB = 32.0  # that Lucene buffers before it writes a segment; more is not faster


class LuceneWriter:
    """Writes passages to a Lucene index in their order; an exception inside the ``with`` block discards them.

    A failure in Lucene, such as a full disk, is raised as a Java exception, possibly some passages later. No two
    writers of a process may be called at the same time (see `call_long`).

    Args:
        folder: An existing folder, empty or with an index.
        append: Leave the segments of the index as they are; else merge all into one, in their order.
    """

    def __init__(self, folder: Path, *, append: bool = False) -> None:
        attach()
        config = autoclass("org.apache.lucene.index.IndexWriterConfig")(english_analyzer())
        call(config, "setRAMBufferSizeMB", _BUFFER_MB)
        call(config, "setUseCompoundFile", False)
        index = "org.apache.lucene.index."
        call(
            config,
            "setMergePolicy",
            autoclass(f"{index}NoMergePolicy").INSTANCE if append else autoclass(f"{index}LogDocMergePolicy")(),
        )
        self._append = append
        self._writer = autoclass("org.apache.lucene.index.IndexWriter")(open_directory(folder), config)
        self._document = _Document()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="polyhop-merge")

    def add(self, passages: Iterable[tuple[Passage, Version]]) -> None:
        """Add passages, each with the version of its document."""
        attach()
        for passage, version in passages:
            call_long(self._writer, "addDocument", self._document.fill(passage, version))

    def commit(self) -> None:
        """Merge into one segment for the fastest searches unless appending, and sync to disk."""
        if not self._append:
            self._pool.submit(self._merge).result()  # in a thread, so that Ctrl-C does not wait for it
        call_long(self._writer, "commit")

    def delete(self, field: str, keyword: str) -> None:
        """Delete the passages with a keyword that were there before."""
        term = autoclass("org.apache.lucene.index.Term")(field, keyword)
        # Replaces them by no document: pyjnius cannot choose between the two methods `deleteDocuments`.
        call_long(self._writer, "updateDocuments", term, autoclass("java.util.ArrayList")())

    def __enter__(self) -> LuceneWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        call_long(self._writer, "rollback" if kind else "close")  # "rollback" stops a merge
        self._pool.shutdown()

    def _merge(self) -> None:
        attach()
        call_long(self._writer, "forceMerge", 1)


class _Document:
    """A Lucene document that is refilled for each passage, which is cheaper than new objects across JNI."""

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
        self._derived = DerivedFields()
        self._version, self._text = keyword(VERSION, "", store.NO), keyword(TEXT, "", store.NO)
        self._names = [keyword(DOCUMENT, "", store.NO) for _ in document_names("")]
        self._document = autoclass("org.apache.lucene.document.Document")()
        for field in (
            self._id,
            self._tie_break,
            self._contents,
            self._raw,
            self._version,
            self._text,
            *self._names,
            *self._derived.fields,
        ):
            call(self._document, "add", field)

    def fill(self, passage: Passage, version: Version) -> Any:
        record = ujson.dumps(passage.to_record(), ensure_ascii=False, escape_forward_slashes=False)
        call(self._id, "setStringValue", passage.id)
        call(self._tie_break, "setBytesValue", self._bytes(passage.id.encode()))
        call(self._contents, "setStringValue", passage.searched)
        call(self._raw, "setStringValue", record)
        names = document_names(passage.document) if passage.place or "/" in passage.id else [""] * len(self._names)
        for field, name in zip(self._names, names, strict=True):
            call(field, "setStringValue", name)
        call(self._version, "setStringValue", version.content)
        call(self._text, "setStringValue", version.text)
        self._derived.fill(passage)
        return self._document
