"""Predictions and scores that were made elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.lucene.bm25 import BM25Index

from .cli import done, of_run, written
from .cli import polyhop as run

QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "mill",
        "question": "Where was the owner of Kestrel Mill born?",
        "answer": "Tarn",
        "gold": ["Kestrel Mill", {"title": "Ada Berg", "sentence": 1}],
        "passages": [
            {"title": "Kestrel Mill", "sentences": ["It is a mill.", "Ada Berg owns it."]},
            {"title": "Ada Berg", "sentences": ["She bakes.", "She was born in Tarn."]},
            {"title": "Stones", "sentences": ["They are hard."]},
        ],
    },
    {"id": "mayor", "question": "Who is the mayor of Tarn?", "answer": "Jonas Frey", "gold": ["Tarn"]},
    {"id": "river", "question": "Which river flows through Tarn?", "answer": "Ull", "gold": ["Tarn"]},
]
PREDICTIONS: list[dict[str, Any]] = [
    {
        "id": "mill",
        "answer": "Tarn",
        "evidence": ["Kestrel Mill", ["Ada Berg", 1]],
        "ranking": ["Stones", "Ada Berg", "Kestrel Mill"],
    },
    {
        "question": "Who is the mayor of Tarn?",
        "answer": "Frey",
        "evidence": [{"title": "tarn", "sentence": None}],
        "ranking": [],
    },
]


def test_predictions_are_scored_like_those_of_a_program(tmp_path: Path) -> None:
    questions, made = written(tmp_path / "q.jsonl", QUESTIONS), written(tmp_path / "theirs.jsonl", PREDICTIONS)
    command = ("score", made, "--questions", questions, "--out", tmp_path / "run")
    assert "1 failed: there is no prediction" in done(*command).stderr
    found = of_run(tmp_path / "run")["metrics"]
    assert found["answer_em"] == pytest.approx(1 / 3)
    assert found["answer_f1"] == pytest.approx((1 + 2 / 3) / 3)
    assert found["evidence_f1"] == pytest.approx(2 / 3)
    assert found["passage_mrr"] == pytest.approx((1 / 2) / 3)
    assert not {"lm_calls", "searches", "seconds_p50"} & found.keys()  # nobody knows what they cost
    done(*command)
    written(made, [{**PREDICTIONS[0], "answer": "no"}])
    assert run(*command).exit_code == 1


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ([{"answer": "x"}], "theirs.jsonl:1 has no id"),
        ([{"id": "mill", "answer": "x", "evidence": [["Ada Berg", 1.5]]}], "1.5 is no number of a sentence"),
        ([{"id": "mill", "answer": "x", "evidence": [["Ada Berg", -1]]}], "-1 is no number of a sentence"),
        ([{"id": "mill", "answer": "x", "ranking": True}], "ranking is no list"),
        ([*PREDICTIONS, {"id": "mill", "answer": "Ull"}], "has two predictions"),
        ([*PREDICTIONS, {"question": "Who is the mayor of Tarn?", "answer": "Ull"}], "has two predictions"),
    ],
)
def test_what_is_no_prediction_is_told(predictions: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    questions = written(tmp_path / "q.jsonl", QUESTIONS)
    result = run("score", written(tmp_path / "theirs.jsonl", predictions), "--questions", questions)
    assert message in result.stderr


def test_files_of_scores_are_compared_by_id(tmp_path: Path) -> None:
    before, after = [0, 0, 0, 0, 1, 1, 0, 0, 1, 0], [1, 1, 1, 1, 1, 1, 1, 0, 0, 1]
    for name, values in (("a", before), ("b", after)):
        lines = [{"id": n, "f1": value, "right": bool(value)} for n, value in enumerate(values)]
        written(tmp_path / f"{name}.jsonl", lines if name == "a" else lines[::-1])
    result = done("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    (line,) = (line for line in result.stdout.splitlines() if line.startswith(" F1 ") and "(" in line)
    # Differences: six of +1, one of -1, three of 0; their standard deviation is 0.7071.
    assert line.split()[1] == "+0.50"
    assert line.split()[-4:] == ["6", "/", "1", f"{2.8 * 0.70711 / 10**0.5:.2f}"]
    odd = [written(tmp_path / f"{name}.jsonl", [{"id": n, "f\x1b[2J": 1} for n in range(3)]) for name in "de"]
    assert "\x1b" not in run("compare", *odd).stdout
    for scores, told in (({"f1": 10**400}, "scores.f1"), ({"note": "none"}, "has no score")):
        written(tmp_path / "c.jsonl", [{"id": 1, **scores}])
        assert told in run("compare", tmp_path / "a.jsonl", tmp_path / "c.jsonl").stderr


def test_evidence_is_named_by_file_title_or_id_with_sentences_of_the_document(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    sentences = " ".join(f"Sentence {n} of the document says that mills grind grain slowly." for n in range(60))
    (tmp_path / "n" / "doc.md").write_text(f"# Doc\n\n{sentences}\n")
    done("index", tmp_path / "n", "--out", tmp_path / "ix")
    gold = [{"title": "n/doc.md", "sentence": 40}]
    questions = written(tmp_path / "q.jsonl", [{"id": "1", "question": "Who?", "answer": "Ann", "gold": gold}])
    with BM25Index(tmp_path / "ix") as index:
        [told] = [each for each in index.named("n/doc.md") if "Sentence 40 " in each.text]
    within = 40 - told.place.sentence if told.place else 0
    as_asked = {"passage_id": told.id, "title": "Doc", "sentence": within}
    for item in (["doc.md", 40], ["n/doc.md", 40], ["Doc", 40], [told.id, within], as_asked):
        made = written(tmp_path / "theirs.jsonl", [{"id": "1", "answer": "Ann", "evidence": [item]}])
        result = run("score", made, "--questions", questions, "--index", tmp_path / "ix", "--json")
        assert json.loads(result.stdout)["metrics"]["fact_f1"] == 1.0, item
    made = written(tmp_path / "theirs.jsonl", [{"id": "1", "answer": "Ann", "evidence": ["none.md"]}])
    result = run("score", made, "--questions", questions, "--index", tmp_path / "ix")
    assert "evidence that is no passage" in result.stderr
