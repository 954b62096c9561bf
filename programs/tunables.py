"""Tunables: the thresholds of a program, as DSPy parameters.

A `Tunable` is found by ``program.named_parameters()``, travels through every teleprompter unharmed, and is saved and
loaded in the same JSON state as the prompts. An optimizer reads its range and sets its value; a program reads
``value``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import dspy
from dspy.predict.parameter import Parameter

T = TypeVar("T", int, float, str, bool)


class Tunable(Parameter, Generic[T]):
    """A value and the range in which to search for a better one. Make it with `integer`, `real` or `choice`.

    Attributes:
        low, high: The inclusive range of a number; None for a choice.
        choices: The values of a choice; empty for a number.
        log: Search on a logarithmic scale.

    Raises:
        ValueError: a value outside the range, at construction, assignment or loading.
    """

    def __init__(
        self,
        value: T,
        *,
        low: T | None = None,
        high: T | None = None,
        choices: Sequence[T] = (),
        log: bool = False,
    ) -> None:
        self.low: T | None = low
        self.high: T | None = high
        self.choices: tuple[T, ...] = tuple(choices)
        self.log = log
        self._value: T
        self.value = value

    @property
    def value(self) -> T:
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        if self.choices:
            if not any(value == choice and type(value) is type(choice) for choice in self.choices):
                raise ValueError(f"must be one of {list(self.choices)}, got {value!r}")
        else:
            value = self._number(value)
        self._value = value

    def _number(self, value: Any) -> Any:
        kind = type(self.low)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind or not self.low <= value <= self.high:  # type: ignore[operator]  # also refuses nan
            what = "an integer" if kind is int else "a number"
            raise ValueError(f"must be {what} in {self.low}..{self.high}, got {value!r}")
        return value

    def reset(self) -> None:
        """Keep the value: teleprompters call this to forget demos, which a threshold is not."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        range_ = {"choices": list(self.choices)} if self.choices else {"low": self.low, "high": self.high}
        return {"value": self.value, **range_, **({"log": True} if self.log else {})}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take the saved value; the range stays the one declared in code."""
        self.value = state["value"]

    def __repr__(self) -> str:
        return f"Tunable({self.value!r} in {list(self.choices) if self.choices else f'{self.low}..{self.high}'})"


def integer(value: int, low: int, high: int, *, log: bool = False) -> Tunable[int]:
    """A whole number from ``low`` to ``high``, both included."""
    return Tunable(value, low=low, high=high, log=log)


def real(value: float, low: float, high: float, *, log: bool = False) -> Tunable[float]:
    """A real number from ``low`` to ``high``, both included."""
    return Tunable(float(value), low=float(low), high=float(high), log=log)


def choice(value: T, choices: Sequence[T]) -> Tunable[T]:
    """One of a few values; an ablation switch is ``choice(True, (True, False))``."""
    return Tunable(value, choices=choices)


def tunables(program: dspy.Module) -> Iterator[tuple[str, Tunable[Any]]]:
    """The tunables of a program with their dotted names."""
    return ((name, parameter) for name, parameter in program.named_parameters() if isinstance(parameter, Tunable))
