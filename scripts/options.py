"""What several commands ask in the same way: which program, over what, with which models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from ..data.retrievers import RETRIEVERS, build_retriever, follows_chain, retriever_name

if TYPE_CHECKING:
    import dspy

    from ..data.lucene.bm25 import BM25Index
    from ..data.passages import Retriever
    from ..data.pool import PassagePool
    from ..optimizers.artifact import Artifact
    from ..optimizers.artifact_format import Manifest


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
        "program or for one ROLE of it; or a profile, FILE.toml. May be repeated.  [default: $POLYHOP_LM or lexical]",
    ),
]
RetrieverOption = Annotated[
    str | None,
    typer.Option(
        "--retriever",
        metavar="NAME|MODULE:FUNCTION",
        help=f"{'; '.join(f'{name}: {entry.summary}' for name, entry in RETRIEVERS.items())}; or your own, a function "
        "that takes the opened index. Vectors need 'polyhop index --dense'.  [default: chain; for a saved program as "
        "it was saved]",
        show_default=False,
    ),
]
AdaptiveOption = Annotated[
    bool,
    typer.Option("--adaptive", help="Let the chain decide how many passages it needs, up to 6 and up to -k."),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set a tunable, such as rounds=1. May be repeated."),
]
BudgetCallsOption = Annotated[
    int | None, typer.Option("--budget-calls", min=1, metavar="N", help="LM calls that may be made.")
]
BudgetDollarsOption = Annotated[
    float | None, typer.Option("--budget-usd", min=0, metavar="X", help="Dollars that may be spent.")
]
BudgetMinutesOption = Annotated[
    float | None, typer.Option("--budget-minutes", min=0, metavar="M", help="Minutes it may take.")
]
DepthOption = Annotated[int | None, typer.Option("-k", min=1, max=200, help="Passages that one search returns.")]


def open_source(index: Path | None) -> BM25Index | PassagePool:
    """The index in a folder, or the sample corpus in memory (50 ms; an index of it would first start Java)."""
    if index is not None:
        from ..data.lucene.bm25 import BM25Index

        return BM25Index(index)
    return sample_pool()


def sample_pool() -> PassagePool:
    from ..data.pool import PassagePool
    from ..data.sample import sample_passages

    return PassagePool(sample_passages())


def build_program(
    name: str,
    source: BM25Index | PassagePool | None,
    models: Sequence[str] = (),
    k: int | None = None,
    *,
    retriever: str | None = None,
    adaptive: bool = False,
    settings: Sequence[str] | None = None,
) -> dspy.Module:
    """The program of a name, of an artifact (a folder) or of a saved state (a path ending in .json), with its models.

    Models never come from a file: a state says what to ask, the command line whom.

    Args:
        source: What is searched; None if every question brings its own passages.
        settings: Values of tunables, each as ``NAME=VALUE``.

    Raises:
        PolyhopError: an unknown program, model or tunable, an unreadable state or artifact, ``k`` or ``adaptive`` for a
            program that has no such thing, or a retriever that needs vectors where there are none.
    """
    from ..engines.models import assign_models

    program = _program(name, source, retriever)
    if k is not None:
        if not hasattr(program, "search"):
            raise PolyhopError(f"{name} does not search, so -k means nothing to it")
        try:
            program.search.k.value = k
        except ValueError as error:
            raise PolyhopError(f"{name} and -k: {error}") from error
    if adaptive:
        if not getattr(getattr(program, "search", None), "chain", None):
            raise PolyhopError("--adaptive is for programs that search with --retriever chain")
        program.search.chain["adaptive"].value = True
    for text in settings or ():
        _set(program, text)
    _check_profile(models, program)
    assign_models(program, models)
    return program


def _check_profile(models: Sequence[str], program: dspy.Module) -> None:
    """A profile serves all programs, so it may name roles that this one has not; but some program has to have them. And
    a section that fits no model is most likely misspelt: what it says of an address would not hold."""
    from ..engines.models import chosen_models, roles
    from ..programs import PROGRAMS, new_program

    chosen, default, profile = chosen_models(models)
    if profile is None:
        return
    known = {role for each in (program, *(new_program(name, None, None) for name in PROGRAMS)) for role in roles(each)}
    for role in profile.roles:
        if role not in known:
            raise PolyhopError(f"{profile.path}: no program has a role {role!r}; there are {', '.join(sorted(known))}")
    used = sorted({default, *chosen.values()})
    matched = {profile.pattern(spec) for spec in used}
    for pattern in profile.models:
        if pattern not in matched:
            told = f'{profile.path}: [models."{pattern}"] matches none of the models here ({", ".join(used)})'
            typer.secho(told, fg=typer.colors.YELLOW, err=True)


def label(name: str) -> str:
    """What a program is called in tables: its name; a tuned one with the folder that it came from, as in ``polyhop
    (runs/tuned)``; a saved state as its file."""
    if name.endswith(".json"):
        return Path(name).stem
    from ..programs import PROGRAMS

    path = Path(name).resolve()
    if name in PROGRAMS or not path.is_dir():
        return path.name
    from ..optimizers.artifact import read_manifest
    from ..optimizers.joint.checkpoint import BEST

    try:
        program = read_manifest(path).program
    except PolyhopError:  # told where it is loaded
        return path.name
    folder = path.parent if path.name == BEST else path
    return f"{program.name or program.kind} ({'/'.join(folder.relative_to(folder.anchor).parts[-2:])})"


def _program(name: str, source: BM25Index | PassagePool | None, retriever: str | None) -> dspy.Module:
    from ..programs import PROGRAMS, new_program

    path = Path(name)
    if name in PROGRAMS:
        if retriever is not None and not PROGRAMS[name].searches:
            raise PolyhopError(f"{name} does not search, so --retriever means nothing to it")
        return new_program(name, build_retriever(retriever or "chain", source), source)
    if name.endswith(".json"):
        state = _read(path)
        if retriever is None:
            retriever = "chain" if _follows_chains(state) else "bm25"
        return _restored(path, state, build_retriever(retriever, source), source)
    if path.is_dir():
        from ..optimizers.artifact import read

        return _loaded(read(path), source, retriever)
    known = ", ".join(PROGRAMS)
    raise PolyhopError(
        f"no program {name!r}: choose {known}, or a saved state that ends in .json, or the folder of an artifact"
    )


def _loaded(artifact: Artifact, source: BM25Index | PassagePool | None, retriever: str | None) -> dspy.Module:
    """The program in an artifact, searching as it was tuned."""
    from ..optimizers.artifact import build

    kind = artifact.manifest.program.retriever
    if kind == "none":
        if retriever is not None:
            raise PolyhopError(f"{artifact.path} does not search, so --retriever means nothing to it")
        return _refilled(artifact, build(artifact, None))
    searched = build_retriever(retriever or (kind if kind in RETRIEVERS else "bm25"), source)
    if follows_chain(kind) != follows_chain(retriever_name(searched)):
        raise PolyhopError(f"{artifact.path} was saved with --retriever {kind}: leave --retriever out, or name that")
    return _refilled(artifact, build(artifact, searched, source))


def open_prompts(name: str) -> tuple[dspy.Module, Manifest | None]:
    """A program that nobody will ask anything, for what is in it; with the manifest of its artifact.

    Raises:
        PolyhopError: there is none of this name, or it is a program of somebody's own class.
    """
    from ..programs import PROGRAMS

    if name in PROGRAMS or name.endswith(".json") or not Path(name).is_dir():
        return _program(name, None, None), None
    from ..optimizers.artifact import build, read

    artifact = read(name)
    return _refilled(artifact, build(artifact, None)), artifact.manifest


def _refilled(artifact: Artifact, program: dspy.Module) -> dspy.Module:
    """Load an artifact into its program; what differs from when it was saved is said on stderr."""
    from ..optimizers.artifact import restore

    for difference in restore(artifact, program):
        typer.secho(f"{artifact.path}: {difference}", fg=typer.colors.YELLOW, err=True)
    return program


def _set(program: dspy.Module, text: str) -> None:
    """Give a tunable its value, as in ``rounds=1`` or ``search.k=10``."""
    import json

    from ..programs.tunable import tunables

    name, equals, value = text.partition("=")
    known = tunables(program)
    if name not in known or not equals:
        raise PolyhopError(f"no tunable in {text!r}: {_advice(name, list(known))}")
    try:
        known[name].value = value if value in known[name].choices else json.loads(value)
    except ValueError as error:
        reason = f"must be one of {list(known[name].choices)}" if known[name].choices else str(error)
        if isinstance(error, json.JSONDecodeError) and not known[name].choices:
            reason = f"{value!r} is no number; it is {known[name]}"
        raise PolyhopError(f"--set {text}: {reason}") from error


def _advice(name: str, known: Sequence[str]) -> str:
    """What can be set: the nearest names first; of the many weights of the chain only what they are called."""
    from difflib import get_close_matches

    if not known:
        return "this program has none"
    near = " or ".join(f"{each}=VALUE" for each in get_close_matches(name, known))
    single = ", ".join(each for each in known if "[" not in each)
    weights = [f", and the weights {each.partition('[')[0]}[...]" for each in known if "[" in each][:1]
    return " ".join([f"did you mean {near}?" if near else "say NAME=VALUE.", "There are", single]) + "".join(weights)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """The parameters of a saved program by name."""
    import json

    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        parameters = {key: dict(value) for key, value in state.items() if key != "metadata"}
        _shape(parameters)
    except OSError as error:
        raise PolyhopError(f"cannot read the program {path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PolyhopError(f"{path} is not a program saved by program.save('x.json')") from error
    return parameters


def _restored(
    path: Path,
    parameters: dict[str, dict[str, Any]],
    retriever: Retriever | None,
    source: BM25Index | PassagePool | None,
) -> dspy.Module:
    """The program whose parameters a state names: exactly those, so that nothing is dropped or stays a default."""
    from ..programs import PROGRAMS, new_program

    programs = {name: new_program(name, retriever, source) for name in PROGRAMS}
    shape = _shape(parameters)
    fitting = {name: program for name, program in programs.items() if _shape(program.dump_state()) == shape}
    if len(fitting) != 1:
        found = f"fits {' and '.join(fitting)} alike" if fitting else "has the parameters of no program of this version"
        if not fitting and _follows_chains(parameters) != hasattr(retriever, "weights"):
            how = "chain" if _follows_chains(parameters) else "bm25"
            raise PolyhopError(f"{path} was saved with --retriever {how}: leave --retriever out, or name that")
        raise PolyhopError(f"{path} {found}: it names {', '.join(parameters) or 'none'}")
    program = next(iter(fitting.values()))
    try:
        program.load_state({name: _without_settings(value) for name, value in parameters.items()})
    except (KeyError, TypeError, ValueError) as error:
        raise PolyhopError(f"{path} holds a value that its program refuses: {error}") from error
    return program


def _without_settings(value: dict[str, Any]) -> dict[str, Any]:
    """The state of a parameter; of a predictor only its prompt, since DSPy would set whatever else stands in the file,
    such as where to send it."""
    if "signature" not in value:
        return value
    prompt: dict[str, Any] = {name: value[name] for name in ("signature", "demos", "fields") if name in value}
    return {"traces": [], "train": [], **prompt, "lm": None}


def _follows_chains(parameters: dict[str, dict[str, Any]]) -> bool:
    return any(name.startswith("search.chain[") for name in parameters)


def _shape(state: dict[str, Any]) -> dict[str, int]:
    """What tells programs apart and optimizers leave alone: parameters by name, predictors by number of fields."""
    return {name: len(value["signature"]["fields"]) if "signature" in value else 0 for name, value in state.items()}
