"""Multi-hop question answering over BM25 as DSPy programs.

    import polyhop

    program = polyhop.PolyHop(polyhop.ChainRetriever(polyhop.BM25Index("indexes/mine")))
    program.set_lm(polyhop.lm())
    print(program(question="Where was the director of Solaris born?").answer)

Names are imported when they are first used, so ``import polyhop`` is fast.
"""

# mypy: implicit-reexport
# ruff: noqa: F401

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors; `_EXPORTS` is for run time
    from .data.chain import ChainRetriever, ChainWeights
    from .data.dense import DenseIndex
    from .data.errors import PolyhopError
    from .data.fusion import FusedRetriever
    from .data.lucene.bm25 import BM25Index
    from .data.lucene.index import adopt_index
    from .data.lucene.jvm import start_java
    from .data.passages import Evidence, Fact, Hit, Passage, Reason, Retriever
    from .data.pool import PassagePool
    from .data.sample import load_sample
    from .engines.models import language_model
    from .eval.questions import Questions
    from .eval.run import evaluate
    from .optimizers.artifact import load, save
    from .optimizers.optimize import optimize
    from .optimizers.settings import OptimizationSettings, Splits
    from .optimizers.tunables import TunableSearch
    from .programs import (
        C3PO,
        Direct,
        Exemplar,
        Exemplars,
        FullContext,
        IRCoT,
        Kair,
        Naive,
        Oracle,
        ParRag,
        PolyHop,
        Prism,
        SetSelection,
        Tunable,
        choice,
        integer,
        real,
        tunables,
    )

    lm = language_model
    __version__: str

_EXPORTS = {
    "data.chain": "ChainRetriever ChainWeights",
    "data.dense": "DenseIndex",
    "data.errors": "PolyhopError",
    "data.fusion": "FusedRetriever",
    "data.lucene.index": "adopt_index",
    "data.lucene.bm25": "BM25Index",
    "data.lucene.jvm": "start_java",
    "data.passages": "Evidence Fact Hit Passage Reason Retriever",
    "data.pool": "PassagePool",
    "data.sample": "load_sample",
    "eval.questions": "Questions",
    "eval.run": "evaluate",
    "optimizers.artifact": "load save",
    "optimizers.optimize": "optimize",
    "optimizers.settings": "OptimizationSettings Splits",
    "optimizers.tunables": "TunableSearch",
    "programs": "C3PO Direct Exemplar Exemplars FullContext IRCoT Kair Naive Oracle ParRag PolyHop Prism SetSelection "
    "Tunable choice integer real tunables",
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names.split()} | {"lm": "engines.models"}

__all__ = sorted([*_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("polyhop")
    elif name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), "language_model" if name == "lm" else name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
