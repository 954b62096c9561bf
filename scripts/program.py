"""Programs by the names that commands take: one of ours, the folder of an artifact, or any DSPy program as
``MODULE:NAME`` or ``FILE.py:NAME``, also with a saved state: ``FILE.py:NAME=DIR``, ``FILE.py:NAME=STATE.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dspy

from ..data.errors import PolyhopError
from ..data.importing import import_named
from ..data.lucene.bm25 import BM25Index
from ..data.pool import PassagePool
from ..data.retrievers import RETRIEVERS, build_retriever
from ..engines.budget import Budget, BudgetSpent
from ..engines.models import VARIABLE, assign_models, chosen_models, protect_cache, role_groups, roles
from ..engines.recorded import record
from ..engines.replies import explain
from ..eval.folder import account
from ..eval.options import Limits, ProgramOptions
from ..programs import PROGRAMS, ParRag, Program, new_program
from ..programs.tunable import tunables
from .terminal import warn

if TYPE_CHECKING:
    from ..optimizers.artifact import Artifact

_PLAIN = {"react": "polyhop.programs.baselines:ReAct"}  # programs of ours that are plain DSPy


def build_program(
    name: str, source: BM25Index | PassagePool | None, options: ProgramOptions | None = None
) -> dspy.Module:
    """A program with its models. Models never come from an artifact; a program of the user's own keeps those that its
    code gives it, unless others are named. Without a source, each question brings its own passages.
    """
    options = options or ProgramOptions()
    program = open_program(name, source, options.retriever)
    if options.k is not None:
        _set_tunable(program, f"-k {options.k}", f"search.k={options.k}")
    for text in options.set:
        _set_tunable(program, f"--set {text}", text)
    _check_profile(options.lm, program)
    if options.lm or os.environ.get(VARIABLE) or None in models_of(program):
        assign_models(program, options.lm, {"cache": False} if options.no_cache else {})
    if options.record:
        record(program, options.record)
    if any(model.cache for model in models_of(program)):
        protect_cache()
    return program


def models_of(program: dspy.Module) -> list[Any]:
    """The model of each predictor, its own or DSPy's default; None if there is none."""
    return [predictor.lm or dspy.settings.lm for predictor in program.predictors()]


def searches(name: str) -> bool:
    """Whether a program searches; of names that are unknown, no."""
    own, _ = own_and_saved(name)
    found = _found(name, own)
    artifact = None if found else artifact_of(name)
    return _takes_retriever(found) if found else bool(artifact and artifact.program.retriever != "none")


def label(name: str) -> str:
    """What tables call a program: its name; for an artifact also the last folders of its path, as in
    ``polyhop (runs/tuned)``."""
    own, saved = own_and_saved(name)
    if own and not saved:
        return own.rpartition(":")[2]
    path = Path(saved).resolve()
    with suppress(PolyhopError):  # raised again where the artifact is loaded
        if artifact := artifact_of(name):
            from ..optimizers.settings import BEST

            program, folder = artifact.program, path.parent if path.name == BEST else path
            return f"{program.name or program.kind} ({'/'.join(folder.relative_to(folder.anchor).parts[-2:])})"
    return path.name


def artifact_of(name: str) -> Artifact | None:
    """The artifact of a name; None for any other program."""
    own, folder = own_and_saved(name)
    is_saved = folder and (Path(folder).is_dir() or (own and not folder.endswith(".json")))
    if not is_saved or name in PROGRAMS:
        return None
    from ..optimizers.artifact import read  # which takes time, for artifacts alone

    return read(folder)


def own_and_saved(name: str) -> tuple[str, str]:
    """The user's own program and the saved state of ``MODULE:NAME[=SAVED]``; else "" and the name."""
    own, _, saved = name.partition("=")
    own = _PLAIN.get(own, own)
    return (own, saved) if ":" in own else ("", name)


def _found(name: str, own: str) -> Any:
    """What makes a program, or is one; None for artifacts of our programs and unknown names."""
    return import_named(own, "program") if own else PROGRAMS.get(name)


def open_program(name: str, source: BM25Index | PassagePool | None = None, retriever: str | None = None) -> dspy.Module:
    """A program without models, by default with the retriever that it was tuned with."""
    (own, saved), artifact = own_and_saved(name), artifact_of(name)
    found = _found(name, own)
    if not (found or artifact):
        known = ", ".join(sorted([*PROGRAMS, *_PLAIN]))
        raise PolyhopError(f"unknown program {name!r}: choose {known}, the folder of an artifact, or FILE.py:PROGRAM")
    if not searches(name):
        if retriever is not None:
            raise PolyhopError(f"{name} does not search: --retriever does not apply")
        searched = source = None
    else:
        kind = artifact.program.retriever if artifact else "none"
        used = "chain" if kind == "none" else kind if kind in RETRIEVERS else "bm25"
        searched = build_retriever(retriever or used, source)
    if not artifact:
        program = _made(found, name, searched)
    else:
        from ..optimizers.artifact import build, restore

        program = _made(found, name, searched) if found else build(artifact, searched)
        for difference in restore(artifact, program):  # between then and now
            warn(f"{artifact.path}: {difference}")
    if isinstance(program, ParRag) and source is not None:
        program.review.search.retriever = source  # the sparse one
    if own and saved and not artifact:
        try:
            program.load(saved)
        except Exception as error:  # whatever DSPy says of a state that does not fit
            raise PolyhopError(f"{saved} is no saved state of {own}: {explain(error)}") from error
    return program


def _made(found: Any, name: str, searched: Any) -> dspy.Module:
    """A copy of a program, or what a class or a function makes, with the retriever if that is its first argument."""
    made, why = found, ""
    try:
        made = found.deepcopy() if isinstance(found, dspy.Module) else found(*[searched] * _takes_retriever(found))
    except TypeError as error:
        why = f" ({error})"
    if why or not isinstance(made, dspy.Module):
        raise PolyhopError(f"{name} is no dspy.Module, nor makes one with a retriever or without arguments{why}")
    return made


def _takes_retriever(found: Any) -> bool:
    if isinstance(found, type) and issubclass(found, Program):
        return found.searches
    if isinstance(found, dspy.Module) or not callable(found):
        return False
    made_by: Any = found.__init__ if isinstance(found, type) else found  # type: ignore[misc]
    return [name for name in signature(made_by).parameters if name != "self"][:1] == ["retriever"]


def _check_profile(models: tuple[str, ...], program: dspy.Module) -> None:
    """A role of a profile must exist in some program; a section that matches no model is probably misspelled."""
    chosen, default, profile = chosen_models(models)
    if profile is None:
        return
    every = (program, *(new_program(name) for name in PROGRAMS))
    known = {role for each in every for role in (*roles(each), *role_groups(each))}
    if unknown := [role for role in profile.roles if role not in known]:
        raise PolyhopError(
            f"{profile.path}: no program has a role {unknown[0]!r}; known are {', '.join(sorted(known))}"
        )
    used = sorted({default, *chosen.values()})
    for pattern in profile.models.keys() - {profile.pattern(spec) for spec in used}:
        warn(f'{profile.path}: [models."{pattern}"] matches none of the models here ({", ".join(used)})')


def _set_tunable(program: dspy.Module, flag: str, text: str) -> None:
    """Set a tunable, as in ``rounds=1`` or ``search.k=10``."""
    name, equals, value = text.partition("=")
    known: Any = tunables(program)
    if name not in known or not equals:
        near = " or ".join(f"{each}=VALUE" for each in get_close_matches(name, known))
        listed = dict.fromkeys(f"{each.partition('[')[0]}[...]" if "[" in each else each for each in known)
        told = f"did you mean {near}?" if near else f"{type(program).__name__} has no {name}."
        raise PolyhopError(f"{flag}: {told} Tunables: {', '.join(listed) or 'none'}")
    try:
        with suppress(json.JSONDecodeError):
            value = value if value in known[name].choices else json.loads(value)
        known[name].value = value
    except ValueError as error:
        raise PolyhopError(f"{flag}: {error}") from error


@contextmanager
def paying(limits: Limits, out: Path | None = None) -> Iterator[Callable[[Any], None]]:
    """Gives a function that meters a program under limits; a budget that is spent becomes an error.

    Args:
        out: The folder of the run, which keeps what is spent when it is resumed.
    """
    if not limits.budget:
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
