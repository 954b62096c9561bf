"""Differences between two programs: prompts, demos, exemplars, tunables, scores, versions.

Both sides are states as artifacts hold them, so artifacts that no longer load can be compared too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

import dspy

from ..programs.exemplars import Exemplar
from .artifact import Artifact, dump
from .artifact_format import AgentState, Manifest, State

Piece = tuple[Literal["=", "-", "+"], str]
"""A stretch of text that is unchanged, removed or added."""

_MIN_RATIO = 0.5  # texts with less in common count as rewritten


@dataclass(frozen=True)
class Side:
    """One of two programs."""

    name: str
    state: State
    memories: Mapping[str, Sequence[Exemplar]]
    manifest: Manifest | None = None

    @classmethod
    def of(cls, name: str, program: dspy.Module) -> Side:
        state, memories = dump(dict(program.named_parameters()))
        return cls(name, state, {key: memory.exemplars for key, memory in memories.items()})

    @classmethod
    def of_artifact(cls, name: str, artifact: Artifact) -> Side:
        return cls(name, artifact.state, artifact.memories, artifact.manifest)


@dataclass(frozen=True)
class AgentChange:
    """An agent of both programs: the words of both instructions if they differ, fields of another shape, and the demos
    that only one of them has.
    """

    instructions: tuple[Piece, ...] = ()
    fields: tuple[str, ...] = ()
    removed: tuple[dict[str, Any], ...] = ()
    added: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class ExemplarChange:
    """Numbers of exemplars by hops, before and after, and of those that only one of them has."""

    before: dict[int, int]
    after: dict[int, int]
    removed: int
    added: int


@dataclass(frozen=True)
class Difference:
    """The changes from one program to another: tunables with both values and the range, scores with their intervals
    (also where they are the same), ``others`` the other parameters that changed, such as the estimator of complexity,
    and ``about`` the changes in the manifest.
    """

    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    agents: dict[str, AgentChange] = field(default_factory=dict)
    exemplars: dict[str, ExemplarChange] = field(default_factory=dict)
    tunables: dict[str, tuple[Any, Any, str]] = field(default_factory=dict)
    scores: dict[str, tuple[dict[str, float] | None, dict[str, float] | None]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    about: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether the two programs do the same."""
        return not (
            self.only_before or self.only_after or self.agents or self.exemplars or self.tunables or self.others
        )


def compare(before: Side, after: Side) -> Difference:
    """The changes from one program to another."""
    agents = {
        name: change
        for name, agent in before.state.agents.items()
        if name in after.state.agents and (change := _agent(agent, after.state.agents[name])) != AgentChange()
    }
    exemplars = {
        name: _exemplars(memory, after.memories[name])
        for name, memory in before.memories.items()
        if name in after.memories and tuple(memory) != tuple(after.memories[name])
    }
    tunables = {
        name: (old.value, new.value, old.range if old.range == new.range else f"{old.range}, now {new.range}")
        for name, old in before.state.tunables.items()
        if (new := after.state.tunables.get(name)) is not None and old != new
    }
    others = [name for name, old in before.state.others.items() if old != after.state.others.get(name, old)]
    most, other = before.state.most, after.state.most
    others += [f"{name}: how many by hops" for name in most | other if most.get(name) != other.get(name)]
    ours, theirs = ([f"{kind} {name}" for name, kind in side.state.kinds.items()] for side in (before, after))
    scores = [_scores(side.manifest) for side in (before, after)]
    return Difference(
        tuple(name for name in ours if name not in theirs),
        tuple(name for name in theirs if name not in ours),
        agents,
        exemplars,
        tunables,
        {name: (scores[0].get(name), scores[1].get(name)) for name in {**scores[0], **scores[1]}},
        tuple(others),
        _about(before.manifest, after.manifest),
    )


def words(before: str, after: str) -> tuple[Piece, ...]:
    """The changes word by word, or as a whole for texts with little in common."""
    old, new = re.findall(r"\s+|\S+", before), re.findall(r"\s+|\S+", after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _MIN_RATIO:
        return ("-", before), ("+", after)
    pieces: list[Piece] = []
    removed = added = ""
    for kind, a, b, c, d in matcher.get_opcodes():
        took, put = "".join(old[a:b]), "".join(new[c:d])
        if kind != "equal" or ((removed or added) and took.isspace()):  # a space between two changes is part of them
            removed, added = removed + took, added + put
            continue
        pieces += [("-", removed), ("+", added), ("=", took)]
        removed = added = ""
    return tuple(piece for piece in (*pieces, ("-", removed), ("+", added)) if piece[1])


def _agent(before: AgentState, after: AgentState) -> AgentChange:
    shapes = [{each.name: each.shape for each in agent.fields} for agent in (before, after)]
    return AgentChange(
        words(before.instructions, after.instructions) if before.instructions != after.instructions else (),
        tuple(name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name)),
        _missing(before.demos, after.demos),
        _missing(after.demos, before.demos),
    )


def _missing(demos: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The demos that are not among others, counting repetitions."""
    left = list(others)
    missing = []
    for demo in demos:
        if demo in left:
            left.remove(demo)
        else:
            missing.append(demo)
    return tuple(missing)


def _exemplars(before: Sequence[Exemplar], after: Sequence[Exemplar]) -> ExemplarChange:
    hops = [dict(sorted(Counter(each.hops for each in memory).items())) for memory in (before, after)]
    old, new = Counter(before), Counter(after)
    return ExemplarChange(hops[0], hops[1], (old - new).total(), (new - old).total())


def _scores(manifest: Manifest | None) -> dict[str, dict[str, float]]:
    splits = manifest.scores if manifest else {}
    return {
        f"{split} {name}": {"mean": score.mean, "low": score.low, "high": score.high}
        for split, each in splits.items()
        for name, score in each.items()
    }


def _about(before: Manifest | None, after: Manifest | None) -> dict[str, tuple[Any, Any]]:
    if before is None or after is None:
        return {}
    old, new = _described(before), _described(after)
    return {name: (old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)}


def _described(manifest: Manifest) -> dict[str, Any]:
    splits, settings = manifest.splits, manifest.settings
    return {
        "program": manifest.program.name or manifest.program.kind,
        "retriever": manifest.program.retriever,
        **{f"version of {package}": number for package, number in manifest.versions.items()},
        **{f"model of {role}": model for role, model in manifest.lms.items()},
        "dataset": manifest.dataset,
        **{f"split {name}": f"{split.count} of {split.file}, {split.hash[:8]}" for name, split in splits.items()},
        "metric": manifest.metric,
        "seed": manifest.seed,
        **{f"spent {name}": amount for name, amount in manifest.spent.items()},
        **{f"setting {name}": value for name, value in settings.items() if name not in ("metric", "seed")},
    }
