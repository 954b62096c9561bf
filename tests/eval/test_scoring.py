"""The formulas: examples computed on paper, properties, and rank metrics against ir-measures."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Evidence, Fact, Passage
from polyhop.eval.scoring import (
    answer_scores,
    exact_match,
    fact_scores,
    mentions,
    normalize_answer,
    ranking_scores,
    token_overlap,
)

A = Passage.of("A", sentences=["One.", "Two.", "Three."], id="a")
B = Passage.of("B", sentences=["Four.", "Five."], id="b")
C = Passage.of("C", sentences=["Six."], id="c")


# --- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The Beatles", "beatles"),
        ("  An  apple a day ", "apple day"),
        ("U.S.A.", "usa"),
        ("O'Sullivan, Maureen!", "osullivan maureen"),
        ("Theodore", "theodore"),  # an article is a whole word
        ("André", "andré"),  # accents stay
        ("“Help”", "“help”"),  # only ASCII punctuation goes, as in the official script
        ("twenty-one", "twentyone"),
        ("the", ""),
    ],
)
def test_normalization(text: str, normalized: str) -> None:
    assert normalize_answer(text) == normalized


@pytest.mark.parametrize(
    ("answer", "gold", "em", "f1"),
    [
        ("Paris", ["Paris"], 1, 1),
        ("Barack Obama", ["Obama"], 0, 2 / 3),  # P 1/2, R 1
        ("President Barack Obama", ["Barack Hussein Obama"], 0, 2 / 3),  # 2 of 3 and 2 of 3
        ("new york new york", ["New York"], 0, 2 / 3),  # a word counts as often as both have it
        ("Obama", ["Barack Obama", "Obama"], 1, 1),  # the best alias counts
        ("yes", ["yes"], 1, 1),
        ("yes indeed", ["yes"], 0, 0),  # the closed answers match whole or not at all
        ("no", ["no way"], 0, 0),
        ("the", ["a"], 1, 0),  # both empty: equal, and without a common token, as in the official script
        ("Paris", [], 0, 0),
    ],
)
def test_answers(answer: str, gold: list[str], em: float, f1: float) -> None:
    assert exact_match(answer, gold) == em
    assert answer_scores(answer, gold).f1 == pytest.approx(f1)


@pytest.mark.parametrize(
    ("text", "answers", "mentioned"),
    [
        ("He was born in Paris, France.", ["Paris"], 1),
        ("The Parisian", ["Paris"], 0),
        ("I know", ["no"], 0),
        ("André Breton", ["Andre"], 0),
        ("It is 9,984.", ["1", "9984"], 1),
        ("anything", ["the"], 0),  # an answer without a word is nowhere
        ("anything", [], 0),
    ],
)
def test_mentions(text: str, answers: list[str], mentioned: float) -> None:
    assert mentions(text, answers) == mentioned


# --- evidence --------------------------------------------------------------------------------------------------------


items = st.lists(st.sampled_from([Evidence(p, s) for p in (A, B, C) for s in (None, *range(len(p.sentences)))]))
facts = st.sets(st.sampled_from([Fact(p.id, s) for p in (A, B, C) for s in range(len(p.sentences))]))


@given(items, facts)
def test_evidence_order_and_repetition_are_nothing(evidence: list[Evidence], gold: set[Fact]) -> None:
    given_scores = fact_scores(evidence, gold)
    assert fact_scores(evidence[::-1] + evidence, gold) == given_scores
    assert all(0.0 <= value <= 1.0 for value in given_scores)
    assert min(given_scores[:2]) <= given_scores.f1 + 1e-12
    assert given_scores.f1 <= max(given_scores[:2]) + 1e-12


# --- rankings and tokens ---------------------------------------------------------------------------------------------


def test_a_ranking() -> None:
    values = ranking_scores(["x", "a", "y", "z", "b", "u"], ["a", "b", "never"])
    assert values == pytest.approx(
        {
            "passage_recall@2": 1 / 3,
            **dict.fromkeys(("passage_recall@5", "passage_recall@10", "passage_recall@20"), 2 / 3),
            **dict.fromkeys(("all_gold@2", "all_gold@5", "all_gold@10", "all_gold@20"), 0),
            "passage_mrr": 1 / 2,
            # Gold at ranks 2 and 5, where the best would be 1, 2 and 3.
            "passage_ndcg@10": (1 / log2(3) + 1 / log2(6)) / (1 + 1 / log2(3) + 1 / 2),
        }
    )


def test_token_overlap_is_of_bags() -> None:
    # Retrieved: paris is big paris (4 words, the article goes); gold: paris is in france is (5). Common: paris, is.
    assert token_overlap(["The Paris is big.", "PARIS"], ["Paris is in France", "is"]) == pytest.approx(
        (2 / 4, 2 / 5, 4 / 9)
    )
    assert token_overlap([], ["x"]) == token_overlap(["x"], []) == (0, 0, 0)
