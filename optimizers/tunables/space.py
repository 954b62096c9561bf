"""The search space: a program's tunables, without the frozen ones, in their declared or narrower ranges."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import dspy
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from ...data.errors import PolyhopError
from ...programs.program import conditions_of
from ...programs.tunable import Tunable, tunables

Values = dict[str, Any]
"""A value for each tunable that is searched, by its dotted name."""

Ranges = Mapping[str, Sequence[Any]]
"""By name or glob: the lowest and the highest value of a number, or the values of a choice."""

_MAX_GRID = 100_000


@dataclass(frozen=True)
class SearchSpace:
    """The ranges of a search, in the order of the program; current values may lie outside a narrowed range."""

    distributions: dict[str, BaseDistribution]
    defaults: Values
    conditions: dict[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    """By name: the tunable on which it depends, and the values for which it matters (`Program.conditions`)."""

    @classmethod
    def of(cls, program: dspy.Module, freeze: Sequence[str] = (), ranges: Ranges | None = None) -> SearchSpace:
        """The search space of a program.

        Args:
            freeze: Names or globs (``"search.*"``) of tunables that keep their values.
            ranges: Narrower ranges; see `Ranges`. If two patterns match a name, the later one applies.
        """
        known = tunables(program)
        frozen = {name for pattern in freeze for name in _matches(pattern, known)}
        narrowed = {
            name: (pattern, range_) for pattern, range_ in (ranges or {}).items() for name in _matches(pattern, known)
        }
        for name in frozen & narrowed.keys():
            raise PolyhopError(f"{name} is frozen and has a range ({narrowed[name][0]!r}): choose one of the two")
        distributions = {
            name: _distribution(name, tunable, narrowed[name][1] if name in narrowed else None)
            for name, tunable in known.items()
            if name not in frozen
        }
        conditions = conditions_of(program)
        values = {name: tunable.value for name, tunable in known.items()}
        fixed = known.keys() - distributions.keys()
        for name in [name for name in distributions if _is_off(name, conditions, values, fixed)]:
            del distributions[name]
        distributions = {name: each for name, each in distributions.items() if not each.single()}
        if not distributions:
            why = "all are frozen or have a single value" if known else "it has none (polyhop.tunables)"
            raise PolyhopError(f"the program has no tunables to search: {why}")
        kept = {name: each for name, each in conditions.items() if name in distributions and each[0] in distributions}
        return cls(distributions, {name: known[name].value for name in distributions}, kept)

    def active(self, values: Values) -> Values:
        """The values that matter beside the others."""
        return {name: value for name, value in values.items() if not _is_off(name, self.conditions, values, values)}

    def inside(self, values: Values) -> Values:
        """The values that lie within their ranges."""
        return {
            name: values[name]
            for name, each in self.distributions.items()
            if name in values and _contains(each, values[name])
        }

    def covers(self, values: Values) -> bool:
        """Whether the values are a point of the space."""
        return len(self.inside(values)) == len(self.distributions)

    def starts(self, others: Iterable[Values]) -> list[Values]:
        """The defaults, and the defaults with other values where they lie within their ranges; each once."""
        found = [self.defaults]
        for values in others:
            point = self.defaults | self.active(self.defaults | self.inside(values))
            found += [point] if point not in found else []
        return found

    def describe(self) -> dict[str, str]:
        """The ranges as JSON, for the record."""
        return {name: distribution_to_json(each) for name, each in self.distributions.items()}

    def to_unit(self, values: Values) -> list[float]:
        """The values as a point of the unit cube; the values of a choice count as ordered."""
        return [_to_unit(each, values[name]) for name, each in self.distributions.items()]

    def from_unit(self, point: Sequence[float]) -> Values:
        """The values closest to a point of the unit cube."""
        pairs = zip(self.distributions.items(), point, strict=True)
        return {name: _from_unit(each, min(max(float(at), 0.0), 1.0)) for (name, each), at in pairs}

    def grid(self, points: int) -> list[Values]:
        """All combinations of at most ``points`` evenly spaced values of each number and all values of each choice."""
        axes = {name: _axis(each, points) for name, each in self.distributions.items()}
        if math.prod(map(len, axes.values())) > _MAX_GRID:
            sizes = ", ".join(f"{name} {len(axis)}" for name, axis in axes.items())
            raise PolyhopError(
                f"the grid has more than {_MAX_GRID:,} points ({sizes}): freeze more tunables, or use fewer points"
            )
        combined = [self.active(dict(zip(axes, each, strict=True))) for each in product(*axes.values())]
        return [self.defaults | each for each in {tuple(each.items()): each for each in combined}.values()]


def _is_off(
    name: str, conditions: Mapping[str, tuple[str, tuple[Any, ...]]], values: Values, decided: Collection[str]
) -> bool:
    """Whether a tunable does not matter, as far as it is ``decided`` what it depends on."""
    if name not in conditions:
        return False
    other, needed = conditions[name]
    return (other in decided and values[other] not in needed) or _is_off(other, conditions, values, decided)


def with_values(program: dspy.Module, values: Values) -> dspy.Module:
    """A copy of a program with other values of its tunables."""
    copy: dspy.Module = program.deepcopy()
    for name, tunable in tunables(copy).items():
        if name in values:
            tunable.value = values[name]
    return copy


def matching(program: dspy.Module, patterns: Iterable[str]) -> list[str]:
    """The names of the tunables that match names or globs."""
    known = tunables(program)
    return [name for pattern in patterns for name in _matches(pattern, known)]


def _matches(pattern: str, known: Mapping[str, Any]) -> Iterator[str]:
    found = [name for name in known if name == pattern or fnmatchcase(name, pattern)]
    if not found:
        raise PolyhopError(f"the program has no tunable {pattern!r}; it has {', '.join(known) or 'none'}")
    yield from found


def _distribution(name: str, tunable: Tunable[Any], narrowed: Sequence[Any] | None) -> BaseDistribution:
    if tunable.choices:
        return CategoricalDistribution(_choices(name, tunable, narrowed))
    low, high = _limits(name, tunable, narrowed)
    kind = IntDistribution if type(tunable.low) is int else FloatDistribution
    try:
        return kind(low, high, log=tunable.log)
    except ValueError as error:
        raise PolyhopError(f"{name} cannot be searched from {low} to {high}: {error}") from error


def _choices(name: str, tunable: Tunable[Any], narrowed: Sequence[Any] | None) -> tuple[Any, ...]:
    if narrowed is None:
        return tunable.choices
    chosen = (narrowed,) if isinstance(narrowed, str) else tuple(narrowed)
    for value in chosen:
        if not _among(tunable.choices, value):
            raise PolyhopError(f"{name} can be one of {list(tunable.choices)}, not {value!r}")
    if not chosen:
        raise PolyhopError(f"the range of {name} is empty: choose from {list(tunable.choices)}")
    return tuple(dict.fromkeys(chosen))


def _limits(name: str, tunable: Tunable[Any], narrowed: Sequence[Any] | None) -> tuple[Any, Any]:
    if narrowed is None:
        low, high = tunable.usual or (tunable.low, tunable.high)
        return min(low, tunable.value), max(high, tunable.value)
    whole = type(tunable.low) is int
    kinds = (int,) if whole else (int, float)  # a bool is neither
    numbers = (
        isinstance(narrowed, list | tuple) and len(narrowed) == 2 and all(type(each) in kinds for each in narrowed)
    )
    if not numbers or not tunable.low <= narrowed[0] <= narrowed[1] <= tunable.high:
        what = "two integers" if whole else "two numbers"
        raise PolyhopError(f"the range of {name} must be {what} within {tunable.low}..{tunable.high}, not {narrowed!r}")
    low, high = narrowed
    return (low, high) if whole else (float(low), float(high))


def _contains(distribution: BaseDistribution, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return _among(distribution.choices, value)
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    return bool(distribution.low <= value <= distribution.high)


def _among(choices: Sequence[Any], value: Any) -> bool:
    return any(value == choice and type(value) is type(choice) for choice in choices)


# --- the unit cube ---------------------------------------------------------------------------------------------------


def _scale(distribution: IntDistribution | FloatDistribution) -> tuple[float, float]:
    """The ends of a number's range; integers get half a step more on both sides, so that all are equally likely."""
    half = 0.5 if isinstance(distribution, IntDistribution) else 0.0
    low, high = distribution.low - half, distribution.high + half
    return (math.log(low), math.log(high)) if distribution.log else (low, high)


def _to_unit(distribution: BaseDistribution, value: Any) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return (distribution.choices.index(value) + 0.5) / len(distribution.choices)
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    low, high = _scale(distribution)
    return ((math.log(value) if distribution.log else value) - low) / (high - low)


def _from_unit(distribution: BaseDistribution, at: float) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        count = len(distribution.choices)
        return distribution.choices[min(int(at * count), count - 1)]
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    low, high = _scale(distribution)
    value = low + at * (high - low)
    value = math.exp(value) if distribution.log else value
    if isinstance(distribution, IntDistribution):
        value = round(value)
    return min(max(value, distribution.low), distribution.high)  # logarithms lose a digit


def _axis(distribution: BaseDistribution, points: int) -> list[Any]:
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    if isinstance(distribution, IntDistribution) and distribution.high - distribution.low < points:
        return list(range(distribution.low, distribution.high + 1))
    low, high = _to_unit(distribution, distribution.low), _to_unit(distribution, distribution.high)
    steps = (low + (high - low) * n / max(points - 1, 1) for n in range(points))
    return list(dict.fromkeys(_from_unit(distribution, at) for at in steps))
