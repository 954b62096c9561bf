"""The pictures say what the outcome says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from polyhop.optimizers.tuning import Outcome, TunableSearch, plots
from polyhop.programs.tunable import tunables

from .test_search import Costly
from .world import Hill, height, numbered

SVG = "{http://www.w3.org/2000/svg}"


def found(cost: str | None) -> Outcome:
    search = TunableSearch(height, trials=20, cost=cost, storage=None)
    search.compile(Costly() if cost else Hill(), valset=numbered(30))
    assert search.outcome is not None
    return search.outcome


def read(document: str) -> ElementTree.Element:
    return ElementTree.fromstring(document)


def test_the_history_has_a_point_a_trial_and_a_line_that_rises() -> None:
    outcome = found(None)
    root = read(plots.history(outcome))
    circles = root.findall(f"{SVG}circle")
    assert len(circles) == len(outcome.trials)
    grey = [circle for circle in circles if circle.get("fill") == "#bbbbbb"]
    assert len(grey) == outcome.states["pruned"] > 0
    (line,) = root.findall(f"{SVG}polyline")
    ups = [float(point.split(",")[1]) for point in str(line.get("points")).split()]
    assert ups == sorted(ups, reverse=True)  # SVG counts downwards
    notes = [circle.findtext(f"{SVG}title") or "" for circle in circles]
    assert "width = 0.1\nrounds = 2\nstyle = fancy" in notes[0]


def test_the_front_is_a_line_through_its_trials() -> None:
    outcome = found("lm_calls")
    root = read(plots.front(outcome, "lm_calls"))
    (line,) = root.findall(f"{SVG}polyline")
    assert len(str(line.get("points")).split()) == len(outcome.front) > 1
    (best,) = [circle for circle in root.findall(f"{SVG}circle") if circle.get("fill") == "#c0392b"]
    assert f"trial {outcome.best.slot}," in (best.findtext(f"{SVG}title") or "")
    assert "lm calls a question" in [text.text for text in root.findall(f"{SVG}text")]


def test_importances_are_bars_in_their_order() -> None:
    outcome = found(None)
    root = read(plots.importances(outcome))
    words = [text.text for text in root.findall(f"{SVG}text")]
    assert words[1::2] == list(outcome.importances)
    assert set(tunables(Hill())) == set(words[1::2])
    bars = [float(str(bar.get("width"))) for bar in root.findall(f"{SVG}rect")[1:]]
    assert bars == sorted(bars, reverse=True)
    shares = list(outcome.importances.values())
    assert bars[1] / bars[0] == pytest.approx(shares[1] / shares[0], abs=0.01)


def test_where_nothing_is_known_to_matter_there_are_no_bars() -> None:
    search = TunableSearch(lambda example, prediction: 1.0, trials=3, storage=None)
    search.compile(Hill(), valset=numbered(3))
    assert search.outcome is not None
    assert len(read(plots.importances(search.outcome)).findall(f"{SVG}rect")) == 1
    plots.history(search.outcome)
