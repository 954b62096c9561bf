"""HotpotQA, 2WikiMultihopQA and HoVer, against numbers computed on paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Evidence, Passage
from polyhop.eval.official import mean_of
from polyhop.eval.official.hotpotqa import (
    Gold,
    Prediction,
    SupportingFact,
    score,
    score_hover,
    score_two_wiki,
    supporting_facts,
    verdict,
)

GOLD = Gold(["Barack Hussein Obama"], [("Barack Obama", 0), ("Hawaii", 2)])


def test_a_question_by_hand() -> None:
    # Answer: {barack, obama} against {barack, hussein, obama}: P 2/2, R 2/3, F1 2 * 2 / (2 + 3) = 4/5.
    # Facts: 1 of 4 given is right, 1 of 2 gold is given: P 1/4, R 1/2, F1 2 * 1 / (4 + 2) = 1/3.
    # Joint: P 1 * 1/4, R 2/3 * 1/2 = 1/3, F1 2 * (1/12) / (7/12) = 2/7.
    facts = [("Barack Obama", 0), ("Barack Obama", 1), ("Hawaii", 1), ("Kenya", 0)]
    values = score(Prediction("q", "the Barack Obama", facts), GOLD)
    assert values == pytest.approx(
        {"em": 0, "f1": 4 / 5, "prec": 1, "recall": 2 / 3}
        | {"sp_em": 0, "sp_f1": 1 / 3, "sp_prec": 1 / 4, "sp_recall": 1 / 2}
        | {"joint_em": 0, "joint_f1": 2 / 7, "joint_prec": 1 / 4, "joint_recall": 1 / 3}
    )


@pytest.mark.parametrize(
    ("facts", "wanted", "em", "precision", "recall"),
    [
        ([("barack obama", 0), ("Hawaii", 2), ("Hawaii", 2)], GOLD.supporting_facts, 0, 1 / 2, 1 / 2),
        ([["Hawaii", 2], ["Barack Obama", 0]], GOLD.supporting_facts, 1, 1, 1),  # as JSON has them
        ([], [], 1, 0, 0),
    ],
)
def test_facts(
    facts: list[SupportingFact], wanted: list[SupportingFact], em: float, precision: float, recall: float
) -> None:
    values = score(Prediction("q", "x", facts), Gold(["x"], wanted))
    assert (values["sp_em"], values["sp_prec"], values["sp_recall"]) == (em, precision, recall)
    assert values["joint_em"] == em


def test_a_missing_part_scores_0_makes_the_joint_0_and_counts_in_the_means() -> None:
    right = Prediction("q", GOLD.answers[0], list(GOLD.supporting_facts))  # type: ignore[index]
    for prediction, zeros in [
        (right._replace(sp=None), ("sp_", "joint_")),
        (right._replace(answer=None), ("", "joint_")),
        (Prediction("q"), ("", "sp_", "joint_")),
    ]:
        values = score(prediction, GOLD)
        for prefix in ("", "sp_", "joint_"):
            expected = 0.0 if prefix in zeros else 1.0
            assert [values[prefix + name] for name in ("em", "f1", "prec", "recall")] == [expected] * 4
    values = mean_of(score)([(right, GOLD), (Prediction("2"), GOLD), (right._replace(sp=None), GOLD)])
    assert (values["em"], values["sp_f1"], values["joint_em"]) == pytest.approx((2 / 3, 1 / 3, 1 / 3))
    with pytest.raises(ValueError, match="no questions"):
        mean_of(score)([])


def test_evidence_becomes_supporting_facts() -> None:
    one, two = Passage.of("One", sentences=["A.", "B."]), Passage.of("Two", sentences=["C.", "D."])
    evidence = [Evidence(two, 1), Evidence(one), Evidence(one, 0)]
    assert supporting_facts(evidence) == [("Two", 1), ("One", 0), ("One", 1)]


facts = st.lists(st.tuples(st.text(max_size=5), st.integers(0, 3)), max_size=4)
answers = st.text(alphabet='abc the yes no.é\n"', max_size=12)


@given(answers, facts, answers, facts)
def test_scores_are_bounded_and_order_is_nothing(
    answer: str, found: list[tuple[str, int]], gold_answer: str, wanted: list[tuple[str, int]]
) -> None:
    values = score(Prediction("q", answer, found), Gold([gold_answer], wanted))
    assert all(0.0 <= value <= 1.0 for value in values.values())
    assert values == score(Prediction("q", answer, found[::-1] + found), Gold([gold_answer], wanted[::-1]))
    assert values["joint_f1"] <= min(values["f1"], values["sp_f1"]) + 1e-9


# --- 2WikiMultihopQA -------------------------------------------------------------------------------------------------

NAMES = ("Soviet Union", "USSR", "Soviet")
QUESTION = Gold(
    NAMES, [("Hostile Whirlwinds", 0)], [{("Hostile Whirlwinds", "country of origin", name) for name in NAMES}]
)


def test_aliases_match_answers_and_triples() -> None:
    triple = ("hostile whirlwinds", "country of origin", "Soviet")
    right = Prediction("q", "the U.S.S.R.", [("Hostile Whirlwinds", 0)], [triple])
    assert set(score_two_wiki(right, QUESTION).values()) == {1.0}
    without = score_two_wiki(right._replace(evidence=None), QUESTION)
    assert [without[name] for name in ("em", "sp_em", "evi_em", "joint_em", "joint_f1")] == [1, 1, 0, 0, 0]


def test_each_answer_metric_takes_its_own_best_alias() -> None:
    # Against "Ivan": P 1/2, R 1, F1 2/3. Against "Ivan the Great of Moscow": P 2/2, R 2/4 without the article, F1 2/3.
    # The best precision and the best recall come from different aliases: both 1, while F1 is 2/3.
    values = score_two_wiki(Prediction("q", "Ivan Great", [], []), Gold(["Ivan", "Ivan the Great of Moscow"], []))
    assert (values["em"], values["prec"], values["recall"]) == (0, 1, 1)
    assert values["f1"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("facts", "precision", "recall", "f1"),
    [
        ([("FILM", 0), ("director", 2)], 1 / 2, 1 / 2, 1 / 2),  # case does not matter
        ([("FILM", 0), ("film", 0)], 1, 2 / 3, 4 / 5),  # two spellings are two right ones: R 2 / (2 + 1 missed)
        ([("film", 0), ("film", 0)], 1, 1 / 2, 2 / 3),
    ],
)
def test_support_ignores_case_but_counts_every_spelling(
    facts: list[SupportingFact], precision: float, recall: float, f1: float
) -> None:
    values = score_two_wiki(Prediction("q", "x", facts, []), Gold(["x"], [("Film", 0), ("Director", 1)]))
    assert (values["sp_prec"], values["sp_recall"], values["sp_f1"]) == pytest.approx((precision, recall, f1))


@pytest.mark.parametrize(
    ("triples", "precision", "recall", "em"),
    [
        ([("Hostile Whirlwinds!", "Country of Origin", " USSR ")], 1, 1, 1),  # case, punctuation and spaces are nothing
        ([("The Hostile Whirlwinds", "country of origin", "USSR")], 0, 0, 0),  # articles are something
        ([("USSR", "country of origin", "Hostile Whirlwinds")], 0, 0, 0),  # and so is the direction
        ([], 0, 0, 0),
        # Two names of one object: 2 of 2 match, 2 matches for 1 gold triple. A recall of 2, as the script has it.
        ([("Hostile Whirlwinds", "country of origin", name) for name in ("USSR", "Soviet")], 1, 2, 0),
    ],
)
def test_triples(triples: list[tuple[str, str, str]], precision: float, recall: float, em: float) -> None:
    values = score_two_wiki(Prediction("q", "x", [], triples), QUESTION)
    assert (values["evi_prec"], values["evi_recall"], values["evi_em"]) == (precision, recall, em)


def test_joint_is_the_product_of_all_three() -> None:
    # Answer "Soviet Union republic": P 2/3, R 1. Support: P 1/2, R 1. Evidence: P 1/2, R 1.
    # Joint: P 2/3 * 1/2 * 1/2 = 1/6, R 1, F1 2 * (1/6) / (7/6) = 2/7.
    one = Gold(["Soviet Union"], [("Film", 0)], [{("a", "b", "c")}])
    triples = [("a", "b", "c"), ("d", "e", "f")]
    values = score_two_wiki(Prediction("q", "Soviet Union republic", [("Film", 0), ("Film", 1)], triples), one)
    assert (values["joint_em"], values["joint_prec"], values["joint_recall"]) == pytest.approx((0, 1 / 6, 1))
    assert values["joint_f1"] == pytest.approx(2 / 7)


# --- HoVer -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "sp", "expected"),
    [
        ("Yes.", [("A", 0), ("B", 1)], (1, 1, 1, 1)),
        ("no", [("A", 0), ("B", 1)], (0, 1, 1, 0)),
        (None, None, (0, 0, 0, 0)),
        ("Ben Marsh", None, (0, 0, 0, 0)),
        ("true", [("A", 0), ("A", 3)], (1, 0, 1 / 2, 0)),
        # The third page counts for a claim of two pages, the fourth does not.
        ("true", [("X", 0), ("A", 0), ("B", 1)], (1, 0, 4 / 5, 1)),
        ("true", [("X", 0), ("Y", 0), ("A", 0), ("B", 1)], (1, 0, 2 / 3, 0)),
        # Two sentences of a page count, the third does not.
        ("true", [("A", 5), ("A", 0), ("B", 1)], (1, 0, 4 / 5, 1)),
        ("true", [("A", 5), ("A", 6), ("A", 0), ("B", 1)], (1, 0, 2 / 3, 0)),
    ],
)
def test_hover(answer: str | None, sp: list[SupportingFact] | None, expected: tuple[float, ...]) -> None:
    found = score_hover(Prediction("v", answer, sp), Gold(["yes"], [("A", 0), ("B", 1)]))
    assert tuple(found.values()) == pytest.approx(expected)
    assert list(found) == ["accuracy", "sp_em", "sp_f1", "hover_score"]
    assert [verdict(text) for text in ("SUPPORTED", "not supported", "False", "")] == [True, False, False, None]
