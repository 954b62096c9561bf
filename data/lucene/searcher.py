"""Pyserini's searcher as a retriever."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import PolyhopError
from ..passages import Hit, SearchTool, Shared, check_page
from .jvm import attach, exclusive
from .pyserini import document_passage

_BM25 = re.compile(r"BM25\(k1=([\d.]+),b=([\d.]+)\)")


class PyseriniSearcher(SearchTool, Shared):
    """A `LuceneSearcher` of Pyserini as a thread-safe `Retriever`: its own hits, in its order and with its scores,
    whatever it ranks by. It cannot be pickled: worker processes take a `BM25Index`.

    Raises:
        IndexFault: the index stores nothing to read.
    """

    def __init__(self, searcher: Any) -> None:
        self.searcher = searcher

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """See `Retriever.search`."""
        check_page(k, offset)
        attach()
        with exclusive():  # Pyserini's calls into Java are not thread-safe
            hits = self.searcher.search(query, k=offset + k)[offset:]
            documents = [self.searcher.doc(hit.docid) for hit in hits]
            stored = [(document.raw(), document.contents()) for document in documents]
        passages = [document_passage(hit.docid, *document) for hit, document in zip(hits, stored, strict=True)]
        ranked = enumerate(zip(passages, hits, strict=True), offset + 1)
        return [Hit(passage, hit.score, rank) for rank, (passage, hit) in ranked]

    def __repr__(self) -> str:
        return f"PyseriniSearcher({self.searcher!r})"


def adapt(retriever: Any) -> Any:
    """A `LuceneSearcher` of Pyserini as a `PyseriniSearcher`; anything else as it is."""
    return PyseriniSearcher(retriever) if _is_searcher(retriever) else retriever


def chain_source(source: Any) -> Any:
    """What a chain can be searched in: of a folder its index, of a `LuceneSearcher` the `BM25Index` with its
    parameters, else the source.

    Raises:
        PolyhopError: the searcher ranks by something else than BM25 alone.
    """
    from .bm25 import BM25Index

    if isinstance(source, str | Path):
        return BM25Index(source)
    if not _is_searcher(source):
        return source
    parameters = _BM25.fullmatch(source.get_similarity().toString())
    if not parameters or source.is_using_rm3() or source.is_using_rocchio():
        raise PolyhopError(
            "the chain retriever searches with BM25 alone: call set_bm25, unset_rm3 and unset_rocchio of the "
            "LuceneSearcher"
        )
    return BM25Index(source.index_dir, float(parameters[1]), float(parameters[2]))


def _is_searcher(retriever: Any) -> bool:
    return any(base.__name__ == "LuceneSearcher" and "pyserini" in base.__module__ for base in type(retriever).__mro__)
