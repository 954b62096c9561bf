"""MultiHop-RAG's evaluator: expected numbers are computed on paper."""

from __future__ import annotations

import pytest

from polyhop.eval.official import mean_of
from polyhop.eval.official.multihop_rag import (
    Gold,
    Prediction,
    answer_scores,
    retrieval_scores,
    score,
)

FACTS = ["Google paid Apple.", "Epic sued Google."]
NOISE = "nothing of interest"


@pytest.mark.parametrize(
    ("texts", "facts", "expected"),  # Hits@10, Hits@4, MAP@10, MRR@10
    [
        # Rank 2 shows fact 1 (1/2), rank 3 shows it again (0), rank 5 shows fact 2 (1/5): (1/2 + 1/5) / 2 = 7/20.
        # The textbook's average precision would be (1/2 + 2/5) / 2 = 9/20.
        ([NOISE, FACTS[0], f"{FACTS[0]} Again.", NOISE, f"News: {FACTS[1]}"], FACTS, (1, 1, 7 / 20, 1 / 2)),
        ([" ".join(FACTS)], FACTS, (1, 1, 1, 1)),  # two new facts at rank 1: 2/1 / 2 = 1
        (FACTS[:1], FACTS[:1] * 2, (1, 1, 1 / 2, 1)),  # a fact that is gold twice is found once and divided by two
        (["Googlepaid\nApp le."], FACTS[:1], (1, 1, 1, 1)),  # blanks and line breaks do not matter
        (["google paid apple.", "Google\tpaid Apple."], FACTS, (0, 0, 0, 0)),  # case and tabs do
        ([NOISE] * 3 + FACTS[:1], FACTS, (1, 1, 1 / 8, 1 / 4)),
        ([NOISE] * 4 + FACTS[:1], FACTS, (1, 0, 1 / 10, 1 / 5)),
        ([NOISE] * 9 + FACTS[:1], FACTS, (1, 0, 1 / 20, 1 / 10)),
        ([NOISE] * 10 + FACTS[:1], FACTS, (0, 0, 0, 0)),  # the script reads it, and does not count it
    ],
)
def test_retrieval(texts: list[str], facts: list[str], expected: tuple[float, ...]) -> None:
    found = retrieval_scores(texts, facts)
    assert list(found) == ["Hits@10", "Hits@4", "MAP@10", "MRR@10"]
    assert tuple(found.values()) == pytest.approx(expected)


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
