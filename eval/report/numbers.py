"""Names of metrics, and how numbers are formatted."""

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
    **{f"passage_recall@{k}": f"Recall@{k}" for k in (2, 5, 10, 20)},
    **{f"all_gold@{k}": f"All gold@{k}" for k in (2, 5, 10, 20)},
    "passage_mrr": "MRR",
    "passage_ndcg@10": "nDCG@10",
    "token_precision": "Token P",
    "token_recall": "Token R",
    "token_f1": "Token F1",
    "lm_calls": "LM calls",
    "lm_calls_critical_path": "LM calls in sequence",
    "cost_usd": "Dollars",
    "seconds_p50": "Seconds, median",
    "seconds_p95": "Seconds, 95th percentile",
}


def name(metric: str) -> str:
    return NAMES.get(metric, metric.replace("_", " ").capitalize())


def lower(metric: str) -> str:
    """The name of a cost within a sentence."""
    return name(metric) if metric.startswith("lm_calls") else name(metric).lower()


def number(value: float | None, metric: str, sign: str = "") -> str:
    """A score in percent, a cost with its significant digits; a dash for None and NaN."""
    if value is None or value != value:
        return "–"
    if metric == "cost_usd":
        return ("−" if value < 0 else sign) + dollars(abs(value))
    return _plain(value, metric, sign).replace("-", "−")


def _plain(value: float, metric: str, sign: str) -> str:
    if metric in METRICS:
        return f"{100 * value:{sign}.1f}"
    if abs(value) >= 1000:
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.1f}" if abs(value) >= 10 else f"{value:{sign}.2f}"


def dollars(value: float) -> str:
    if value == 0:
        return "$0"
    return f"${value:,.2f}" if value >= 1 else f"${value:.2g}" if value >= 0.0001 else f"${value:.1e}"


def between(ends: tuple[float, float], metric: str, sign: str = "") -> str:
    return f"{number(ends[0], metric, sign)} to {number(ends[1], metric, sign)}"


def p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def share(value: float) -> str:
    return f"{100 * value:.1f}%"


def count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
