"""SQuAD, TriviaQA and NQ-open, one metric under three normalizations; and PopQA."""

from __future__ import annotations

import pytest

from polyhop.eval.official import mean_of, squad

PRECOMPOSED, DECOMPOSED = "Andr\u00e9", "Andre\u0301"


@pytest.mark.parametrize(
    ("answer", "golds", "em", "f1"),
    [
        ("Denver Broncos", ["The Broncos", "the Denver Broncos!"], 1, 1),
        ("in Santa Clara", ["Santa Clara", "Levi's Stadium"], 0, 4 / 5),  # P 2/3, R 1
        ("yes it is", ["yes"], 0, 1 / 2),  # no rule for closed answers
        ("the", ["a"], 1, 0),
        ("twenty-one", ["twentyone"], 1, 1),  # punctuation vanishes
        ("Andréa", ["André"], 0, 0),
        (PRECOMPOSED, [DECOMPOSED], 0, 0),
        (None, ["x"], 0, 0),
        ("x", [], 0, 0),
    ],
)
def test_squad(answer: str | None, golds: list[str], em: float, f1: float) -> None:
    assert squad.score(squad.Prediction("q", answer), golds) == {"exact_match": em, "f1": pytest.approx(f1)}


@pytest.mark.parametrize(
    ("answer", "gold", "em", "f1"),
    [
        ("twenty-one", "twenty one", 1, 1),  # punctuation becomes a space ...
        ("twenty-one", "twentyone", 0, 0),  # ... where SQuAD joins
        ("O’Neill", "O'Neill", 1, 1),  # the typographic apostrophe is one
        ("O’Neill", "ONeill", 0, 0),
        ("Romeo_and_Juliet", "romeo and juliet", 1, 1),
        ("`rock ´n` roll", "Rock 'n' Roll", 1, 1),
        ("rock-a-hula", "rock hula", 1, 1),  # what becomes an article goes
        ("“Help”", "Help", 0, 0),  # typographic double quotes stay
        ("Andréa", "André", 0, 0),
    ],
)
def test_triviaqa(answer: str, gold: str, em: float, f1: float) -> None:
    assert squad.score_triviaqa(squad.Prediction("q", answer), [gold]) == {"exact_match": em, "f1": f1}


@pytest.mark.parametrize(
    ("answer", "accuracy", "em"),
    [(PRECOMPOSED, 1, 1), (DECOMPOSED, 1, 0), ("Andre", 0, 0), ("Andréa", 1, 0)],
)
def test_nq_open_compares_decomposed_text(answer: str, accuracy: float, em: float) -> None:
    """There, the last letter of "Andréa" follows an accent, and goes as an article: a fault of the script."""
    values = squad.score_nq_open(squad.Prediction("q", answer), [PRECOMPOSED])
    assert (values["accuracy"], values["exact_match"]) == (accuracy, em)


def test_percentages_and_missing_predictions() -> None:
    pairs = [(squad.Prediction("1", "x y"), ["x"]), (squad.Prediction("2"), ["x"]), (squad.Prediction("3", "x"), ["x"])]
    # F1: 2/3 + 0 + 1 over three questions.
    expected = {"exact_match": pytest.approx(100 / 3), "f1": pytest.approx(500 / 9)}
    assert mean_of(squad.score, 100)(pairs) == expected
    assert mean_of(squad.score, 100, digits=1)(pairs) == {"exact_match": 33.3, "f1": 55.6}
    assert mean_of(squad.score_nq_open)(pairs) == pytest.approx({"accuracy": 1 / 3, "exact_match": 1 / 3, "f1": 5 / 9})


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
    assert squad.score_popqa(squad.Prediction("1", answer), gold) == {"accuracy": accuracy}
