"""Open the Lucene files of an index; for an adopted one, together with its titles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import IndexFault
from .jvm import autoclass, call, open_directory
from .layout import IndexManifest

_INDEX = "org.apache.lucene.index."


class OpenReaders:
    """The readers of an index, until `close`.

    Attributes:
        reader: Reads the whole index.
        leaves: The readers of the segments of Lucene's own files, in the order of their document numbers.
    """

    def __init__(self, index: Path, manifest: IndexManifest) -> None:
        for returned in ("LeafReader", "LeafReaderContext", "StoredFields"):
            autoclass(f"{_INDEX}{returned}")  # see `autoclass`
        self._opened: list[Any] = []
        self.reader = self._open(manifest.folder(index))
        self.leaves = self._leaves(self.reader)
        titles = titles_folder(index, manifest)
        if titles is None:
            return
        try:
            self.reader = self._joined([titles / str(number) for number in range(len(self.leaves))])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for reader in reversed(self._opened):
            call(reader, "close")

    def _open(self, folder: Path) -> Any:
        reader = call(autoclass(f"{_INDEX}DirectoryReader"), "open", open_directory(folder, reading=True))
        self._opened.append(reader)
        return reader

    def _leaves(self, reader: Any) -> list[Any]:
        contexts = call(reader, "leaves")
        return [call(call(contexts, "get", number), "reader") for number in range(call(contexts, "size"))]

    def _joined(self, folders: list[Path]) -> Any:
        """The segments, each with its titles, as one index."""
        pairs = []
        for leaf, folder in zip(self.leaves, folders, strict=True):
            [titles] = self._leaves(self._open(folder))
            # The first reader decides which documents are deleted, and has all fields with a name that both have.
            pairs.append(autoclass(f"{_INDEX}ParallelLeafReader")(False, leaf, titles))
        self._opened.append(autoclass(f"{_INDEX}MultiReader")(*pairs))
        return self._opened[-1]


def titles_folder(index: Path, manifest: IndexManifest) -> Path | None:
    """The folder of an adopted index's titles, with one Lucene index per segment; None for other indexes."""
    if not manifest.adopted:
        return None
    folder = manifest.home(index) / manifest.lucene_folder
    if folder.is_symlink() or not folder.is_dir():
        raise IndexFault(f"The titles of the index {index} are missing. Adopt it again: polyhop index --adopt {index}")
    return folder
