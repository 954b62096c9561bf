"""Rank metrics worked by hand and held against trec_eval; the other retrieval metrics by hand."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.eval import trec
from polyhop.eval.scoring import ranking_scores, token_overlap


def test_a_ranking_by_hand() -> None:
    values = ranking_scores(["x", "a", "y", "z", "b", "u"], ["a", "b", "never"])
    assert values == pytest.approx(
        {
            "passage_recall@2": 1 / 3,
            "passage_recall@5": 2 / 3,
            "passage_recall@10": 2 / 3,
            "passage_recall@20": 2 / 3,
            "all_gold@2": 0,
            "all_gold@5": 0,
            "all_gold@10": 0,
            "all_gold@20": 0,
            "passage_mrr": 1 / 2,
            # Gold at ranks 2 and 5, where the best would be 1, 2 and 3.
            "passage_ndcg@10": (1 / log2(3) + 1 / log2(6)) / (1 + 1 / log2(3) + 1 / 2),
        }
    )


def test_all_gold() -> None:
    values = ranking_scores(["a", "x", "b"], ["a", "b"], cutoffs=(2, 3))
    assert (values["all_gold@2"], values["all_gold@3"]) == (0, 1)


@pytest.mark.parametrize(("ranking", "gold"), [([], ["a"]), (["a"], []), (["b"], ["a"]), ([], [])])
def test_nothing_found_is_zero(ranking: list[str], gold: list[str]) -> None:
    assert set(ranking_scores(ranking, gold).values()) == {0.0}


def test_a_repeated_passage_takes_no_place() -> None:
    assert ranking_scores(["x", "x", "x", "a"], ["a"])["passage_recall@2"] == 1


ids = st.integers(0, 40).map(str)
rankings = st.lists(ids, unique=True, max_size=30)


@given(rankings, st.sets(ids, max_size=15))
def test_the_library_agrees(ranking: list[str], gold: set[str]) -> None:
    ours = ranking_scores(ranking, gold)
    theirs = trec.measure({"q": ranking}, {"q": gold}) if gold else dict.fromkeys(trec.MEASURES, 0.0)
    for name, library_name in [
        *((f"passage_recall@{k}", f"R@{k}") for k in (2, 5, 10, 20)),
        ("passage_mrr", "RR"),
        ("passage_ndcg@10", "nDCG@10"),
    ]:
        assert ours[name] == pytest.approx(theirs[library_name], abs=1e-6), name


@given(rankings, st.sets(ids, min_size=1, max_size=5))
def test_any_ranking(ranking: list[str], gold: set[str]) -> None:
    values = ranking_scores(ranking, gold)
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in values.values())
    assert values["passage_recall@2"] <= values["passage_recall@5"] <= values["passage_recall@20"]
    assert all((values[f"all_gold@{k}"] == 1) == (values[f"passage_recall@{k}"] == 1) for k in (2, 5, 10, 20))
    first = ranking_scores([*gold, *ranking], gold)
    assert {first[name] for name in ("passage_recall@5", "all_gold@20", "passage_mrr")} == {1.0}
    assert first["passage_ndcg@10"] == pytest.approx(1.0)


def test_token_overlap_is_of_bags() -> None:
    # Retrieved: paris is big paris (4 words, the article goes); gold: paris is in france is (5). Common: paris, is.
    assert token_overlap(["The Paris is big.", "PARIS"], ["Paris is in France", "is"]) == pytest.approx(
        (2 / 4, 2 / 5, 4 / 9)
    )
    assert token_overlap([], ["x"]) == token_overlap(["x"], []) == (0, 0, 0)


@given(st.lists(st.text(alphabet="ab ", max_size=6), max_size=4))
def test_the_gold_text_overlaps_with_itself_in_any_order(texts: list[str]) -> None:
    perfect = 1.0 if "".join(texts).replace("a", "").strip() else None
    if perfect:
        assert token_overlap(texts[::-1], texts) == (1, 1, 1)
