"""The words of every passage of a collection, in memory or on disk beside an index.

A store on disk is a folder for each build or update, with the tables of the passages that it added:

    words          the passages' records one after another (uint32)
    starts.npy     where each record starts, and the end (int64)
    documents.npy  the number of the document of each passage (uint64)
    titles.npy     hashes of titles, whole and without disambiguation, in order (uint64)
    titled.npy     the passage of each of these (uint32)
    places.npy     numbers of documents and of the anchors in them, in order (uint64)
    placed.npy     the passage of each of these (uint32)
    stems.npy      the stems of the passages, in order (uint32)
    counts.npy     the number of passages that have each (uint32)
    hashes.json    of the other files, which only `polyhop index --check` compares

A record is a header (the words of the title, 7 bits, and `LATER`; its words without disambiguation; up to its first
comma; the number of names: 8 bits each), a second one (start and end of the short title; the number of links; the
words of the file's name, which follow the title: 8 bits each), the names (start and end, 16 bits each), the links
(start and end; the document, 64 bits; the anchor, 30 bits, and the kind, 2 bits), and the words (see
`polyhop.data.chain.reading`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from weakref import finalize
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..errors import IndexFault
from ..files import load_array
from ..passages import Passage
from .arrays import Bools, Floats, Hashes, Ints, hash_names, place_numbers, spanned, spread
from .reading import (
    FORM_BITS,
    KIND_BITS,
    LATER,
    LINK_SIZE,
    STEM_BITS,
    TOPIC,
    Record,
    Words,
    record_of,
    stems_of,
    without_flags,
)

HASHES = "hashes.json"
_BATCH = 256  # passages analyzed together
_SMALL = 1 << 14  # stems; of more, a table is faster than a search
_PENDING = 1 << 16  # counts of stems from which on a table of all stem numbers adds them up


class Records(NamedTuple):
    """Some passages: their words one after another, each passage's ending in 0.

    Attributes:
        words: With flags.
        sizes: The number of words of each passage, with all zeros.
        titles: The words of each title: all, without disambiguation, up to the first comma; shape (passages, 3).
        short: The first word and the end of each title as others write it, (0, 0) for the same; shape (passages, 2).
        files: The number of words in the name of the file.
        names: The (start, end) of names among `words`.
        named: The number of names of each passage.
        links: The (start, end) of links among `words`, shape (links, 2).
        linked: The number of links of each passage.
        targets: The document of each link.
        anchors: The number of the anchor there, 0 for none.
        kinds: 0 in text, 1 to see also, 2 in contents.
        later: Whether it is a passage of a document, but not the first.
    """

    words: Words
    sizes: Ints
    titles: Ints
    short: Ints
    files: Ints
    names: Ints
    named: Ints
    links: Ints
    linked: Ints
    targets: Hashes
    anchors: Hashes
    kinds: Ints
    later: Bools

    @classmethod
    def of(cls, records: Words, lengths: Ints) -> Records:
        """
        Args:
            records: One after another.
            lengths: Of each.

        Raises:
            IndexFault: a header tells of more than there is.
        """
        start = np.cumsum(lengths) - lengths
        header = records[start].astype(np.int64)
        titles = np.stack([header & LATER - 1, header >> 8 & 255, header >> 16 & 255], axis=-1)
        named = header >> 24
        second = records[start + 1].astype(np.int64)
        short, linked = np.stack([second & 255, second >> 8 & 255], axis=-1), second >> 16 & 255
        skipped = 2 + named + LINK_SIZE * linked
        sizes = lengths - skipped + 1
        if (sizes < 1).any():
            raise IndexFault("The index is damaged: the record of a passage is too short. Build it again.")
        packed = records[spread(start + 2, named)].astype(np.int64)
        link = records[spread(start + 2 + named, LINK_SIZE * linked)].reshape(-1, LINK_SIZE).astype(np.uint64)
        first = np.cumsum(sizes) - sizes
        words = np.zeros(int(sizes.sum()), np.uint32)
        words[spread(first, sizes - 1)] = records[spread(start + skipped, sizes - 1)]
        return cls(
            words,
            sizes,
            titles,
            short,
            second >> 24 & 255,
            _unpacked(packed) + np.repeat(first, named)[:, None],
            named,
            _unpacked(link[:, 0].astype(np.int64)) + np.repeat(first, linked)[:, None],
            linked,
            link[:, 1] | link[:, 2] << np.uint64(32),
            link[:, 3] >> np.uint64(KIND_BITS),
            (link[:, 3] & np.uint64((1 << KIND_BITS) - 1)).astype(np.int64),
            header & LATER > 0,
        )


def _file_spans(first: Ints, records: Records) -> Ints:
    start = first + records.titles[:, 0] + 1
    return np.stack([start, start + records.files], axis=-1)


def _unpacked(spans: Ints) -> Ints:
    return np.stack([spans >> 16, spans & 0xFFFF], axis=-1)


class Tables(NamedTuple):
    """The tables of some neighbouring rows, as above."""

    starts: Ints
    documents: Hashes
    titles: Hashes
    titled: NDArray[np.uint32]
    places: Hashes
    placed: NDArray[np.uint32]
    stems: Words
    counts: NDArray[np.uint32]

    @classmethod
    def open(cls, folder: Path) -> Tables:
        """The tables of a folder, memory-mapped.

        Raises:
            OSError: a file is missing.
            ValueError: a file is damaged.
        """
        tables = {name: load_array(folder / f"{name}.npy") for name in cls._fields}
        for name, table in tables.items():
            if table.ndim != 1 or table.dtype != _TYPES[name]:
                raise ValueError(f"{folder / name}.npy is damaged")
        found = cls(**tables)
        rows = len(found.documents)
        pairs = (found.titles, found.titled), (found.places, found.placed), (found.stems, found.counts)
        sound = len(found.starts) == rows + 1 and all(len(keys) == len(values) for keys, values in pairs)
        sound = sound and found.starts[0] == 0 and bool((found.starts[1:] - found.starts[:-1] >= 2).all())
        if not sound or any(len(each) and each.max() >= rows for each in (found.titled, found.placed)):
            raise ValueError(f"the tables in {folder} do not fit together")
        if (folder / "words").stat().st_size != 4 * int(found.starts[-1]):
            raise ValueError(f"{folder / 'words'} is cut off")
        return found


_TYPES = {
    "starts": np.int64, "documents": np.uint64, "titles": np.uint64, "titled": np.uint32, "places": np.uint64,
    "placed": np.uint32, "stems": np.uint32, "counts": np.uint32,
}  # fmt: skip


class Store:
    """The records of a collection; row n belongs to Lucene's document n, or to the n-th passage of a pool."""

    def __init__(
        self, parts: Sequence[Tables], read: Callable[[Ints, Ints, Ints], Words], live: Bools | None = None
    ) -> None:
        """
        Args:
            parts: Of the collection; rows follow one another.
            read: From the parts, the first words and the sizes of records to the records, one after another.
            live: Which rows are found, shape (rows,). The others still count as holders of words, as in Lucene.
        """
        self._read, self._parts, self._live = read, parts, live
        self._rows = np.cumsum([0, *(len(part.documents) for part in parts)])  # the first of each part; the end
        documents = np.concatenate([np.zeros(0, np.uint64), *(part.documents for part in parts)])
        documents = documents if live is None else documents[live]
        # The share of passages that do not open a document.
        self.pages = 1 - len(np.unique(documents)) / len(documents) if len(documents) else 0.0
        self._stems, counts = _added_up([part.stems for part in parts], [part.counts for part in parts])
        self._idf = _scaled_idf(counts, len(self))
        self._table: NDArray[np.float32] | None = None
        if len(self._stems) > _SMALL:
            # One entry a stem number; the system gives zeros without using memory for them.
            self._table = np.zeros(1 << 32 - STEM_BITS, np.float32)
            self._table[self._stems] = self._idf

    @classmethod
    def of(cls, records: Iterable[Record]) -> Store:
        """A store in memory."""
        kept = list(records)
        writer = _Tables()
        writer.add(kept)
        words = np.concatenate([record.words for record in kept]) if kept else np.zeros(0, np.uint32)
        return cls([Tables(**dict(writer.finish()))], partial(_records, words))

    @classmethod
    def open(cls, folders: Sequence[Path], live: Bools | None = None) -> Store:
        """A store on disk. Its records are read, the rest is memory-mapped.

        Raises:
            OSError: a file is missing.
            ValueError: a file is damaged, or there are more or fewer rows than ``live`` says.
        """
        parts = [Tables.open(folder) for folder in folders]
        if live is not None and len(live) != sum(len(part.documents) for part in parts):
            raise ValueError("it has the words of other passages")
        files = [os.open(folder / "words", os.O_RDONLY) for folder in folders]

        def read(part: Ints, first: Ints, sizes: Ints) -> Words:
            # A map would count the pages around each record as memory of the process: most of a large file in the end.
            wanted = zip(part.tolist(), (4 * first).tolist(), (4 * sizes).tolist(), strict=True)
            return np.frombuffer(b"".join(os.pread(files[n], size, at) for n, at, size in wanted), np.uint32)

        found = cls(parts, read, None if live is None or live.all() else live)
        for file in files:
            finalize(found, os.close, file)
        return found

    def __len__(self) -> int:
        return int(self._rows[-1])

    def records(self, rows: Sequence[int]) -> Records:
        part, first, sizes = self._parted(np.array(rows, np.int64))
        return Records.of(self._read(part, first, sizes), sizes)

    def checksum(self, row: int) -> int:
        return crc32(self._read(*self._parted(np.array([row]))).tobytes())

    def has_titles(self, hashes: Hashes) -> Bools:
        """Whether a passage has each title."""
        found = np.zeros(len(hashes), bool)
        for part in self._parts:
            if len(part.titles):
                at = np.minimum(np.searchsorted(part.titles, hashes), len(part.titles) - 1)
                found |= part.titles[at] == hashes
        if self._live is not None:
            at = np.flatnonzero(found)
            found[:] = False
            found[at[self.titled(hashes[at])[1]]] = True
        return found

    def titled(self, hashes: Hashes) -> tuple[Ints, Ints]:
        """The rows of passages with one of these titles, and the place of the title among the hashes."""
        return self._found("titles", "titled", hashes)

    def placed(self, numbers: Hashes) -> tuple[Ints, Ints]:
        """The rows of passages with one of these `place_numbers`, and its place among the numbers."""
        return self._found("places", "placed", numbers)

    def documents(self, rows: Ints) -> Hashes:
        """The numbers of the documents of some passages; 0 for those that were deleted."""
        of = np.searchsorted(self._rows, rows, "right") - 1
        found = np.zeros(len(rows), np.uint64)
        for n in np.unique(of).tolist():
            found[of == n] = self._parts[n].documents[rows[of == n] - self._rows[n]]
        if self._live is not None:
            found[~self._live[rows]] = 0
        return found

    def _found(self, keys: str, values: str, wanted: Hashes) -> tuple[Ints, Ints]:
        found = []
        for part, start in zip(self._parts, self._rows.tolist()[:-1], strict=True):
            known = getattr(part, keys)
            first = np.searchsorted(known, wanted)
            count = np.searchsorted(known, wanted, "right") - first
            rows = getattr(part, values)[spread(first, count)].astype(np.int64) + start
            found.append((rows, np.repeat(np.arange(len(wanted)), count)))
        rows, which = (np.concatenate(columns) for columns in zip(*found, strict=True))
        if self._live is not None:
            rows, which = rows[self._live[rows]], which[self._live[rows]]
        order = np.argsort(which, kind="stable")
        return rows[order], which[order]

    def _parted(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Of each row the part, its first word there, and its size."""
        of = np.searchsorted(self._rows, rows, "right") - 1
        first, sizes = np.zeros_like(rows), np.zeros_like(rows)
        for n in np.unique(of).tolist():
            starts, at = self._parts[n].starts, rows[of == n] - self._rows[n]
            first[of == n] = starts[at]
            sizes[of == n] = starts[at + 1] - starts[at]
        return of, first, sizes

    def idf(self, stems: Words) -> Floats:
        """BM25's inverse document frequency, as a share of that of a word in a single passage; 0 for one in none."""
        if self._table is not None:
            return self._table[stems].astype(float)
        if not len(self._stems):
            return np.zeros(stems.shape)
        at = np.minimum(np.searchsorted(self._stems, stems), len(self._stems) - 1)
        found: Floats = np.where(self._stems[at] == stems, self._idf[at], 0.0)
        return found

    def rarity(self, names: Words) -> Floats:
        """The total IDF of the distinct topic words of names, rows of numbers without flags, shape (names,)."""
        stems = np.sort(names >> (STEM_BITS - FORM_BITS), axis=1)
        idf = self.idf(stems)
        idf[idf == 0] = 1.0
        idf[stems < TOPIC] = 0.0
        idf[:, 1:][stems[:, 1:] == stems[:, :-1]] = 0.0
        found: Floats = idf.sum(axis=1)
        return found


def _records(words: Words, part: Ints, first: Ints, sizes: Ints) -> Words:
    return words[spread(first, sizes)]


def _added_up(stems: Sequence[Words], counts: Sequence[NDArray[Any]]) -> tuple[Words, Ints]:
    """The distinct stems, in order, and their total counts."""
    if len(stems) == 1:
        return stems[0], counts[0]
    distinct, which = np.unique(np.concatenate(stems), return_inverse=True)
    return distinct, np.bincount(which, np.concatenate(counts)).astype(np.int64)


def _scaled_idf(found: Ints, size: int) -> Floats:
    idf: Floats = np.log1p((size - found + 0.5) / (found + 0.5)) / np.log1p((size - 0.5) / 1.5) if size else np.zeros(0)
    return idf


class _Tables:
    """Everything but the words, gathered batch by batch."""

    def __init__(self) -> None:
        self._sizes: list[NDArray[np.uint32]] = []
        self._titles: list[Hashes] = []
        self._titled: list[NDArray[np.uint32]] = []
        self._documents: list[Hashes] = []
        self._places: list[Hashes] = []
        self._placed: list[NDArray[np.uint32]] = []
        self._stems: list[Words] = []
        self._counts: list[NDArray[Any]] = []
        self._table: NDArray[np.uint32] | None = None  # 16 MB, more than a question's own passages are worth
        self.rows = self._pending = 0

    def add(self, batch: Sequence[Record]) -> None:
        if not batch:
            return
        sizes = np.array([len(record.words) for record in batch], np.int64)
        self._sizes.append(sizes.astype(np.uint32))
        records = Records.of(np.concatenate([record.words for record in batch]), sizes)
        self._documents.append(np.array([record.document for record in batch], np.uint64))
        places = np.array([place for record in batch for place in record.places], np.uint64).reshape(-1, 2)
        holders = np.repeat(np.arange(self.rows, self.rows + len(batch)), [len(record.places) for record in batch])
        self.place(place_numbers(places[:, 0], places[:, 1]), holders)
        first = np.cumsum(records.sizes) - records.sizes
        spans = np.concatenate(
            [np.stack([first, first + records.titles[:, part]], axis=-1) for part in (0, 1)]
            + [records.short + first[:, None], _file_spans(first, records)]
        )
        hashes = hash_names(spanned(without_flags(records.words), spans))
        rows = np.tile(np.arange(self.rows, self.rows + len(batch), dtype=np.uint32), 4)
        keep = spans[:, 1] > spans[:, 0]
        keep[len(batch) : 2 * len(batch)] &= records.titles[:, 0] != records.titles[:, 1]
        self._titles.append(hashes[keep])
        self._titled.append(rows[keep])
        owner = np.repeat(np.arange(len(batch), dtype=np.uint64), records.sizes)
        pairs = np.sort(owner << np.uint64(32) | stems_of(records.words))  # np.unique's hashing is slower
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
        stems, counts = np.unique(pairs.astype(np.uint32), return_counts=True)  # the lower half
        self._stems.append(stems)
        self._counts.append(counts)
        self.rows += len(batch)
        self._pending += len(stems)
        if self._pending > _PENDING:
            self._add_up()

    def place(self, places: Hashes, rows: NDArray[Any]) -> None:
        self._places.append(places)
        self._placed.append(rows.astype(np.uint32))

    def _add_up(self) -> None:
        if self._table is None:
            self._table = np.zeros(1 << 32 - STEM_BITS, np.uint32)
        for stems, counts in zip(self._stems, self._counts, strict=True):
            self._table[stems] += counts.astype(np.uint32)
        self._stems, self._counts, self._pending = [], [], 0

    def finish(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The tables, one after another: each column is freed before the next is made."""
        none = np.zeros(0, np.uint32)
        stems: Words
        counts: NDArray[Any]
        if self._table is None:
            stems, counts = _added_up(self._stems or [none], self._counts or [none])
        else:
            self._add_up()
            stems = np.flatnonzero(self._table).astype(np.uint32)
            counts, self._table = self._table[stems], None
        topical = stems >= TOPIC
        yield "stems", stems[topical]
        yield "counts", counts[topical]
        starts = np.zeros(self.rows + 1, np.int64)
        np.cumsum(np.concatenate([none, *self._sizes]), out=starts[1:])
        self._sizes = []
        yield "starts", starts
        del starts
        numbers = np.zeros(0, np.uint64)
        yield "documents", np.concatenate([numbers, *self._documents])
        self._documents = []
        for keys, values in (("titles", "titled"), ("places", "placed")):
            found = np.concatenate([numbers, *getattr(self, f"_{keys}")])
            setattr(self, f"_{keys}", [])
            order = np.argsort(found, kind="stable")
            yield keys, found[order]
            del found
            yield values, np.concatenate([none, *getattr(self, f"_{values}")])[order]


def hashes_of(folder: Path) -> dict[str, str]:
    """Hashes of the files of a store."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name != HASHES:
            with path.open("rb") as file:
                found[path.name] = file_digest(file, "blake2b").hexdigest()
    return found


class StoreWriter:
    """Writes the folder of a store, in the order of Lucene's documents."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._tables = folder, _Tables()
        self._words: BinaryIO = (folder / "words").open("wb")
        self._batch: list[Record] = []

    def copy(self, folders: Sequence[Path], live: Bools) -> None:
        """Begin with the ``live`` passages of other folders."""
        start = 0
        for folder in folders:
            part, before = Tables.open(folder), self._tables.rows
            words = np.zeros(0, np.uint32)
            if len(part.documents):  # an empty file cannot be mapped
                words = np.memmap(folder / "words", np.uint32, "r")
            alive = live[start : start + len(part.documents)]
            start += len(alive)
            rows = np.flatnonzero(alive).tolist()
            for at in range(0, len(rows), _BATCH):
                self._batch = [
                    Record(words[part.starts[row] : part.starts[row + 1]], int(part.documents[row]), ())
                    for row in rows[at : at + _BATCH]
                ]
                self._write()
            found = alive[part.placed]
            self._tables.place(part.places[found], before + (np.cumsum(alive) - 1)[part.placed[found]])

    def add(self, passages: Iterable[Passage]) -> None:
        self._batch += [record_of(passage) for passage in passages]
        if len(self._batch) >= _BATCH:
            self._write()

    def _write(self) -> None:
        self._words.writelines(record.words.tobytes() for record in self._batch)
        self._tables.add(self._batch)
        self._batch = []

    def finish(self) -> None:
        """Write what is left, and the tables."""
        self._write()
        self.close()
        for name, values in self._tables.finish():
            np.save(self._folder / f"{name}.npy", values.astype(_TYPES[name], copy=False))
        (self._folder / HASHES).write_text(json.dumps(hashes_of(self._folder)))

    def close(self) -> None:
        self._words.close()
