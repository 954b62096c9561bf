"""HotpotQA's evaluator, against numbers computed on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Evidence, Passage
from polyhop.eval.official.hotpotqa import Gold, Prediction, evaluate, score, supporting_facts, write

GOLD = Gold("Barack Hussein Obama", [("Barack Obama", 0), ("Hawaii", 2)])


def test_a_question_by_hand() -> None:
    # Answer: {barack, obama} against {barack, hussein, obama}: P 2/2, R 2/3, F1 2 * 2 / (2 + 3) = 4/5.
    # Facts: 1 of 4 given is right, 1 of 2 gold is given: P 1/4, R 1/2, F1 2 * 1 / (4 + 2) = 1/3.
    # Joint: P 1 * 1/4, R 2/3 * 1/2 = 1/3, F1 2 * (1/12) / (7/12) = 2/7.
    facts = [("Barack Obama", 0), ("Barack Obama", 1), ("Hawaii", 1), ("Kenya", 0)]
    assert score(Prediction("q", "the Barack Obama", facts), GOLD) == pytest.approx(
        {
            "em": 0,
            "f1": 4 / 5,
            "prec": 1,
            "recall": 2 / 3,
            "sp_em": 0,
            "sp_f1": 1 / 3,
            "sp_prec": 1 / 4,
            "sp_recall": 1 / 2,
            "joint_em": 0,
            "joint_f1": 2 / 7,
            "joint_prec": 1 / 4,
            "joint_recall": 1 / 3,
        }
    )


@pytest.mark.parametrize(
    ("answer", "gold", "em", "f1"),
    [
        ("yes", "yes", 1, 1),
        ("Yes.", "yes", 1, 1),
        ("yes it is", "yes", 0, 0),  # without the rule: P 1/3, R 1, F1 1/2
        ("no", "no way", 0, 0),
        ("noanswer", "Paris", 0, 0),
        ("yes it is", "yes he is", 0, 2 / 3),  # the rule is about whole answers
        ("Andréa", "André", 0, 0),
        ("the", "a", 1, 0),  # nothing left of both: equal, without a common word
    ],
)
def test_answers(answer: str, gold: str, em: float, f1: float) -> None:
    values = score(Prediction("q", answer, []), Gold(gold, []))
    assert (values["em"], values["f1"]) == pytest.approx((em, f1))
    assert (values["prec"] > 0) == (values["recall"] > 0) == (f1 > 0)


def test_titles_are_case_sensitive_and_repetitions_count_once() -> None:
    facts = [("barack obama", 0), ("Hawaii", 2), ("Hawaii", 2)]
    values = score(Prediction("q", "", facts), GOLD)
    assert (values["sp_prec"], values["sp_recall"]) == (1 / 2, 1 / 2)


def test_no_predicted_and_no_gold_facts_match_with_f1_0() -> None:
    values = score(Prediction("q", "x", []), Gold("x", []))
    assert (values["sp_em"], values["sp_f1"], values["joint_em"], values["joint_f1"]) == (1, 0, 1, 0)


def test_a_missing_part_scores_0_and_makes_the_joint_0() -> None:
    right = Prediction("q", GOLD.answer, list(GOLD.supporting_facts))
    for prediction, zeros in [
        (right._replace(sp=None), ("sp_", "joint_")),
        (right._replace(answer=None), ("", "joint_")),
        (Prediction("q"), ("", "sp_", "joint_")),
    ]:
        values = score(prediction, GOLD)
        for prefix in ("", "sp_", "joint_"):
            expected = 0.0 if prefix in zeros else 1.0
            assert [values[prefix + name] for name in ("em", "f1", "prec", "recall")] == [expected] * 4


def test_missing_predictions_count_in_the_means() -> None:
    right = Prediction("1", GOLD.answer, list(GOLD.supporting_facts))
    values = evaluate([(right, GOLD), (Prediction("2"), GOLD), (right._replace(id="3", sp=None), GOLD)])
    assert values["em"] == pytest.approx(2 / 3)
    assert values["sp_f1"] == values["joint_em"] == pytest.approx(1 / 3)
    assert len(values) == 12


def test_no_questions_is_an_error() -> None:
    with pytest.raises(ValueError, match="no questions"):
        evaluate([])


def test_evidence_becomes_supporting_facts() -> None:
    one, two = Passage.of("One", sentences=["A.", "B."]), Passage.of("Two", sentences=["C.", "D."])
    evidence = [Evidence(two, 1), Evidence(one), Evidence(one, 0)]
    assert supporting_facts(evidence) == [("Two", 1), ("One", 0), ("One", 1)]


# --- the file --------------------------------------------------------------------------------------------------------


def test_the_file_leaves_out_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    write(path, [Prediction("1", "André", [('Title "x"', 0)]), Prediction("2", "", None), Prediction("3", None, [])])
    assert json.loads(path.read_bytes().decode("ascii")) == {
        "answer": {"1": "André", "2": ""},
        "sp": {"1": [['Title "x"', 0]], "3": []},
    }
    write(path, [])
    assert json.loads(path.read_text()) == {"answer": {}, "sp": {}}


facts = st.lists(st.tuples(st.text(max_size=5), st.integers(0, 3)), max_size=4)
answers = st.text(alphabet='abc the yes no.é\n"', max_size=12)


# --- properties ----------------------------------------------------------------------------------------


@given(answers, facts, answers, facts)
def test_scores_are_bounded_and_order_is_nothing(
    answer: str, found: list[tuple[str, int]], gold_answer: str, wanted: list[tuple[str, int]]
) -> None:
    values = score(Prediction("q", answer, found), Gold(gold_answer, wanted))
    assert all(0.0 <= value <= 1.0 for value in values.values())
    assert values == score(Prediction("q", answer, found[::-1] + found), Gold(gold_answer, wanted[::-1]))
    assert values["joint_f1"] <= min(values["f1"], values["sp_f1"]) + 1e-9
