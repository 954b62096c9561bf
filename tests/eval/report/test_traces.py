"""Outcomes, and recall by search and round, from the records of questions."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.eval.report.traces import (
    Course,
    Outcome,
    Round,
    by_round,
    by_search,
    course,
    found,
    means,
    outcome,
)

from .lines import added, evidence, failed, line, parallel, record, searched, selected, wrong

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
    assert outcome(record(made)) is expected


def test_what_was_found_is_found_in_any_branch_and_by_any_search() -> None:
    trace = [searched("a"), parallel([searched("c")], [parallel([searched("b")])])]
    made: dict[str, Any] = wrong(trace=trace, ranking=[], evidence=[])
    assert found(record(made)) == {"a", "b", "c"}
    assert outcome(record(made)) is Outcome.selection


def test_a_program_without_steps_has_found_what_it_names() -> None:
    made = wrong(ranking=["b"], evidence=evidence("a"))
    del made["trace"]
    assert found(record(made)) == {"a", "b"}


def test_what_was_found_adds_up_by_search() -> None:
    trace = [searched("c", "a"), parallel([searched("d")], [searched("a", "b")])]
    found = course(record(line(trace=trace)))
    assert found is not None
    assert found.found == (0.5, 0.5, 1.0)
    assert found.rounds == ()


def test_a_selector_that_judges_anew_drops_what_it_does_not_keep() -> None:
    trace = [selected(1, "a", "c"), added(1, "b"), selected(2, "a", "b"), added(2)]
    found = course(record(line(trace=trace, evidence=evidence("a", "b"))))
    assert found is not None
    assert found.rounds == (Round(1.0, 2 / 3), Round(1.0, 1.0))


def test_a_selector_that_collects_is_known_by_the_end() -> None:
    trace = [selected(1, "a"), selected(2), selected(3, "c")]
    found = course(record(line(trace=trace, evidence=evidence("a", "c"))))
    assert found is not None
    assert found.rounds == (Round(0.5, 1.0), Round(0.5, 1.0), Round(0.5, 0.5))


def test_sub_questions_with_citations_are_rounds() -> None:
    first = {"step": "stepanswered", "number": 1, "question": "?", "answer": "x", "cited": [["a", 0]]}
    revised = {"step": "revised", "answer": "y", "reason": "", "accepted": True, "cited": [["b", 1]]}
    refused = {"step": "revised", "answer": "z", "reason": "", "accepted": False, "cited": [["c", 0]]}
    found = course(record(line(trace=[first, {**first, "number": 2, "cited": []}, refused, revised])))
    assert found is not None
    assert found.rounds == (Round(0.5, 1.0), Round(1.0, 1.0))


def test_a_question_that_ended_keeps_what_it_had() -> None:
    points = means([(0.5, 1.0, 1.0), (0.5,), (), (0.0, 0.5)])
    assert [point.number for point in points] == [1, 2, 3]
    assert [point.mean for point in points] == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert [point.reached for point in points] == [3, 2, 1]


def test_over_questions() -> None:
    courses = [Course((1.0,), (Round(1.0, 0.5, 2),)), None, Course((0.0, 1.0), ())]
    assert [point.mean for point in by_search(courses)] == [0.5, 1.0]
    assert [tuple(point) for point in by_round(courses, lambda each: each.precision)] == [(1, 0.5, 1)]
    assert [tuple(point) for point in by_round(courses, lambda each: each.required)] == [(1, 2.0, 1)]
    assert by_round([None], lambda each: each.recall) == []
