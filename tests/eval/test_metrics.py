"""Metrics as DSPy calls them, and their registry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dspy
import pytest

from polyhop.data.passages import Evidence, Fact, Passage, Place
from polyhop.eval import metrics
from polyhop.eval.gold import ProgramOutput
from polyhop.programs.trace import Searched, Trace

A = Passage.of("A", sentences=["One.", "Two."], id="a")
B = Passage.of("B", sentences=["Three.", "Four."], id="b")
EXAMPLE = dspy.Example(
    question="q", answers=("Barack Obama",), gold_passages=("a", "b"), gold_facts=(Fact("a", 0), Fact("b", 1))
).with_inputs("question")


def prediction(answer: str, *evidence: Evidence) -> dspy.Prediction:
    return dspy.Prediction(answer=answer, evidence=evidence)


def test_joint_uses_what_is_known() -> None:
    predicted = prediction("Obama", Evidence(A))
    only_passages = dspy.Example(answers=("Obama",), gold_passages=("a",))
    assert metrics.joint_f1(only_passages, predicted) == 1.0
    assert metrics.joint_f1(dspy.Example(answers=("Obama",)), predicted) == 1.0


def test_what_searches_found_is_scored_before_agents_choose() -> None:
    others = [Passage.of(f"O{n}", "Text.", id=f"o{n}") for n in range(5)]

    def recall(*searches: tuple[list[Passage], int]) -> float:
        trace = Trace()
        for passages, offset in searches:
            trace.add(Searched("q", tuple((passage.id, passage.title, 1.0) for passage in passages), offset=offset))
        ranking = tuple(passage for passages, _ in searches for passage in passages)
        predicted = dspy.Prediction(answer="Obama", evidence=(Evidence(A),), ranking=ranking, trace=trace)
        return float(metrics.find_metric("search_recall@5")(EXAMPLE, predicted))

    assert recall(([*others[:4], A, B], 0)) == 0.5  # the sixth does not count
    assert recall(([*others[:4], A], 0), ([B], 0)) == 1.0  # by the better of two searches
    assert recall(([A], 0), ([B], 5)) == 0.5  # a second page begins at the sixth
    assert recall(([*others, A, B], 0)) == 0.0
    pieces = [replace(passage, place=Place("b")) for passage in others]
    assert recall(([*pieces, A], 0)) == 1.0  # passages of a document count once
    assert metrics.METRICS["search_recall@5"](EXAMPLE, dspy.Prediction(answer="x", ranking=(B, A))) == 1.0


def test_a_trace_asks_for_a_verdict() -> None:
    predicted = prediction("Obama", Evidence(A, 0))
    assert metrics.answer_f1(EXAMPLE, predicted, trace=[]) is False
    assert replace(metrics.answer_f1, threshold=0.6)(EXAMPLE, predicted, trace=[]) is True
    assert metrics.answer_em(EXAMPLE, prediction("barack obama"), trace=[]) is True


# --- the registry ----------------------------------------------------------------------------------------------------


def test_a_metric_of_a_user_is_registered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_metrics.py").write_text(
        "from polyhop.eval.metrics import Attempt, metric\n\n"
        '@metric(label="Words", kind="number", maximize=False, threshold=2)\n'
        "def words(attempt: Attempt) -> float:\n"
        "    return len(attempt.output.answer.split())\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(metrics, "METRICS", metrics.METRICS.copy())
    words = metrics.find_metric("my_metrics:words")
    assert metrics.METRICS["words"] is words
    assert words(EXAMPLE, prediction("a b c")) == 3
    assert words(EXAMPLE, prediction("a b c"), trace=[]) is False
    _, scores = metrics.score(EXAMPLE, ProgramOutput("a b"))
    assert scores["words"] == 2
    assert (words.text(2.0), words.text(None), words.text(1234.5, "+")) == ("2.00", "", "+1,234")


def test_questions_without_gold_have_no_such_score() -> None:
    assert not metrics.evidence_f1.applies(dspy.Example(question="q", answer="x"))
    _, scores = metrics.score(dspy.Example(question="q", answer="x"), ProgramOutput("x"))
    assert set(scores) == {"answer_em", "answer_f1"}
    _, failed = metrics.score(EXAMPLE, None)
    assert set(failed.values()) == {0.0}
    assert metrics.METRICS.keys() - failed.keys() == {"token_precision", "token_recall", "token_f1"}
