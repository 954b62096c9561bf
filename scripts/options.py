"""What several commands ask in the same way: which program, over what, with which models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError

if TYPE_CHECKING:
    import dspy

    from ..data.passages import Retriever

IndexOption = Annotated[
    Path | None,
    typer.Option("--index", metavar="DIR", help="An index made by 'polyhop index'; the sample corpus if not given."),
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lm",
        metavar="[ROLE=]SPEC",
        help="The language model: 'lexical' (embedded) or a LiteLLM name such as openai/gpt-4o-mini, for the whole "
        "program or for one ROLE of it. May be repeated.  [default: $POLYHOP_LM or lexical]",
    ),
]
DepthOption = Annotated[int | None, typer.Option("-k", min=1, max=200, help="Passages that one search returns.")]


def open_retriever(index: Path | None) -> Retriever:
    """The index in a folder, or the sample corpus in memory (50 ms; an index of it would first start Java)."""
    if index is not None:
        from ..data.bm25 import BM25Index

        return BM25Index(index)
    from ..data.pool import PassagePool
    from ..data.sample import sample_passages

    return PassagePool(sample_passages())


def build_program(
    name: str, retriever: Retriever | None, models: Sequence[str] = (), k: int | None = None
) -> dspy.Module:
    """The program of a name, or of a saved state (a path ending in .json), with its models.

    Models never come from the file: a state says what to ask, the command line whom.

    Raises:
        PolyhopError: an unknown program or model, an unreadable state, or a ``k`` for a program without search.
    """
    from ..engines.models import assign_models

    program = _load(Path(name), retriever) if name.endswith(".json") else _named(name, retriever)
    if k is not None:
        if not hasattr(program, "search"):
            raise PolyhopError(f"{name} does not search, so -k means nothing to it")
        program.search.k.value = k
    assign_models(program, models)
    return program


def _programs(retriever: Retriever | None) -> dict[str, Callable[[], dspy.Module]]:
    from ..programs import Direct, Naive, Prism

    return {"prism": partial(Prism, retriever), "naive": partial(Naive, retriever), "direct": Direct}


def _named(name: str, retriever: Retriever | None) -> dspy.Module:
    programs = _programs(retriever)
    if name not in programs:
        raise PolyhopError(f"no program {name!r}: choose {', '.join(programs)}, or a saved state that ends in .json")
    return programs[name]()


def _load(path: Path, retriever: Retriever | None) -> dspy.Module:
    """The program whose parameters the state names: exactly those, so that nothing is dropped or stays a default."""
    import json

    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        parameters = {key: dict(value) for key, value in state.items() if key != "metadata"}
        shape = _shape(parameters)
    except OSError as error:
        raise PolyhopError(f"cannot read the program {path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PolyhopError(f"{path} is not a program saved by program.save('x.json')") from error
    programs = {name: new() for name, new in _programs(retriever).items()}
    fitting = {name: program for name, program in programs.items() if _shape(program.dump_state()) == shape}
    if len(fitting) != 1:
        found = f"fits {' and '.join(fitting)} alike" if fitting else "has the parameters of no program of this version"
        raise PolyhopError(f"{path} {found}: it names {', '.join(parameters) or 'none'}")
    program = next(iter(fitting.values()))
    try:
        program.load_state({name: {**value, "lm": None} for name, value in parameters.items()})
    except (KeyError, TypeError, ValueError) as error:
        raise PolyhopError(f"{path} holds a value that its program refuses: {error}") from error
    return program


def _shape(state: dict[str, Any]) -> dict[str, int]:
    """What tells programs apart and optimizers leave alone: parameters by name, predictors by number of fields."""
    return {name: len(value["signature"]["fields"]) if "signature" in value else 0 for name, value in state.items()}
