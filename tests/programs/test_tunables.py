"""Tunables: values with a range that DSPy saves, loads, copies and compiles around."""

from __future__ import annotations

import copy
from typing import Any

import dspy
import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import PolyHop, Prism, Tunable, tunables
from polyhop.programs.tunable import choice, conditions_of, integer, real

POOL = [Passage.of(f"T{n}", sentences=[f"Sentence {n}.", "Another."], id=f"p{n}") for n in range(3)]
SWITCHES = {"analyze": True, "select": True, "add": True}  # stay on, so that every agent is asked
CHANGED: dict[str, Any] = SWITCHES | {
    "search.k": 2, "search.k1": 1.5, "search.b": 0.75, "search.by_document": True, "rounds": 4,
    "stop": "gain", "bridging": False, "prompt_tokens": 9_000, "abstain_below": 0.2,
}  # fmt: skip


def changed() -> Prism:
    """A program none of whose tunables has its default, but for the switches."""
    program = Prism(PassagePool(POOL))
    for name, tunable in tunables(program).items():
        assert name in SWITCHES or tunable.value != CHANGED[name]
        tunable.value = CHANGED[name]
    return program


def values(program: dspy.Module) -> dict[str, Any]:
    return {name: tunable.value for name, tunable in tunables(program).items()}


@pytest.mark.parametrize(
    ("tunable", "bad"),
    [
        *((integer(3, 1, 6), bad) for bad in (0, 7, 2.0, "2", None, True, float("nan"))),
        *((real(0.5, 0.0, 1.0), bad) for bad in (-0.1, 1.01, "0.5", None, True, float("nan"), float("inf"))),
        (choice("a", ("a", "b")), "c"),
        (choice(True, (True, False)), 1),
        (choice(1, (1, 2)), 1.0),
    ],
)
def test_values_outside_the_range_are_refused(tunable: Tunable[Any], bad: Any) -> None:
    before = tunable.value
    with pytest.raises(ValueError, match="must be .*, got "):
        tunable.value = bad
    assert tunable.value == before


def test_the_state_tells_the_range_and_loading_keeps_the_declared_one() -> None:
    assert real(0.5, 0.1, 3.0, log=True).dump_state() == {"value": 0.5, "low": 0.1, "high": 3.0, "log": True}
    assert choice(True, (True, False)).dump_state() == {"value": True, "choices": [True, False]}
    tunable = integer(3, 1, 6)
    tunable.load_state({"value": 5, "low": 0, "high": 100})
    assert (tunable.value, tunable.low, tunable.high) == (5, 1, 6)
    with pytest.raises(ValueError, match=r"in 1\.\.6, got 99"):
        tunable.load_state({"value": 99, "low": 0, "high": 100})
    assert tunable.value == 5


@pytest.mark.parametrize("copier", [copy.deepcopy, dspy.Module.deepcopy, dspy.Module.reset_copy])
def test_copies_keep_the_values_and_are_independent(copier: Any) -> None:
    program = changed()
    twin = copier(program)
    assert values(twin) == CHANGED
    twin.rounds.value = 1
    assert program.rounds.value == 4


def test_what_a_tunable_needs_is_told_by_its_full_name() -> None:
    assert conditions_of(Prism()) == {"bridging": ("select", (True,))}
    chain = conditions_of(PolyHop(ChainRetriever()))
    assert chain["search.chain['enough']"] == ("search.chain['adaptive']", (True,))
    assert chain["confidence.slope"] == ("confidence.adaptive", (True,))
