"""Tunables: a program's thresholds and switches as DSPy parameters with a range.

``program.named_parameters()`` finds a `Tunable`, teleprompters leave it alone, and it is saved and loaded with the
prompts. An optimizer reads its range and sets ``value``; a program reads ``value``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast

import dspy
from dspy.predict.parameter import Parameter

T = TypeVar("T", int, float, str, bool)
Needs: TypeAlias = tuple[str, tuple[Any, ...]]


class Tunable(Parameter, Generic[T]):
    """A value and its search range. Create it with `integer`, `real` or `choice`.

    Attributes:
        low, high: The inclusive range of a number; None for a choice.
        choices: The values of a choice; empty for a number.
        log: Whether to search on a logarithmic scale.
        usual: The range that optimizers search by default, within ``low`` and ``high``; None for all of it.
        needs: Another tunable of the same module, and the values of it for which this one matters; None for always.

    Raises:
        ValueError: a value is outside the range, at construction, assignment or loading.
    """

    def __init__(
        self,
        value: T,
        *,
        low: T | None = None,
        high: T | None = None,
        choices: Sequence[T] = (),
        log: bool = False,
        usual: tuple[T, T] | None = None,
        needs: Needs | None = None,
    ) -> None:
        self.low: T | None = low
        self.high: T | None = high
        self.choices: tuple[T, ...] = tuple(choices)
        self.usual: tuple[T, T] | None = usual
        self.log, self.needs = log, needs
        self._value: T
        self.value = value

    @property
    def value(self) -> T:
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        if type(self.low) is float and type(value) is int:
            value = float(value)
        if self.choices:
            fits = any(value == choice and type(value) is type(choice) for choice in self.choices)
        else:
            low, high = cast(Any, (self.low, self.high))
            fits = type(value) is type(low) and low <= value <= high
        if not fits:  # nan, too
            raise ValueError(f"must be {self._range()}, got {value!r}")
        self._value = value

    def _range(self) -> str:
        if self.choices:
            return f"one of {list(self.choices)}"
        return f"{'an integer' if type(self.low) is int else 'a number'} in {self.low}..{self.high}"

    def reset(self) -> None:
        """Keep the value: teleprompters call this to clear demos."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        range_ = {"choices": list(self.choices)} if self.choices else {"low": self.low, "high": self.high}
        return {"value": self.value, **range_, **({"log": True} if self.log else {})}

    def load_state(self, state: dict[str, Any]) -> None:
        """Load the value; the range stays the one declared in code."""
        self.value = state["value"]

    def __repr__(self) -> str:
        return f"Tunable({self.value!r}: {self._range()})"


def integer(value: int, low: int, high: int, **options: Any) -> Tunable[int]:
    """An integer in [low, high]; options are those of `Tunable`."""
    return Tunable(value, low=low, high=high, **options)


def real(value: float, low: float, high: float, **options: Any) -> Tunable[float]:
    """A real number in [low, high]; options are those of `Tunable`."""
    return Tunable(float(value), low=float(low), high=float(high), **options)


def choice(value: T, choices: Sequence[T], **options: Any) -> Tunable[T]:
    """One of a few values; options are those of `Tunable`."""
    return Tunable(value, choices=choices, **options)


def switch(value: bool, **options: Any) -> Tunable[bool]:
    """True or False."""
    return choice(value, (True, False), **options)


def tunables(program: dspy.Module) -> dict[str, Tunable[Any]]:
    """The tunables of a program by dotted name."""
    return {name: parameter for name, parameter in program.named_parameters() if isinstance(parameter, Tunable)}


def conditions_of(program: dspy.Module) -> dict[str, Needs]:
    """Of each tunable that does not always matter, the one that it needs, and the values for which it matters."""
    conditions = {}
    for name, tunable in tunables(program).items():
        if tunable.needs:
            part, dot, _ = name.rpartition(".")
            conditions[name] = part + dot + tunable.needs[0], tunable.needs[1]
    return conditions
