"""What is searched: the tunables of a program, less what is frozen, in ranges that may be narrower than declared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from ...programs.tunable import Tunable, tunables

Values = dict[str, Any]
"""A value for each tunable that is searched, by its dotted name."""

Ranges = Mapping[str, Sequence[Any]]
"""By name or glob: the lowest and the highest value of a number, or the values of a choice."""

_MOST_POINTS = 100_000  # of a grid


@dataclass(frozen=True)
class Space:
    """The ranges in which a search moves.

    Attributes:
        distributions: By name, in the order of the program.
        defaults: The present value of each, which a narrowed range need not contain.
    """

    distributions: dict[str, BaseDistribution]
    defaults: Values

    @classmethod
    def of(cls, program: dspy.Module, freeze: Sequence[str] = (), ranges: Ranges | None = None) -> Space:
        """The space of a program.

        Args:
            freeze: Names or globs (``"search.*"``) of what keeps its value.
            ranges: Narrower ranges; see `Ranges`. Of two that fit a name, the later one counts.

        Raises:
            PolyhopError: a name is not known, a range is none or goes beyond the one declared, a tunable is both frozen
                and given a range, or nothing is left to search.
        """
        known = tunables(program)
        frozen = {name for pattern in freeze for name in _matches(pattern, known)}
        narrowed = {
            name: (pattern, range_) for pattern, range_ in (ranges or {}).items() for name in _matches(pattern, known)
        }
        for name, (pattern, _) in narrowed.items():
            if name in frozen:
                raise PolyhopError(f"{name} is frozen and has a range ({pattern!r}): it can have one of the two")
        distributions = {
            name: _distribution(name, tunable, narrowed[name][1] if name in narrowed else None)
            for name, tunable in known.items()
            if name not in frozen
        }
        distributions = {name: each for name, each in distributions.items() if not each.single()}
        if not distributions:
            why = "all are frozen or have one value only" if known else "it has no tunables (polyhop.tunables)"
            raise PolyhopError(f"nothing of the program is left to tune: {why}")
        return cls(distributions, {name: known[name].value for name in distributions})

    def inside(self, values: Values) -> Values:
        """Those of the values that are within the ranges."""
        return {
            name: values[name]
            for name, each in self.distributions.items()
            if name in values and _contains(each, values[name])
        }

    def covers(self, values: Values) -> bool:
        """Whether the values are a point of the space."""
        return len(self.inside(values)) == len(self.distributions)

    def describe(self) -> dict[str, str]:
        """The ranges, for the record."""
        return {name: distribution_to_json(each) for name, each in self.distributions.items()}

    # --- other ways to see it ----------------------------------------------------------------------------------------

    def place(self, values: Values) -> list[float]:
        """The values as a point of the unit cube; the values of a choice have places in their order."""
        return [_place(each, values[name]) for name, each in self.distributions.items()]

    def values(self, place: Sequence[float]) -> Values:
        """The values of the nearest point of the space to a point of the unit cube."""
        return {
            name: _value(each, min(max(float(at), 0.0), 1.0))
            for (name, each), at in zip(self.distributions.items(), place, strict=True)
        }

    def grid(self, points: int) -> list[Values]:
        """All combinations of up to so many evenly spaced values of each number and all values of each choice.

        Raises:
            PolyhopError: these are too many.
        """
        axes = [_axis(each, points) for each in self.distributions.values()]
        if math.prod(map(len, axes)) > _MOST_POINTS:
            sizes = ", ".join(f"{name} {len(axis)}" for name, axis in zip(self.distributions, axes, strict=True))
            raise PolyhopError(
                f"the grid has more than {_MOST_POINTS:,} points ({sizes}): freeze more, or use fewer points"
            )
        return [dict(zip(self.distributions, each, strict=True)) for each in product(*axes)]


def matching(program: dspy.Module, patterns: Iterable[str]) -> list[str]:
    """The tunables that names or globs mean.

    Raises:
        PolyhopError: no name fits one of them.
    """
    known = tunables(program)
    return [name for pattern in patterns for name in _matches(pattern, known)]


def _matches(pattern: str, known: Mapping[str, Any]) -> Iterator[str]:
    """
    Raises:
        PolyhopError: no name fits.
    """
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
        if not any(value == choice and type(value) is type(choice) for choice in tunable.choices):
            raise PolyhopError(f"{name} can be one of {list(tunable.choices)}, not {value!r}")
    if not chosen:
        raise PolyhopError(f"the range of {name} is empty: name some of {list(tunable.choices)}")
    return tuple(dict.fromkeys(chosen))


def _limits(name: str, tunable: Tunable[Any], narrowed: Sequence[Any] | None) -> tuple[Any, Any]:
    if narrowed is None:
        return tunable.low, tunable.high
    whole = type(tunable.low) is int
    said = f"the range of {name} is two numbers within {tunable.low}..{tunable.high}, not {narrowed!r}"
    if not isinstance(narrowed, list | tuple) or len(narrowed) != 2:
        raise PolyhopError(said)
    low, high = narrowed
    if not all(type(value) is int or (type(value) is float and not whole) for value in (low, high)):
        raise PolyhopError(said + (": whole numbers" if whole else ""))
    if not tunable.low <= low <= high <= tunable.high:
        raise PolyhopError(said)
    return (low, high) if whole else (float(low), float(high))


def _contains(distribution: BaseDistribution, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return any(value == choice and type(value) is type(choice) for choice in distribution.choices)
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    return bool(distribution.low <= value <= distribution.high)


# --- the unit cube ---------------------------------------------------------------------------------------------------


def _scale(distribution: IntDistribution | FloatDistribution) -> tuple[float, float]:
    """The ends of a number's range; whole numbers have half a step more, so that all take the same room."""
    half = 0.5 if isinstance(distribution, IntDistribution) else 0.0
    low, high = distribution.low - half, distribution.high + half
    return (math.log(low), math.log(high)) if distribution.log else (low, high)


def _place(distribution: BaseDistribution, value: Any) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return (distribution.choices.index(value) + 0.5) / len(distribution.choices)
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    low, high = _scale(distribution)
    return ((math.log(value) if distribution.log else value) - low) / (high - low)


def _value(distribution: BaseDistribution, place: float) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        count = len(distribution.choices)
        return distribution.choices[min(int(place * count), count - 1)]
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    low, high = _scale(distribution)
    value = low + place * (high - low)
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
    low, high = _place(distribution, distribution.low), _place(distribution, distribution.high)
    places = (low + (high - low) * n / max(points - 1, 1) for n in range(points))
    return list(dict.fromkeys(_value(distribution, place) for place in places))
