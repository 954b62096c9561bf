"""The programs by name: one list for the command line, for artifacts, and for whoever goes through all of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import dspy

from ..data.chain import ChainRetriever
from ..data.passages import Retriever
from .c3po import C3PO
from .direct import Direct
from .ircot import IRCoT
from .kair import Kair
from .naive import Naive
from .par_rag import ParRag
from .polyhop import PolyHop
from .prism import Prism
from .search import Search

PROGRAMS: Mapping[str, Any] = MappingProxyType(
    {
        "polyhop": PolyHop,
        "prism": Prism,
        "kair": Kair,
        "par_rag": ParRag,
        "c3po": C3PO,
        "ircot": IRCoT,
        "naive": Naive,
        "direct": Direct,
    }
)

KINDS = ("chain", "chain-dense", "bm25", "dense", "fused", "other", "none")
"""Of retrievers. Those with a chain have tunables that the others have not; "none" is of a program without a search."""


def new_program(name: str, retriever: Retriever | None = None, sparse: Retriever | None = None) -> dspy.Module:
    """A program as it is before any tuning.

    Args:
        retriever: Where it searches; None if every question brings its own passages.
        sparse: BM25, for a program that wants it beside its retriever; taken from the retriever if not given.

    Raises:
        KeyError: there is none of this name.
    """
    kind = PROGRAMS[name]
    if kind is Direct:
        return Direct()
    return ParRag(retriever, review_retriever=sparse) if kind is ParRag else kind(retriever)


def name_of(program: dspy.Module) -> str | None:
    """The name of a program of ours; None for any other, a subclass among them."""
    return next((name for name, kind in PROGRAMS.items() if type(program) is kind), None)


def retriever_of(program: dspy.Module) -> Retriever | None:
    """What the first search of a program searches."""
    search = next((part for _, part in program.named_sub_modules(Search)), None)
    return None if search is None else search.retriever


def retriever_kind(program: dspy.Module) -> str:
    """One of `KINDS`."""
    if not any(True for _ in program.named_sub_modules(Search)):
        return "none"
    return kind_of(retriever_of(program))


def kind_of(retriever: Retriever | None) -> str:
    """The kind of a retriever; where questions bring their own passages and nothing else is said, it is BM25."""
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
