"""Open the Lucene files of an index; for an adopted one, together with its titles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from ..errors import IndexFault
from .jvm import autoclass, call, open_directory
from .layout import MANIFEST, IndexManifest

_INDEX = "org.apache.lucene.index."


Reader = TypeVar("Reader")


class Current(Generic[Reader]):
    """The newest state of an index: opens it again when its manifest has been replaced.

    Args:
        path: The folder of the index.
        open: Opens its present state.
    """

    def __init__(self, path: Path, open: Callable[[Path], Reader]) -> None:
        self._manifest, self._open, self._path = path / MANIFEST, open, path
        self._lock = Lock()
        self._seen = self._stamp()
        self._reader = open(path)

    def __call__(self) -> Reader:
        if self._seen != self._stamp():
            with self._lock:
                if self._seen != (stamp := self._stamp()):
                    self._reader = self._open(self._path)  # searches may still use the other
                    self._seen = stamp
        return self._reader

    def _stamp(self) -> tuple[int, ...]:
        """Differs when the manifest is another file; a removed one counts as unchanged, since its index stays open."""
        try:
            found = self._manifest.stat()
        except OSError:
            return getattr(self, "_seen", ())
        return found.st_ino, found.st_mtime_ns, found.st_size


class OpenReaders:
    """The readers of an index, until `close`.

    Attributes:
        reader: Reads the whole index.
        leaves: The readers of the segments of Lucene's own files, in the order of document numbers.
    """

    def __init__(self, index: Path, manifest: IndexManifest) -> None:
        for returned in ("LeafReader", "LeafReaderContext", "StoredFields"):
            autoclass(f"{_INDEX}{returned}")  # see `autoclass`
        self._opened: list[Any] = []
        try:
            self.reader = self._open(manifest.folder(index))
            self.leaves = leaves_of(self.reader)
            if titles := titles_folder(index, manifest):
                self.reader = autoclass(f"{_INDEX}MultiReader")(*self._with_titles(titles))
                self._opened.append(self.reader)
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

    def _with_titles(self, folder: Path) -> list[Any]:
        """Segments, each with its titles."""
        pairs = []
        for number, leaf in enumerate(self.leaves):
            [titles] = leaves_of(self._open(folder / str(number)))
            # The first reader decides which documents are deleted, and has all fields with a name that both have.
            pairs.append(autoclass(f"{_INDEX}ParallelLeafReader")(False, leaf, titles))
        return pairs


def leaves_of(reader: Any) -> list[Any]:
    """The readers of the segments of an index."""
    contexts = call(reader, "leaves")
    return [call(call(contexts, "get", number), "reader") for number in range(call(contexts, "size"))]


def titles_folder(index: Path, manifest: IndexManifest) -> Path | None:
    """The folder of an adopted index's titles, with one Lucene index per segment; None for other indexes."""
    if not manifest.adopted:
        return None
    folder = manifest.home(index) / manifest.lucene_folder
    if folder.is_symlink() or not folder.is_dir():
        raise IndexFault(f"The titles of the index {index} are missing. Adopt it again: polyhop index --adopt {index}")
    return folder
