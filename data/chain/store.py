"""The words of every passage of a collection, in memory or on disk beside an index.

A store on disk is a folder for each build or update, with the tables of the passages that it added:

    words          the words of all passages, one after another (uint32, see `polyhop.data.chain.words`)
    starts.npy     where those of each passage start, and the end (int64)
    heads.npy      seven numbers of each passage, see `Record.head` (uint8)
    documents.npy  the number of the document of each passage (uint64)
    links.npy      the links of all passages, one after another (`LINK`)
    linked.npy     where those of each passage start, and the end (int64)
    keys.npy       the hashes of titles and of their short forms, and the numbers of places, in order (uint64)
    rows.npy       the passage of each of these (uint32)
    stems.npy      the stems of the passages, in order (uint32)
    counts.npy     the number of passages that have each (uint32)

Their hashes are in the manifest of the index; those of large files only `polyhop index --check` compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b, file_digest
from io import BytesIO
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..files import load_array
from ..languages import ENGLISH, PAIRED
from ..passages import Hit, Passage
from .words import (
    FORM_BITS,
    LINK,
    LONGEST_NAME,
    STEM_BITS,
    TOPIC,
    TOPIC_WORD,
    Bools,
    Floats,
    Hashes,
    Ints,
    Record,
    Words,
    anchor_number,
    document_number,
    hash_names,
    hash_runs,
    place_numbers,
    read,
    record_of,
    spanned,
    spread,
    stems_of,
    without_flags,
)

FORMS = 7
"""Forms in which others write a title: whole, without disambiguation, short, the file's name, to the first comma,
without article, first and last name."""
_KEYS = 4  # of these, the forms by which a title is looked up
_ARTICLES = without_flags(np.array([word.numbers[0] for word in read("the a an")], np.uint32))
_BATCH = 256  # passages analyzed together
_SMALL = 1 << 14  # stems; of more, a table is faster than a search
_SMALL_FILE = 4 << 20  # bytes; read and compared in a few milliseconds
_PENDING = 1 << 20  # counts of stems that are not added up yet
_TYPES: dict[str, Any] = {
    "words": np.uint32, "starts": np.int64, "heads": np.uint8, "documents": np.uint64, "links": LINK,
    "linked": np.int64, "keys": np.uint64, "rows": np.uint32, "stems": np.uint32, "counts": np.uint32,
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


class Records(NamedTuple):
    """Some passages, one after another: see `Record`.

    Attributes:
        words: With flags; each text ends in 0.
        sizes: The number of words of each passage.
        heads: Shape (passages, 7).
        documents: 0 for deleted passages.
        links, linked: And the number of links of each passage; their words are those of `words`.
    """

    words: Words
    sizes: Ints
    heads: Ints
    documents: Hashes
    links: NDArray[Any]
    linked: Ints

    @classmethod
    def of(cls, words: Sequence[Words], heads: Sequence[Any], documents: Any, links: Sequence[NDArray[Any]]) -> Records:
        sizes, linked = (np.fromiter(map(len, parts), np.int64, len(parts)) for parts in (words, links))
        joined = np.concatenate([np.zeros(0, LINK), *links])
        for end in ("start", "end"):
            joined[end] += np.repeat(np.cumsum(sizes) - sizes, linked).astype(np.uint32)
        return cls(
            np.concatenate([np.zeros(0, np.uint32), *words]),
            sizes,
            np.array(heads, np.int64).reshape(-1, 7),
            np.asarray(documents, np.uint64),
            joined,
            linked,
        )

    def title_forms(self) -> Words:
        """The `FORMS` of each title, words without flags that end in zeros: shape (passages, forms, words)."""
        words, starts = without_flags(self.words), np.cumsum(self.sizes) - self.sizes
        whole, bare, comma, short, end, file, _ = self.heads.T
        article = (bare > 1) & np.isin(words[starts], _ARTICLES)
        spans = [
            (starts, starts + whole),
            (starts, starts + np.where(whole == bare, 0, bare)),
            (starts + short, starts + end),
            (starts + whole + 1, starts + whole + 1 + file),
            (starts, starts + comma),
            (starts + 1, starts + np.where(article, bare, 0)),
            (starts, starts),
        ]
        forms = spanned(words, np.array(spans).transpose(2, 0, 1).reshape(-1, 2)).reshape(-1, FORMS, LONGEST_NAME)
        person = np.flatnonzero((bare > 2) & (words[starts] >= TOPIC_WORD))
        forms[person, -1, :2] = np.stack([words[starts[person]], words[starts[person] + bare[person] - 1]], axis=1)
        return forms


class Part(NamedTuple):
    """The tables of some neighbouring rows, as above."""

    words: Words
    starts: Ints
    heads: NDArray[np.uint8]
    documents: Hashes
    links: NDArray[Any]
    linked: Ints
    keys: Hashes
    rows: NDArray[np.uint32]
    stems: Words
    counts: NDArray[np.uint32]

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
        words = folder / "words"
        small = words.stat().st_size < _BATCH  # an empty file cannot be mapped
        tables: dict[str, Any] = {}
        tables["words"] = np.fromfile(words, np.uint32) if small else np.asarray(np.memmap(words, np.uint32, "r"))
        tables |= {name: load_array(folder / f"{name}.npy") for name in cls._fields[1:]}
        part = cls(**tables)
        rows = len(part.documents)
        sound = all(table.dtype == _TYPES[name] for name, table in tables.items()) and part.heads.shape == (rows, 7)
        sound = sound and len(part.starts) == len(part.linked) == rows + 1 and len(part.keys) == len(part.rows)
        sound = sound and len(part.stems) == len(part.counts) and part.starts[-1] == len(part.words)
        sound = sound and all((starts[1:] >= starts[:-1]).all() for starts in (part.starts, part.linked))
        if not sound or part.linked[-1] != len(part.links) or (len(part.rows) and part.rows.max() >= rows):
            raise ValueError(f"the tables in {folder} do not fit together")
        return part

    def record(self, row: int) -> tuple[Words, Any, NDArray[Any]]:
        """The words, the head and the links of a passage."""
        words = self.words[self.starts[row] : self.starts[row + 1]]
        return words, self.heads[row], self.links[self.linked[row] : self.linked[row + 1]]


class Store:
    """The records of a collection; row n belongs to Lucene's document n, or to the n-th passage of a pool.

    Attributes:
        documents: The number of the document of each row; 0 for those that were deleted.
        pages: The share of passages that do not open a document.
        languages: Of the passages, that of most first.
    """

    def __init__(self, parts: Sequence[Part], live: Bools | None = None, languages: Sequence[str] = (ENGLISH,)) -> None:
        """
        Args:
            parts: Of the collection; rows follow one another.
            live: Which rows are found, shape (rows,). The others still count as holders of words, as in Lucene.
        """
        self._parts, self._live, self.languages = parts, live, tuple(languages)
        self._overlap = 0.5 if self.languages[0] in PAIRED else 1.0
        self._rows = np.cumsum([0, *(len(part.documents) for part in parts)])  # the first of each part; the end
        self.documents = parts[0].documents if len(parts) == 1 else np.concatenate([part.documents for part in parts])
        there = self.documents
        if live is not None:
            self.documents, there = np.where(live, there, np.uint64(0)), there[live]
        self.pages = 1 - len(np.unique(there)) / len(there) if len(there) else 0.0
        self._stems, counts = _added_up([part.stems for part in parts], [part.counts for part in parts])
        size = max(len(self), 1)
        idf = self._idf = np.log1p((size - counts + 0.5) / (counts + 0.5)) / np.log1p((size - 0.5) / 1.5)
        self._table: NDArray[np.float32] | None = None
        if len(idf) > _SMALL:
            # One entry a stem number; the system gives zeros without using memory for them.
            self._table = np.zeros(1 << 32 - STEM_BITS, np.float32)
            self._table[self._stems] = idf

    @classmethod
    def of(cls, records: Iterable[Record], languages: Sequence[str] = (ENGLISH,)) -> Store:
        """A store in memory."""
        writer = StoreWriter(file := BytesIO())
        writer.add_records(list(records))
        return cls([Part(np.frombuffer(file.getvalue(), np.uint32), **writer.tables())], None, languages)

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
        return cls(parts, None if live is None or live.all() else live, languages)

    def __len__(self) -> int:
        return int(self._rows[-1])

    def records(self, rows: Sequence[int]) -> Records:
        of = (np.searchsorted(self._rows, rows, "right") - 1).tolist()
        firsts = self._rows.tolist()
        records = [self._parts[part].record(row - firsts[part]) for part, row in zip(of, rows, strict=True)]
        words, heads, links = zip(*records, strict=True) if records else ((), (), ())
        return Records.of(words, heads, self.documents[np.array(rows, np.int64)], links)

    def find(self, keys: Hashes) -> tuple[Ints, Ints]:
        """The rows of passages with one of these titles (`hash_names`) or places (`place_numbers`), and which it is."""
        matches = []
        for part, start in zip(self._parts, self._rows.tolist()[:-1], strict=True):
            first = np.searchsorted(part.keys, keys)
            which = np.flatnonzero(first < len(part.keys))
            which = which[part.keys[first[which]] == keys[which]]
            count = np.searchsorted(part.keys, keys[which], "right") - first[which]
            matches.append((part.rows[spread(first[which], count)].astype(np.int64) + start, which.repeat(count)))
        rows, which = (np.concatenate(columns) for columns in zip(*matches, strict=True))
        if self._live is not None:
            rows, which = rows[self._live[rows]], which[self._live[rows]]
        order = np.argsort(which, kind="stable")
        return rows[order], which[order]

    def titles_in(self, words: Words, starts: Bools, longest: int) -> tuple[Ints, Ints]:
        """The rows of the passages whose title is a run of words, without flags, from one of ``starts`` to a topic
        word, and the (start, end) of the run."""
        padded, inside = np.append(words, np.zeros(longest, np.uint32)), starts & (words > 0)
        runs, spans = [], []
        for length, hashes in enumerate(hash_runs(words, longest), 1):
            last = padded[length - 1 : length - 1 + len(words)]
            inside = inside & (last > 0)
            first = np.flatnonzero(inside & (last >= TOPIC_WORD))
            runs.append(hashes[first])
            spans.append(np.stack([first, first + length], axis=1))
        rows, which = self.find(np.concatenate(runs))
        return rows, np.concatenate(spans)[which]

    def titled(self, title: str) -> list[int]:
        """The rows of the passages that may have a title, in their order; it may be another form of theirs."""
        rows = set[int]()
        for language in self.languages:
            numbers = [number for word in read(title, language) for number in word.numbers]
            words = without_flags(np.array(numbers, np.uint32))
            rows.update(self.find(hash_names(words[None, :LONGEST_NAME]))[0].tolist() if len(words) else ())
        return sorted(rows)

    def named(self, targets: Sequence[str]) -> dict[str, int]:
        """The row of the passage that each target names (see `polyhop.data.links.resolve`): where its fragment starts,
        or else the one that opens the document. Targets outside of the collection are left out."""
        documents, anchors = list(map(document_number, targets)), list(map(anchor_number, targets))
        named = dict[str, int]()
        for keys in (place_numbers(documents, anchors), place_numbers(documents, 0)):
            for row, at in zip(*(column.tolist() for column in self.find(keys)), strict=True):
                named.setdefault(targets[at], row)
        return named

    def idf(self, stems: Words) -> Floats:
        """BM25's inverse document frequency, as a share of that of a word in a single passage; 0 for one in none."""
        if self._table is not None:
            return self._table[stems].astype(float)
        if not len(self._stems):
            return np.zeros(stems.shape)
        at = np.minimum(np.searchsorted(self._stems, stems), len(self._stems) - 1)
        return np.where(self._stems[at] == stems, self._idf[at], 0.0)

    def rarity(self, names: Words) -> Floats:
        """The total IDF of the distinct topic words of names, rows of numbers without flags, shape (names,)."""
        stems = np.sort(names >> (STEM_BITS - FORM_BITS), axis=1)
        idf = self.idf(stems)
        idf[idf == 0] = 1.0
        idf[stems < TOPIC] = 0.0
        idf[:, 1:][stems[:, 1:] == stems[:, :-1]] = 0.0
        return idf.sum(axis=1) * self._overlap


def _added_up(stems: Sequence[Words], counts: Sequence[NDArray[Any]]) -> tuple[Words, NDArray[Any]]:
    """The distinct stems, in order, and their total counts."""
    if len(stems) == 1:
        return stems[0], counts[0]
    distinct, which = np.unique(np.concatenate(stems), return_inverse=True)
    return distinct, np.bincount(which, np.concatenate(counts)).astype(np.uint32)


def hashes_of(folder: Path, largest: float = inf) -> dict[str, str]:
    """Hashes of the files of a store, without larger ones."""
    hashes = {}
    for path in sorted(folder.iterdir()):
        if path.stat().st_size <= largest:
            with path.open("rb") as file:
                hashes[path.name] = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
    return hashes


class StoreWriter:
    """Writes the records of passages, in the order of Lucene's documents, to a new folder or into memory."""

    def __init__(self, target: Path | BytesIO) -> None:
        if isinstance(target, Path):
            target.mkdir()
        self._folder = target
        self._words: BinaryIO = (target / "words").open("wb") if isinstance(target, Path) else target
        self._columns: dict[str, list[Any]] = {name: [np.zeros(0, kind)] for name, kind in _TYPES.items()}
        self._columns["heads"] = [np.zeros((0, 7), np.uint8)]
        self._rows = self._pending = 0
        self._batch: list[Passage] = []

    def copy(self, folders: Mapping[Path, Mapping[str, str]], live: Bools) -> None:
        """Begin with the ``live`` passages of other folders, given with the hashes of their files."""
        for folder, hashes in folders.items():
            part = Part.open(folder, hashes)
            alive, live = live[: len(part.documents)], live[len(part.documents) :]
            kept, row = alive[part.rows], self._rows + np.cumsum(alive) - 1
            self._keep(keys=part.keys[kept], rows=row[part.rows[kept]])
            for rows in np.array_split(np.flatnonzero(alive), range(_BATCH, alive.sum(), _BATCH)):
                if len(rows):
                    words, heads, links = zip(*map(part.record, rows.tolist()), strict=True)
                    self._add(words, heads, part.documents[rows], links)

    def add(self, passages: Iterable[Passage]) -> None:
        self._batch += passages
        if len(self._batch) >= _BATCH:
            self._write()

    def _write(self) -> None:
        self.add_records(list(map(record_of, self._batch)))
        self._batch = []

    def add_records(self, batch: Sequence[Record]) -> None:
        if not batch:
            return
        rows = np.arange(self._rows, self._rows + len(batch))
        words, heads, documents, links, places = zip(*batch, strict=True)
        records = self._add(words, heads, documents, links)
        titles = hash_names(records.title_forms()[:, :_KEYS])
        row, form = np.nonzero(titles)
        keys = place_numbers(*np.array(list(chain.from_iterable(places)), np.uint64).reshape(-1, 2).T)
        self._keep(
            keys=np.append(titles[row, form], keys),
            rows=np.append(rows[row], np.repeat(rows, list(map(len, places)))),
        )

    def _keep(self, **columns: Any) -> None:
        for name, column in columns.items():
            self._columns[name].append(np.asarray(column).astype(_TYPES[name], copy=False))

    def _add(
        self, words: Sequence[Words], heads: Sequence[Any], documents: Any, links: Sequence[NDArray[Any]]
    ) -> Records:
        records = Records.of(words, heads, documents, links)
        self._words.write(records.words.tobytes())
        owner = np.repeat(np.arange(len(words), dtype=np.uint64), records.sizes)
        pairs = np.sort(owner << np.uint64(32) | stems_of(records.words))  # np.unique's hashing is slower
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
        stems, counts = np.unique(pairs.astype(np.uint32), return_counts=True)  # the lower half
        self._keep(
            starts=records.sizes,
            heads=records.heads,
            documents=records.documents,
            links=np.concatenate(links),
            linked=records.linked,
            stems=stems,
            counts=counts,
        )
        self._rows += len(words)
        self._pending += len(stems)
        if self._pending > _PENDING:
            self._add_up()
        return records

    def _add_up(self) -> None:
        stems, counts = _added_up(self._columns["stems"], self._columns["counts"])
        self._columns |= {"stems": [stems], "counts": [counts]}
        self._pending = 0

    def tables(self) -> dict[str, NDArray[Any]]:
        """The tables of all that was added, but for the words."""
        self._write()
        self._add_up()
        tables = {name: np.concatenate(self._columns.pop(name)) for name in Part._fields[1:]}
        topical, order = tables["stems"] >= TOPIC, np.argsort(tables["keys"], kind="stable")
        return tables | {
            "starts": np.append(0, np.cumsum(tables["starts"])),
            "linked": np.append(0, np.cumsum(tables["linked"])),
            "keys": tables["keys"][order],
            "rows": tables["rows"][order],
            "stems": tables["stems"][topical],
            "counts": tables["counts"][topical],
        }

    def finish(self) -> dict[str, str]:
        """Write what is left, and the tables; returns the hashes of all files."""
        tables = self.tables()
        self.close()
        assert isinstance(self._folder, Path)
        for name, table in tables.items():
            np.save(self._folder / f"{name}.npy", table)
        return hashes_of(self._folder)

    def close(self) -> None:
        self._words.close()
