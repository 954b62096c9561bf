"""Multi-hop question answering over BM25 as DSPy programs.

    import polyhop

    program = polyhop.PolyHop(polyhop.ChainRetriever(polyhop.BM25Index("indexes/mine")))
    program.set_lm(polyhop.lm())
    print(program(question="Where was the director of Solaris born?").answer)

Everything named here is imported when it is first used, so that ``import polyhop`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data.chain import ChainRetriever, ChainWeights
    from .data.dense import DenseIndex
    from .data.errors import PolyhopError
    from .data.fusion import FusedRetriever
    from .data.lucene.bm25 import BM25Index
    from .data.passages import Evidence, Fact, Hit, Passage, Reason, Retriever
    from .data.pool import PassagePool
    from .data.sample import load_sample
    from .engines.models import language_model as lm
    from .eval.questions import Questions
    from .eval.run import evaluate
    from .optimizers.artifact import load, save
    from .programs import (
        C3PO,
        Direct,
        Exemplar,
        Exemplars,
        IRCoT,
        Kair,
        Naive,
        ParRag,
        PolyHop,
        Prism,
        Tunable,
        tunables,
    )

    __version__: str

__all__ = [
    "C3PO",
    "BM25Index",
    "ChainRetriever",
    "ChainWeights",
    "DenseIndex",
    "Direct",
    "Evidence",
    "Exemplar",
    "Exemplars",
    "Fact",
    "FusedRetriever",
    "Hit",
    "IRCoT",
    "Kair",
    "Naive",
    "ParRag",
    "Passage",
    "PassagePool",
    "PolyHop",
    "PolyhopError",
    "Prism",
    "Questions",
    "Reason",
    "Retriever",
    "Tunable",
    "__version__",
    "evaluate",
    "lm",
    "load",
    "load_sample",
    "save",
    "tunables",
]

_HOME = {
    "BM25Index": "data.lucene.bm25",
    "C3PO": "programs",
    "ChainRetriever": "data.chain",
    "ChainWeights": "data.chain",
    "DenseIndex": "data.dense",
    "Direct": "programs",
    "Evidence": "data.passages",
    "Exemplar": "programs",
    "Exemplars": "programs",
    "Fact": "data.passages",
    "FusedRetriever": "data.fusion",
    "Hit": "data.passages",
    "IRCoT": "programs",
    "Kair": "programs",
    "Naive": "programs",
    "ParRag": "programs",
    "Passage": "data.passages",
    "PassagePool": "data.pool",
    "PolyHop": "programs",
    "PolyhopError": "data.errors",
    "Prism": "programs",
    "Questions": "eval.questions",
    "Reason": "data.passages",
    "Retriever": "data.passages",
    "Tunable": "programs",
    "evaluate": "eval.run",
    "lm": "engines.models",
    "load": "optimizers.artifact",
    "load_sample": "data.sample",
    "save": "optimizers.artifact",
    "tunables": "programs",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("polyhop")
    elif name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), "language_model" if name == "lm" else name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # asked once
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
