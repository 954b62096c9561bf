"""Rate limits: never more than a minute's units in a minute, and hardly less."""

from __future__ import annotations

from bisect import bisect_left
from random import Random
from threading import Thread

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polyhop.engines.gate import Gate, Limit, Pacing


class Clock:
    """Seconds that grow when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def sent(per_minute: float, pauses: list[float]) -> list[float]:
    """When each request is sent, if they come after these pauses and wait as they are told."""
    clock = Clock()
    limit = Limit(per_minute, clock)
    times = []
    for pause in pauses:
        clock.now += pause
        wait = limit.wait(1)
        limit.count(wait, 1)
        times.append(clock.now + wait)
    return times


def most_in_a_minute(times: list[float]) -> int:
    times = sorted(times)
    return max((bisect_left(times, time + 60 - 1e-6) - n for n, time in enumerate(times)), default=0)


@given(
    st.integers(1, 300),
    st.lists(
        st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.3, 1.0, 7.0, 59.0, 61.0, 600.0]) | st.floats(0, 100), max_size=700
    ),
    st.integers(0),
)
@example(1, [0.0] * 5, 0)
@example(2, [0.0, 59.0, 1.0, 0.0], 0)
@example(60, [*[600.0] * 3, *[0.0] * 700], 0)
@example(300, [0.0] * 700, 1)
@example(10, [*[0.0] * 8, 55.0, *[0.0] * 30], 0)
def test_no_minute_of_the_server_has_more_than_its_units(per_minute: int, pauses: list[float], seed: int) -> None:
    random = Random(seed)
    arrived = [when + random.choice([0.0, random.uniform(0, 5), 5.0]) for when in sent(per_minute, pauses)]
    assert most_in_a_minute(arrived) <= per_minute


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


@given(st.lists(st.tuples(st.floats(1, 900), st.floats(0, 1), st.floats(0, 90)), min_size=1, max_size=200))
def test_no_minute_of_the_server_has_more_than_its_tokens(requests: list[tuple[float, float, float]]) -> None:
    """A request takes an estimate, and gives back a share when it ends, after some seconds."""
    clock = Clock()
    limit, used, ending = Limit(10_000, clock), list[tuple[float, float]](), list[tuple[float, float, float]]()
    for size, share, seconds in requests:
        wait = limit.wait(size)
        limit.count(wait, size)
        used.append((clock.now + wait, size * (1 - share)))
        ending.append((clock.now + wait + seconds, seconds, size * share))
        if len(ending) == 8:  # threads
            ended = min(ending)
            ending.remove(ended)
            clock.now = max(clock.now, ended[0])
            limit.correct(clock.now - ended[0] + ended[1], ended[2])
    for first, _ in used:
        assert sum(size for when, size in used if first <= when < first + 60) <= 10_000 + 1e-3


def test_a_request_that_waits_for_tokens_counts_as_a_request_when_it_is_sent() -> None:
    gate = Gate(None, 10, 60_000)  # 6,000 tokens at once, then 900 a second
    waits = [gate.enter(60_000)[1], *(gate.enter(0.0)[1] for _ in range(10))]
    assert waits[:10] == pytest.approx([60] * 10, abs=1)
    assert waits[10] >= 120


@pytest.mark.parametrize("seed", range(2))
def test_tokens_that_are_estimated_stay_within_their_limit_in_the_long_run(seed: int) -> None:
    """Eight threads that take an estimate, use less, and say so when they have the reply."""
    random, clock = Random(seed), Clock()
    limit = Limit(10_000, clock)
    free, pending, used = [clock.now] * 8, list[tuple[float, float, float]](), 0.0
    for _ in range(2_000):
        thread = min(range(8), key=free.__getitem__)
        for when, seconds, back in sorted(each for each in pending if each[0] <= free[thread]):
            clock.now = max(clock.now, when)
            limit.correct(seconds, back)
        pending = [each for each in pending if each[0] > free[thread]]
        clock.now = max(clock.now, free[thread])
        tokens = random.uniform(120, 400)
        used += tokens
        wait, seconds = limit.wait(400), random.uniform(0.1, 5)
        limit.count(wait, 400)
        free[thread] = clock.now + wait + seconds
        pending.append((free[thread], seconds, 400 - tokens))
    assert 0.75 <= used / (clock.now - 1_000) * 60 / 10_000 <= 1


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
