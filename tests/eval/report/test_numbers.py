"""How numbers are formatted, and the Pareto front."""

from __future__ import annotations

import pytest

from polyhop.eval.report.figures import front
from polyhop.eval.report.numbers import between, name, number, p_value


@pytest.mark.parametrize(
    ("metric", "value", "sign", "expected"),
    [
        ("answer_f1", 0.4886, "", "48.9"),
        ("answer_f1", -0.0432, "+", "−4.3"),
        ("tokens", 13004.2, "", "13,004"),
        ("lm_calls", 5.06, "", "5.06"),
        ("seconds_p50", 12.34, "+", "+12.3"),
        ("cost_usd", 0, "", "$0"),
        ("cost_usd", -0.0123, "+", "−$0.012"),
        ("cost_usd", 1.5, "+", "+$1.50"),
        ("cost_usd", 2e-6, "", "$2.0e-06"),
        ("cost_usd", None, "", "–"),
        ("answer_em", float("nan"), "", "–"),
    ],
)
def test_numbers(metric: str, value: float | None, sign: str, expected: str) -> None:
    assert number(value, metric, sign) == expected


def test_intervals_p_values_and_names() -> None:
    assert between((0.1, 0.25), "answer_em") == "10.0 to 25.0"
    assert [p_value(0.0001), p_value(0.25)] == ["<0.001", "0.250"]
    assert [name("passage_recall@5"), name("lm_calls"), name("answer_in_evidence")] == [
        "Recall@5",
        "LM calls",
        "Answer in evidence",
    ]


def test_front() -> None:
    assert front([(1, 0.4), (2, 0.3), (2, 0.5), (3, 0.5), (2, 0.5)]) == [0, 2, 4]
    assert front([(1, 0.4)]) == [0]
