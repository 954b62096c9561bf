"""The search space: tunables are found, frozen by name, narrowed within their declared range."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tunables.space import SearchSpace
from polyhop.programs import PolyHop, Prism, tunables
from polyhop.programs.tunable import choice, integer, real

from .world import Hill


def test_a_program_has_a_space() -> None:
    program = Prism()
    program.rounds.value = 2
    space = SearchSpace.of(program, freeze=["search.k1"], ranges={"rounds": (3, 4), "stop": ["stable", "fixed"]})
    assert {"rounds", "stop", "search.k", "search.b"} <= set(space.distributions)
    assert "search.k1" not in space.distributions
    assert space.distributions["rounds"] == IntDistribution(3, 4)
    assert space.distributions["stop"] == CategoricalDistribution(("stable", "fixed"))
    assert space.defaults["rounds"] == 2  # outside the narrowed range
    assert not space.covers(space.defaults)
    assert "rounds" not in space.inside(space.defaults)
    assert not [
        name for name in SearchSpace.of(Prism(), freeze=["search.*"]).distributions if name.startswith("search")
    ]
    assert list(SearchSpace.of(Hill(), ranges={"rounds": (2, 2), "style": ("fancy",)}).distributions) == ["width"]


def test_the_usual_range_is_searched_unless_another_is_named() -> None:
    program = Prism()
    assert SearchSpace.of(program).distributions["search.k1"] == FloatDistribution(0.0, 3.0)
    wide = SearchSpace.of(program, ranges={"search.k1": (0, 40)})
    assert wide.distributions["search.k1"] == FloatDistribution(0.0, 40.0)
    program.search.k1.value = 25
    assert SearchSpace.of(program).distributions["search.k1"] == FloatDistribution(0.0, 25.0)
    assert SearchSpace.of(program).distributions["search.k"] == IntDistribution(1, 200, log=True)


@pytest.mark.parametrize(
    ("freeze", "ranges", "message"),
    [
        (["height"], {}, "the program has no tunable 'height'; it has width, rounds, style"),
        ([], {"search.*": (1, 2)}, "the program has no tunable 'search.\\*'"),
        (["width"], {"w*": (0.1, 0.2)}, "width is frozen and has a range \\('w\\*'\\)"),
        (["*"], {}, "no tunables to search: all are frozen"),
        ([], {"rounds": (0, 3)}, "the range of rounds must be two integers within 1..6, not \\(0, 3\\)"),
        ([], {"rounds": (3, 1)}, "two integers within 1..6"),
        ([], {"rounds": (1.5, 3)}, "two integers within 1..6"),
        ([], {"rounds": 3}, "two integers within 1..6, not 3"),
        ([], {"width": (0.5, float("nan"))}, "two numbers within 0.0..1.0"),
        ([], {"width": (True, 1)}, "two numbers within 0.0..1.0"),
        ([], {"style": ("fancy", "odd")}, "style can be one of \\['fancy', 'plain'\\], not 'odd'"),
        ([], {"style": ()}, "the range of style is empty"),
    ],
)
def test_invalid_spaces(freeze: list[str], ranges: dict[str, Any], message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        SearchSpace.of(Hill(), freeze, ranges)


class Everything(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = integer(10, 1, 200, log=True)
        self.n = integer(2, 0, 4)
        self.x = real(0.5, 0.001, 10.0, log=True)
        self.y = real(-1.0, -2.0, 2.0)
        self.flag = choice(True, (True, False))
        self.mode = choice("b", ("a", "b", "c"))


SPACE = SearchSpace.of(Everything())


@given(st.lists(st.floats(-1.0, 2.0), min_size=6, max_size=6))
def test_the_unit_cube_maps_to_values_and_back(point: list[float]) -> None:
    values = SPACE.from_unit(point)
    assert SPACE.covers(values)
    assert [type(value) for value in values.values()] == [type(value) for value in SPACE.defaults.values()]
    unit = SPACE.to_unit(values)
    assert all(-1e-9 <= each <= 1 + 1e-9 for each in unit)
    assert SPACE.from_unit(unit) == pytest.approx(values)


def test_a_grid_contains_both_ends_of_every_range() -> None:
    grid = SearchSpace.of(Everything(), freeze=["x", "mode"]).grid(3)
    assert len(grid) == 3 * 3 * 3 * 2
    for name, values in {"k": {1, 14, 200}, "n": {0, 2, 4}, "y": {-2.0, 0.0, 2.0}}.items():
        assert {each[name] for each in grid} == values
    assert {values["n"] for values in SPACE.grid(5)} == {0, 1, 2, 3, 4}
    with pytest.raises(PolyhopError, match="more than 100,000 points .*freeze more tunables, or use fewer points"):
        SPACE.grid(50)


# --- conditions ------------------------------------------------------------------------------------------------------

ALPHA = ["confidence.fixed_alpha", "confidence.midpoint", "confidence.slope"]


def test_what_is_off_in_every_trial_is_not_searched() -> None:
    program = PolyHop()
    program.review.value = "never"
    space = SearchSpace.of(program, freeze=["review"])
    assert not [name for name in space.distributions if name.startswith("confidence.")]
    program.review.value = "always"
    program.confidence.adaptive.value = False
    space = SearchSpace.of(program, freeze=["review", "confidence.adaptive"])
    assert [name for name in space.distributions if name in ALPHA] == ["confidence.fixed_alpha"]
    assert not space.conditions.keys() & set(ALPHA)


def test_values_of_a_branch_that_is_off_are_not_active() -> None:
    space = SearchSpace.of(PolyHop())
    values = space.defaults | {"review": "never"}
    assert not [name for name in space.active(values) if name.startswith("confidence.")]
    values = space.defaults | {"review": "doubt", "confidence.adaptive": True}
    assert [name for name in space.active(values) if name in ALPHA] == ALPHA[1:]


def test_a_grid_has_no_points_that_differ_only_in_what_is_off() -> None:
    kept = ["review", "confidence.threshold", "confidence.adaptive"]
    program = PolyHop()
    space = SearchSpace.of(program, freeze=[name for name in tunables(program) if name not in kept])
    points = space.grid(4)
    assert len(points) == 3 * 4 * 2 + 1  # each kind of review with all values, and none
    assert all(space.covers(point) for point in points)
