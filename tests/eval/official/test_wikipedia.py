"""HoVer's and PopQA's metrics, by hand."""

from __future__ import annotations

import pytest

from polyhop.eval.official import hover, popqa
from polyhop.eval.official.hotpotqa import SupportingFact

GOLD = hover.Gold(True, [("A", 0), ("B", 1)])


@pytest.mark.parametrize(
    ("supported", "sp", "expected"),
    [
        (True, [("A", 0), ("B", 1)], (1, 1, 1, 1)),
        (False, [("A", 0), ("B", 1)], (0, 1, 1, 0)),
        (None, None, (0, 0, 0, 0)),
        (True, [("A", 0), ("A", 3)], (1, 0, 1 / 2, 0)),
        # The third page counts for a claim of two pages, the fourth does not.
        (True, [("X", 0), ("A", 0), ("B", 1)], (1, 0, 4 / 5, 1)),
        (True, [("X", 0), ("Y", 0), ("A", 0), ("B", 1)], (1, 0, 2 / 3, 0)),
        # Two sentences of a page count, the third does not.
        (True, [("A", 5), ("A", 0), ("B", 1)], (1, 0, 4 / 5, 1)),
        (True, [("A", 5), ("A", 6), ("A", 0), ("B", 1)], (1, 0, 2 / 3, 0)),
    ],
)
def test_hover(supported: bool | None, sp: list[SupportingFact] | None, expected: tuple[float, ...]) -> None:
    found = hover.score(hover.Prediction("v", supported, sp), GOLD)
    assert tuple(found.values()) == pytest.approx(expected)
    assert list(found) == ["accuracy", "sp_em", "sp_f1", "hover_score"]


@pytest.mark.parametrize(
    ("answer", "supported"),
    [("Yes.", True), ("SUPPORTED", True), ("not supported", False), ("False", False), ("Ben Marsh", None), ("", None)],
)
def test_verdicts(answer: str, supported: bool | None) -> None:
    assert hover.verdict(answer) is supported


@pytest.mark.parametrize(
    ("answer", "gold", "accuracy"),
    [
        ("He was a Politician.", ["politician"], 1.0),
        ("he was a politician", ["POLITICIAN"], 1.0),
        ("the politicians", ["politician"], 1.0),
        ("He was a POLITICIAN.", ["politician"], 0.0),
        ("painter", ["politician", "painter"], 1.0),
        (None, ["politician"], 0.0),
    ],
)
def test_popqa(answer: str | None, gold: list[str], accuracy: float) -> None:
    assert popqa.score(popqa.Prediction("1", answer), gold) == {"accuracy": accuracy}
