"""The figures show the result."""

from __future__ import annotations

from xml.etree import ElementTree

import dspy
import pytest

from polyhop.optimizers.tunables import StudyResult, TunableSearch, plots
from polyhop.programs.tunable import tunables

from .world import Costly, Hill, height, numbered

SVG = "{http://www.w3.org/2000/svg}"


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
    circles = root.findall(f"{SVG}circle")
    assert len(circles) == len(result.trials)
    grey = [circle for circle in circles if circle.get("fill") == "#bbbbbb"]
    assert len(grey) == result.states["pruned"] > 0
    (line,) = root.findall(f"{SVG}polyline")
    heights = [float(point.split(",")[1]) for point in str(line.get("points")).split()]
    assert heights == sorted(heights, reverse=True)  # SVG counts downwards
    assert "width = 0.1\nrounds = 2\nstyle = fancy" in (circles[0].findtext(f"{SVG}title") or "")


def test_the_front_is_a_line_through_its_trials() -> None:
    result = search(Costly(), "lm_calls")
    root = ElementTree.fromstring(plots.front(result, "lm_calls"))
    (line,) = root.findall(f"{SVG}polyline")
    assert len(str(line.get("points")).split()) == len(result.front) > 1
    (best,) = [circle for circle in root.findall(f"{SVG}circle") if circle.get("fill") == "#c0392b"]
    assert f"trial {result.best.number}," in (best.findtext(f"{SVG}title") or "")
    assert "lm calls per question" in [text.text for text in root.findall(f"{SVG}text")]


def test_importances_are_bars_in_their_order(result: StudyResult) -> None:
    root = ElementTree.fromstring(plots.importances(result))
    words = [text.text for text in root.findall(f"{SVG}text")]
    assert words[1::2] == list(result.importances)
    assert set(tunables(Hill())) == set(words[1::2])
    bars = [float(str(bar.get("width"))) for bar in root.findall(f"{SVG}rect")[1:]]
    assert bars == sorted(bars, reverse=True)
    shares = list(result.importances.values())
    assert bars[1] / bars[0] == pytest.approx(shares[1] / shares[0], abs=0.01)
    without = result.model_copy(update={"importances": {}})
    assert len(ElementTree.fromstring(plots.importances(without)).findall(f"{SVG}rect")) == 1
