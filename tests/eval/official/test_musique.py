"""MuSiQue's evaluator: expected numbers are computed on paper."""

from __future__ import annotations

import pytest

from polyhop.eval.official.musique import Gold, Prediction, evaluate, score


@pytest.mark.parametrize(
    ("answer", "golds", "em", "f1"),
    [
        ("New York", ["NYC", "New York City"], 0, 4 / 5),  # P 1, R 2/3
        ("NYC", ["New York City", "the N.Y.C."], 1, 1),
        ("Barack Obama", ["Obama", "Barack Hussein Obama"], 0, 4 / 5),  # 2/3 with the answer, 4/5 with its alias
        ("yes it is", ["yes"], 0, 1 / 2),  # P 1/3, R 1: no rule for closed answers
        ("", ["Paris"], 0, 0),
        ("the", ["a"], 1, 1),  # nothing left of both: they agree
        ("Andréa", ["André"], 0, 0),
    ],
)
def test_answers(answer: str, golds: list[str], em: float, f1: float) -> None:
    values = score(Prediction("q", answer), Gold(golds, []))
    assert (values["answer_em"], values["answer_f1"]) == pytest.approx((em, f1))


@pytest.mark.parametrize(
    ("found", "wanted", "em", "f1"),
    [([3, 5], [5, 3], 1, 1), ([3, 3, 7], [3, 5], 0, 1 / 2), ([], [1], 0, 0), ([], [], 1, 1)],
)
def test_support(found: list[int], wanted: list[int], em: float, f1: float) -> None:
    values = score(Prediction("q", "", found), Gold(["x"], wanted))
    assert (values["support_em"], values["support_f1"]) == pytest.approx((em, f1))


def test_the_script_rounds_to_three_decimals() -> None:
    gold = Gold(["x"], [1, 2])
    pairs = [(Prediction("1", "x", [1]), gold), (Prediction("2", "y", [1]), gold), (Prediction("3"), gold)]
    # Support F1: 2 * 1 / (1 + 2) = 2/3 twice and 0: 4/9.
    assert evaluate(pairs) == {"answer_f1": 0.333, "answer_em": 0.333, "support_f1": 0.444}


def test_full_scores_pairs() -> None:
    gold, none = Gold(["x"], [1]), Gold(["x"], [], answerable=False)
    pairs = [
        # Told apart, answer right: 1.
        (Prediction("1", "x", [1], True), gold),
        (Prediction("1", "y", [2], False), none),
        # Answer right, but the unanswerable half was answered: 0 for the group, 1 for the answer.
        (Prediction("2", "x", [1], True), gold),
        (Prediction("2", "x", [1], True), none),
        # Told apart, in the other order; half of the answer (P 1/2, R 1, F1 2/3) and no support.
        (Prediction("3", "", [], False), none),
        (Prediction("3", "x y", [], True), gold),
        # The wrong half comes first, the right one last: 0 for the group, 1 for the answer.
        (Prediction("4", "x", [1], True), none),
        (Prediction("4", "x", [1], True), gold),
    ]
    # Answers of the answerable: F1 (1 + 1 + 2/3 + 1) / 4 = 11/12, EM 3/4, support (1 + 1 + 0 + 1) / 4.
    # Groups: answer (1 + 0 + 2/3 + 0) / 4 = 5/12, support (1 + 0 + 0 + 0) / 4.
    assert evaluate(pairs) == {
        "answer_f1": 0.917,
        "answer_em": 0.75,
        "support_f1": 0.75,
        "group_answer_sufficiency_f1": 0.417,
        "group_support_sufficiency_f1": 0.25,
    }
    with pytest.raises(ValueError, match="'4' does not"):
        evaluate([*pairs[:-1], (Prediction("5"), gold)])
