"""What is searched: found by itself, frozen by name, narrowed within what is declared."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tuning.space import Space
from polyhop.programs import Prism
from polyhop.programs.tunable import choice, integer, real

from .world import Hill


def test_it_finds_the_tunables_of_a_program_with_their_present_values() -> None:
    program = Prism()
    program.rounds.value = 2
    space = Space.of(program)
    assert {"rounds", "stop", "search.k", "search.k1", "search.b"} <= set(space.distributions)
    assert space.defaults["rounds"] == 2
    assert space.covers(space.defaults)


def test_names_and_globs_are_frozen() -> None:
    assert list(Space.of(Hill(), freeze=["width"]).distributions) == ["rounds", "style"]
    assert not [name for name in Space.of(Prism(), freeze=["search.*"]).distributions if name.startswith("search")]


def test_ranges_are_narrowed() -> None:
    space = Space.of(Prism(), freeze=["search.*"], ranges={"rounds": (1, 3), "stop": ["stable", "never"]})
    assert space.distributions["rounds"] == IntDistribution(1, 3)
    assert space.distributions["stop"] == CategoricalDistribution(("stable", "never"))


def test_one_value_is_nothing_to_search() -> None:
    assert list(Space.of(Hill(), ranges={"rounds": (2, 2), "style": ("fancy",)}).distributions) == ["width"]


def test_the_defaults_may_be_outside_a_narrowed_range() -> None:
    space = Space.of(Hill(), ranges={"rounds": (3, 6)})
    assert space.defaults["rounds"] == 2
    assert not space.covers(space.defaults)
    assert space.inside(space.defaults) == {"width": 0.1, "style": "fancy"}


@pytest.mark.parametrize(
    ("freeze", "ranges", "said"),
    [
        (["height"], {}, "the program has no tunable 'height'; it has width, rounds, style"),
        ([], {"search.*": (1, 2)}, "the program has no tunable 'search.\\*'"),
        (["width"], {"w*": (0.1, 0.2)}, "width is frozen and has a range \\('w\\*'\\)"),
        (["*"], {}, "nothing of the program is left to tune: all are frozen"),
        ([], {"rounds": (0, 3)}, "the range of rounds is two numbers within 1..6, not \\(0, 3\\)"),
        ([], {"rounds": (3, 1)}, "two numbers within 1..6"),
        ([], {"rounds": (1.5, 3)}, "whole numbers"),
        ([], {"rounds": 3}, "two numbers within 1..6, not 3"),
        ([], {"width": (0.5, float("nan"))}, "two numbers within 0.0..1.0"),
        ([], {"width": (True, 1)}, "two numbers within 0.0..1.0"),
        ([], {"style": ("fancy", "odd")}, "style can be one of \\['fancy', 'plain'\\], not 'odd'"),
        ([], {"style": ()}, "the range of style is empty"),
    ],
)
def test_what_makes_no_sense_is_an_error(freeze: list[str], ranges: dict[str, Any], said: str) -> None:
    with pytest.raises(PolyhopError, match=said):
        Space.of(Hill(), freeze, ranges)


def test_a_program_without_tunables_is_an_error() -> None:
    with pytest.raises(PolyhopError, match="it has no tunables"):
        Space.of(dspy.Predict("question -> answer"))


class Everything(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = integer(10, 1, 200, log=True)
        self.n = integer(2, 0, 4)
        self.x = real(0.5, 0.001, 10.0, log=True)
        self.y = real(-1.0, -2.0, 2.0)
        self.flag = choice(True, (True, False))
        self.mode = choice("b", ("a", "b", "c"))


def test_every_value_has_a_place_in_the_unit_cube_and_back() -> None:
    space = Space.of(Everything())
    for at in (0.0, 0.1, 0.35, 0.5, 0.99, 1.0):
        values = space.values([at] * len(space.distributions))
        assert space.covers(values)
        place = space.place(values)
        assert all(0.0 <= each <= 1.0 for each in place)
        assert space.values(place) == pytest.approx(values)
        assert {name: type(value) for name, value in values.items()} == {
            name: type(value) for name, value in space.defaults.items()
        }
    lowest = {"k": 1, "n": 0, "x": 0.001, "y": -2.0, "flag": True, "mode": "a"}
    assert space.values([-3.0] * 6) == space.values([0.0] * 6) == pytest.approx(lowest)


def test_all_whole_numbers_take_the_same_room() -> None:
    space = Space.of(Everything(), freeze=["k", "x", "y", "flag", "mode"])
    found = [space.values([(at + 0.5) / 1000])["n"] for at in range(1000)]
    assert {n: found.count(n) for n in range(5)} == dict.fromkeys(range(5), 200)


def test_a_grid_has_both_ends_of_every_range() -> None:
    grid = Space.of(Everything(), freeze=["x", "mode"]).grid(3)
    assert len(grid) == 3 * 3 * 3 * 2
    assert {values["k"] for values in grid} == {1, 14, 200}
    assert {values["n"] for values in grid} == {0, 2, 4}
    assert {values["y"] for values in grid} == {-2.0, 0.0, 2.0}
    assert {values["n"] for values in Space.of(Everything()).grid(5)} == {0, 1, 2, 3, 4}


def test_a_grid_that_nobody_could_walk_is_an_error() -> None:
    with pytest.raises(PolyhopError, match="more than 100,000 points .*freeze more, or use fewer points"):
        Space.of(Everything()).grid(50)
