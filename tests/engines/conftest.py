"""Time that nobody waits for."""

from __future__ import annotations

import pytest

from polyhop.engines import endpoint, gate

from .guarded import Time


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """At an endpoint nobody sleeps; jitter is as long as it can be."""
    time = Time()
    monkeypatch.setattr(endpoint, "monotonic", time)
    monkeypatch.setattr(gate, "monotonic", time)
    monkeypatch.setattr(endpoint, "pause", time.rest)
    monkeypatch.setattr(endpoint, "uniform", lambda low, high: high)
    return time
