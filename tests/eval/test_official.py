"""The official metrics, against numbers computed on paper."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.passages import Evidence, Passage
from polyhop.eval.official import mean_of, musique_numbers, supporting_facts
from polyhop.eval.official.scores import (
    hotpotqa,
    hover,
    multihop_rag,
    musique,
    nq_open,
    popqa,
    squad,
    triviaqa,
    two_wiki,
    verdict,
)

# --- HotpotQA --------------------------------------------------------------------------------------------------------

ANSWERS, FACTS = ["Barack Hussein Obama"], [("Barack Obama", 0), ("Hawaii", 2)]
RIGHT = {"answer": ANSWERS[0], "sp": FACTS}


def test_hotpotqa_by_hand() -> None:
    # Answer: {barack, obama} against {barack, hussein, obama}: P 2/2, R 2/3, F1 2 * 2 / (2 + 3) = 4/5.
    # Facts: 1 of 4 given is right, 1 of 2 gold is given: P 1/4, R 1/2, F1 2 * 1 / (4 + 2) = 1/3.
    # Joint: P 1 * 1/4, R 2/3 * 1/2 = 1/3, F1 2 * (1/12) / (7/12) = 2/7.
    facts = [("Barack Obama", 0), ("Barack Obama", 1), ("Hawaii", 1), ("Kenya", 0)]
    assert hotpotqa({"answer": "the Barack Obama", "sp": facts}, ANSWERS, FACTS) == pytest.approx(
        {"em": 0, "f1": 4 / 5, "prec": 1, "recall": 2 / 3}
        | {"sp_em": 0, "sp_f1": 1 / 3, "sp_prec": 1 / 4, "sp_recall": 1 / 2}
        | {"joint_em": 0, "joint_f1": 2 / 7, "joint_prec": 1 / 4, "joint_recall": 1 / 3}
    )


@pytest.mark.parametrize(
    ("facts", "wanted", "em", "precision", "recall"),
    [
        ([("barack obama", 0), ("Hawaii", 2), ("Hawaii", 2)], FACTS, 0, 1 / 2, 1 / 2),
        ([["Hawaii", 2], ["Barack Obama", 0]], FACTS, 1, 1, 1),  # as JSON has them
        ([], [], 1, 0, 0),
    ],
)
def test_supporting_facts(facts: Any, wanted: Any, em: float, precision: float, recall: float) -> None:
    values = hotpotqa({"answer": "x", "sp": facts}, ["x"], wanted)
    assert (values["sp_em"], values["sp_prec"], values["sp_recall"]) == (em, precision, recall)
    assert values["joint_em"] == em


def test_a_missing_part_scores_0_makes_the_joint_0_and_counts_in_the_means() -> None:
    for missing, zeros in (({"sp": None}, ("sp_", "joint_")), ({"answer": None}, ("", "joint_"))):
        values = hotpotqa({**RIGHT, **missing}, ANSWERS, FACTS)
        for prefix in ("", "sp_", "joint_"):
            expected = 0.0 if prefix in zeros else 1.0
            assert [values[prefix + name] for name in ("em", "f1", "prec", "recall")] == [expected] * 4
    values = mean_of(hotpotqa)([(prediction, (ANSWERS, FACTS)) for prediction in (RIGHT, {}, {**RIGHT, "sp": None})])
    assert (values["em"], values["sp_f1"], values["joint_em"]) == pytest.approx((2 / 3, 1 / 3, 1 / 3))
    with pytest.raises(ValueError, match="no questions"):
        mean_of(hotpotqa)([])


def test_evidence_becomes_supporting_facts() -> None:
    one, two = Passage.of("One", sentences=["A.", "B."]), Passage.of("Two", sentences=["C.", "D."])
    evidence = [Evidence(two, 1), Evidence(one), Evidence(one, 0)]
    assert supporting_facts(evidence) == [("Two", 1), ("One", 0), ("One", 1)]


# --- 2WikiMultihopQA -------------------------------------------------------------------------------------------------


def test_each_answer_metric_takes_its_own_best_alias() -> None:
    # Against "Ivan": P 1/2, R 1, F1 2/3. Against "Ivan the Great of Moscow": P 2/2, R 2/4 without the article, F1 2/3.
    # The best precision and the best recall come from different aliases: both 1, while F1 is 2/3.
    values = two_wiki({"answer": "Ivan Great"}, ["Ivan", "Ivan the Great of Moscow"], [])
    assert (values["em"], values["prec"], values["recall"]) == (0, 1, 1)
    assert values["f1"] == pytest.approx(2 / 3)
    assert [values[f"sp_{name}"] for name in ("em", "f1", "prec", "recall")] == [0] * 4  # missing
    assert two_wiki({"answer": "the U.S.S.R."}, ["Soviet Union", "USSR"], [])["em"] == 1


@pytest.mark.parametrize(
    ("facts", "precision", "recall", "f1"),
    [
        ([("FILM", 0), ("director", 2)], 1 / 2, 1 / 2, 1 / 2),  # case does not matter
        ([("FILM", 0), ("film", 0)], 1, 2 / 3, 4 / 5),  # two spellings are two right ones: R 2 / (2 + 1 missed)
        ([("film", 0), ("film", 0)], 1, 1 / 2, 2 / 3),
        ([("film", 0), ("director", 1)], 1, 1, 1),
    ],
)
def test_support_ignores_case_but_counts_every_spelling(facts: Any, precision: float, recall: float, f1: float) -> None:
    values = two_wiki({"sp": facts}, ["x"], [("Film", 0), ("Director", 1)])
    assert (values["sp_prec"], values["sp_recall"], values["sp_f1"]) == pytest.approx((precision, recall, f1))
    assert values["sp_em"] == (f1 == 1)


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
def test_hover(answer: str | None, sp: Any, expected: tuple[float, ...]) -> None:
    values = hover({"answer": answer, "sp": sp}, ["yes"], [("A", 0), ("B", 1)])
    assert tuple(values.values()) == pytest.approx(expected)
    assert list(values) == ["accuracy", "sp_em", "sp_f1", "hover_score"]
    assert [verdict(text) for text in ("SUPPORTED", "not supported", "False", "")] == [True, False, False, None]


# --- MuSiQue ---------------------------------------------------------------------------------------------------------


def musique_of(id: str, answer: str = "", support: tuple[int, ...] = (), answerable: bool = True) -> dict[str, Any]:
    predicted = {"predicted_answer": answer, "predicted_support_idxs": support, "predicted_answerable": answerable}
    return {"id": id, **predicted}


@pytest.mark.parametrize(
    ("answer", "golds", "em", "f1"),
    [
        ("New York", ["NYC", "New York City"], 0, 4 / 5),  # P 1, R 2/3
        ("NYC", ["New York City", "the N.Y.C."], 1, 1),
        ("Barack Obama", ["Obama", "Barack Hussein Obama"], 0, 4 / 5),  # 2/3 with the answer, 4/5 with its alias
        ("yes it is", ["yes"], 0, 1 / 2),  # P 1/3, R 1: no rule for closed answers
        ("the", ["a"], 1, 1),  # nothing left of both: they agree
    ],
)
def test_musique_answers(answer: str, golds: list[str], em: float, f1: float) -> None:
    values = musique(musique_of("q", answer), golds, [])
    assert (values["answer_em"], values["answer_f1"]) == pytest.approx((em, f1))


@pytest.mark.parametrize(
    ("found", "wanted", "em", "f1"),
    [((3, 5), [5, 3], 1, 1), ((3, 3, 7), [3, 5], 0, 1 / 2), ((), [1], 0, 0), ((), [], 1, 1)],
)
def test_musique_support(found: tuple[int, ...], wanted: list[int], em: float, f1: float) -> None:
    values = musique(musique_of("q", "", found), ["x"], wanted)
    assert (values["support_em"], values["support_f1"]) == pytest.approx((em, f1))


def test_musique_full_scores_pairs() -> None:
    gold, none = (["x"], [1], True), (["x"], list[int](), False)
    pairs = [
        # Told apart, answer right: 1.
        (musique_of("1", "x", (1,)), gold),
        (musique_of("1", "y", (2,), False), none),
        # Answer right, but the unanswerable half was answered: 0 for the group, 1 for the answer.
        (musique_of("2", "x", (1,)), gold),
        (musique_of("2", "x", (1,)), none),
        # Told apart, in the other order; half of the answer (P 1/2, R 1, F1 2/3) and no support.
        (musique_of("3", answerable=False), none),
        (musique_of("3", "x y"), gold),
        # The wrong half comes first, the right one last: 0 for the group, 1 for the answer.
        (musique_of("4", "x", (1,)), none),
        (musique_of("4", "x", (1,)), gold),
    ]
    # Answers of the answerable: F1 (1 + 1 + 2/3 + 1) / 4 = 11/12, EM 3/4, support (1 + 1 + 0 + 1) / 4.
    # Groups: answer (1 + 0 + 2/3 + 0) / 4 = 5/12, support (1 + 0 + 0 + 0) / 4.
    assert musique_numbers(pairs) == {
        "answer_f1": 0.917,
        "answer_em": 0.75,
        "support_f1": 0.75,
        "group_answer_sufficiency_f1": 0.417,
        "group_support_sufficiency_f1": 0.25,
    }
    with pytest.raises(ValueError, match="'4' does not"):
        musique_numbers([*pairs[:-1], (musique_of("5"), gold)])


# --- SQuAD, TriviaQA, NQ-open and PopQA ------------------------------------------------------------------------------

PRECOMPOSED, DECOMPOSED = "Andr\u00e9", "Andre\u0301"


@pytest.mark.parametrize(
    ("score", "answer", "golds", "expected"),
    [
        (squad, "Denver Broncos", ["The Broncos", "the Denver Broncos!"], (1, 1)),
        (squad, "in Santa Clara", ["Santa Clara", "Levi's Stadium"], (0, 4 / 5)),  # P 2/3, R 1
        (squad, "yes it is", ["yes"], (0, 1 / 2)),  # no rule for closed answers
        (squad, "the", ["a"], (1, 0)),
        (squad, PRECOMPOSED, [DECOMPOSED], (0, 0)),
        (squad, None, ["x"], (0, 0)),
        (triviaqa, "twenty-one", ["twenty one"], (1, 1)),  # punctuation becomes a space ...
        (triviaqa, "twenty-one", ["twentyone"], (0, 0)),  # ... where SQuAD joins
        (triviaqa, "O’Neill", ["O'Neill"], (1, 1)),  # the typographic apostrophe is one
        (triviaqa, "`rock ´n` roll", ["Rock 'n' Roll"], (1, 1)),
        (triviaqa, "rock-a-hula", ["rock hula"], (1, 1)),  # what becomes an article goes
        (triviaqa, "“Help”", ["Help"], (0, 0)),  # typographic double quotes stay
        # Accuracy, exact match, F1. The last letter of "Andréa" follows an accent, and goes: a fault of the script.
        (nq_open, PRECOMPOSED, [PRECOMPOSED], (1, 1, 1)),
        (nq_open, DECOMPOSED, [PRECOMPOSED], (1, 0, 0)),
        (nq_open, "Andréa", [PRECOMPOSED], (1, 0, 0)),
        (popqa, "He was a Politician.", ["politician"], (1,)),
        (popqa, "the politicians", ["politician"], (1,)),
        (popqa, "He was a POLITICIAN.", ["politician"], (0,)),
        (popqa, "painter", ["politician", "painter"], (1,)),
        (popqa, None, ["politician"], (0,)),
    ],
)
def test_answers(score: Any, answer: str | None, golds: list[str], expected: tuple[float, ...]) -> None:
    assert tuple(score({"answer": answer}, golds).values()) == pytest.approx(expected)


# --- MultiHop-RAG ----------------------------------------------------------------------------------------------------

TEXTS = ["Google paid Apple.", "Epic sued Google."]
NOISE = "nothing of interest"


@pytest.mark.parametrize(
    ("texts", "facts", "expected"),  # Hits@10, Hits@4, MAP@10, MRR@10
    [
        # Rank 2 shows fact 1 (1/2), rank 3 shows it again (0), rank 5 shows fact 2 (1/5): (1/2 + 1/5) / 2 = 7/20.
        # The textbook's average precision would be (1/2 + 2/5) / 2 = 9/20.
        ([NOISE, TEXTS[0], f"{TEXTS[0]} Again.", NOISE, f"News: {TEXTS[1]}"], TEXTS, (1, 1, 7 / 20, 1 / 2)),
        (TEXTS[:1], TEXTS[:1] * 2, (1, 1, 1 / 2, 1)),  # a fact that is gold twice is found once and divided by two
        (["Googlepaid\nApp le."], TEXTS[:1], (1, 1, 1, 1)),  # blanks and line breaks do not matter
        (["google paid apple.", "Google\tpaid Apple."], TEXTS, (0, 0, 0, 0)),  # case and tabs do
        ([NOISE] * 3 + TEXTS[:1], TEXTS, (1, 1, 1 / 8, 1 / 4)),
        ([NOISE] * 4 + TEXTS[:1], TEXTS, (1, 0, 1 / 10, 1 / 5)),
        ([NOISE] * 10 + TEXTS[:1], TEXTS, (0, 0, 0, 0)),  # the script reads it, and does not count it
    ],
)
def test_retrieval(texts: list[str], facts: list[str], expected: tuple[float, ...]) -> None:
    values = multihop_rag({"question_type": "inference_query", "retrieved": texts}, "x", facts)
    assert [values[name] for name in ("Hits@10", "Hits@4", "MAP@10", "MRR@10")] == pytest.approx(expected)


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
def test_overlap(answer: str | None, gold: str, overlap: float, em: float, contained: float) -> None:
    values = multihop_rag({"question_type": "null_query", "answer": answer}, gold, [])
    assert values == {"official_overlap": overlap, "answer_em": em, "answer_contained": contained}


def test_null_queries_have_answers_but_no_retrieval() -> None:
    pairs: Any = [
        ({"question_type": "inference_query", "answer": "Google", "retrieved": [TEXTS[0]]}, ("Google", TEXTS)),
        ({"question_type": "null_query", "answer": "Google", "retrieved": []}, ("Insufficient information.", [])),
        ({"question_type": "temporal_query", "answer": None, "retrieved": []}, ("Yes", TEXTS)),
    ]
    values = mean_of(multihop_rag)(pairs)
    assert (values["answer_em"], values["Hits@10"], values["MAP@10"]) == pytest.approx((1 / 3, 1 / 2, 1 / 4))
    with pytest.raises(ValueError, match="null_query"):
        mean_of(multihop_rag)([(pairs[0][0], ("x", []))])
