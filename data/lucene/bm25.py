"""BM25 over an index on disk, which Lucene maps into memory.

The ranking is Anserini's, ties by id included, and so are the scores, except that Anserini rounds them to four
decimals. Indexes that Anserini or Pyserini made open as they are; to look up titles in them, as the chain retriever
does, adopt them once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Self
from weakref import finalize
from zlib import crc32

import numpy as np
import ujson

from ..chain.store import Bools, Store
from ..errors import IndexFault
from ..languages import spoken
from ..passages import Hit, Passage, SearchTool, Shared, check_page
from ..text import clean, ends_path, title_key, with_code_parts
from .jvm import analyzer, attach, autoclass, call, call_long, java_exception, lucene_class, reason
from .layout import (
    CONTENTS,
    DOCUMENT,
    ID,
    OURS,
    RAW,
    IndexManifest,
    build_command,
    newest_segments,
    open_reader,
    rebuild,
    stamp,
)
from .pyserini import document_passage, locate

_opening = Lock()  # pyjnius examines classes here for the first time
_PASSAGE_NUMBER = re.compile(r"#\d+$")
MOST_NAMED = 10_000  # passages of one document or title
_VERIFIED = 64 << 20  # bytes of an index whose checksums are compared when it is opened; of others, by --check
_LARGEST_K1 = 1e9  # Java's float has an end, and long before BM25 is the sum of the frequencies


class OpenIndex(SearchTool, Shared):
    """An index that is open until `close` or the end of a ``with`` block."""

    path: Path
    _current: Callable[[], LuceneReader]

    @property
    def _lucene(self) -> LuceneReader:
        return self._current()

    @property
    def manifest(self) -> IndexManifest:
        return self._lucene.manifest

    def __len__(self) -> int:
        return self.manifest.passages

    def close(self) -> None:
        """Close the Lucene files, also for all views of the index."""
        self._lucene.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class BM25Index(OpenIndex):
    """A thread-safe `Retriever` over an index made by polyhop, Anserini or Pyserini.

    A search sees what `update_index` or a rebuild has changed before it. Pickling keeps the path and the parameters.

    Args:
        path: The folder of the index, or of its documents, or ``pyserini:NAME`` for one of Pyserini's.
        k1: Term-frequency saturation, 0 or more.
        b: Length normalization, 0 to 1.

    Raises:
        IndexFault: the index is missing, unfinished or damaged.
        JavaError: Java cannot be started.
    """

    def __init__(self, path: Path | str, k1: float = 0.9, b: float = 0.4) -> None:
        self.path = locate(path)
        self.k1, self.b = _checked(k1, b)
        self._current = _Current(self.path)

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The hits of rank ``offset + 1`` to ``offset + k``; none for a query of stop words only."""
        check_page(k, offset)
        lucene = self._lucene
        ranking = lucene.top(lucene.words(query), offset + k, self.k1, self.b, lucene.by_score)[offset:]
        passages = lucene.stored([number for number, _ in ranking])
        ranked = enumerate(zip(passages, ranking, strict=True), offset + 1)
        return [Hit(passage, score, rank, document=number) for rank, (passage, (number, score)) in ranked]

    @property
    def has_titles(self) -> bool:
        """Whether passages can be looked up by title: not in an index of others that is not adopted."""
        return bool(self.manifest.chain)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> BM25Index:
        """A view of the same opened index with other parameters."""
        view = BM25Index.__new__(BM25Index)
        view.path, view._current = self.path, self._current
        view.k1, view.b = _checked(self.k1 if k1 is None else k1, self.b if b is None else b)
        return view

    def pinned(self) -> BM25Index:
        """A view of the present state of the index, which later changes of the files do not change."""
        view, lucene = self.with_bm25(), self._lucene
        view._current = lambda: lucene
        return view

    def passage(self, id: str) -> Passage:
        """The passage with an id; raises `KeyError` if there is none."""
        if passages := self._lucene.look_up(ID, id, 1):
            return passages[0]
        raise KeyError(id)

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """The passages with these ids, in their order; raises `KeyError` as `passage` does."""
        return [self.passage(id) for id in ids]

    def titled(self, title: str) -> list[Passage]:
        """The passages with a title, ordered by id; case, accents and punctuation are ignored."""
        lucene, key = self._lucene, title_key(title)
        # The store also finds short forms of a title.
        passages = [passage for passage in lucene.stored(lucene.store.titled(title)) if title_key(passage.title) == key]
        return sorted(passages[:MOST_NAMED], key=lambda passage: passage.id.encode())

    def named(self, name: str) -> list[Passage]:
        """The passages of the document, or the one passage, with an id; else those with a title; else those of
        documents, or with ids, that end so ("a/b.md" of "notes/a/b.md")."""
        lucene, name = self._lucene, name.strip().removeprefix("./")
        document = _PASSAGE_NUMBER.sub("", name)
        paths = lucene.look_up(DOCUMENT, "/".join(document.split("/")[-3:]))
        passages = [passage for passage in paths if name in (passage.document, passage.id)]
        passages = passages or lucene.look_up(ID, name, 1)
        if not passages and self.has_titles:
            passages = self.titled(name)
        return passages or [path for path in paths if ends_path(path.document, name) or ends_path(path.id, name)]

    @property
    def store(self) -> Store:
        """The words of all passages, for the chain retriever; row n belongs to Lucene's document n."""
        return self._lucene.store

    def ranking(self, query: str, k: int, offset: int = 0) -> list[tuple[int, float]]:
        """The document numbers and scores of what `search` finds, with other ties: several times faster."""
        lucene = self._lucene
        return lucene.top(lucene.words(query), offset + k, self.k1, self.b)[offset:]

    def stored(self, rows: Sequence[int]) -> list[Passage]:
        """The passages of Lucene's document numbers."""
        return self._lucene.stored(rows)

    def __reduce__(self) -> tuple[type[BM25Index], tuple[str, float, float]]:
        return BM25Index, (str(self.path.absolute()), self.k1, self.b)

    def __repr__(self) -> str:
        return f"BM25Index({str(self.path)!r}, k1={self.k1}, b={self.b})"


def _checked(k1: float, b: float) -> tuple[float, float]:
    if not 0 <= k1 <= _LARGEST_K1 or not 0 <= b <= 1:
        raise ValueError(f"k1 must be between 0 and {_LARGEST_K1:g}, and b between 0 and 1, got {k1} and {b}")
    return k1, b


class _Current:
    """The newest state of an index: opens it again when there is another commit."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._seen = stamp(path)
        self._reader = LuceneReader.open(path)

    def __call__(self) -> LuceneReader:
        if self._seen != (newest := stamp(self._path)) and newest:  # an index that was removed stays open
            with self._lock:
                if self._seen != (newest := stamp(self._path)) and newest:
                    with suppress(IndexFault):  # what another program made of it cannot be read: the last state stays
                        self._reader = LuceneReader.open(self._path)  # searches may still use the other
                    self._seen = newest
        return self._reader


class LuceneReader:
    """A state of a Lucene index, shared by all views of a `BM25Index` and by `DenseIndex`. Thread-safe.

    Args:
        adopting: As of `IndexManifest.of`.
    """

    def __init__(self, path: Path, *, adopting: bool = False) -> None:
        attach()
        if newest_segments(path) is None:
            state = " (its build was stopped or is still running)" if (path / OURS).exists() else ""
            raise IndexFault(f"There is no index at {path}{state}. Build one: {build_command(path)}")
        for name in ("Query", "TopFieldDocs", "TopDocs", "ScoreDoc", "BooleanQuery"):  # see `autoclass`
            lucene_class(f"search.{name}")
        for name in ("index.StoredFields", "index.LeafReader", "index.LeafReaderContext", "document.Document"):
            lucene_class(name)
        self._path = path
        with self._faults():
            self._reader = open_reader(path)
            self._close = finalize(self, _closed, self._reader)  # when no search uses it any more
            self._close.atexit = False
            self.manifest = IndexManifest.of(path, self._reader, adopting=adopting)
            files = call(call(call(self._reader, "getIndexCommit"), "getFileNames"), "toArray")
            if sum((path / file).stat().st_size for file in files) <= _VERIFIED:
                for leaf in self.leaves:
                    call_long(leaf, "checkIntegrity")  # which Lucene does when it merges
            self.has_deletions = bool(call(self._reader, "hasDeletions"))
            infos = call(lucene_class("index.FieldInfos"), "getMergedFieldInfos", self._reader)
            if any(call(infos, "fieldInfo", field) is None for field in (ID, CONTENTS)):
                raise IndexFault(f"{path} is not a BM25 index of Anserini or Pyserini: it has no ids or no contents.")
            ties_by_id = call(call(call(infos, "fieldInfo", ID), "getDocValuesType"), "name") != "NONE"
        self._analyzers = {language: analyzer(language) for language in self.manifest.languages}
        self._bag_of_words = autoclass("io.anserini.search.query.BagOfWordsQueryGenerator")()
        sort, field = lucene_class("search.Sort"), lucene_class("search.SortField")
        # Indexes of Lucene 8 cannot sort by id; Anserini orders their ties by document number, too.
        by_id = field(ID, lucene_class("search.SortField$Type").STRING_VAL)
        by_id = by_id if ties_by_id else field.FIELD_DOC
        self.by_score, self.by_id = sort(field.FIELD_SCORE, by_id), sort(by_id)
        call(lucene_class("search.IndexSearcher"), "setMaxClauseCount", 2**31 - 1)  # long queries
        self._json = autoclass("com.fasterxml.jackson.databind.ObjectMapper")()
        if self.manifest.foreign:
            self.stored(np.flatnonzero(self.live)[:1])  # stores a text, or says so

    @classmethod
    def open(cls, path: Path) -> LuceneReader:
        """The newest state; again, if a writer replaces it meanwhile."""
        while True:
            before = stamp(path)
            try:
                with _opening:
                    reader = cls(path)
                    if reader.manifest.chain:
                        len(reader.store)  # opens its files while they are there
                return reader
            except IndexFault:
                if stamp(path) == before:
                    raise

    def close(self) -> None:
        self._close()

    def words(self, query: str) -> Any:
        """The query of the words of a text, analyzed as the passages of the index were."""
        attach()
        text = clean(query) if self.manifest.foreign else with_code_parts(clean(query))
        languages = self.manifest.languages
        language = languages[0] if len(languages) == 1 else spoken(query, languages)
        with self._faults():
            return call(self._bag_of_words, "buildQuery", CONTENTS, self._analyzers[language], text)

    def top(self, query: Any, most: int, k1: float, b: float, order: Any = None) -> list[tuple[int, float]]:
        """The document numbers and scores of what a query finds, in the order of `by_score` or `by_id`; without, ties
        have none, and Lucene skips what cannot be among the best."""
        attach()
        with self._faults():
            # One for each search, which takes microseconds: changing its parameters is not thread-safe.
            searcher = lucene_class("search.IndexSearcher")(
                self._reader, signature="(Lorg/apache/lucene/index/IndexReader;)V"
            )
            call(searcher, "setSimilarity", lucene_class("search.similarities.BM25Similarity")(k1, b))
            most = min(most, self.manifest.passages)
            top = call_long(searcher, "search", query, most, *(() if order is None else (order, True)))
            hits = ujson.loads(call(self._json, "writeValueAsString", top))["scoreDocs"]  # all hits in one call
        return [(hit["doc"], hit["score"]) for hit in hits]

    def look_up(self, field: str, keyword: str, most: int = MOST_NAMED) -> list[Passage]:
        """The passages with a keyword, ordered by id."""
        attach()
        term = lucene_class("index.Term")(field, clean(keyword))
        with self._faults():
            if not call(self._reader, "docFreq", term):
                return []  # without a search
        query = lucene_class("search.TermQuery")(term)
        return self.stored([number for number, _ in self.top(query, most, 0.9, 0.4, self.by_id)])

    @cached_property
    def leaves(self) -> list[Any]:
        """The readers of the segments, in the order of document numbers."""
        return leaves_of(self._reader)

    @cached_property
    def live(self) -> Bools:
        """Which document numbers are not deleted, shape (documents,)."""
        with self._faults():
            return np.concatenate([live_documents(leaf) for leaf in self.leaves])

    @cached_property
    def store(self) -> Store:
        if not self.manifest.chain:
            raise IndexFault(
                f"The index {self._path} has no titles to look up. Add them once: polyhop index --adopt {self._path}"
            )
        with self._faults():
            return Store.open(self.manifest.stores(self._path), self.live, self.manifest.languages)

    def stored(self, documents: Iterable[int]) -> list[Passage]:
        """The passages of Lucene's document numbers, in their order; ascending numbers are fastest."""
        attach()
        with self._faults():
            fields = call(self._reader, "storedFields")  # not thread-safe: one per call
            return [self._passage(call(fields, "document", int(number))) for number in documents]

    def _passage(self, document: Any) -> Passage:
        raw = call(document, "get", RAW)
        if self.manifest.foreign:
            passage = document_passage(call(document, "get", ID), raw, call(document, "get", CONTENTS))
            return replace(passage, language=self.manifest.languages[0])
        if raw is None or (raw[-20:].startswith(',"crc32":"') and sealed(f"{raw[:-20]}}}") != raw):
            raise ValueError("the stored text of a passage has changed on the disk")
        return Passage.from_record(ujson.loads(raw))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except java_exception() as error:
            what = reason(error)
            if what.startswith("AlreadyClosed"):
                raise IndexFault(f"The index {self._path} is closed.") from error
            raise IndexFault(f"The index {self._path} is damaged ({what}). {rebuild(self._path)}") from error
        except (OSError, ValueError, LookupError) as error:  # what is stored is none of our records
            raise IndexFault(f"The index {self._path} is damaged ({error}). {rebuild(self._path)}") from error


def sealed(record: str) -> str:
    """A JSON object with a checksum as its last field: Lucene verifies its files when it merges them, and on --check,
    but not when it reads a document, so that a damaged one could be shown.
    """
    return f'{record[:-1]},"crc32":"{crc32(record.encode()):08x}"}}'


def _closed(reader: Any) -> None:
    attach()
    call(reader, "close")


def leaves_of(reader: Any) -> list[Any]:
    """The readers of the segments of an index."""
    contexts = call(reader, "leaves")
    return [call(call(contexts, "get", number), "reader") for number in range(call(contexts, "size"))]


def live_documents(segment: Any) -> Bools:
    """Which documents of a segment are not deleted."""
    size = call(segment, "maxDoc")
    if (bits := call(segment, "getLiveDocs")) is None:
        return np.ones(size, bool)
    words = np.array(call(call(lucene_class("util.FixedBitSet"), "copyOf", bits), "getBits"), np.int64)
    return np.unpackbits(words.view(np.uint8), bitorder="little", count=size).astype(bool)
