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

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data.chain import ChainRetriever, ChainWeights
    from .data.dense import DenseIndex
    from .data.errors import PolyhopError
    from .data.fusion import FusedRetriever
    from .data.lucene.bm25 import BM25Index
    from .data.lucene.index import adopt_index
    from .data.lucene.jvm import start_java
    from .data.passages import Evidence, Fact, Hit, Passage, Reason, Retriever, SearchTool
    from .data.pool import PassagePool
    from .data.sample import load_sample
    from .engines.models import language_model as lm
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

    __version__: str

# The imports above are read, not executed: at run time they are the table of what is where.
_MODULES = dict[str, tuple[str | None, str]]()
for _node in ast.walk(ast.parse(Path(__file__).read_text("utf-8"))):
    if isinstance(_node, ast.ImportFrom) and _node.level:
        for _alias in _node.names:
            _MODULES[_alias.asname or _alias.name] = (_node.module, _alias.name)

__all__ = sorted([*_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("polyhop")
    elif name in _MODULES:
        module, original = _MODULES[name]
        value = getattr(import_module(f".{module}", __name__), original)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
