"""2WikiMultihopQA's evaluator, against numbers computed on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.eval.official.two_wiki import Gold, Prediction, evaluate, score, write

NAMES = ("Soviet Union", "USSR", "Soviet")
QUESTION = Gold(
    set(NAMES),
    [("Hostile Whirlwinds", 0)],
    [{("Hostile Whirlwinds", "country of origin", name) for name in NAMES}],
)


def test_aliases_match_answers_and_triples() -> None:
    right = Prediction(
        "q", "the U.S.S.R.", [("Hostile Whirlwinds", 0)], [("hostile whirlwinds", "country of origin", "Soviet")]
    )
    assert set(score(right, QUESTION).values()) == {1.0}


def test_each_answer_metric_takes_its_own_best_alias() -> None:
    # Against "Ivan": P 1/2, R 1, F1 2/3. Against "Ivan the Great of Moscow": P 2/2, R 2/4 without the article, F1 2/3.
    # The best precision and the best recall come from different aliases: both 1, while F1 is 2/3.
    values = score(Prediction("q", "Ivan Great", [], []), Gold({"Ivan", "Ivan the Great of Moscow"}, [], []))
    assert (values["em"], values["prec"], values["recall"]) == (0, 1, 1)
    assert values["f1"] == pytest.approx(2 / 3)


def test_support_ignores_case_but_counts_every_spelling() -> None:
    two = Gold({"x"}, [("Film", 0), ("Director", 1)], [])
    values = score(Prediction("q", "x", [("FILM", 0), ("director", 2)], []), two)
    assert (values["sp_prec"], values["sp_recall"]) == (1 / 2, 1 / 2)
    # Two spellings of one fact are two right ones: P 2/2, R 2/(2 + 1 missed), F1 4/5.
    values = score(Prediction("q", "x", [("FILM", 0), ("film", 0)], []), two)
    assert (values["sp_prec"], values["sp_recall"]) == pytest.approx((1, 2 / 3))
    assert values["sp_f1"] == pytest.approx(4 / 5)
    # Repeated in one spelling it is one: P 1/1, R 1/2.
    assert score(Prediction("q", "x", [("film", 0), ("film", 0)], []), two)["sp_recall"] == 1 / 2


@pytest.mark.parametrize(
    ("triples", "precision", "recall", "em"),
    [
        ([("hostile whirlwinds", "country of origin", "soviet union")], 1, 1, 1),
        ([("Hostile Whirlwinds!", "Country of Origin", " USSR ")], 1, 1, 1),  # case, punctuation and spaces are nothing
        ([("The Hostile Whirlwinds", "country of origin", "USSR")], 0, 0, 0),  # articles are something
        ([("USSR", "country of origin", "Hostile Whirlwinds")], 0, 0, 0),  # and so is the direction
        ([("Hostile Whirlwinds", "country", "USSR")], 0, 0, 0),
        ([], 0, 0, 0),
        # Two names of one object: 2 of 2 match, 2 matches for 1 gold triple. A recall of 2, as the script has it.
        ([("Hostile Whirlwinds", "country of origin", name) for name in ("USSR", "Soviet")], 1, 2, 0),
    ],
)
def test_triples(triples: list[tuple[str, str, str]], precision: float, recall: float, em: float) -> None:
    values = score(Prediction("q", "x", [], triples), QUESTION)
    assert (values["evi_prec"], values["evi_recall"], values["evi_em"]) == (precision, recall, em)


def test_joint_is_the_product_of_all_three() -> None:
    # Answer "Soviet Union republic": P 2/3, R 1. Support: P 1/2, R 1. Evidence: P 1/2, R 1.
    # Joint: P 2/3 * 1/2 * 1/2 = 1/6, R 1, F1 2 * (1/6) / (7/6) = 2/7.
    one = Gold({"Soviet Union"}, [("Film", 0)], [{("a", "b", "c")}])
    values = score(
        Prediction("q", "Soviet Union republic", [("Film", 0), ("Film", 1)], [("a", "b", "c"), ("d", "e", "f")]), one
    )
    assert (values["joint_em"], values["joint_prec"], values["joint_recall"]) == pytest.approx((0, 1 / 6, 1))
    assert values["joint_f1"] == pytest.approx(2 / 7)


def test_without_triples_the_joint_is_zero() -> None:
    values = score(Prediction("q", "USSR", [("Hostile Whirlwinds", 0)]), QUESTION)
    assert (values["em"], values["sp_em"], values["evi_em"], values["joint_em"], values["joint_f1"]) == (1, 1, 0, 0, 0)


def test_the_script_prints_rounded_percentages() -> None:
    pairs = [(Prediction("1", "USSR"), QUESTION), (Prediction("2"), QUESTION), (Prediction("3"), QUESTION)]
    values = evaluate(pairs)
    assert (values["em"], values["f1"], values["sp_em"]) == (33.33, 33.33, 0.0)
    assert len(values) == 16


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    predictions = [
        Prediction("1", "USSR", [("Film", 0)], [("a", "b", "c")]),
        Prediction("2", "x", []),
        Prediction("4", None, None, []),
    ]
    write(path, [*predictions, Prediction("3")])
    assert json.loads(path.read_text()) == {
        "answer": {"1": "USSR", "2": "x"},
        "sp": {"1": [["Film", 0]], "2": []},
        "evidence": {"1": [["a", "b", "c"]], "4": []},
    }


texts = st.text(alphabet="ab theAB.", max_size=8)


@given(texts, st.sets(texts, min_size=1), texts)
def test_aliases_only_help(answer: str, golds: set[str], alias: str) -> None:
    before = score(Prediction("q", answer, [], []), Gold(golds, [], []))
    after = score(Prediction("q", answer, [], []), Gold(golds | {alias}, [], []))
    assert all(after[name] >= before[name] for name in before)
