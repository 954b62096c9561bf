"""The retrievers by name, for the command line and for artifacts.

A retriever of the package is one entry of `RETRIEVERS`. Your own needs no entry: ``--retriever FILE.py:NAME`` calls
the function or class with the opened index (or the pool of passages) and searches with what it returns. The command
line reads this module for ``--help``, so retrievers are imported when they are built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from .errors import PolyhopError
from .importing import import_named
from .passages import Retriever

if TYPE_CHECKING:
    from .dense import DenseIndex
    from .lucene.bm25 import BM25Index
    from .pool import PassagePool

    SearchSource: TypeAlias = BM25Index | PassagePool | None  # None if each question has its own pool

OTHER = "other"
"""The name of a retriever without an entry."""


class RetrieverEntry(NamedTuple):
    """A registered retriever."""

    summary: str  # one phrase for `--help`
    build: Callable[[Any], Any]  # makes it from what is searched
    classes: tuple[str, ...] = ()  # of what it makes, by which a retriever that is in use is recognized


def _chain(source: SearchSource, *, dense: bool = True) -> Retriever:
    from .chain import ChainRetriever

    vectors = _dense(source) if dense and has_vectors(source) else None
    return ChainRetriever(cast("Any", source), vectors=vectors)


def has_vectors(source: Any) -> bool:
    """Whether what is searched is an index with vectors."""
    from .dense import encoders_of
    from .lucene.bm25 import BM25Index

    return isinstance(source, BM25Index) and bool(encoders_of(source.path, source.manifest))


def _dense(source: SearchSource) -> DenseIndex:
    from .dense import DenseIndex
    from .lucene.bm25 import BM25Index

    if not isinstance(source, BM25Index):
        raise PolyhopError("this --retriever needs an --index with vectors: polyhop index CORPUS --out DIR --dense")
    return DenseIndex(source.path)


def _fused(source: Any) -> Retriever:
    from .fusion import FusedRetriever

    return FusedRetriever([source, _dense(source)])


RETRIEVERS: Mapping[str, RetrieverEntry] = MappingProxyType(
    {
        "chain": RetrieverEntry(
            "follows the chain of evidence, with vectors if the index has them", _chain, ("ChainRetriever",)
        ),
        "chain-bm25": RetrieverEntry("chain without vectors", partial(_chain, dense=False)),
        "bm25": RetrieverEntry("matches words", lambda source: source, ("BM25Index", "PassagePool")),
        "dense": RetrieverEntry("compares vectors", _dense, ("DenseIndex",)),
        "fused": RetrieverEntry("fuses bm25 and dense by rank", _fused, ("FusedRetriever",)),
    }
)
_NAMES = {made: name for name, entry in RETRIEVERS.items() for made in entry.classes}


def build_retriever(name: str, source: SearchSource) -> Retriever | None:
    """The retriever of an entry, or of your own, ``FILE.py:NAME`` or ``MODULE:NAME``."""
    if ":" in name:
        make = import_named(name, "retriever")
        if source is None:
            raise PolyhopError(f"--retriever {name} needs an --index: only chain and bm25 search questions' passages")
        try:
            retriever = make(source)
        except Exception as error:
            raise PolyhopError(f"--retriever {name}: {type(error).__name__}: {error}") from error
        return checked_retriever(retriever, f"--retriever {name}: ")
    if name not in RETRIEVERS:
        names = ", ".join(RETRIEVERS)
        raise PolyhopError(f"no retriever {name!r}: choose {names}, or your own as FILE.py:NAME")
    return cast("Retriever | None", RETRIEVERS[name].build(source))


def checked_retriever(retriever: Any, whose: str = "") -> Retriever:
    """The same object.

    Raises:
        PolyhopError: it does not search as `Retriever` says, which a first question would show late.
    """
    try:
        with suppress(ValueError):  # what is written in C may tell nothing
            signature(retriever.search).bind("query", 10, 0)
    except (AttributeError, TypeError) as error:
        problem = f"got {type(retriever).__name__} ({error})"
        raise PolyhopError(
            f"{whose}a retriever has a method search(query, k, offset=0), such as BM25Index('DIR'); {problem}"
        ) from None
    return cast("Retriever", retriever)


def retriever_name(retriever: Retriever | None) -> str:
    """The name of a retriever's entry, or `OTHER`; without a retriever, programs search pools with BM25."""
    if retriever is None:
        return "bm25"
    ours = [base.__name__ for base in type(retriever).__mro__ if base.__module__.startswith(f"{__package__}.")]
    name = next((_NAMES[base] for base in ours if base in _NAMES), OTHER)
    without = name == "chain" and getattr(retriever, "vectors", None) is None
    return "chain-bm25" if without and has_vectors(getattr(retriever, "source", None)) else name


def described_name(described: str | None) -> str:
    """`retriever_name` of what `describe_retriever` says."""
    kind, _, vectors = (described or "PassagePool").partition(" ")
    name = _NAMES.get(kind.partition("+")[0], OTHER)
    return "chain-bm25" if name == "chain" and not vectors else name


def follows_chain(name: str) -> bool:
    """Whether a retriever of this name adds the weights of a chain to a program's tunables."""
    return name in ("chain", "chain-bm25")


def describe_retriever(retriever: Retriever | None) -> str | None:
    """The classes of a retriever and its parts, and the encoders of their vectors, for run manifests."""
    parts = [part for part in (retriever, *getattr(retriever, "retrievers", ())) if part is not None]
    with_vectors = (*parts, getattr(retriever, "vectors", None))
    encoders = {part.encoder.name for part in with_vectors if hasattr(part, "encoder")}
    return " ".join(("+".join(type(part).__name__ for part in parts), *sorted(encoders))) or None
