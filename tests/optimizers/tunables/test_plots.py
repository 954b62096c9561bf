"""The figures show the result."""

from __future__ import annotations

from xml.etree import ElementTree

import dspy
import pytest

from polyhop.optimizers.tunables import StudyResult, TunableSearch, plots

from .world import Costly, Hill, height, numbered


def search(program: dspy.Module, cost: str | None = None) -> StudyResult:
    search = TunableSearch(height, trials=20, cost=cost, storage=None)
    search.compile(program, valset=numbered(30))
    assert search.result is not None
    return search.result


@pytest.fixture(scope="module")
def result() -> StudyResult:
    return search(Hill())


def test_the_history_has_a_point_per_trial_and_a_rising_line(result: StudyResult) -> None:
    root = ElementTree.fromstring(plots.history(result.trials))
    circles = root.findall("circle")
    assert len(circles) == len(result.trials)
    grey = [circle for circle in circles if circle.get("class") == "muted"]
    assert len(grey) == result.states["pruned"] > 0
    (line,) = root.findall("polyline")
    heights = [float(point.split(",")[1]) for point in str(line.get("points")).split()]
    assert heights == sorted(heights, reverse=True)  # SVG counts downwards
    assert "width = 0.1\nrounds = 2\nstyle = fancy" in (circles[0].findtext("title") or "")


def test_the_front_is_a_line_through_its_trials() -> None:
    result = search(Costly(), "lm_calls")
    root = ElementTree.fromstring(plots.front(result.trials, "lm_calls", result.front, result.best))
    (line,) = root.findall("polyline")
    assert len(str(line.get("points")).split()) == len(result.front) > 1
    (best,) = [circle for circle in root.findall("circle") if circle.get("class") == "s2"]
    assert f"trial {result.best.number}," in (best.findtext("title") or "")
    assert "LM calls per question" in [text.text for text in root.findall("text")]
