"""Throughput: what is counted, whatever the machine; rates are for who runs it."""

from __future__ import annotations

import socket
from contextlib import nullcontext

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.engines.endpoint import Limits
from polyhop.scripts.studies import throughput

pytestmark = pytest.mark.slow


def test_calls_are_counted_and_limits_hold() -> None:
    run = throughput.measure("naive", 9, 0.01, threads=4, limits=Limits(concurrency=2))
    assert len(run.begun) == run.busiest_minute == 9 + 4  # with the warming up
    assert 0 < run.calls <= 9
    assert 1 <= run.at_once <= 2


def test_a_run_that_fails_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, and never listened to
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        monkeypatch.setattr(throughput, "served", lambda *_: nullcontext(url))
        with pytest.raises(PolyhopError, match="naive, 0.01 s: 3 of 3 questions failed: "):
            throughput.measure("naive", 3, 0.01, threads=2, limits=Limits(retries=0))
