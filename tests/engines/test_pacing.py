"""Rate limits: never more than a minute's units in a minute, and hardly less."""

from __future__ import annotations

from bisect import bisect_left
from random import Random
from threading import Thread

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polyhop.engines.gate import Pacing


class Clock:
    """Seconds that grow when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def sent(per_minute: float, pauses: list[float]) -> list[float]:
    """When each request is sent, if they come after these pauses and wait as they are told."""
    clock = Clock()
    pacing = Pacing(per_minute, clock)
    times = []
    for pause in pauses:
        clock.now += pause
        times.append(clock.now + pacing.take(1))
    return times


def most_in_a_minute(times: list[float]) -> int:
    times = sorted(times)
    return max((bisect_left(times, time + 60 - 1e-6) - n for n, time in enumerate(times)), default=0)


@given(
    st.integers(1, 300),
    st.lists(
        st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.3, 1.0, 7.0, 59.0, 61.0, 600.0]) | st.floats(0, 100), max_size=700
    ),
)
@example(1, [0.0] * 5)
@example(2, [0.0, 59.0, 1.0, 0.0])
@example(60, [*[600.0] * 3, *[0.0] * 700])
@example(10, [*[0.0] * 8, 55.0, *[0.0] * 30])
def test_no_minute_has_more_than_its_units(per_minute: int, pauses: list[float]) -> None:
    assert most_in_a_minute(sent(per_minute, pauses)) <= per_minute


@pytest.mark.parametrize("per_minute", [1, 2, 10, 60, 500])
def test_a_long_run_is_hardly_slower_than_the_limit(per_minute: int) -> None:
    times = sent(per_minute, [0.0] * (20 * per_minute))
    assert len(times) / (times[-1] - times[0]) * 60 >= 0.85 * per_minute


def test_what_was_not_used_is_given_back() -> None:
    clock = Clock()
    pacing = Pacing(6_000, clock)  # 600 at once, then 90 a second
    assert pacing.take(600) == 0
    assert pacing.take(90) == pytest.approx(1)
    pacing.give_back(90)
    assert pacing.take(90) == pytest.approx(1)
    pacing.give_back(-45)  # used beyond what was taken
    assert pacing.take(90) == pytest.approx(2.5)


@given(st.lists(st.floats(1, 900), min_size=1, max_size=200))
def test_tokens_that_are_known_stay_within_their_limit(sizes: list[float]) -> None:
    pacing, start = Pacing(10_000, Clock()), 1_000.0  # 1,000 at once
    sent = [(start + pacing.take(size), size) for size in sizes]
    for first, _ in sent:
        assert sum(size for when, size in sent if first <= when < first + 60) <= 10_001


@pytest.mark.parametrize("seed", range(2))
def test_tokens_that_are_estimated_stay_within_their_limit_in_the_long_run(seed: int) -> None:
    """Eight threads that take an estimate, use less, and say so when they have the reply."""
    random, clock = Random(seed), Clock()
    pacing = Pacing(10_000, clock)
    free, pending, used = [clock.now] * 8, list[tuple[float, float]](), 0.0
    for _ in range(2_000):
        thread = min(range(8), key=free.__getitem__)
        for when, back in sorted(each for each in pending if each[0] <= free[thread]):
            clock.now = max(clock.now, when)
            pacing.give_back(back)
        pending = [each for each in pending if each[0] > free[thread]]
        clock.now = max(clock.now, free[thread])
        tokens = random.uniform(120, 400)
        used += tokens
        free[thread] = clock.now + pacing.take(400) + random.uniform(0.1, 5)
        pending.append((free[thread], 400 - tokens))
    assert 0.85 <= used / (clock.now - 1_000) * 60 / 10_000 <= 1


def test_threads_do_not_lose_units() -> None:
    clock = Clock()
    pacing = Pacing(600, clock)  # 60 at once, then 9 a second
    waits: list[float] = []
    threads = [Thread(target=lambda: waits.extend(pacing.take(1) for _ in range(200))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == pytest.approx([max(0.0, n - 60) / 9 for n in range(1, 1_601)])
