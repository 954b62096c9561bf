"""Options that several commands share, and how a program is built from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from ..data.importing import import_named
from ..data.retrievers import RETRIEVERS, build_retriever, follows_chain, retriever_name
from .text import warn

if TYPE_CHECKING:
    import dspy

    from ..data.lucene.bm25 import BM25Index
    from ..data.pool import PassagePool
    from ..optimizers.artifact import Artifact, Manifest
    from ..programs import Program


SAMPLE = "sample"


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
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lm",
        metavar="[ROLE=]SPEC",
        help="Language model of the program, of one ROLE, or of a group of roles (c3po: proxy): 'lexical' (embedded), "
        "a LiteLLM name such as openai/gpt-4o-mini, or a profile (FILE.toml). May be repeated.  "
        "[default: $POLYHOP_LM or lexical]",
    ),
]
RetrieverOption = Annotated[
    str | None,
    typer.Option(
        "--retriever",
        metavar="NAME|MODULE:FUNCTION",
        help=f"{'; '.join(f'{name}: {entry.summary}' for name, entry in RETRIEVERS.items())}; or a function of your "
        "own that takes the opened index. Vectors need 'polyhop index --dense'.  [default: chain, or as the program "
        "was saved]",
        show_default=False,
    ),
]
AdaptiveOption = Annotated[
    bool, typer.Option("--adaptive", help="Let the chain retriever choose the number of passages, up to 6 and to -k.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set a tunable, e.g. rounds=1. May be repeated."),
]
BudgetCallsOption = Annotated[int | None, typer.Option("--budget-calls", min=1, metavar="N", help="LM call limit.")]
BudgetDollarsOption = Annotated[float | None, typer.Option("--budget-usd", min=0, metavar="X", help="Dollar limit.")]
BudgetMinutesOption = Annotated[float | None, typer.Option("--budget-minutes", min=0, metavar="M", help="Time limit.")]
ThreadsOption = Annotated[int, typer.Option(min=1, help="Questions executed in parallel; for remote models.")]
TimeoutOption = Annotated[
    float | None, typer.Option(min=0.001, help="Seconds per question; a question that takes longer fails.")
]
RetryOption = Annotated[bool, typer.Option("--retry-failed", help="When resuming: execute failed questions again.")]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Neither read nor keep replies in DSPy's cache.")]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, metavar="N", help="Execute questions in N processes of Ray, with --threads each."),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Start the --workers on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT.",
    ),
]


@contextmanager
def paying(
    calls: int | None, usd: float | None, minutes: float | None, out: Path | None
) -> Iterator[Callable[[Any], None]]:
    """Gives a function that meters a program under limits; a budget that is spent becomes an error.

    Args:
        out: The folder of the run, which keeps what is spent when it is resumed.
    """
    from ..engines.budget import Budget, BudgetSpent
    from ..eval.folder import account

    if (calls, usd, minutes) == (None, None, None):
        yield lambda program: None
        return
    budget = Budget(calls=calls, usd=usd, minutes=minutes, file=account(out) if out else None)
    try:
        yield budget.meter_program
    except BudgetSpent as spent:
        kept = f"what is done is in {out}: resume with a larger one" if out else "use --out to be able to resume"
        raise PolyhopError(f"the budget ({spent}) is spent; {kept}") from None
    finally:
        budget.close()


DepthOption = Annotated[int | None, typer.Option("-k", min=1, max=1000, help="Passages per search.")]


def searches(name: str) -> bool:
    """Whether a program, an artifact or a class by name searches. Names that are unknown are errors later."""
    if kind := program_class(name):
        return kind.searches
    artifact = artifact_of(name)
    return artifact is not None and artifact.manifest.program.retriever != "none"


def open_source(index: Path) -> BM25Index | PassagePool:
    """An index, or the sample corpus in memory."""
    if str(index) == SAMPLE and not index.exists():
        return sample_pool()
    from ..data.lucene.bm25 import BM25Index

    return BM25Index(index)


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
    no_cache: bool = False,
) -> dspy.Module:
    """A program by name, or from the folder of an artifact, with its models. Models never come from an artifact.
    Without a source, each question brings its own passages.
    """
    from ..engines.models import assign_models, protect_cache

    program = _program(name, source, retriever)
    if k is not None:
        if not hasattr(program, "search"):
            raise PolyhopError(f"{name} does not search: -k does not apply")
        try:
            program.search.k.value = k
        except ValueError as error:
            raise PolyhopError(f"{name} and -k: {error}") from error
    if adaptive:
        if not getattr(getattr(program, "search", None), "chain", None):
            raise PolyhopError("--adaptive needs a program that searches with --retriever chain")
        program.search.chain["adaptive"].value = True
    for text in settings or ():
        _set_tunable(program, text)
    _check_profile(models, program)
    assign_models(program, models, {"cache": False} if no_cache else {})
    if any(predictor.lm.cache for predictor in program.predictors()):
        protect_cache()
    return program


def open_prompts(name: str) -> tuple[dspy.Module, Manifest | None]:
    """A program for inspection, without a retriever; with its manifest, if it is an artifact."""
    if artifact := artifact_of(name):
        from ..optimizers.artifact import build

        return _restored(artifact, build(artifact, None, kind=_own_class(name))), artifact.manifest
    return _program(name, None, None), None


def label(name: str) -> str:
    """What tables call a program: its name; for an artifact also the last folders of its path, as in
    ``polyhop (runs/tuned)``."""
    from ..programs import PROGRAMS

    path = Path(_parts(name)[1]).resolve()
    if name in PROGRAMS or not path.is_dir():
        return path.name
    from ..optimizers.artifact import read_manifest
    from ..optimizers.records import BEST

    try:
        program = read_manifest(path).program
    except PolyhopError:  # raised again where the artifact is loaded
        return path.name
    folder = path.parent if path.name == BEST else path
    return f"{program.name or program.kind} ({'/'.join(folder.relative_to(folder.anchor).parts[-2:])})"


def artifact_of(name: str) -> Artifact | None:
    """The artifact of ``DIR`` or ``MODULE:CLASS=DIR``; None for the name of a program."""
    from ..programs import PROGRAMS

    own, folder = _parts(name)
    if not own and (name in PROGRAMS or not Path(folder).is_dir()):
        return None
    from ..optimizers.artifact import read

    return read(folder)


def program_class(name: str) -> type[Program] | None:
    """The class that a program's name or ``MODULE:CLASS`` names; None for an artifact."""
    from ..programs import PROGRAMS, Program

    if _parts(name)[0] or (name not in PROGRAMS and ":" not in name):
        return None
    kind = PROGRAMS[name] if name in PROGRAMS else import_named(name, "program")
    if not (isinstance(kind, type) and issubclass(kind, Program)):
        raise PolyhopError(f"{name} is not a subclass of polyhop.programs.Program")
    return kind


def _parts(name: str) -> tuple[str, str]:
    """The class and the folder of ``MODULE:CLASS=DIR``, an artifact of a program of your own; else "" and the name."""
    own, equals, folder = name.partition("=")
    return (own, folder) if equals and ":" in own else ("", name)


def _own_class(name: str) -> type[Program] | None:
    """The class of ``MODULE:CLASS=DIR``."""
    own, _ = _parts(name)
    return program_class(own) if own else None


def _program(name: str, source: BM25Index | PassagePool | None, retriever: str | None) -> dspy.Module:
    from ..programs import PROGRAMS

    if kind := program_class(name):
        if retriever is not None and not kind.searches:
            raise PolyhopError(f"{name} does not search: --retriever does not apply")
        return kind.over(build_retriever(retriever or "chain", source), source)
    if artifact := artifact_of(name):
        return _loaded(artifact, source, retriever, _own_class(name))
    raise PolyhopError(
        f"unknown program {name!r}: choose {', '.join(sorted(PROGRAMS))}, the folder of an artifact, or MODULE:CLASS"
    )


def _loaded(
    artifact: Artifact,
    source: BM25Index | PassagePool | None,
    retriever: str | None,
    own: type[Program] | None,
) -> dspy.Module:
    """The program of an artifact, with the retriever that it was tuned with."""
    from ..optimizers.artifact import build

    kind = artifact.manifest.program.retriever
    if kind == "none":
        if retriever is not None:
            raise PolyhopError(f"{artifact.path} does not search: --retriever does not apply")
        return _restored(artifact, build(artifact, None, kind=own))
    searched = build_retriever(retriever or (kind if kind in RETRIEVERS else "bm25"), source)
    if follows_chain(kind) != follows_chain(retriever_name(searched)):
        raise PolyhopError(f"{artifact.path} was saved with --retriever {kind}: omit --retriever, or use the same")
    return _restored(artifact, build(artifact, searched, source, own))


def _restored(artifact: Artifact, program: dspy.Module) -> dspy.Module:
    """Load an artifact into its program; differences between then and now are printed to stderr."""
    from ..optimizers.artifact import restore

    for difference in restore(artifact, program):
        warn(f"{artifact.path}: {difference}")
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
