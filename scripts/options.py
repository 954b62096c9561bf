"""Options that several commands share, and how a program is built from them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, get_annotations, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from pydantic import ValidationError

from ..data.errors import PolyhopError, first_error
from ..data.importing import import_named
from ..data.retrievers import RETRIEVERS, build_retriever, follows_chain, retriever_name
from ..eval.options import Limits, Options, ProgramOptions
from .text import warn

if TYPE_CHECKING:
    import dspy

    from ..data.lucene.bm25 import BM25Index
    from ..data.passages import Retriever
    from ..data.pool import PassagePool
    from ..optimizers.artifact import Artifact, Manifest


SAMPLE = "sample"
_SAVED = ".json"  # states that DSPy saves
_PLAIN = {"react": "polyhop.programs.baselines:ReAct"}  # programs of ours that are plain DSPy


IndexOption = Annotated[
    Path | None,
    typer.Option(
        "--index",
        envvar="POLYHOP_INDEX",
        metavar="DIR|pyserini:NAME",
        help="Index made by 'polyhop index', Anserini or Pyserini, a prebuilt one of Pyserini, or a folder that has "
        "one; sample for the sample corpus.  [default: that of the current folder]",
        show_default=False,
    ),
]
TimeoutOption = Annotated[
    float | None, typer.Option(min=0.001, help="Seconds per question; a question that takes longer fails.")
]
RetryOption = Annotated[bool, typer.Option("--retry-failed", help="When resuming: execute failed questions again.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command an option for each field of its parameters that are models (`polyhop.eval.options`)."""
    given = signature(command, eval_str=True)
    groups: dict[str, type[Options]] = {
        name: each.annotation
        for name, each in given.parameters.items()
        if isinstance(each.annotation, type) and issubclass(each.annotation, Options)
    }

    @wraps(command)
    def run(**values: Any) -> None:
        for name, model in groups.items():
            fields = {field: values.pop(field) for field in model.model_fields}
            try:
                values[name] = model(
                    **{
                        field: each
                        for field, each in fields.items()
                        if not (each is None or each is False or each == [])
                    }
                )
            except ValidationError as error:
                raise typer.BadParameter(first_error(error)) from error
        command(**values)

    parameters: list[Parameter] = []
    for name, each in given.parameters.items():
        parameters += _options(groups[name]) if name in groups else [each.replace(kind=Parameter.KEYWORD_ONLY)]
    run.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _options(model: type[Options]) -> Iterator[Parameter]:
    """Those of a model, its own before those of its bases."""
    own = get_annotations(model)
    for name in sorted(model.model_fields, key=lambda name: name not in own):
        field = model.model_fields[name]
        extra: Any = field.json_schema_extra
        default, several = field.default, get_origin(field.annotation) in (tuple, dict) and not field.default
        types = get_args(field.annotation) or (field.annotation,)
        kind: Any = list[str] if several else next((each for each in (bool, int, float, Path) if each in types), str)
        shown = ",".join(default) if isinstance(default, tuple) else default
        suffix = "" if shown in (None, "", {}, False) else f"  [default: {shown}]"
        metavar = extra["metavar"] or (None if kind is bool else "N" if kind in (int, float) else "TEXT")
        flag = extra["flag"] or f"--{name.replace('_', '-')}"
        option = typer.Option(flag, metavar=metavar, help=f"{field.description}{suffix}", show_default=False)
        value, optional = (False, bool) if kind is bool else (None, kind | None)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=Annotated[optional, option])


@contextmanager
def paying(limits: Limits, out: Path | None) -> Iterator[Callable[[Any], None]]:
    """Gives a function that meters a program under limits; a budget that is spent becomes an error.

    Args:
        out: The folder of the run, which keeps what is spent when it is resumed.
    """
    import dspy

    from ..engines.budget import Budget, BudgetSpent
    from ..eval.folder import account

    if not any(each is not None for each in limits.budget.values()):
        yield lambda program: None
        return
    budget, default = Budget(**limits.budget, file=account(out) if out else None), dspy.settings.lm
    try:
        with dspy.context(lm=budget.meter(default)) if default else nullcontext():  # of predictors without a model
            yield budget.meter_program
    except BudgetSpent as spent:
        kept = f"what is done is in {out}: resume with a larger one" if out else "use --out to be able to resume"
        raise PolyhopError(f"the budget ({spent}) is spent; {kept}") from None
    finally:
        budget.close()


def searches(name: str) -> bool:
    """Whether a program, an artifact or a class by name searches. Names that are unknown are errors later."""
    from ..programs import PROGRAMS

    own, _ = _parts(name)
    if name in PROGRAMS or own:
        return PROGRAMS[name].searches if name in PROGRAMS else _takes_retriever(import_named(own, "program"))
    artifact = artifact_of(name)
    return artifact is not None and artifact.manifest.program.retriever != "none"


def open_source(index: Path) -> BM25Index | PassagePool:
    """An index, or the sample corpus in memory."""
    if str(index) == SAMPLE and not index.exists():
        from ..data.pool import PassagePool
        from ..data.sample import sample_passages

        return PassagePool(sample_passages())
    from ..data.lucene.bm25 import BM25Index

    return BM25Index(index)


def build_program(
    name: str, source: BM25Index | PassagePool | None, options: ProgramOptions | None = None
) -> dspy.Module:
    """A program by name, from the folder of an artifact, or one of the user's own, with its models. Models never come
    from an artifact; a program of the user's own keeps those that its code gives it, unless others are named. Without a
    source, each question brings its own passages.
    """
    from ..engines.models import VARIABLE, assign_models, protect_cache

    options = options or ProgramOptions()
    program = _program(name, source, options.retriever)
    search = getattr(program, "search", None)
    if options.k is not None:
        if not hasattr(search, "k"):
            raise PolyhopError(f"{name} does not search: -k does not apply")
        try:
            program.search.k.value = options.k
        except ValueError as error:
            raise PolyhopError(f"{name} and -k: {error}") from error
    if options.adaptive:
        if not getattr(search, "chain", None):
            raise PolyhopError("--adaptive needs a program that searches with --retriever chain")
        program.search.chain["adaptive"].value = True
    for text in options.set:
        _set_tunable(program, text)
    _check_profile(options.lm, program)
    if options.lm or os.environ.get(VARIABLE) or None in models_of(program):
        assign_models(program, options.lm, {"cache": False} if options.no_cache else {})
    if any(model.cache for model in models_of(program)):
        protect_cache()
    return program


def models_of(program: dspy.Module) -> list[Any]:
    """The model of each predictor, its own or DSPy's default; None if there is none."""
    import dspy

    return [predictor.lm or dspy.settings.lm for predictor in program.predictors()]


def open_prompts(name: str, retriever: str | None = None) -> tuple[dspy.Module, Manifest | None]:
    """A program for inspection, without a retriever; with its manifest, if it is an artifact."""
    artifact = artifact_of(name)
    return _program(name, None, retriever), artifact.manifest if artifact else None


def label(name: str) -> str:
    """What tables call a program: its name; for an artifact also the last folders of its path, as in
    ``polyhop (runs/tuned)``."""
    from ..programs import PROGRAMS

    own, saved = _parts(name)
    if own and not saved:
        return own.rpartition(":")[2]
    path = Path(saved).resolve()
    if name in PROGRAMS or not path.is_dir():
        return path.name
    from ..optimizers.artifact import read
    from ..optimizers.settings import BEST

    try:
        program = read(path).manifest.program
    except PolyhopError:  # raised again where the artifact is loaded
        return path.name
    folder = path.parent if path.name == BEST else path
    return f"{program.name or program.kind} ({'/'.join(folder.relative_to(folder.anchor).parts[-2:])})"


def artifact_of(name: str) -> Artifact | None:
    """The artifact of ``DIR`` or ``MODULE:NAME=DIR``; None for any other program."""
    from ..programs import PROGRAMS

    own, folder = _parts(name)
    if name in PROGRAMS or not folder or not ((own and not folder.endswith(_SAVED)) or Path(folder).is_dir()):
        return None
    from ..optimizers.artifact import read

    return read(folder)


def own_program(name: str, retriever: Retriever | None = None, sparse: Retriever | None = None) -> dspy.Module:
    """The DSPy program that ``MODULE:NAME`` names: an instance, or what a class or a function returns, which is called
    with the retriever if it has a parameter of that name."""
    import dspy

    from ..programs import Program

    found = import_named(name, "program")
    if isinstance(found, type) and issubclass(found, Program):
        return found.over(retriever, sparse)
    if isinstance(found, dspy.Module):
        return found.deepcopy()
    try:
        made = found(retriever) if _takes_retriever(found) else found() if callable(found) else found
    except TypeError as error:
        raise PolyhopError(
            f"{name} cannot be called with the retriever or without arguments ({error}): name a function that returns "
            "the program"
        ) from error
    if not isinstance(made, dspy.Module):
        raise PolyhopError(f"{name} is no dspy.Module, nor a class or a function that makes one")
    return made


def _takes_retriever(own: Any) -> bool:
    """Whether what makes a program of the user's own does so with a ``retriever``, its first argument."""
    import dspy

    from ..programs import Program

    if isinstance(own, type) and issubclass(own, Program):
        return own.searches
    if isinstance(own, dspy.Module) or not callable(own):
        return False
    made_by: Any = own.__init__ if isinstance(own, type) else own  # type: ignore[misc]
    return [name for name in signature(made_by).parameters if name != "self"][:1] == ["retriever"]


def _parts(name: str) -> tuple[str, str]:
    """The own program and the saved state of ``MODULE:NAME[=SAVED]``; else "" and the name."""
    own, _, saved = name.partition("=")
    own = _PLAIN.get(own, own)
    return (own, saved) if ":" in own else ("", name)


def _program(name: str, source: BM25Index | PassagePool | None, retriever: str | None) -> dspy.Module:
    """A program; one that was saved with the retriever that it was tuned with."""
    from ..engines.replies import explain
    from ..programs import PROGRAMS

    (own, saved), artifact = _parts(name), artifact_of(name)
    if not artifact and not own and name not in PROGRAMS:
        known = ", ".join(sorted([*PROGRAMS, *_PLAIN]))
        raise PolyhopError(f"unknown program {name!r}: choose {known}, the folder of an artifact, or FILE.py:PROGRAM")
    kind = artifact.manifest.program.retriever if artifact else "none"
    used = retriever or ("chain" if kind == "none" else kind if kind in RETRIEVERS else "bm25")
    if not searches(name):
        if retriever is not None:
            raise PolyhopError(f"{name} does not search: --retriever does not apply")
        searched = source = None
    else:
        searched = build_retriever(used, source)
    if artifact:
        from ..optimizers.artifact import build, restore

        if kind != "none" and follows_chain(kind) != follows_chain(retriever_name(searched)):
            raise PolyhopError(f"{artifact.path} was saved with --retriever {kind}: omit --retriever, or use the same")
        program = own_program(own, searched, source) if own else build(artifact, searched, source)
        for difference in restore(artifact, program):  # between then and now
            warn(f"{artifact.path}: {difference}")
        return program
    program = own_program(own, searched, source) if own else PROGRAMS[name].over(searched, source)
    if own and saved:
        try:
            program.load(saved)
        except Exception as error:  # whatever DSPy says of a state that does not fit
            raise PolyhopError(f"{saved} is no saved state of {own}: {explain(error)}") from error
    return program


def _check_profile(models: Sequence[str], program: dspy.Module) -> None:
    """Check a profile against the programs: its roles must exist in one of them; a section that matches no model is
    probably misspelled, and gets a warning."""
    from ..engines.models import chosen_models, role_groups, roles
    from ..programs import PROGRAMS, new_program

    chosen, default, profile = chosen_models(models)
    if profile is None:
        return
    every = (program, *(new_program(name, None, None) for name in PROGRAMS))
    known = {role for each in every for role in (*roles(each), *role_groups(each))}
    for role in profile.roles:
        if role not in known:
            raise PolyhopError(f"{profile.path}: no program has a role {role!r}; known are {', '.join(sorted(known))}")
    used = sorted({default, *chosen.values()})
    for pattern in profile.models.keys() - {profile.pattern(spec) for spec in used}:
        warn(f'{profile.path}: [models."{pattern}"] matches none of the models here ({", ".join(used)})')


def _set_tunable(program: dspy.Module, text: str) -> None:
    """Set a tunable, as in ``rounds=1`` or ``search.k=10``."""
    from ..programs.tunable import tunables

    name, equals, value = text.partition("=")
    known = tunables(program)
    if name not in known or not equals:
        raise PolyhopError(f"--set {text}: {_advice(name, list(known))}")
    tunable = known[name]
    try:
        tunable.value = value if value in tunable.choices else json.loads(value)
    except json.JSONDecodeError as error:
        allowed = f"one of {list(tunable.choices)}" if tunable.choices else f"a number in {tunable.low}..{tunable.high}"
        raise PolyhopError(f"--set {text}: must be {allowed}") from error
    except ValueError as error:
        raise PolyhopError(f"--set {text}: {error}") from error


def _advice(name: str, known: Sequence[str]) -> str:
    """The tunables, nearest names first; the chain's many weights only by their common name."""
    if not known:
        return "this program has no tunables"
    near = " or ".join(f"{each}=VALUE" for each in get_close_matches(name, known))
    weights = [f", and the weights {each.partition('[')[0]}[...]" for each in known if "[" in each][:1]
    names = ", ".join(each for each in known if "[" not in each) + "".join(weights)
    return f"{f'did you mean {near}?' if near else 'use NAME=VALUE.'} Tunables: {names}"
