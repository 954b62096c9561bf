"""Training the complexity estimator: on made-up questions whose form gives the number of hops away."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyhop.data.benchmarks import load_questions
from polyhop.programs.complexity import ComplexityEstimator, ComplexityHead, estimate_complexity
from polyhop.scripts.training.complexity import SINGLE, Labelled, app, train

CHAINS = {
    1: "Who wrote Book {n}?",
    2: "Where was the author of Book {n} born?",
    3: "Where was the wife of the author of Book {n} born?",
    4: "Where was the father of the wife of the author of Book {n} born?",
}


def questions(dataset: str, hops: int, count: int = 12) -> list[Labelled]:
    return [Labelled(CHAINS[hops].format(n=n), hops, dataset, f"{dataset} {hops} {n}") for n in range(count)]


def musique(hops: int, n: int) -> dict[str, Any]:
    title = f"Book {n}"
    return {
        "id": f"{hops}hop__{n}",
        "question": CHAINS[hops].format(n=n),
        "answer": "Rome",
        "answer_aliases": [],
        "answerable": True,
        "paragraphs": [{"idx": 0, "title": title, "paragraph_text": f"{title} is long.", "is_supporting": True}],
        "question_decomposition": [
            {"id": 1, "question": f"who wrote book {n}", "answer": "Ann", "paragraph_support_idx": 0},
            {"id": 2, "question": "#1 >> place of birth", "answer": "Rome", "paragraph_support_idx": None},
        ],
    }


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The options that name a file of MuSiQue and one of SQuAD."""
    lines = [json.dumps(musique(hops, 100 * hops + n)) for hops in (2, 3, 4) for n in range(10)]
    (tmp_path / "mu.jsonl").write_text("\n".join(lines))
    asked = [
        {"id": f"q{n}", "question": f"What is the height of tower {n}?", "answers": [{"text": "1", "answer_start": 0}]}
        for n in range(20)
    ]
    article = {"title": "Towers", "paragraphs": [{"context": "1 m", "qas": asked[:10]}]}
    other = {"title": "More", "paragraphs": [{"context": "1 km", "qas": asked[10:]}]}
    (tmp_path / "squad.json").write_text(json.dumps({"data": [article, other], "version": "1.1"}))
    return ["--musique", str(tmp_path / "mu.jsonl"), "--squad", str(tmp_path / "squad.json")]


def test_a_trained_head_knows_new_questions_of_the_form() -> None:
    head = train([each for hops in CHAINS for each in questions("made up", hops)], folds=3)
    estimator = ComplexityEstimator(head)
    assert [estimator(CHAINS[hops].format(n=1000)).hops for hops in CHAINS] == [1, 2, 3, 4]
    scores = head.training["cross-validated"]
    assert scores["confusion matrix"] == [[12, 0, 0, 0], [0, 12, 0, 0], [0, 0, 12, 0], [0, 0, 0, 12]]
    assert scores["accuracy"] == scores["mean recall"] == 1
    assert scores["2 hops taken for 1"] == 0


def test_unseen_datasets_and_held_out_questions_are_reported() -> None:
    known = [each for hops in CHAINS for each in questions("known", hops)]
    other = [each for hops in (1, 2) for each in questions("other", hops)]
    apart = [Labelled("Who is it?", 1, "apart", "1"), Labelled(CHAINS[2].format(n=3), 2, "apart", "2")]
    training = train([*known, *other], apart, folds=2).training
    assert training["questions"]["known"] == {"1": 12, "2": 12, "3": 12, "4": 12}
    assert training["trained without the dataset"]["other, 2 hops"]["taken for"] == [0, 12, 0, 0]
    # Without "known" there are no questions of 3 hops, and none is taken for one.
    assert training["trained without the dataset"]["known, 3 hops"]["taken for"][2:] == [0, 0]
    assert training["held out"]["apart, 2 hops"]["taken for"] == [0, 1, 0, 0]
    assert set(training["held out"]["apart, 1 hop"]["P(1 hop)"]) == {"> 0.5", "> 0.7", "> 0.9"}


def test_the_command_writes_an_estimator(files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.json"
    arguments = [*files, "--also", "sample:train", "--held-out", "sample:dev", "--out", str(out), "--folds", "2"]
    monkeypatch.setattr(sys, "argv", ["complexity", *arguments])
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Cross-validated" in result.output
    assert "2 hops taken for 1" in result.output
    training = ComplexityHead.load(out).training
    assert training["command"].endswith(
        "--musique mu.jsonl --squad squad.json --also sample:train --held-out sample:dev --out out.json --folds 2"
    )
    assert set(training["questions"]) == {"musique", SINGLE, "sample", "squad"}
    assert ComplexityEstimator(ComplexityHead.load(out))("Where was the author of Book 5 born?").hops == 2


def test_the_shipped_estimator_on_benchmark_questions(shared_data: Path) -> None:
    """Few questions of several hops are surely one hop, and most of SQuAD's are probably."""

    def share(dataset: str, file: str, limit: float) -> float:
        found = [estimate_complexity(each.question) for each in load_questions(dataset, shared_data / file)]
        return sum(each.probabilities[0] > limit for each in found) / len(found)

    assert share("hotpotqa", "hotpotqa_dev_distractor.json.gz", 0.9) < 0.05
    assert share("2wiki", "2wiki_dev_with_context.json.gz", 0.5) < 0.03
    assert share("squad", "squad_dev-v1.1.json.gz", 0.5) > 0.8
