"""Training the complexity estimator: on made-up questions whose form gives the number of hops away."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyhop.bench.complexity import Labelled, train
from polyhop.data.benchmarks import load_questions
from polyhop.programs.complexity import ComplexityEstimator

CHAINS = {
    1: "Who wrote Book {n}?",
    2: "Where was the author of Book {n} born?",
    3: "Where was the wife of the author of Book {n} born?",
    4: "Where was the father of the wife of the author of Book {n} born?",
}


def questions(source: str, hops: int, count: int = 12) -> list[Labelled]:
    return [Labelled(CHAINS[hops].format(n=n), hops, source, f"{source} {hops} {n}") for n in range(count)]


@pytest.mark.parametrize("known", [(1, 2, 3, 4), (1, 2, 3), (2, 4)])
def test_a_trained_head_knows_new_questions_of_the_form(known: tuple[int, ...]) -> None:
    few = questions("made up", 3, 2) if 3 not in known else []  # fewer than there are folds
    head = train([*few, *(question for hops in known for question in questions("made up", hops))], folds=3)
    estimator = ComplexityEstimator(head)
    assert [estimator(CHAINS[hops].format(n=1000)).hops for hops in known] == list(known)
    everything = [estimator(CHAINS[hops].format(n=1000)).probabilities for hops in CHAINS]
    assert all(each[hops - 1] < 1e-9 for each in everything for hops in {1, 2, 3, 4} - set(known))
    expected = [[12 * (row == column and row in known) for column in CHAINS] for row in CHAINS]
    assert head.training["confusion matrix"] == expected
    assert head.training["accuracy"] == 1


@pytest.mark.slow
def test_the_shipped_estimator_on_benchmark_questions(shared_data: Path) -> None:
    """Few questions of several hops are surely one hop, and most of SQuAD's are probably."""

    def share(dataset: str, file: str, limit: float) -> float:
        found = [ComplexityEstimator()(each.question) for each in load_questions(dataset, shared_data / file)]
        return sum(each.probabilities[0] > limit for each in found) / len(found)

    assert share("hotpotqa", "hotpotqa_dev_distractor.json.gz", 0.9) < 0.05
    assert share("2wiki", "2wiki_dev_with_context.json.gz", 0.5) < 0.03
    assert share("squad", "squad_dev-v1.1.json.gz", 0.5) > 0.8
