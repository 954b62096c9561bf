"""What differs between two programs: prompts, demos, exemplars, tunables, scores, versions.

Both sides are what an artifact holds, so that artifacts of other versions and of programs of somebody's own can be
compared too, whether or not they still load.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

import dspy

from ...programs.exemplars import Exemplar
from .loading import tunable_range
from .reading import Artifact
from .schema import AgentState, Manifest, State
from .writing import dump

Piece = tuple[Literal["=", "-", "+"], str]
"""A stretch of text that is the same, was taken out, or was put in."""

_REWRITTEN = 0.5  # of the words and spaces, so few or fewer in common


@dataclass(frozen=True)
class Side:
    """One of two programs."""

    name: str
    state: State
    memories: Mapping[str, Sequence[Exemplar]]
    manifest: Manifest | None = None

    @classmethod
    def of(cls, name: str, program: dspy.Module) -> Side:
        state, memories = dump(program)
        return cls(name, state, {key: memory.exemplars for key, memory in memories.items()})

    @classmethod
    def of_artifact(cls, name: str, artifact: Artifact) -> Side:
        return cls(name, artifact.state, artifact.memories, artifact.manifest)


@dataclass(frozen=True)
class AgentChange:
    """An agent that both have.

    Attributes:
        instructions: The words of both, in order; empty if they are the same.
        fields: The names of fields whose shape is not the same.
        removed, added: Demos that only one of them has.
    """

    instructions: tuple[Piece, ...] = ()
    fields: tuple[str, ...] = ()
    removed: tuple[dict[str, Any], ...] = ()
    added: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class ExemplarChange:
    """Exemplars by their number of hops, before and after, and how many are only in one of them."""

    before: dict[int, int]
    after: dict[int, int]
    removed: int
    added: int


@dataclass(frozen=True)
class Difference:
    """From one program to another; what is the same is left out.

    Attributes:
        only_before, only_after: Agents, tunables and memories that one of them has not.
        tunables: The value before and after, and the range; the range before too if it is another.
        scores: By split and metric, each side's mean and interval or None, whether or not they are the same.
        about: What else the manifests say: program, retriever, versions, models, dataset, splits, seed, spent.
    """

    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    agents: dict[str, AgentChange] = field(default_factory=dict)
    exemplars: dict[str, ExemplarChange] = field(default_factory=dict)
    tunables: dict[str, tuple[Any, Any, str]] = field(default_factory=dict)
    scores: dict[str, tuple[dict[str, float] | None, dict[str, float] | None]] = field(default_factory=dict)
    about: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether the two would do the same."""
        return not (self.only_before or self.only_after or self.agents or self.exemplars or self.tunables)


def compare(before: Side, after: Side) -> Difference:
    """What changed from one to the other."""
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
    ours, theirs = _names(before.state), _names(after.state)
    return Difference(
        tuple(name for name in ours if name not in theirs),
        tuple(name for name in theirs if name not in ours),
        agents,
        exemplars,
        _tunables(before.state, after.state),
        _scores(before.manifest, after.manifest),
        _about(before.manifest, after.manifest),
    )


def words(before: str, after: str) -> tuple[Piece, ...]:
    """Two texts, word by word; as wholes if they have little in common."""
    old, new = re.findall(r"\s+|\S+", before), re.findall(r"\s+|\S+", after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _REWRITTEN:
        return ("-", before), ("+", after)
    pieces: list[Piece] = []
    removed = added = ""
    for kind, a, b, c, d in matcher.get_opcodes():
        took, put = "".join(old[a:b]), "".join(new[c:d])
        if kind != "equal" or ((removed or added) and took.isspace()):  # a space between two changes is no stretch
            removed, added = removed + took, added + put
            continue
        pieces += [*_changed(removed, added), ("=", took)]
        removed = added = ""
    return (*pieces, *_changed(removed, added))


def _changed(removed: str, added: str) -> list[Piece]:
    both: list[Piece] = [("-", removed), ("+", added)]
    return [(kind, text) for kind, text in both if text]


def _agent(before: AgentState, after: AgentState) -> AgentChange:
    shapes = [{each.name: each.shape for each in agent.fields} for agent in (before, after)]
    return AgentChange(
        words(before.instructions, after.instructions) if before.instructions != after.instructions else (),
        tuple(name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name)),
        _missing(before.demos, after.demos),
        _missing(after.demos, before.demos),
    )


def _missing(demos: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The demos that are not among others, each as often as it is there too often."""
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


def _tunables(before: State, after: State) -> dict[str, tuple[Any, Any, str]]:
    found = {}
    for name, old in before.tunables.items():
        new = after.tunables.get(name)
        if new is None or old == new:
            continue
        was, is_ = tunable_range(old.model_dump()), tunable_range(new.model_dump())
        found[name] = (old.value, new.value, is_ if was == is_ else f"{was}, now {is_}")
    return found


def _scores(
    before: Manifest | None, after: Manifest | None
) -> dict[str, tuple[dict[str, float] | None, dict[str, float] | None]]:
    ours, theirs = _scores_of(before), _scores_of(after)
    return {name: (ours.get(name), theirs.get(name)) for name in {**ours, **theirs}}


def _scores_of(manifest: Manifest | None) -> dict[str, dict[str, float]]:
    if manifest is None:
        return {}
    found = [(split, name, score) for split, each in manifest.scores.items() for name, score in each.items()]
    return {f"{split} {name}": score.model_dump() for split, name, score in found}


def _about(before: Manifest | None, after: Manifest | None) -> dict[str, tuple[Any, Any]]:
    if before is None or after is None:
        return {}
    sides: list[dict[str, Any]] = [
        {
            "program": side.program.name or side.program.kind,
            "retriever": side.program.retriever,
            **{f"version of {package}": number for package, number in side.versions.items()},
            **{f"model of {role}": model for role, model in side.lms.items()},
            "dataset": side.dataset,
            **{
                f"split {name}": f"{split.count} of {split.file}, {split.hash[:8]}"
                for name, split in side.splits.items()
            },
            "metric": side.metric,
            "seed": side.seed,
            **{f"spent {name}": amount for name, amount in side.spent.items()},
            **{f"setting {name}": value for name, value in side.settings.items() if name not in ("metric", "seed")},
        }
        for side in (before, after)
    ]
    return {
        name: (sides[0].get(name), sides[1].get(name))
        for name in {**sides[0], **sides[1]}
        if sides[0].get(name) != sides[1].get(name)
    }


def _names(state: State) -> list[str]:
    kinds = (
        ("agent", state.agents),
        ("tunable", state.tunables),
        ("exemplars", state.memories),
        ("parameter", state.others),
    )
    return [f"{kind} {name}" for kind, names in kinds for name in list(names)]
