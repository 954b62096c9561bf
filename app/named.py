"""A program and an index by the names that the user gives.

A program is one of ours, the folder of an artifact, or any DSPy program as ``MODULE:NAME`` or ``FILE.py:NAME``; also
with what DSPy's ``save`` wrote (``polyhop=STATE.json``, ``FILE.py:NAME=STATE.json``), one's own with an artifact
(``FILE.py:NAME=DIR``).
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dspy

from ..data.benchmarks import SAMPLE
from ..data.errors import PolyhopError
from ..data.importing import import_named
from ..data.lucene.bm25 import BM25Index
from ..data.lucene.layout import HOME, index_above, index_of, newest_segments
from ..data.pool import PassagePool
from ..data.retrievers import RETRIEVERS, build_retriever
from ..data.sample import sample_passages
from ..engines.budget import Budget, BudgetSpent
from ..engines.models import VARIABLE, assign_models, chosen_models, protect_cache, role_groups, roles
from ..engines.recorded import record
from ..engines.replies import explain
from ..eval.folder import account
from ..optimizers.settings import Limits
from ..programs import PROGRAMS, ParRag, Program, new_program
from ..programs.tunable import tunables
from .options import ModelOptions, ProgramOptions

if TYPE_CHECKING:
    from ..optimizers.artifact import Artifact

_PLAIN = {"react": "polyhop.programs.baselines:ReAct"}  # programs of ours that are plain DSPy


class NamedProgram:
    """A program that the user named, looked up once; nothing is built yet.

    Attributes:
        code: The user's own program, as MODULE:NAME; empty for ours.
        artifact: The artifact that was named; None without one.
        searches: Whether the program takes a retriever.

    Raises:
        PolyhopError: there is no such program, or its artifact cannot be read.
    """

    def __init__(self, name: str) -> None:
        program, _, saved = name.partition("=")
        program = _PLAIN.get(program, program)
        self.name = name
        self.artifact: Artifact | None = None
        self.code = program if ":" in program else ""
        self._maker: Any = import_named(program, "program") if self.code else PROGRAMS.get(program)
        self._saved = saved if self._maker else name
        is_folder = Path(self._saved).is_dir() or (self.code and not self._saved.endswith(".json"))
        if self._saved and name not in PROGRAMS and is_folder:
            from ..optimizers.artifact import read  # which takes time, for artifacts alone

            self.artifact = read(self._saved)
        if not (self._maker or self.artifact):
            names = ", ".join(sorted([*PROGRAMS, *_PLAIN]))
            raise PolyhopError(
                f"unknown program {name!r}: choose {names}, the folder of an artifact, or FILE.py:PROGRAM"
            )
        self.searches = _takes_retriever(self._maker)
        if self._maker is None and self.artifact:
            self.searches = self.artifact.program.retriever != "none"

    @property
    def label(self) -> str:
        """What tables call it: its name; for an artifact also the last folders of its path, as in
        ``polyhop (runs/tuned)``, whatever the current folder."""
        if self.artifact is None:
            return Path(self._saved).name or self.code.rpartition(":")[2] or self.name
        from ..optimizers.settings import BEST

        path, program = Path(self._saved).resolve(), self.artifact.program
        folder = path.parent if path.name == BEST else path
        return f"{program.name or program.kind} ({'/'.join(folder.relative_to(folder.anchor).parts[-2:])})"

    def open(self, source: BM25Index | PassagePool | None = None, retriever: str | None = None) -> dspy.Module:
        """The program without models, by default with the retriever that it was tuned with."""
        searched = None
        if self.searches:
            kind = self.artifact.program.retriever if self.artifact else "chain"
            used = "chain" if kind == "none" else kind if kind in RETRIEVERS else "bm25"
            searched = build_retriever(retriever or used, source)
        elif retriever is not None:
            raise PolyhopError(f"{self.name} does not search: --retriever does not apply")
        if self.artifact is None:
            program = self._made(searched)
            if self._saved:
                self._load_state(program)
        else:
            from ..optimizers.artifact import build, restore

            program = self._made(searched) if self._maker else build(self.artifact, searched)
            for difference in restore(self.artifact, program):  # between then and now
                warnings.warn(f"{self.artifact.path}: {difference}", stacklevel=2)
        if isinstance(program, ParRag) and source is not None:
            program.review.search.retriever = source  # the sparse one
        return program

    def build(self, source: BM25Index | PassagePool | None, options: ProgramOptions) -> dspy.Module:
        """The program with its models. Models never come from an artifact; a program of the user's own keeps those that
        its code gives it, unless others are named. Without a source, each question brings its own passages."""
        program = self.open(source, options.retriever)
        if options.k is not None:
            _set_tunable(program, f"-k {options.k}", f"search.k={options.k}")
        for text in options.set:
            _set_tunable(program, f"--set {text}", text)
        set_models(program, options)
        return program

    def _made(self, searched: Any) -> dspy.Module:
        """A copy of a program, or what a class or a function makes, with the retriever if it takes one."""
        made, why = self._maker, ""
        try:
            if isinstance(made, dspy.Module):
                return made.deepcopy()
            made = made(searched) if self.searches else made()
        except TypeError as error:
            why = f" ({error})"
        if why or not isinstance(made, dspy.Module):
            raise PolyhopError(
                f"{self.name} is no dspy.Module, nor makes one with a retriever or without arguments{why}"
            )
        return made

    def _load_state(self, program: dspy.Module) -> None:
        """Load what DSPy saved of the program."""
        from ..optimizers.artifact import load_state, saved_by_dspy

        try:
            load_state(program, saved_by_dspy(Path(self._saved)))
        except (OSError, ValueError, TypeError, AttributeError) as error:  # no file, no JSON, or another program's
            whose = self.name.partition("=")[0]
            raise PolyhopError(f"{self._saved} is no saved state of {whose}: {explain(error)}") from error


def _takes_retriever(maker: Any) -> bool:
    if isinstance(maker, type) and issubclass(maker, Program):
        return maker.searches
    if isinstance(maker, dspy.Module) or not callable(maker):
        return False
    made_by: Any = maker.__init__ if isinstance(maker, type) else maker  # type: ignore[misc]
    return [name for name in signature(made_by).parameters if name != "self"][:1] == ["retriever"]


def models_of(program: dspy.Module) -> list[Any]:
    """The model of each predictor, its own or DSPy's default; None if there is none."""
    return [predictor.lm or dspy.settings.lm for predictor in program.predictors()]


def set_models(program: dspy.Module, options: ModelOptions) -> None:
    """Give a program the models that are named; without a name it keeps those that its code gives it."""
    _check_profile(options.lm, program)
    if options.lm or os.environ.get(VARIABLE) or None in models_of(program):
        assign_models(program, options.lm, {"cache": False} if options.no_cache else {})
    if options.record:
        record(program, options.record)
    if any(model.cache for model in models_of(program)):
        protect_cache()


def _check_profile(models: tuple[str, ...], program: dspy.Module) -> None:
    """A role of a profile must exist in some program; a section that matches no model is probably misspelled."""
    chosen, default, profile = chosen_models(models)
    if profile is None:
        return
    names = {*roles(program), *role_groups(program)}
    if not profile.roles.keys() <= names:  # only then are the other programs built
        for other in map(new_program, PROGRAMS):
            names |= {*roles(other), *role_groups(other)}
    if unknown := [role for role in profile.roles if role not in names]:
        raise PolyhopError(
            f"{profile.path}: no program has a role {unknown[0]!r}; known are {', '.join(sorted(names))}"
        )
    used = sorted({default, *chosen.values()})
    for pattern in profile.models.keys() - {profile.pattern(spec) for spec in used}:
        text = f'{profile.path}: [models."{pattern}"] matches none of the models here ({", ".join(used)})'
        warnings.warn(text, stacklevel=3)


def _set_tunable(program: dspy.Module, flag: str, text: str) -> None:
    """Set a tunable, as in ``rounds=1`` or ``search.k=10``."""
    name, equals, value = text.partition("=")
    parameters: Any = tunables(program)
    if name not in parameters or not equals:
        near = " or ".join(f"{other}=VALUE" for other in get_close_matches(name, parameters))
        listed = dict.fromkeys(f"{other.partition('[')[0]}[...]" if "[" in other else other for other in parameters)
        advice = f"did you mean {near}?" if near else f"{type(program).__name__} has no {name}."
        raise PolyhopError(f"{flag}: {advice} Tunables: {', '.join(listed) or 'none'}")
    with suppress(json.JSONDecodeError):
        value = value if value in parameters[name].choices else json.loads(value)
    try:
        parameters[name].value = value
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


# --- what is searched -------------------------------------------------------------------------------------------------


class NoIndexError(PolyhopError):
    """There is nothing to search in a ``folder``, whose own index would be in ``home``."""

    def __init__(self, folder: Path, is_named: bool) -> None:
        self.folder, self.home = folder, folder / HOME
        command = f"polyhop index {folder} --out {self.home}" if is_named else "polyhop index"
        super().__init__(
            f"nothing to search in {folder.resolve()}: '{command}' makes an index of its documents, --index DIR names "
            "another, and --index sample is the sample corpus"
        )


def default_index() -> Path | None:
    """The index of $POLYHOP_INDEX, or that of the current folder or one above; None if there is none."""
    path = os.environ.get("POLYHOP_INDEX")
    return Path(path) if path else index_above()


def chosen_index(index: Path | None = None) -> Path:
    """What is searched: an index or the sample, by default `default_index`; for a folder of documents, its own index.

    Raises:
        NoIndexError: the folder has none.
    """
    index = index or default_index()
    path = index_of(index or Path())
    if path.is_dir() and not newest_segments(path):
        raise NoIndexError(index or Path(), is_named=index is not None)
    return path


def open_source(index: Path) -> BM25Index | PassagePool:
    """An index, or the sample corpus in memory."""
    if str(index) == SAMPLE and not index.exists():
        return PassagePool(sample_passages())
    return BM25Index(index)
