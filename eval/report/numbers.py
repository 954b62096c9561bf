"""How numbers are written."""

from __future__ import annotations

from ..scoring import METRICS

NAMES = {
    "answer_em": "Answer EM",
    "answer_f1": "Answer F1",
    "evidence_precision": "Evidence P",
    "evidence_recall": "Evidence R",
    "evidence_f1": "Evidence F1",
    "fact_precision": "Fact P",
    "fact_recall": "Fact R",
    "fact_f1": "Fact F1",
    "joint_f1": "Joint F1",
    "passage_recall@2": "Recall@2",
    "passage_recall@5": "Recall@5",
    "passage_recall@10": "Recall@10",
    "passage_recall@20": "Recall@20",
    "all_gold@2": "All gold@2",
    "all_gold@5": "All gold@5",
    "all_gold@10": "All gold@10",
    "all_gold@20": "All gold@20",
    "passage_mrr": "MRR",
    "passage_ndcg@10": "nDCG@10",
    "answer_in_evidence": "Answer in evidence",
    "token_precision": "Token P",
    "token_recall": "Token R",
    "token_f1": "Token F1",
    "lm_calls": "LM calls",
    "lm_calls_critical_path": "LM calls in sequence",
    "searches": "Searches",
    "tokens_in": "Tokens in",
    "tokens_out": "Tokens out",
    "tokens": "Tokens",
    "cost_usd": "Dollars",
    "seconds": "Seconds",
    "seconds_p50": "Seconds, median",
    "seconds_p95": "Seconds, 95th percentile",
}
"""What metrics are called."""


def name(metric: str) -> str:
    return NAMES.get(metric, metric.replace("_", " "))


def number(metric: str, value: float | None, sign: str = "") -> str:
    """A score in percent, a cost with as many digits as tell something; a dash where there is none."""
    if value is None or value != value:
        return "–"
    if metric == "cost_usd":
        return ("−" if value < 0 else sign) + dollars(abs(value))
    return _plain(metric, value, sign).replace("-", "−")


def _plain(metric: str, value: float, sign: str) -> str:
    if metric in METRICS:
        return f"{100 * value:{sign}.1f}"
    if abs(value) >= 1000:
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.1f}" if abs(value) >= 10 else f"{value:{sign}.2f}"


def dollars(value: float) -> str:
    if value == 0:
        return "$0"
    return f"${value:,.2f}" if value >= 1 else f"${value:.2g}" if value >= 0.0001 else f"${value:.1e}"


def between(metric: str, low: float, high: float, sign: str = "") -> str:
    return f"{number(metric, low, sign)} to {number(metric, high, sign)}"


def p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def share(value: float) -> str:
    return f"{100 * value:.1f}%"


def count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
