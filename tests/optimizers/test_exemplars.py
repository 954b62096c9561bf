"""Filling memories of exemplars: MuSiQue's steps put into words, and the successes of real runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import polyhop
from polyhop.data.sample import SubQuestion, load_sample, sample_passages
from polyhop.eval.run import evaluate
from polyhop.optimizers.exemplars import at_most, from_musique, from_run
from polyhop.programs.exemplars import Exemplar

from ..eval.small import read_lines


def musique(question: str, *steps: str, hops: int = 2) -> Any:
    parts = tuple(SubQuestion(step, "answer", None) for step in steps)
    return SimpleNamespace(question=question, sub_questions=parts, hops=hops)


def test_gold_decompositions_become_exemplars_with_the_question_s_capitals() -> None:
    found = from_musique(
        [
            musique(
                "When did Italy enter the war that Ann of Kent fought in?",
                "Ann of Kent >> conflict",
                "when did italy enter #1",
            ),
            musique("Without steps?"),
        ]
    )
    assert list(found) == [
        Exemplar(
            "When did Italy enter the war that Ann of Kent fought in?",
            ("In which conflict did Ann of Kent take part?", "When did Italy enter #1?"),
            2,
            "musique",
        )
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of Prism over some questions of the sample."""
    folder = tmp_path_factory.mktemp("runs") / "prism"
    program = polyhop.Prism(polyhop.PassagePool(sample_passages()))
    program.set_lm(polyhop.lm("lexical"))
    evaluate(program, load_sample("train")[:20], folder)
    return folder


def test_successes_become_exemplars(run: Path) -> None:
    kept = {exemplar.question: exemplar for exemplar in from_run(run, min_f1=0.5)}
    right = 0
    for line in read_lines(run):
        success = line["scores"]["answer_em"] == 1 and line["scores"].get("evidence_f1", 0) >= 0.5
        assert (line["question"] in kept) == success
        if success:
            right += 1
            exemplar = kept[line["question"]]
            assert list(exemplar.sub_questions) == line["trace"][0]["sub_questions"]
            assert (exemplar.hops, exemplar.source) == (line["hops"], "prism")
    assert 0 < right < len(list(read_lines(run)))
    assert len(list(from_run(run, min_f1=1.0))) < right


def test_the_first_exemplars_of_each_number_of_hops() -> None:
    plans = [Exemplar(text, ("Why?",), hops) for text, hops in (("a", 2), ("a", 2), ("b", 2), ("c", 2), ("d", 1))]
    assert [each.question for each in at_most(2, plans)] == ["d", "a", "b"]
