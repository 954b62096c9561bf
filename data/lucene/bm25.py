"""BM25 over an index on disk: the retriever of everything that is larger than a question's own pool.

    index = BM25Index("indexes/hotpotqa")
    for hit in index.search("Which studio made the film Solaris?", k=5):
        print(hit.rank, hit.score, hit.passage.title)

Lucene searches, with Anserini's query and tie-breaking (by id): the ranking is Anserini's own, and so are the scores,
which Anserini rounds to four decimals and we do not. The index stays on disk and is mapped into memory as needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

import ujson

from ..errors import IndexFault
from ..passages import Hit, Passage, search_each
from ..text import clean, terms
from .jvm import attach, autoclass, call, java_exception, reason
from .layout import BARE_TITLE, CONTENTS, ID, RAW, TITLE, Manifest, rebuild, title_terms
from .writer import english_analyzer, open_directory

_opening = Lock()  # pyjnius meets classes for the first time here
_LOOKED_UP = 100  # passages of one title or text
_SETTINGS_KEPT = 64  # searchers for settings of k1 and b; one costs microseconds to make again


class BM25Index:
    """A `Retriever` over an index that `polyhop index` (or `build_index`) wrote. Any thread may use it.

    Copies are the index itself, and pickling keeps the path only: an index is a resource, not state.

    Args:
        path: The folder of the index.
        k1: Term-frequency saturation, 0 or more.
        b: Length normalisation, 0 to 1.

    Raises:
        IndexFault: there is no finished index, or it is damaged.
        JavaError: Java cannot be started.
        ValueError: ``k1`` or ``b`` is out of range.
    """

    def __init__(self, path: Path | str, k1: float = 0.9, b: float = 0.4) -> None:
        self.path = Path(path)
        self.k1, self.b = _checked(k1, b)
        self._lucene = open_lucene(self.path)
        self._searcher = self._lucene.searcher(k1, b)

    # -- searching

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The hits of rank ``offset + 1`` to ``offset + k``; a query without an index term (stop words only) has none.

        Raises:
            ValueError: ``k`` is not positive or ``offset`` is negative.
            IndexFault: the index is damaged or closed.
        """
        return self._lucene.search(self._searcher, query, k, offset)

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """`search` for each query, in parallel."""
        return search_each(self.search, queries, k)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> BM25Index:
        """The same opened index under other parameters; this one keeps its own."""
        view = object.__new__(BM25Index)
        view.path, view._lucene = self.path, self._lucene
        view.k1, view.b = _checked(self.k1 if k1 is None else k1, self.b if b is None else b)
        view._searcher = view._lucene.searcher(view.k1, view.b)
        return view

    def restricted_to(self, ids: Iterable[str]) -> RestrictedIndex:
        """A retriever that finds only these passages, with the scores they have in the whole index."""
        return RestrictedIndex(self, self._lucene.among(ids))

    # -- looking up

    def passage(self, id: str) -> Passage:
        """The passage of an id.

        Raises:
            KeyError: there is none.
        """
        return self.passages([id])[0]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """The passages of several ids, in their order; one look-up for all.

        Raises:
            KeyError: one of them does not exist.
        """
        found = {passage.id: passage for passage in self._lucene.look_up(self._lucene.among(set(ids)), len(ids))}
        return [found[id] for id in ids]

    def titled(self, title: str, *, bare: bool = False, limit: int = _LOOKED_UP) -> list[Passage]:
        """The passages of a title, by id; case, accents and punctuation are ignored.

        Args:
            bare: Ignore disambiguations too: "Help!" also finds "Help! (film)".
            limit: Return at most so many.
        """
        field, key = (BARE_TITLE, title_terms(title)[1]) if bare else (TITLE, title_terms(title)[0])
        return self._lucene.look_up(self._lucene.keyword(field, key), limit) if key else []

    def named(self, name: str) -> list[Passage]:
        """The passages that a person may mean: those of a title, else of an id or of a text file; all pieces of one
        that was split."""
        texts = (name, *(f"{folder}/{name}" for folder in self.manifest.corpus))
        pieces = (f"{text}#{number}" for text in texts for number in range(1, _LOOKED_UP))
        return self.titled(name) or self._lucene.look_up(self._lucene.among((*texts, *pieces)), _LOOKED_UP)

    def entitled(self, keys: Iterable[str], query: str, limit: int) -> list[Hit]:
        """The passages whose title, without its disambiguation, has one of these keys (see `title_key`): titles of
        more words and rarer ones before others, for they say more, and those that fit the query. One look-up."""
        return self._lucene.entitled(self._searcher, keys, query, limit)

    def frequency(self, word: str) -> int:
        """The number of passages that have the word; all of them for a stop word."""
        return min((self._lucene.frequency(term) for term in terms(clean(word))), default=len(self))

    @property
    def manifest(self) -> Manifest:
        """What the index was made from, and how."""
        return self._lucene.manifest

    def __len__(self) -> int:
        return self.manifest.passages

    # -- life

    def close(self) -> None:
        """Let go of the files, for this index and all views of it."""
        self._lucene.close()

    def __enter__(self) -> BM25Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __copy__(self) -> BM25Index:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BM25Index:
        return self

    def __reduce__(self) -> tuple[type[BM25Index], tuple[str, float, float]]:
        return BM25Index, (str(self.path), self.k1, self.b)

    def __repr__(self) -> str:
        return f"BM25Index({str(self.path)!r}, k1={self.k1}, b={self.b})"


class RestrictedIndex:
    """A `Retriever` over some passages of an index, made by `BM25Index.restricted_to`; use it for many searches."""

    def __init__(self, index: BM25Index, among: Any) -> None:
        self._index = index
        self._among = among

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        return self._index._lucene.search(self._index._searcher, query, k, offset, self._among)

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return search_each(self.search, queries, k)

    def with_bm25(self, k1: float | None = None, b: float | None = None) -> RestrictedIndex:
        return RestrictedIndex(self._index.with_bm25(k1, b), self._among)

    def __deepcopy__(self, memo: dict[int, Any]) -> RestrictedIndex:
        return self


def _checked(k1: float, b: float) -> tuple[float, float]:
    if not (math.isfinite(k1) and k1 >= 0):
        raise ValueError(f"k1 must be 0 or more, got {k1}")
    if not 0 <= b <= 1:
        raise ValueError(f"b must be between 0 and 1, got {b}")
    return k1, b


# --- Lucene ----------------------------------------------------------------------------------------------------------


def open_lucene(path: Path) -> _Lucene:
    manifest = Manifest.read(path)
    while True:
        try:
            with _opening:
                return _Lucene(path, manifest)
        except IndexFault:
            # A rebuild may have replaced the index after the manifest was read.
            before, manifest = manifest, Manifest.read(path)
            if manifest == before:
                raise


class _Lucene:
    """An opened Lucene index, shared by all views.

    It has one searcher for each setting, because a searcher's parameters must not change while another thread uses it.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        attach()
        self.manifest = manifest
        self._path = path
        for returned in ("Query", "TopFieldDocs", "BooleanQuery"):
            autoclass(f"org.apache.lucene.search.{returned}")
        autoclass("org.apache.lucene.document.Document")
        autoclass("org.apache.lucene.index.StoredFields")
        with self._faults():
            directory = open_directory(path / manifest.lucene_folder)
            self._reader = call(autoclass("org.apache.lucene.index.DirectoryReader"), "open", directory)
            found = call(self._reader, "numDocs")
        if found != manifest.passages:
            raise IndexFault(f"The index {path} has {found} of its {manifest.passages} passages. {rebuild(path)}")
        self._analyzer = english_analyzer()
        custom = autoclass("org.apache.lucene.analysis.custom.CustomAnalyzer")
        split = call(call(custom, "builder"), "withTokenizer", "simplePatternSplit", "pattern", "\n")
        self._by_line = call(split, "build")
        self._bag_of_words = autoclass("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self._scored_docs = autoclass("io.anserini.search.ScoredDocs")
        self._clause = autoclass("org.apache.lucene.search.BooleanClause$Occur")
        self._combined = autoclass("org.apache.lucene.search.BooleanQuery$Builder")
        sort, field = autoclass("org.apache.lucene.search.Sort"), autoclass("org.apache.lucene.search.SortField")
        by_id = field(ID, autoclass("org.apache.lucene.search.SortField$Type").STRING_VAL)
        self._by_score = sort(field.FIELD_SCORE, by_id)
        self._by_id = sort(by_id)
        call(
            autoclass("org.apache.lucene.search.IndexSearcher"), "setMaxClauseCount", 2**31 - 1
        )  # long queries are welcome
        self.searcher = lru_cache(_SETTINGS_KEPT)(self._new_searcher)

    def close(self) -> None:
        attach()
        call(self._reader, "close")

    def _new_searcher(self, k1: float, b: float) -> Any:
        attach()
        searcher = autoclass("org.apache.lucene.search.IndexSearcher")(
            self._reader, signature="(Lorg/apache/lucene/index/IndexReader;)V"
        )
        call(searcher, "setSimilarity", autoclass("org.apache.lucene.search.similarities.BM25Similarity")(k1, b))
        return searcher

    def search(self, searcher: Any, query: str, k: int, offset: int, among: Any = None) -> list[Hit]:
        if k <= 0 or offset < 0:
            raise ValueError(f"k must be positive and offset not negative, got k={k}, offset={offset}")
        attach()
        with self._faults():
            parsed = call(self._bag_of_words, "buildQuery", CONTENTS, self._analyzer, clean(query))
            if among is not None:
                both = self._combined()
                call(both, "add", parsed, self._clause.MUST)
                call(both, "add", among, self._clause.FILTER)
                parsed = call(both, "build")
            top = call(searcher, "search", parsed, min(offset + k, self.manifest.passages), self._by_score, True)
            return self._hits(top, searcher, offset)

    def _hits(self, top: Any, searcher: Any, offset: int = 0) -> list[Hit]:
        found = call(self._scored_docs, "fromTopDocs", top, searcher)
        rows = zip(found.lucene_documents[offset:], found.scores[offset:], found.lucene_docids[offset:], strict=True)
        return [
            Hit(_passage(document), score, rank, document=number)
            for rank, (document, score, number) in enumerate(rows, offset + 1)
        ]

    def look_up(self, query: Any, limit: int) -> list[Passage]:
        """The passages that a query matches, by id."""
        if limit < 1:
            return []
        attach()
        searcher = self.searcher(0.9, 0.4)
        with self._faults():
            top = call(searcher, "search", query, min(limit, self.manifest.passages), self._by_id)
            return [
                _passage(document)
                for document in call(self._scored_docs, "fromTopDocs", top, searcher).lucene_documents
            ]

    def entitled(self, searcher: Any, keys: Iterable[str], query: str, limit: int) -> list[Hit]:
        """The passages with one of these keys in the field `BARE_TITLE`."""
        # A key said twice counts twice. All in one call into Java: a call for each would cost more than all the rest.
        lines = "\n".join("\n".join([key] * (1 + key.count(" "))) for key in keys)
        if not lines or limit < 1:
            return []
        attach()
        with self._faults():
            both = self._combined()
            titled = call(self._bag_of_words, "buildQuery", BARE_TITLE, self._by_line, lines)
            asked = call(self._bag_of_words, "buildQuery", CONTENTS, self._analyzer, clean(query))
            call(both, "add", titled, self._clause.MUST)
            call(both, "add", asked, self._clause.SHOULD)
            count = min(limit, self.manifest.passages)
            return self._hits(call(searcher, "search", call(both, "build"), count, self._by_score, True), searcher)

    def frequency(self, term: str) -> int:
        attach()
        with self._faults():
            return int(call(self._reader, "docFreq", autoclass("org.apache.lucene.index.Term")(CONTENTS, term)))

    def stored(self, documents: Iterable[int]) -> list[Passage]:
        """The passages of Lucene's document numbers, in their order; ascending numbers are read fastest."""
        attach()
        with self._faults():
            fields = call(self._reader, "storedFields")  # one for each call: it is not for several threads
            return [_passage(call(fields, "document", int(document))) for document in documents]

    def among(self, ids: Iterable[str]) -> Any:
        """The query that matches the passages with these ids."""
        attach()
        as_bytes = autoclass("org.apache.lucene.util.BytesRef")
        keys = autoclass("java.util.ArrayList")()
        for id in ids:
            call(keys, "add", as_bytes(clean(id).encode()))
        return autoclass("org.apache.lucene.search.TermInSetQuery")(
            ID, keys, signature="(Ljava/lang/String;Ljava/util/Collection;)V"
        )

    def keyword(self, field: str, key: str) -> Any:
        """The query that matches the passages with this keyword."""
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
                raise IndexFault(f"The index {self._path} was closed.") from error
            raise IndexFault(f"The index {self._path} is damaged ({what}). {rebuild(self._path)}") from error


def _passage(document: Any) -> Passage:
    return Passage.from_record(ujson.loads(call(document, "get", RAW)))
