"""What `/metrics` tells Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest


class Metrics:
    """Counts of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._questions = self._counter("questions", "Questions by program and outcome.", "program", "outcome")
        self._requests = self._counter("requests", "HTTP requests by path and status.", "path", "status")
        self._calls = self._counter("lm_calls", "Calls of language models, without replies from a cache.")
        self._cancelled = self._counter("cancelled_calls", "Calls whose client has left or waited too long.")
        self._tokens = self._counter("tokens", "Tokens of these calls.", "direction")
        self._dollars = self._counter("cost_usd", "Dollars that these calls cost, where prices are known.")
        buckets = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
        self._seconds = Histogram(
            "polyhop_question_seconds", "Seconds per question.", registry=self._registry, buckets=buckets
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"polyhop_{name}", text, labels, registry=self._registry)

    def done(self, program: str, outcome: str, seconds: float, costs: Mapping[str, float], cancelled: int = 0) -> None:
        """Count a question, and the calls that were cancelled."""
        self._questions.labels(program, outcome).inc()
        self._cancelled.inc(cancelled)
        if costs:
            self._seconds.observe(seconds)
            self._calls.inc(costs["lm_calls"])
            self._tokens.labels("in").inc(costs["tokens_in"])
            self._tokens.labels("out").inc(costs["tokens_out"])
            self._dollars.inc(costs.get("cost_usd", 0.0))

    def request(self, path: str, status: int) -> None:
        """Count a request."""
        self._requests.labels(path, status).inc()

    def text(self, load: Mapping[str, int]) -> bytes:
        """All counts, in the format of Prometheus."""
        now = "".join(f"# TYPE polyhop_{name} gauge\npolyhop_{name} {number}\n" for name, number in load.items())
        return generate_latest(self._registry) + now.encode()
