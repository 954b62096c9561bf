"""Pyserini's searcher as a retriever."""

from __future__ import annotations

from typing import Any

from ..passages import Hit, SearchTool, Shared, check_page
from .jvm import attach, exclusive
from .pyserini import document_passage


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
    bases = type(retriever).__mro__
    is_searcher = any(base.__name__ == "LuceneSearcher" and "pyserini" in base.__module__ for base in bases)
    return PyseriniSearcher(retriever) if is_searcher else retriever
