"""What the chain retriever looks up in a collection: passages by titles and places, and how rare words are.

On disk it is a folder for each build or update, with tables of the passages that were added:

    documents.npy  a hash of the document of each passage (uint64)
    keys.npy       the hashes of titles and places, in order (uint64)
    rows.npy       the passage of each of these (uint32)
    stems.npy      the hashes of stems, in order (uint32)
    counts.npy     the number of passages that have each (uint32)

Their hashes are in the manifest of the index; those of large files only `polyhop index --check` compares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b, file_digest
from math import inf, log1p
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..files import load_array
from ..languages import ENGLISH, PAIRED
from ..passages import Hit, Passage
from .words import END, PassageWords, Words, document_of, keys_of, number_of, place_key, place_of, title_forms

Table = NDArray[Any]
Bools = NDArray[np.bool_]

_BATCH = 256  # passages whose stems are counted together
_SMALL_FILE = 4 << 20  # bytes; read and compared in a few milliseconds
_PENDING = 1 << 20  # counts of stems that are not added up yet
_CACHED = 100_000  # frequencies of stems
_TYPES: dict[str, Any] = {
    "documents": np.uint64, "keys": np.uint64, "rows": np.uint32, "stems": np.uint32, "counts": np.uint32,
}  # fmt: skip


class ChainSource(Protocol):
    """What a chain can be searched in: `BM25Index`, or `PassagePool` for a question's own passages.

    Rows are those of the store. `ranking` is `search` with rows and scores; `stored` reads the passages of rows;
    `pinned` is the present state of the collection, which does not change.
    """

    k1: float
    b: float

    @property
    def store(self) -> Store: ...
    def with_bm25(self, k1: float | None = None, b: float | None = None) -> Self: ...
    def pinned(self) -> Self: ...
    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]: ...
    def ranking(self, query: str, k: int, offset: int = 0) -> list[tuple[int, float]]: ...
    def stored(self, rows: Sequence[int]) -> list[Passage]: ...


class Part(NamedTuple):
    """The tables of some neighbouring rows, as above."""

    documents: Table
    keys: Table
    rows: Table
    stems: Table
    counts: Table

    @classmethod
    def open(cls, folder: Path, hashes: Mapping[str, str]) -> Part:
        """The tables of a folder, memory-mapped.

        Args:
            hashes: Of its files, see `hashes_of`; large files are not compared.

        Raises:
            OSError: a file is missing.
            ValueError: a file is damaged.
        """
        if any(hashes.get(name) != digest for name, digest in hashes_of(folder, _SMALL_FILE).items()):
            raise ValueError(f"a file of {folder} has changed")
        part = cls(**{name: load_array(folder / f"{name}.npy") for name in _TYPES})
        is_sound = all(table.dtype == kind for table, kind in zip(part, _TYPES.values(), strict=True))
        is_sound = is_sound and len(part.keys) == len(part.rows) and len(part.stems) == len(part.counts)
        if not is_sound or (len(part.rows) and part.rows.max() >= len(part.documents)):
            raise ValueError(f"the tables in {folder} do not fit together")
        return part


class Store:
    """The tables of a collection; row n belongs to Lucene's document n, or to the n-th passage of a pool.

    Attributes:
        documents: A hash of the document of each row; 0 for those that were deleted.
        languages: Of the passages, that of most first.
    """

    def __init__(self, parts: Sequence[Part], live: Bools | None = None, languages: Sequence[str] = (ENGLISH,)) -> None:
        """
        Args:
            parts: Of the collection; rows follow one another.
            live: Which rows are found, shape (rows,). The others still count as holders of words, as in Lucene.
        """
        self._parts, self.languages = parts, tuple(languages)
        self._starts = np.cumsum([0, *(len(part.documents) for part in parts)]).tolist()
        self.documents = np.concatenate([part.documents for part in parts])
        if live is not None:
            self.documents = np.where(live, self.documents, np.uint64(0))
        self._overlap = 0.5 if self.languages[0] in PAIRED else 1.0
        self._idf: dict[str, float] = {"": 0.0}

    @classmethod
    def of(cls, passages: Iterable[Passage], languages: Sequence[str] = (ENGLISH,)) -> Store:
        """A store in memory."""
        writer = StoreWriter()
        writer.add(passages)
        return cls([writer.part()], None, languages)

    @classmethod
    def open(
        cls,
        folders: Mapping[Path, Mapping[str, str]],
        live: Bools | None = None,
        languages: Sequence[str] = (ENGLISH,),
    ) -> Store:
        """A store on disk: the folders of its parts, with the hashes of their files.

        Raises:
            OSError: a file is missing.
            ValueError: a file is damaged, or there are more or fewer rows than ``live`` says.
        """
        parts = [Part.open(folder, hashes) for folder, hashes in folders.items()]
        if live is not None and len(live) != sum(len(part.documents) for part in parts):
            raise ValueError("it has the words of other passages")
        return cls(parts, live, languages)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def find(self, keys: Sequence[str]) -> list[tuple[int, int]]:
        """The passages with one of these titles or `place_key`: which key, and the row; in the order of keys."""
        hashes = np.fromiter(map(number_of, keys), np.uint64, len(keys))
        matches = list[tuple[int, int]]()
        for part, start in zip(self._parts, self._starts, strict=False):
            first, end = part.keys.searchsorted(hashes), part.keys.searchsorted(hashes, "right")
            for which in np.flatnonzero(end > first).tolist():
                rows = part.rows[first[which] : end[which]].tolist()
                matches += [(which, row + start) for row in rows if self.documents[row + start]]
        return sorted(matches)

    def titles_in(self, words: Words, longest: int) -> list[tuple[int, tuple[int, int]]]:
        """The passages whose title is a run of words, from where a name may start to a topic word: the row and the
        (start, end), in the order of the words."""
        spans = defaultdict[str, list[tuple[int, int]]](list)
        for start in range(len(words.forms)):
            for end in range(start + 1, min(start + longest, len(words.forms)) + 1 if words.starts[start] else 0):
                if words.forms[end - 1] == END:
                    break
                if words.stems[end - 1]:
                    spans[" ".join(words.forms[start:end])].append((start, end))
        places = list(spans.values())
        return [(row, span) for which, row in self.find(list(spans)) for span in places[which]]

    def titled(self, title: str) -> list[int]:
        """The rows of the passages that may have a title, in their order; it may be another form of theirs."""
        form = title_forms(Passage.of(title, ""))[0]
        return sorted({row for _, row in self.find([form])})

    def named(self, targets: Sequence[str]) -> dict[str, int]:
        """The row of the passage that each target names (see `polyhop.data.links.resolve`): where its fragment starts,
        or else the one that opens the document. Targets outside of the collection are left out."""
        places = [place_of(target) for target in targets]
        rows = dict[str, int]()
        for keys in ([place_key(*place) for place in places], [place_key(document) for document, _ in places]):
            for which, row in self.find(keys):
                rows.setdefault(targets[which], row)
        return rows

    def idf(self, stem: str) -> float:
        """BM25's inverse document frequency, as a share of that of a word in a single passage; 0 for one in none."""
        if stem not in self._idf:
            if len(self._idf) > _CACHED:
                self._idf = {"": 0.0}
            number, count = crc32(stem.encode()), 0
            for part in self._parts:
                at = int(part.stems.searchsorted(np.uint32(number)))
                if at < len(part.stems) and part.stems[at] == number:
                    count += int(part.counts[at])
            size = max(len(self), count, 1)
            rarest = log1p((size - 0.5) / 1.5)
            self._idf[stem] = log1p((size - count + 0.5) / (count + 0.5)) / rarest if count else 0.0
        return self._idf[stem]

    def rarity(self, stems: Iterable[str]) -> float:
        """How rare a name is: the total IDF of its distinct topic words, 1 for an unknown one."""
        return sum(self.idf(stem) or 1.0 for stem in {*stems} - {""}) * self._overlap


def hashes_of(folder: Path, largest: float = inf) -> dict[str, str]:
    """Hashes of the files of a store, without larger ones."""
    hashes = {}
    for path in sorted(folder.iterdir()):
        if path.stat().st_size <= largest:
            with path.open("rb") as file:
                hashes[path.name] = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
    return hashes


class StoreWriter:
    """Writes the tables of passages, in the order of Lucene's documents, to a new folder; or makes them in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        if folder:
            folder.mkdir()
        self._columns: dict[str, list[Table]] = {name: [np.zeros(0, kind)] for name, kind in _TYPES.items()}
        self._batch: list[Passage] = []
        self._size = self._pending = 0  # rows, and counts of stems

    def copy(self, folders: Mapping[Path, Mapping[str, str]], live: Bools) -> None:
        """Begin with the ``live`` passages of other folders, given with the hashes of their files.

        Which stems the others had is not stored: all counts fall by the share of passages that are left.
        """
        for folder, hashes in folders.items():
            part = Part.open(folder, hashes)
            alive, live = live[: len(part.documents)], live[len(part.documents) :]
            is_kept, rows = alive[part.rows], self._size + np.cumsum(alive) - 1
            self._add(part.documents[alive], part.keys[is_kept], rows[part.rows[is_kept]])
            if alive.any():
                self._count(part.stems, np.ceil(part.counts * alive.mean()))

    def add(self, passages: Iterable[Passage]) -> None:
        for passage in passages:
            self._batch.append(passage)
            if len(self._batch) == _BATCH:
                self._write()

    def _write(self) -> None:
        keys, rows, stems = list[int](), list[int](), list[int]()
        for row, passage in enumerate(self._batch, self._size):
            hashes = sorted(map(number_of, keys_of(passage)))
            keys += hashes
            rows += [row] * len(hashes)
            stems += [crc32(stem.encode()) for stem in {*PassageWords(passage).stems} - {""}]
        documents = list(map(document_of, self._batch))
        self._add(np.array(documents, np.uint64), np.array(keys, np.uint64), np.array(rows))
        self._count(*np.unique(np.array(stems, np.uint32), return_counts=True))
        self._batch = []

    def _add(self, documents: Table, keys: Table, rows: Table) -> None:
        for name, column in (("documents", documents), ("keys", keys), ("rows", rows)):
            self._columns[name].append(column.astype(_TYPES[name]))
        self._size += len(documents)

    def _count(self, stems: Table, counts: Table) -> None:
        self._columns["stems"].append(stems)
        self._columns["counts"].append(counts.astype(np.uint32))
        self._pending += len(stems)
        if self._pending > _PENDING:
            self._add_up()

    def _add_up(self) -> None:
        stems, which = np.unique(np.concatenate(self._columns["stems"]), return_inverse=True)
        counts = np.bincount(which, np.concatenate(self._columns["counts"])).astype(np.uint32)
        self._columns |= {"stems": [stems], "counts": [counts]}
        self._pending = 0

    def part(self) -> Part:
        """The tables of all that was added."""
        self._write()
        self._add_up()
        tables = {name: np.concatenate(columns) for name, columns in self._columns.items()}
        order = np.argsort(tables["keys"], kind="stable")
        return Part(**tables | {"keys": tables["keys"][order], "rows": tables["rows"][order]})

    def finish(self) -> dict[str, str]:
        """Write the tables; returns the hashes of their files."""
        assert self._folder
        for name, table in self.part()._asdict().items():
            np.save(self._folder / f"{name}.npy", table)
        return hashes_of(self._folder)
