"""Loading an artifact: into a program of ours by its name, or into one that is given.

    program = polyhop.load("artifacts/hotpotqa", polyhop.ChainRetriever(polyhop.BM25Index("indexes/mine")))
    program.set_lm(polyhop.lm("openai/gpt-4o-mini"))

An artifact names a program of `polyhop.programs`; the rest of it is texts and numbers. All of it is checked
before a parameter is touched.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy
from dspy.predict.parameter import Parameter

from ...data.chain import ChainRetriever
from ...data.passages import Retriever
from ...data.retrievers import OTHER, RETRIEVERS, follows_chain, retriever_name
from ...programs import PROGRAMS, name_of, new_program, retriever_of
from ...programs.complexity import SHIPPED as ESTIMATOR
from ...programs.exemplars import ExemplarMemory
from ...programs.search import retriever_kind
from ...programs.tunable import Tunable
from . import agents
from .files import ArtifactError, ArtifactWarning, hash_of, one_line
from .reading import Artifact, read
from .schema import MANIFEST, State

PACKAGES = ("polyhop", "dspy")
_SHOWN = 6  # of what does not fit


def load(dir: str | Path, retriever: Retriever | None = None, *, program: dspy.Module | None = None) -> dspy.Module:
    """The program in an artifact, without a language model: ``set_lm`` or ``dspy.configure`` gives it one.

    Args:
        dir: The folder.
        retriever: Where the program searches, of the kind it was tuned with; None if every question brings its own
            passages.
        program: One of a class of your own, or built in your own way, to load into; it is also what is returned.

    Warns:
        ArtifactWarning: it fits, but was saved by another version, over another kind of retriever, or with other
            ranges of its tunables.

    Raises:
        ArtifactError: it is no artifact, not whole, changed since it was saved, of a newer schema, or does not fit
            the program of this version. The message says what differs. The program is as it was.
    """
    artifact = read(dir)
    if program is None:
        program = build(artifact, retriever)
    elif retriever is not None:
        raise ArtifactError("give a retriever or a program, not both: the program has its own")
    differences = restore(artifact, program)
    if differences:
        warnings.warn(f"{artifact.path} differs: {'; '.join(differences)}", ArtifactWarning, stacklevel=2)
    return program


def build(artifact: Artifact, retriever: Retriever | None, sparse: Retriever | None = None) -> dspy.Module:
    """The program that an artifact names, untuned.

    Raises:
        ArtifactError: it is of somebody's own class, of a later version, or was tuned with another kind of retriever.
    """
    of, path = artifact.manifest.program, artifact.path
    if of.name is None:
        raise ArtifactError(
            f"{path} holds a program of a class that is none of polyhop's, {of.kind[:80]!r}: make one of it, and load "
            "into that: polyhop.load(dir, program=...)"
        )
    if of.name not in PROGRAMS:
        raise ArtifactError(f"{path} holds a program {of.name[:80]!r}, which this version has not: update polyhop")
    if of.retriever not in (*RETRIEVERS, OTHER, "none") or (of.retriever == "none") == PROGRAMS[of.name].searches:
        raise ArtifactError(f"{path / MANIFEST} is damaged: {of.name} has no retriever {of.retriever[:80]!r}")
    if of.retriever == "none":
        if retriever is not None:
            raise ArtifactError(f"{path} holds {of.name}, which does not search: give it no retriever")
        return new_program(of.name)
    if retriever is None and follows_chain(of.retriever):
        retriever = ChainRetriever()
    kind = retriever_name(retriever)
    if follows_chain(of.retriever) and not follows_chain(kind):
        raise ArtifactError(
            f"{path} was tuned with a chain of evidence, whose weights {kind} has not: give it a ChainRetriever"
        )
    if follows_chain(kind) and not follows_chain(of.retriever):
        raise ArtifactError(f"{path} was tuned with {of.retriever}, without a chain: give it no ChainRetriever")
    return new_program(of.name, retriever, sparse)


def restore(artifact: Artifact, program: dspy.Module) -> list[str]:
    """Load an artifact into a program, in place; returns what differs without doing harm.

    Raises:
        ArtifactError: it does not fit; the program is as it was.
    """
    parameters = dict(program.named_parameters())
    restored(artifact, parameters, type(program).__name__)  # all of it works, before any of it is done
    differences = [one_line(each) for each in _differences(artifact, program, parameters)]
    for name, parameter in parameters.items():
        _restore(artifact, name, parameter)
    return differences


def restored(artifact: Artifact, parameters: Mapping[str, Any], kind: str = "the program") -> dict[str, Any]:
    """Copies of a program's parameters as an artifact has them.

    Raises:
        ArtifactError: it has others, or one of them refuses its value.
    """
    _refuse_misfit(artifact, parameters, kind)
    ours = (dspy.Predict, Tunable, ExemplarMemory)  # whose states are put in the place of others, not into them
    copies = {
        name: copy.copy(parameter) if isinstance(parameter, ours) else copy.deepcopy(parameter)
        for name, parameter in parameters.items()
    }
    for name, parameter in copies.items():
        _restore(artifact, name, parameter)
    return copies


def _refuse_misfit(artifact: Artifact, parameters: Mapping[str, Any], kind: str) -> None:
    problems = list(_problems(artifact, parameters))
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ArtifactError(
            f"{artifact.path} does not fit {kind} of this version: {'; '.join(problems[:_SHOWN])}{more}. Load it into "
            f"a {artifact.manifest.program.kind[:80]}, by {_versions(artifact)} as it was saved, or tune anew"
        )


def _restore(artifact: Artifact, name: str, parameter: Any) -> None:
    try:
        if isinstance(parameter, dspy.Predict):
            agents.restore(parameter, artifact.state.agents[name])
        elif isinstance(parameter, Tunable):
            parameter.value = artifact.state.tunables[name].value
        elif isinstance(parameter, ExemplarMemory):
            parameter.load_state({"exemplars": [each.to_record() for each in artifact.memories[name]]})
        else:
            parameter.load_state(artifact.state.others[name])
    except Exception as error:  # a parameter of somebody's own may raise anything
        raise ArtifactError(f"{artifact.path}: {_what(parameter)} {name!r}: {error}") from error


def _problems(artifact: Artifact, parameters: Mapping[str, Parameter]) -> Iterator[str]:
    """Why an artifact does not fit a program."""
    state = artifact.state
    saved = {name: what for what, names in _saved(state).items() for name in names}
    for name, parameter in parameters.items():
        if saved.get(name) != (what := _what(parameter)):
            yield f"{what} {name!r} is not in the artifact"
    for name, what in saved.items():
        if name not in parameters:
            yield f"{what} {name!r} is not in this version"
    for name, agent in state.agents.items():
        parameter = parameters.get(name)
        if isinstance(parameter, dspy.Predict):
            yield from agents.misfits(name, agent.fields, parameter.signature)
    for name, tunable in state.tunables.items():
        if isinstance(parameter := parameters.get(name), Tunable):
            try:
                copy.copy(parameter).value = tunable.value
            except (ValueError, TypeError, OverflowError) as error:
                yield f"tunable {name!r} {error}"


def _differences(artifact: Artifact, program: dspy.Module, parameters: Mapping[str, Any]) -> Iterator[str]:
    """What is otherwise than when it was saved, and does no harm."""
    manifest = artifact.manifest
    for package in PACKAGES:
        if (then := manifest.versions.get(package)) != (now := version(package)):
            yield f"it was saved with {package} {str(then)[:40]}, this is {now}"
    if name_of(program) != manifest.program.name or type(program).__qualname__ != manifest.program.kind:
        yield f"it was saved from {manifest.program.kind[:80]}, not from {type(program).__qualname__}"
    if retriever_of(program) is not None and retriever_kind(program) != manifest.program.retriever:
        yield f"it was tuned with the retriever {manifest.program.retriever[:80]}, not {retriever_kind(program)}"
    if manifest.program.complexity != estimator_hash():
        yield "complexity is estimated otherwise by this version"
    for name, tunable in artifact.state.tunables.items():
        then_, now_ = tunable_range(tunable.model_dump()), tunable_range(parameters[name].dump_state())
        if then_ != now_:
            yield f"the range of {name} was {then_}, and is {now_}"


def tunable_range(state: Mapping[str, Any]) -> str:
    """The range of a dumped tunable, to be read."""
    if state.get("choices"):
        return str(state["choices"])
    return f"{state.get('low')}..{state.get('high')}{' (log)' if state.get('log') else ''}"


def estimator_hash() -> str:
    """Of the complexity estimator that ships: thresholds are tuned to it."""
    return hash_of(ESTIMATOR.read_bytes())


def _saved(state: State) -> dict[str, list[str]]:
    return {
        "agent": list(state.agents),
        "tunable": list(state.tunables),
        "exemplar memory": list(state.memories),
        "parameter": list(state.others),
    }


def _what(parameter: Any) -> str:
    kinds = {dspy.Predict: "agent", Tunable: "tunable", ExemplarMemory: "exemplar memory"}
    return next((what for kind, what in kinds.items() if isinstance(parameter, kind)), "parameter")


def _versions(artifact: Artifact) -> str:
    return " and ".join(f"{name} {artifact.manifest.versions.get(name, '?')[:40]}" for name in PACKAGES)
