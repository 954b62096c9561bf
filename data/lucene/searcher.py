"""Pyserini's searcher as a retriever."""

from __future__ import annotations

import re
from typing import Any

from ..errors import PolyhopError

_BM25 = re.compile(r"BM25\(k1=([\d.]+),b=([\d.]+)\)")


def adapt(retriever: Any) -> Any:
    """A `LuceneSearcher` of Pyserini as a `BM25Index` with its parameters; anything else as it is.

    Raises:
        PolyhopError: the searcher ranks by something else than BM25 alone.
    """
    if not any(base.__name__ == "LuceneSearcher" and "pyserini" in base.__module__ for base in type(retriever).__mro__):
        return retriever
    found = _BM25.fullmatch(retriever.get_similarity().toString())
    if not found or retriever.is_using_rm3() or retriever.is_using_rocchio():
        raise PolyhopError(
            "polyhop searches with BM25 alone: call set_bm25, unset_rm3 and unset_rocchio of the LuceneSearcher"
        )
    from .bm25 import BM25Index

    return BM25Index(retriever.index_dir, float(found[1]), float(found[2]))
