"""Filling memories of exemplars: MuSiQue's steps put into words, and the successes of real runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from typer.testing import CliRunner

import polyhop
from polyhop.data.errors import PolyhopError
from polyhop.data.sample import SubQuestion, load_sample, sample_passages
from polyhop.eval.folder import RunError
from polyhop.eval.records import read_lines
from polyhop.eval.run import evaluate
from polyhop.optimizers.exemplars import effects, from_musique, from_run, readable, useful
from polyhop.programs.exemplars import Exemplar, ExemplarMemory
from polyhop.programs.trace import Recalled, Trace
from polyhop.scripts.training.exemplars import app


@pytest.mark.parametrize(
    ("step", "question"),
    [
        ("Solaris >> director", "Who is the director of Solaris?"),
        ("#1 >> place of birth", "Where was #1 born?"),
        ("#2 >> country", "In which country is #2?"),
        ("Emma >> original language", "What is the original language of Emma?"),
        ("#1 >> Headquarters location", "Where are the headquarters of #1?"),
        ("Ann {the first} >> spouse", "Who is the spouse of Ann {the first}?"),
        ("Peak (#1 ) >> part of", "What is Peak (#1) a part of?"),
        ("where is #1 located ?", "Where is #1 located?"),
        ("Who is #1 's mother?", "Who is #1's mother?"),
        ("when did  it open", "When did it open?"),
    ],
)
def test_steps_in_words(step: str, question: str) -> None:
    assert readable(step) == question


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


def shown(folder: Path, scores: list[float], recalled: list[list[str]]) -> Path:
    """A run over so many questions, with the exemplars that each was shown."""

    def ask(question: str) -> dspy.Prediction:
        n = int(question)
        return dspy.Prediction(answer=str(scores[n]), trace=Trace([Recalled(tuple(recalled[n]))]))

    program = dspy.Module()
    program.forward = ask
    questions = [dspy.Example(question=str(n), answers=["1.0"]).with_inputs("question") for n in range(len(scores))]
    evaluate(program, questions, folder)
    return folder


def test_the_useful_exemplars_are_those_with_which_scores_rose(tmp_path: Path) -> None:
    before = shown(tmp_path / "before", [0.0, 0.0, 0.0, 1.0], [[]] * 4)
    after = shown(tmp_path / "after", [1.0, 1.0, 0.0, 0.0], [["good"], ["good", "lucky"], ["good"], ["bad"]])
    gains = effects(before, after, "answer_em")
    assert gains == {"good": 2 / 4, "lucky": 1 / 2, "bad": -1 / 2}  # one change of 0 is added to each
    plans = [Exemplar(text, ("Why?",), hops) for text, hops in (("bad", 2), ("new", 2), ("good", 2), ("one", 1))]
    assert [each.question for each in useful([*plans, plans[2]], gains, 1)] == ["one", "good"]
    assert [each.question for each in useful(plans, gains, 9)] == ["one", "good", "new"]  # without the one that harmed


def test_the_command_fills_a_file(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "memory.jsonl"
    result = CliRunner().invoke(app, ["--run", str(run), "--run", str(run), "--out", str(out)])
    assert result.exit_code == 0, result.output
    exemplars = ExemplarMemory.load(out).exemplars
    assert f"{len(exemplars)} exemplars" in result.output
    assert list(exemplars) == list(from_run(run))
    result = CliRunner().invoke(app, ["--out", str(tmp_path / "memory.jsonl")])
    assert result.exit_code == 2
    assert "--musique FILE or --run DIR" in result.output
    with pytest.raises(RunError, match="is not the folder of a run"):
        list(from_run(tmp_path))
    result = CliRunner().invoke(app, ["--run", str(run), "--out", str(tmp_path / "no" / "memory.jsonl")])
    assert isinstance(result.exception, PolyhopError)
    assert "cannot write" in str(result.exception)
