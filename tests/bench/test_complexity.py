"""Training the complexity estimator: on made-up questions whose form gives the number of hops away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.bench.complexity import SINGLE, Labelled, main, of_run, train
from polyhop.data.benchmarks import load_questions
from polyhop.data.passages import Evidence, Passage
from polyhop.eval.run import evaluate
from polyhop.programs.complexity import ComplexityEstimator, ComplexityHead

CHAINS = {
    1: "Who wrote Book {n}?",
    2: "Where was the author of Book {n} born?",
    3: "Where was the wife of the author of Book {n} born?",
    4: "Where was the father of the wife of the author of Book {n} born?",
}


def questions(source: str, hops: int, count: int = 12) -> list[Labelled]:
    return [Labelled(CHAINS[hops].format(n=n), hops, source, f"{source} {hops} {n}") for n in range(count)]


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
    return ["--on", f"musique:{tmp_path / 'mu.jsonl'}", f"squad:{tmp_path / 'squad.json'}"]


@pytest.mark.parametrize("known", [(1, 2, 3, 4), (1, 2, 3), (2, 4)])
def test_a_trained_head_knows_new_questions_of_the_form(known: tuple[int, ...]) -> None:
    few = questions("made up", 3, 2) if 3 not in known else []  # fewer than there are folds
    head = train([*few, *(each for hops in known for each in questions("made up", hops))], folds=3)
    estimator = ComplexityEstimator(head)
    assert [estimator(CHAINS[hops].format(n=1000)).hops for hops in known] == list(known)
    everything = [estimator(CHAINS[hops].format(n=1000)).probabilities for hops in CHAINS]
    assert all(each[hops - 1] < 1e-9 for each in everything for hops in {1, 2, 3, 4} - set(known))
    expected = [[12 * (row == column and row in known) for column in CHAINS] for row in CHAINS]
    assert head.training["confusion matrix"] == expected
    assert head.training["accuracy"] == 1


def test_a_run_tells_what_its_right_answers_needed(tmp_path: Path) -> None:
    pages = [Passage.of(f"Page {n}", sentences=[f"It is {n}.", "More."], id=str(n)) for n in range(6)]

    def ask(question: str) -> dspy.Prediction:
        n = int(question.split()[-1])
        evidence = [Evidence(page, sentence) for page in pages[:n] for sentence in (0, 1)]
        return dspy.Prediction(answer="wrong" if n == 4 else "right", evidence=evidence)

    program = dspy.Module()
    program.forward = ask
    examples = [dspy.Example(question=f"Number {n}", answers=["right"]).with_inputs("question") for n in range(6)]
    evaluate(program, examples, tmp_path / "run")
    found = [(each.question, each.hops) for each in of_run(tmp_path / "run")]
    assert found == [
        ("Number 1", 1),
        ("Number 2", 2),
        ("Number 3", 3),
        ("Number 5", 4),
    ]  # without evidence, wrong: none


def test_the_command_writes_an_estimator(files: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    main([str(out), *files, "sample:train", "--folds", "2"])
    training = ComplexityHead.load(out).training
    assert training["command"].endswith("out.json --on musique:mu.jsonl squad:squad.json sample:train --folds 2")
    assert {name.rpartition(" ")[0] for name in training["questions"]} == {"musique", SINGLE, "sample", "squad"}
    assert ComplexityEstimator(ComplexityHead.load(out))("Where was the author of Book 5 born?").hops == 2


@pytest.mark.slow
def test_the_shipped_estimator_on_benchmark_questions(shared_data: Path) -> None:
    """Few questions of several hops are surely one hop, and most of SQuAD's are probably."""

    def share(dataset: str, file: str, limit: float) -> float:
        found = [ComplexityEstimator()(each.question) for each in load_questions(dataset, shared_data / file)]
        return sum(each.probabilities[0] > limit for each in found) / len(found)

    assert share("hotpotqa", "hotpotqa_dev_distractor.json.gz", 0.9) < 0.05
    assert share("2wiki", "2wiki_dev_with_context.json.gz", 0.5) < 0.03
    assert share("squad", "squad_dev-v1.1.json.gz", 0.5) > 0.8
