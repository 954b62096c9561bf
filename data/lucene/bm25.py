"""BM25 over an index on disk.

    index = BM25Index("indexes/hotpotqa")
    for hit in index.search("Which studio made the film Solaris?", k=5):
        print(hit.rank, hit.score, hit.passage.title)

Lucene searches with Anserini's query and tie-breaking (by id): the ranking equals Anserini's, and so do the scores,
except that Anserini rounds them to four decimals. The index stays on disk and is memory-mapped. Indexes that Anserini
or Pyserini made open as they are; to look up titles in them, as the chain retriever does, adopt them once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Self
from weakref import finalize

import numpy as np
import ujson

from ..chain.store import Store
from ..chain.words import Bools
from ..errors import IndexFault
from ..passages import Hit, Passage, SearchTool, Shared, check_page
from ..text import clean, ends_path, title_key, with_code_parts
from .jvm import attach, autoclass, call, call_long, english_analyzer, java_exception, reason
from .layout import (
    CONTENTS,
    DOCUMENT,
    ID,
    IndexManifest,
    generation_of,
    open_reader,
    rebuild,
    segments_of,
    settled,
    stamp,
)
from .prebuilt import locate
from .stored import StoredPassages

_opening = Lock()  # pyjnius examines classes here for the first time
_PASSAGE_NUMBER = re.compile(r"#\d+$")
_MAX_NAMED = 10_000  # passages of one document or title
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
    """A thread-safe `Retriever` over an index made by `polyhop index`, `build_index`, Anserini or Pyserini.

    A search sees what `update_index` or a rebuild has changed before it. Copying returns the index itself; pickling
    keeps the path and the parameters.

    Args:
        path: The folder of the index, or ``pyserini:NAME`` for one of Pyserini's (see `polyhop.data.lucene.prebuilt`).
        k1: Term-frequency saturation, 0 or more.
        b: Length normalization, 0 to 1.

    Raises:
        IndexFault: the index is missing, unfinished or damaged.
        JavaError: Java cannot be started.
        ValueError: ``k1`` or ``b`` is out of range.
    """

    def __init__(self, path: Path | str, k1: float = 0.9, b: float = 0.4) -> None:
        self.path = locate(path)
        self.k1, self.b = _checked(k1, b)
        self._current = _Current(self.path)

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The hits of rank ``offset + 1`` to ``offset + k``; none for a query of stop words only.

        Raises:
            ValueError: ``k`` is not positive or ``offset`` is negative.
            IndexFault: the index is damaged or closed.
        """
        return self._lucene.search(self.k1, self.b, query, k, offset)

    @property
    def has_titles(self) -> bool:
        """Whether passages can be looked up by title: not in an index of Anserini or Pyserini that is not adopted."""
        return self._lucene.has_titles

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
        """The passage with an id.

        Raises:
            KeyError: it does not exist.
        """
        return self.passages([id])[0]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """The passages with these ids, in their order.

        Raises:
            KeyError: one of them does not exist.
        """
        found = {passage.id: passage for passage in self._lucene.look_up(self._lucene.with_ids(set(ids)), len(ids))}
        return [found[id] for id in ids]

    def titled(self, title: str) -> list[Passage]:
        """The passages with a title, ordered by id; case, accents and punctuation are ignored."""
        lucene, key = self._lucene, title_key(title)
        # The store also finds short forms of a title.
        found = [each for each in lucene.stored(lucene.store.titled(title)) if title_key(each.title) == key]
        return sorted(found[:_MAX_NAMED], key=lambda passage: passage.id.encode())

    def named(self, name: str) -> list[Passage]:
        """The passages of the document, or the one passage, with an id; else those with a title; else those of the
        documents whose path ends so ("a/b.md" of "notes/a/b.md"), or the passages whose id does.
        """
        lucene, name = self._lucene, name.strip().removeprefix("./")
        document = _PASSAGE_NUMBER.sub("", name)
        paths = lucene.look_up(lucene.with_keyword(DOCUMENT, "/".join(document.split("/")[-3:])), _MAX_NAMED)
        found = [each for each in paths if name in (each.document, each.id)] or lucene.look_up(
            lucene.with_ids((name,)), 1
        )
        if not found and self.has_titles:
            found = self.titled(name)
        return found or [each for each in paths if ends_path(each.document, name) or ends_path(each.id, name)]

    @property
    def store(self) -> Store:
        """The words of all passages, for the chain retriever; row n belongs to Lucene's document n."""
        return self._lucene.store

    def ranking(self, query: str, k: int, offset: int = 0) -> list[tuple[int, float]]:
        """The document numbers and scores of what `search` finds, with other ties: several times faster."""
        return self._lucene.ranking(self.k1, self.b, query, k, offset)

    def stored(self, rows: Sequence[int]) -> list[Passage]:
        """The passages of Lucene's document numbers."""
        return self._lucene.stored(rows)

    def __reduce__(self) -> tuple[type[BM25Index], tuple[str, float, float]]:
        return BM25Index, (str(self.path.absolute()), self.k1, self.b)

    def __repr__(self) -> str:
        return f"BM25Index({str(self.path)!r}, k1={self.k1}, b={self.b})"


def _checked(k1: float, b: float) -> tuple[float, float]:
    if not 0 <= k1 <= _LARGEST_K1:
        raise ValueError(f"k1 must be between 0 and {_LARGEST_K1:g}, got {k1}")
    if not 0 <= b <= 1:
        raise ValueError(f"b must be between 0 and 1, got {b}")
    return k1, b


class _Current:
    """The newest state of an index: opens it again when there is another commit."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._seen = stamp(path)
        self._reader = LuceneReader.open(path)

    def __call__(self) -> LuceneReader:
        if self._seen != (found := stamp(self._path)) and found:  # an index that was removed stays open
            with self._lock:
                if self._seen != (found := stamp(self._path)) and found:
                    with suppress(IndexFault):  # what another program made of it cannot be read: the last state stays
                        self._reader = LuceneReader.open(self._path)  # searches may still use the other
                    self._seen = found
        return self._reader


class LuceneReader:
    """An open Lucene index, shared by all views of a `BM25Index` and by `DenseIndex`.

    Each search has a searcher of its own, because changing a searcher's parameters is not thread-safe.
    """

    def __init__(self, path: Path, manifest: IndexManifest) -> None:
        attach()
        self.manifest = manifest
        self._path = path
        for returned in ("Query", "TopFieldDocs", "TopDocs", "ScoreDoc", "BooleanQuery"):
            autoclass(f"org.apache.lucene.search.{returned}")  # see `autoclass`
        autoclass("org.apache.lucene.document.Document")
        autoclass("org.apache.lucene.index.StoredFields")
        with self._faults():
            self._reader = open_reader(path)
            self._close = finalize(self, _closed, self._reader)  # when no search uses it any more
            self._close.atexit = False
            if generation_of(path, segments_of(self._reader)) != manifest.generation:
                raise IndexFault(f"The index {path} changes. Try again.")
            found = call(self._reader, "numDocs")
            self.has_deletions = bool(call(self._reader, "hasDeletions"))
            self._passage = StoredPassages(self._reader, path, foreign=manifest.foreign)
            infos = call(autoclass("org.apache.lucene.index.FieldInfos"), "getMergedFieldInfos", self._reader)
            id_field = call(infos, "fieldInfo", ID)
            ties_by_id = id_field is not None and call(call(id_field, "getDocValuesType"), "name") != "NONE"
        self.has_titles = bool(manifest.chain)
        if found != manifest.passages:
            raise IndexFault(f"The index {path} has {found} of its {manifest.passages} passages. {rebuild(path)}")
        self._analyzer = english_analyzer()
        self._bag_of_words = autoclass("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self._scored_docs = autoclass("io.anserini.search.ScoredDocs")
        sort, field = autoclass("org.apache.lucene.search.Sort"), autoclass("org.apache.lucene.search.SortField")
        # Indexes of Lucene 8 cannot sort by id; Anserini orders their ties by document number, too.
        by_id = field(ID, autoclass("org.apache.lucene.search.SortField$Type").STRING_VAL)
        by_id = by_id if ties_by_id else field.FIELD_DOC
        self._by_score = sort(field.FIELD_SCORE, by_id)
        self._by_id = sort(by_id)
        searcher = autoclass("org.apache.lucene.search.IndexSearcher")
        call(searcher, "setMaxClauseCount", 2**31 - 1)  # long queries are allowed
        self._top_docs = autoclass("org.apache.lucene.search.TopDocs")
        self._json = autoclass("com.fasterxml.jackson.databind.ObjectMapper")()

    @classmethod
    def open(cls, path: Path) -> LuceneReader:
        def read() -> LuceneReader:
            with _opening:
                found = cls(path, IndexManifest.read(path))
                if found.has_titles:
                    len(found.store)  # opens its files while they are there
            return found

        return settled(path, read)

    def close(self) -> None:
        self._close()

    def searcher(self, k1: float, b: float) -> Any:
        """A new one, which takes microseconds."""
        searcher = autoclass("org.apache.lucene.search.IndexSearcher")(
            self._reader, signature="(Lorg/apache/lucene/index/IndexReader;)V"
        )
        call(searcher, "setSimilarity", autoclass("org.apache.lucene.search.similarities.BM25Similarity")(k1, b))
        return searcher

    def search(self, k1: float, b: float, query: str, k: int, offset: int) -> list[Hit]:
        check_page(k, offset)
        attach()
        most = self.manifest.passages
        with self._faults():
            searcher = self.searcher(k1, b)
            parsed = call(self._bag_of_words, "buildQuery", CONTENTS, self._analyzer, self._written(query))
            top = call_long(searcher, "search", parsed, min(offset + k, most), self._by_score, True)
            page = call(self._top_docs, "merge", self._by_score, min(offset, most), min(k, most), [top])
            found = call(self._scored_docs, "fromTopDocs", page, searcher)
            rows = zip(found.lucene_documents, found.scores, found.lucene_docids, strict=True)
            return [
                Hit(self._passage(document, number, self._reader), score, rank, document=number)
                for rank, (document, score, number) in enumerate(rows, offset + 1)
            ]

    def _written(self, query: str) -> str:
        """A query as the passages of the index were analyzed."""
        return clean(query) if self.manifest.foreign else with_code_parts(clean(query))

    def look_up(self, query: Any, limit: int) -> list[Passage]:
        """The passages that match a query, ordered by id."""
        if limit < 1:
            return []
        attach()
        searcher = self.searcher(0.9, 0.4)
        with self._faults():
            top = call_long(searcher, "search", query, min(limit, self.manifest.passages), self._by_id)
            found = call(self._scored_docs, "fromTopDocs", top, searcher)
            rows = zip(found.lucene_documents, found.lucene_docids, strict=True)
            return [self._passage(document, number, self._reader) for document, number in rows]

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
        if not self.has_titles:
            raise IndexFault(
                f"The index {self._path} has no titles to look up. Add them once: polyhop index --adopt {self._path}"
            )
        try:
            return Store.open(self.manifest.stores(self._path), self.live)
        except (OSError, ValueError) as error:
            raise IndexFault(f"The index {self._path} is damaged ({error}). {rebuild(self._path)}") from error

    def ranking(self, k1: float, b: float, query: str, k: int, offset: int) -> list[tuple[int, float]]:
        attach()
        with self._faults():
            parsed = call(self._bag_of_words, "buildQuery", CONTENTS, self._analyzer, self._written(query))
            # Without an order for ties, Lucene skips what cannot be among the best.
            top = call_long(self.searcher(k1, b), "search", parsed, min(offset + k, self.manifest.passages))
            found = ujson.loads(call(self._json, "writeValueAsString", top))["scoreDocs"]  # all hits in one call
        return [(hit["doc"], hit["score"]) for hit in found[offset:]]

    def stored(self, documents: Iterable[int]) -> list[Passage]:
        """The passages of Lucene's document numbers, in their order; ascending numbers are fastest."""
        attach()
        with self._faults():
            fields = call(self._reader, "storedFields")  # not thread-safe: one per call
            return [self._passage(call(fields, "document", int(n)), int(n), self._reader) for n in documents]

    def with_ids(self, ids: Iterable[str]) -> Any:
        """The query that matches the passages with these ids."""
        attach()
        as_bytes = autoclass("org.apache.lucene.util.BytesRef")
        keys = autoclass("java.util.ArrayList")()
        for id in ids:
            call(keys, "add", as_bytes(clean(id).encode()))
        return autoclass("org.apache.lucene.search.TermInSetQuery")(
            ID, keys, signature="(Ljava/lang/String;Ljava/util/Collection;)V"
        )

    def with_keyword(self, field: str, key: str) -> Any:
        """The query that matches the passages with this keyword of their document."""
        attach()
        term = autoclass("org.apache.lucene.index.Term")(field, key)
        return autoclass("org.apache.lucene.search.TermQuery")(term)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except java_exception() as error:
            what = reason(error)
            if what.startswith("AlreadyClosed"):
                raise IndexFault(f"The index {self._path} is closed.") from error
            raise IndexFault(f"The index {self._path} is damaged ({what}). {rebuild(self._path)}") from error
        except (ValueError, LookupError) as error:  # what is stored is none of our records
            raise IndexFault(f"The index {self._path} is damaged ({error}). {rebuild(self._path)}") from error


def _closed(reader: Any) -> None:
    attach()
    call(reader, "close")


def leaves_of(reader: Any) -> list[Any]:
    """The readers of the segments of an index."""
    for returned in ("LeafReader", "LeafReaderContext"):
        autoclass(f"org.apache.lucene.index.{returned}")  # see `autoclass`
    contexts = call(reader, "leaves")
    return [call(call(contexts, "get", number), "reader") for number in range(call(contexts, "size"))]


def live_documents(segment: Any) -> Bools:
    """Which documents of a segment are not deleted."""
    size = call(segment, "maxDoc")
    if (bits := call(segment, "getLiveDocs")) is None:
        return np.ones(size, bool)
    words = np.array(call(call(autoclass("org.apache.lucene.util.FixedBitSet"), "copyOf", bits), "getBits"), np.int64)
    return np.unpackbits(words.view(np.uint8), bitorder="little", count=size).astype(bool)
