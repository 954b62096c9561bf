"""The systems of the benchmark: polyhop's retrievers and other BM25 libraries, which are optional."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

K = 5
"""How many passages a search returns."""

Search = Callable[[str], list[str]]
"""From a question to the ids of the best passages; a system that stores passages also reads them."""


class System(NamedTuple):
    """A retrieval system.

    Attributes:
        open: Opens it for search, from the corpus file and the folder of its index.
        build: Builds the index; None for a system without one.
        folder: The name of the index folder, which systems may share.
        module: The module that must be installed.
        threads: Whether it supports concurrent searches.
        most: The largest corpus, in passages, and number of questions that take a reasonable time.
    """

    open: Callable[[Path, Path], Search]
    build: Callable[[Path, Path], None] | None
    folder: str = ""
    module: str = "polyhop"
    threads: bool = False
    most: tuple[int, int] | None = None


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, one at a time."""
    import ujson

    with file.open(encoding="utf-8") as lines:
        yield from map(ujson.loads, lines)


def _build_bm25(corpus: Path, folder: Path) -> None:
    from ...data.lucene.index import build_index

    build_index([corpus], folder)


def _open_bm25(corpus: Path, folder: Path) -> Search:
    from ...data.lucene.bm25 import BM25Index

    index = BM25Index(folder)
    return lambda question: [hit.passage.id for hit in index.search(question, K)]


def _open_chain(corpus: Path, folder: Path) -> Search:
    from ...data.chain import ChainRetriever
    from ...data.lucene.bm25 import BM25Index

    retriever = ChainRetriever(BM25Index(folder))
    return lambda question: [hit.passage.id for hit in retriever.search(question, K)]


def _build_bm25s(corpus: Path, folder: Path) -> None:
    bm25s = import_module("bm25s")
    retriever = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    retriever.index(_bm25s_terms(f"{record['title']}\n{record['text']}" for record in read_records(corpus)), **_QUIET)
    retriever.save(folder, corpus=read_records(corpus), show_progress=False)


def _open_bm25s(corpus: Path, folder: Path) -> Search:
    # Mapped, as its documentation advises for large collections.
    retriever = import_module("bm25s").BM25.load(folder, mmap=True, load_corpus=True, **_QUIET)

    def search(question: str) -> list[str]:
        found = retriever.retrieve(_bm25s_terms([question]), k=K, **_QUIET)
        return [record["id"] for record in found.documents[0]]

    return search


_QUIET = {"show_progress": False}


def _bm25s_terms(texts: Iterable[str]) -> Any:
    """The library's own analysis, with our stop words and stemmer."""
    from ...data.text import LUCENE_STOP_WORDS

    stemmer = import_module("Stemmer").Stemmer("porter")
    tokenize = import_module("bm25s").tokenize
    return tokenize(texts, stopwords=sorted(LUCENE_STOP_WORDS), stemmer=stemmer, **_QUIET)


def _open_rank_bm25(corpus: Path, folder: Path) -> Search:
    from ...data.text import terms

    ids: list[str] = []

    def texts() -> Iterator[list[str]]:
        for record in read_records(corpus):
            ids.append(record["id"])
            yield terms(f"{record['title']}\n{record['text']}")

    scorer = import_module("rank_bm25").BM25Okapi(texts(), k1=0.9, b=0.4)  # leaves analysis to its caller

    def search(question: str) -> list[str]:
        best = scorer.get_scores(terms(question)).argsort()[: -K - 1 : -1]
        return [ids[at] for at in best]

    return search


SYSTEMS = {
    "bm25": System(_open_bm25, _build_bm25, "index", threads=True),
    "chain": System(_open_chain, _build_bm25, "index", threads=True),
    "bm25s": System(_open_bm25s, _build_bm25s, "bm25s", "bm25s"),
    "rank-bm25": System(_open_rank_bm25, None, "rank-bm25", "rank_bm25", most=(100_000, 30)),
}
