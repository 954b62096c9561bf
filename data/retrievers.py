"""The retrievers by name, for the command line and for artifacts.

A retriever of the package is one entry of `RETRIEVERS`. Your own needs no entry: ``--retriever MODULE:FUNCTION`` calls
the function with the opened index (or the pool of passages) and searches with what it returns. The command line reads
this module for ``--help``, so retrievers are imported when they are built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from .errors import PolyhopError
from .importing import import_named
from .passages import Retriever

if TYPE_CHECKING:
    from .chain import ChainRetriever
    from .dense import DenseIndex
    from .lucene.bm25 import BM25Index
    from .pool import PassagePool

    SearchSource: TypeAlias = BM25Index | PassagePool | None  # None if each question has its own pool

OTHER = "other"
"""The name of a retriever without an entry."""


class RetrieverEntry(NamedTuple):
    """A registered retriever."""

    summary: str  # one phrase for `--help`
    build: Callable[[Any], Retriever | None]  # makes it from what is searched


def _chain(source: SearchSource) -> ChainRetriever:
    from .chain import ChainRetriever

    return ChainRetriever(cast("Any", source))


def _dense(source: SearchSource) -> DenseIndex:
    from .dense import DenseIndex
    from .lucene.bm25 import BM25Index

    if not isinstance(source, BM25Index):
        raise PolyhopError("this --retriever needs an --index with vectors: polyhop index CORPUS --out DIR --dense")
    return DenseIndex(source.path)


def _fused(source: Any) -> Retriever:
    from .fusion import FusedRetriever

    return FusedRetriever([source, _dense(source)])


def _chain_dense(source: Any) -> Retriever:
    from .chain import ChainRetriever

    return ChainRetriever(source, vectors=_dense(source))


RETRIEVERS: Mapping[str, RetrieverEntry] = MappingProxyType(
    {
        "chain": RetrieverEntry("follows the chain of evidence", _chain),
        "bm25": RetrieverEntry("matches words", lambda source: source),
        "dense": RetrieverEntry("compares vectors", _dense),
        "fused": RetrieverEntry("fuses bm25 and dense by rank", _fused),
        "chain-dense": RetrieverEntry("chain with vectors as one more feature", _chain_dense),
    }
)
_NAMES = {
    "chain.retriever.ChainRetriever": "chain",
    "lucene.bm25.BM25Index": "bm25",
    "pool.PassagePool": "bm25",
    "dense.DenseIndex": "dense",
    "fusion.FusedRetriever": "fused",
}


def build_retriever(name: str, source: SearchSource) -> Retriever | None:
    """The retriever of an entry, or of a function ``MODULE:FUNCTION``."""
    if ":" in name:
        make = import_named(name, "retriever")
        if source is None:
            raise PolyhopError(
                f"--retriever {name} needs an --index: only chain and bm25 search questions' own passages"
            )
        try:
            retriever = make(source)
        except Exception as error:
            raise PolyhopError(f"--retriever {name}: {type(error).__name__}: {error}") from error
        return checked_retriever(retriever, f"--retriever {name}: ")
    if name not in RETRIEVERS:
        known = ", ".join(RETRIEVERS)
        raise PolyhopError(f"no retriever {name!r}: choose {known}, or your own as MODULE:FUNCTION")
    return RETRIEVERS[name].build(source)


def checked_retriever(retriever: Any, whose: str = "") -> Retriever:
    """The same object.

    Raises:
        PolyhopError: it does not search as `Retriever` says, which a first question would show late.
    """
    try:
        with suppress(ValueError):  # what is written in C may tell nothing
            signature(retriever.search).bind("query", 10, 0)
    except (AttributeError, TypeError) as error:
        told = f"got {type(retriever).__name__} ({error})"
        raise PolyhopError(
            f"{whose}a retriever has a method search(query, k, offset=0), such as BM25Index('DIR'); {told}"
        ) from None
    return cast("Retriever", retriever)


def retriever_name(retriever: Retriever | None) -> str:
    """The name of a retriever's entry, or `OTHER`; without a retriever, programs search pools with BM25."""
    if retriever is None:
        return "bm25"
    bases = (f"{base.__module__}.{base.__name__}" for base in type(retriever).__mro__)  # without an import
    name = next((name for base in bases if (name := _NAMES.get(base.removeprefix(f"{__package__}.")))), OTHER)
    return "chain-dense" if name == "chain" and cast("ChainRetriever", retriever).vectors is not None else name


def follows_chain(name: str) -> bool:
    """Whether a retriever of this name adds the weights of a chain to a program's tunables."""
    return name in ("chain", "chain-dense")


def describe_retriever(retriever: Retriever | None) -> str | None:
    """The classes of a retriever and its parts, and the encoders of their vectors, for run manifests."""
    parts: list[Any] = [retriever, *getattr(retriever, "retrievers", ())]
    classes = "+".join(type(part).__name__ for part in parts if part is not None)
    with_vectors = (*parts, getattr(retriever, "vectors", None))
    encoders = {part.encoder.name for part in with_vectors if hasattr(part, "encoder")}
    return " ".join((classes, *sorted(encoders))) or None
