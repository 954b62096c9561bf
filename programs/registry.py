"""The kinds of retrievers that programs search."""

from __future__ import annotations

import dspy

from ..data.chain import ChainRetriever
from ..data.passages import Retriever
from .search import Search, retriever_of

KINDS = ("chain", "chain-dense", "bm25", "dense", "fused", "other", "none")
"""Of retrievers; "none" is for a program without a search. Only chains have weights as tunables."""


def retriever_kind(program: dspy.Module) -> str:
    """One of `KINDS`."""
    if not any(True for _ in program.named_sub_modules(Search)):
        return "none"
    return kind_of(retriever_of(program))


def kind_of(retriever: Retriever | None) -> str:
    """The kind of a retriever; without one, a program searches pools with BM25."""
    from ..data.dense import DenseIndex
    from ..data.fusion import FusedRetriever
    from ..data.lucene.bm25 import BM25Index
    from ..data.pool import PassagePool

    if isinstance(retriever, ChainRetriever):
        return "chain" if retriever.vectors is None else "chain-dense"
    kinds = {BM25Index: "bm25", PassagePool: "bm25", type(None): "bm25", DenseIndex: "dense", FusedRetriever: "fused"}
    return next((name for kind, name in kinds.items() if isinstance(retriever, kind)), "other")


def follows_chains(kind: str) -> bool:
    """Whether a program over this kind of retriever has the weights of a chain among its tunables."""
    return kind.startswith("chain")
