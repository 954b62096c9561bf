"""MultiHop-RAG's evaluator: expected numbers are computed on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.eval.official import mean_of
from polyhop.eval.official.multihop_rag import (
    Gold,
    Prediction,
    answer_scores,
    retrieval_scores,
    score,
    write_answers,
    write_retrieval,
)

FACTS = ["Google paid Apple.", "Epic sued Google."]
NOISE = "nothing of interest"


def test_average_precision_counts_new_facts_only() -> None:
    # Rank 2 shows fact 1 (1/2), rank 3 shows it again (0), rank 5 shows fact 2 (1/5): (1/2 + 1/5) / 2 = 7/20.
    # The textbook's average precision would be (1/2 + 2/5) / 2 = 9/20.
    texts = [NOISE, FACTS[0], f"{FACTS[0]} Again.", NOISE, f"News: {FACTS[1]}"]
    assert retrieval_scores(texts, FACTS) == pytest.approx(
        {"Hits@10": 1, "Hits@4": 1, "MAP@10": 7 / 20, "MRR@10": 1 / 2}
    )


def test_one_text_with_two_facts_can_be_worth_more_than_one() -> None:
    # Two new facts at rank 1: 2/1 / 2 = 1.
    assert retrieval_scores([" ".join(FACTS)], FACTS)["MAP@10"] == 1


def test_blanks_and_line_breaks_do_not_matter_but_case_and_tabs_do() -> None:
    assert retrieval_scores(["Googlepaid\nApp le."], FACTS)["Hits@4"] == 1
    assert retrieval_scores(["google paid apple."], FACTS)["Hits@10"] == 0
    assert retrieval_scores(["Google\tpaid Apple."], FACTS)["Hits@10"] == 0


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (4, {"Hits@10": 1, "Hits@4": 1, "MAP@10": 1 / 8, "MRR@10": 1 / 4}),
        (5, {"Hits@10": 1, "Hits@4": 0, "MAP@10": 1 / 10, "MRR@10": 1 / 5}),
        (10, {"Hits@10": 1, "Hits@4": 0, "MAP@10": 1 / 20, "MRR@10": 1 / 10}),
        (11, {"Hits@10": 0, "Hits@4": 0, "MAP@10": 0, "MRR@10": 0}),  # the script reads it, and does not count it
    ],
)
def test_depth(rank: int, expected: dict[str, float]) -> None:
    assert retrieval_scores([NOISE] * (rank - 1) + [FACTS[0]], FACTS) == pytest.approx(expected)


def test_a_fact_that_is_gold_twice_is_found_once_and_divided_by_two() -> None:
    assert retrieval_scores([FACTS[0]], [FACTS[0], FACTS[0]])["MAP@10"] == 1 / 2


@pytest.mark.parametrize(
    ("answer", "gold", "overlap", "em", "contained"),
    [
        ("Google", "Google", 1, 1, 1),
        ("It is Google", "google", 1, 0, 1),
        ("Sam Bankman", "Sam Altman", 1, 0, 0),  # any word in common
        ("no information", "Insufficient information.", 0, 0, 0),  # a full stop belongs to its word
        ("no information.", "Insufficient information.", 1, 0, 0),
        ("Yes.", "yes", 0, 1, 1),
        ("I know", "no", 0, 0, 0),
        ('The answer to the question is "Yes", no doubt.', "no", 0, 0, 1),  # only the quoted answer overlaps
        (None, "x", 0, 0, 0),
        ("", "x", 0, 0, 0),
    ],
)
def test_answers(answer: str | None, gold: str, overlap: float, em: float, contained: float) -> None:
    assert answer_scores(answer, gold) == {"official_overlap": overlap, "answer_em": em, "answer_contained": contained}


def test_null_queries_have_answers_but_no_retrieval() -> None:
    pairs = [
        (Prediction("1", "inference_query", "Google", [FACTS[0]]), Gold("Google", FACTS)),
        (Prediction("2", "null_query", "Google", [FACTS[0]]), Gold("Insufficient information.", [])),
        (Prediction("3", "temporal_query"), Gold("Yes", FACTS)),
    ]
    values = mean_of(score)(pairs)
    assert (values["answer_em"], values["Hits@10"], values["MAP@10"]) == pytest.approx((1 / 3, 1 / 2, 1 / 4))
    with pytest.raises(ValueError, match="null_query"):
        mean_of(score)([(Prediction("1", "inference_query", "x"), Gold("x", []))])


def test_files(tmp_path: Path) -> None:
    pairs = [
        (Prediction("a?", "inference_query", "Google", [NOISE, FACTS[0]]), Gold("Google", FACTS)),
        (Prediction("b?", "null_query"), Gold("Insufficient information.", [])),
    ]
    path = tmp_path / "retrieval.json"
    write_retrieval(path, pairs)
    assert json.loads(path.read_text())[0] == {
        "query": "a?",
        "answer": "Google",
        "question_type": "inference_query",
        "retrieval_list": [{"text": NOISE}, {"text": FACTS[0]}],
        "gold_list": [{"fact": FACTS[0]}, {"fact": FACTS[1]}],
    }
    path = tmp_path / "answers.json"
    write_answers(path, pairs)
    assert [record["model_answer"] for record in json.loads(path.read_text())] == ["Google", ""]
    write_answers(path, [])
    assert json.loads(path.read_text()) == []


texts = st.lists(st.text(alphabet="ab \n", min_size=1, max_size=6), max_size=14)


@given(texts, texts.filter(bool))
def test_any_retrieval(retrieved: list[str], facts: list[str]) -> None:
    values = retrieval_scores(retrieved, facts)
    assert values["Hits@4"] <= values["Hits@10"]
    assert 0.0 <= values["MRR@10"] <= values["Hits@10"]
    assert 0.0 <= values["MAP@10"] <= 1.0 or len(facts) > 10
    assert values == retrieval_scores(retrieved[:10], facts[::-1])
