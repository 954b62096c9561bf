"""Adopt an index that Anserini or Pyserini made: add what the chain retriever needs, beside Lucene's untouched files.

    adopt_index("indexes/wikipedia")     # once; `polyhop index --adopt indexes/wikipedia` does the same
    retriever = ChainRetriever(BM25Index("indexes/wikipedia"))

The titles are a Lucene index of their own for every segment, with the same document numbers. Lucene reads both as one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..chain.store import StoreWriter
from ..errors import IndexFault
from ..passages import PAGE, Passage
from .folder import building, write_faults
from .jvm import attach, autoclass, call, call_long, english_analyzer, open_directory
from .layout import STORE, DerivedFields, IndexManifest, is_foreign
from .readers import OpenReaders
from .stored import StoredPassages

_PROGRESS_EVERY = 500  # passages
_BUFFER_MB = 32.0


def adopt_index(
    index: Path | str, *, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> IndexManifest:
    """Add titles to an index of Anserini or Pyserini, in one pass over the stored documents.

    An interrupted adoption leaves the index as it was. Titles of an earlier adoption are replaced.

    Args:
        index: The folder with Lucene's files.
        on_progress: Called every 500 passages with the number of passages read, and their total.

    Raises:
        IndexFault: the index is missing, damaged or polyhop's own, or stores no text.
    """
    index = Path(index)
    attach()
    if not is_foreign(index):
        IndexManifest.read(index)  # raises if there is no index
        raise IndexFault(f"The index {index} was made by polyhop, and has all that it needs.")
    manifest = IndexManifest.of_foreign(index)
    home = manifest.home(index)
    done = overlong = 0
    with write_faults(home), building(home) as folder, StoreWriter(folder / STORE) as store:
        readers = OpenReaders(index, manifest)
        try:
            passage_of = StoredPassages(readers.reader, index, foreign=True)
            for number, leaf in enumerate(readers.leaves):
                (folder / str(number)).mkdir()
                with _TitleWriter(folder / str(number), store) as writer:
                    fields, deleted = call(leaf, "storedFields"), call(leaf, "getLiveDocs")
                    for document in range(call(leaf, "maxDoc")):
                        if deleted is not None and not call(deleted, "get", document):
                            writer.add(_NONE)
                            continue
                        passage = passage_of(call(fields, "document", document), document, leaf)
                        writer.add(passage)
                        overlong += len(passage.text) > PAGE
                        done += 1
                        if done % _PROGRESS_EVERY == 0:
                            on_progress(done, manifest.passages)
        finally:
            readers.close()
        on_progress(done, manifest.passages)
        manifest = manifest.model_copy(
            update={
                "overlong": overlong,
                "polyhop": version("polyhop"),
                "lucene_folder": folder.name,
                "adopted": True,
            }
        )
        manifest.write(home)
    return manifest


_NONE = Passage("", "", "")  # in place of a deleted document, to keep the numbers


class _TitleWriter:
    """Writes the titles and the words of one segment in the order of its documents, as one segment."""

    def __init__(self, folder: Path, store: StoreWriter) -> None:
        self._store = store
        config = autoclass("org.apache.lucene.index.IndexWriterConfig")(english_analyzer())
        call(config, "setRAMBufferSizeMB", _BUFFER_MB)
        # Merges neighboring segments only, unlike the default, which would change the order.
        call(config, "setMergePolicy", autoclass("org.apache.lucene.index.LogDocMergePolicy")())
        self._writer = autoclass("org.apache.lucene.index.IndexWriter")(open_directory(folder), config)
        self._derived = DerivedFields()
        self._document = autoclass("org.apache.lucene.document.Document")()
        for field in self._derived.fields:
            call(self._document, "add", field)

    def add(self, passage: Passage) -> None:
        self._store.add([passage])
        self._derived.fill(passage)
        call(self._writer, "addDocument", self._document)

    def __enter__(self) -> _TitleWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is not None:
            call_long(self._writer, "rollback")
            return
        call_long(self._writer, "forceMerge", 1)
        call_long(self._writer, "close")
