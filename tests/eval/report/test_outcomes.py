"""Each question is exactly one outcome."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.eval.report.outcomes import Outcome, found, outcome

from .lines import evidence, failed, line, parallel, searched, wrong

CASES = {
    "right": (line(), Outcome.correct),
    "right by luck: nothing was found": (line(trace=[], evidence=[], ranking=[]), Outcome.correct),
    "all gold in the evidence, and wrong": (wrong(), Outcome.reading),
    "all found, one not kept": (wrong(evidence=evidence("a", "c")), Outcome.selection),
    "all found, nothing kept": (wrong(evidence=[]), Outcome.selection),
    "one never found": (
        wrong(trace=[searched("a", "c")], ranking=["a", "c"], evidence=evidence("a")),
        Outcome.retrieval,
    ),
    "no search at all": (wrong(trace=[], ranking=[], evidence=[]), Outcome.retrieval),
    "unknown, with all the evidence": (wrong(answer="unknown"), Outcome.abstained),
    "unknown, and that is right": (line(answer="unknown", gold_answers=["unknown"]), Outcome.correct),
    "no gold passages, wrong": (wrong(gold=[]), Outcome.wrong),
    "no gold passages, right": (line(gold=[]), Outcome.correct),
    "no gold passages, unknown": (wrong(gold=[], answer="unknown"), Outcome.abstained),
    "failed": (failed(), Outcome.failed),
}


@pytest.mark.parametrize("case", CASES)
def test_outcomes(case: str) -> None:
    made, expected = CASES[case]
    assert outcome(made) is expected


def test_what_was_found_is_found_in_any_branch_and_by_any_search() -> None:
    trace = [searched("a"), parallel([searched("c")], [parallel([searched("b")])])]
    made: dict[str, Any] = wrong(trace=trace, ranking=[], evidence=[])
    assert found(made) == {"a", "b", "c"}
    assert outcome(made) is Outcome.selection


def test_a_program_without_steps_has_found_what_it_names() -> None:
    made = wrong(ranking=["b"], evidence=evidence("a"))
    del made["trace"]
    assert found(made) == {"a", "b"}


def test_every_outcome_is_explained() -> None:
    assert all(kind.meaning for kind in Outcome)
