"""Pyserini's searcher as a retriever."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import PolyhopError
from ..passages import Hit, Passage, SearchTool, Shared, check_page
from .jvm import attach, exclusive
from .stored import document_passage

_BM25 = re.compile(r"BM25\(k1=([\d.]+),b=([\d.]+)\)")


class PyseriniSearcher(SearchTool, Shared):
    """A `LuceneSearcher` of Pyserini as a thread-safe `Retriever`: its own hits, in its order and with its scores,
    whatever it ranks by. It cannot be pickled: worker processes take a `BM25Index`.

    Raises:
        PolyhopError: the index stores nothing to read.
    """

    def __init__(self, searcher: Any) -> None:
        self.searcher = searcher

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """See `Retriever.search`."""
        check_page(k, offset)
        attach()
        with exclusive():  # Pyserini's calls into Java are not thread-safe
            hits = self.searcher.search(query, k=offset + k)[offset:]
            return [Hit(self._passage(hit.docid), hit.score, rank) for rank, hit in enumerate(hits, offset + 1)]

    def _passage(self, id: str) -> Passage:
        document = self.searcher.doc(id)
        passage = document_passage(id, document.raw(), document.contents())
        if passage is None:
            raise PolyhopError(
                "the index of the LuceneSearcher stores no text of its documents: build it again with --storeRaw or "
                "--storeContents, or search it with BM25Index, which reads --storeDocvectors, too"
            )
        return passage

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
    if isinstance(source, str | Path):
        from .bm25 import BM25Index

        return BM25Index(source)
    if not _is_searcher(source):
        return source
    found = _BM25.fullmatch(source.get_similarity().toString())
    if not found or source.is_using_rm3() or source.is_using_rocchio():
        raise PolyhopError(
            "the chain retriever searches with BM25 alone: call set_bm25, unset_rm3 and unset_rocchio of the "
            "LuceneSearcher"
        )
    from .bm25 import BM25Index

    return BM25Index(source.index_dir, float(found[1]), float(found[2]))


def _is_searcher(retriever: Any) -> bool:
    return any(base.__name__ == "LuceneSearcher" and "pyserini" in base.__module__ for base in type(retriever).__mro__)
