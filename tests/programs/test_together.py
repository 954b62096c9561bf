"""Side by side: results and records in the order of the tasks, whatever ends first; nothing of a failure is lost."""

from __future__ import annotations

import threading

import dspy
import pytest

from polyhop.programs import Trace
from polyhop.programs.agent import together
from polyhop.programs.trace import Parallel, Stopped, Thought

from .scripted import playing, scripted


def test_tasks_run_at_the_same_time_and_answer_in_order() -> None:
    meeting = threading.Barrier(3, timeout=10)  # nobody passes unless all three are running
    trace = Trace()

    def task(n: int) -> int:
        meeting.wait()
        return n

    assert together(trace, [lambda _, n=n: task(n) for n in range(3)]) == [0, 1, 2]  # type: ignore[misc]
    assert isinstance(trace.steps[0], Parallel)


def test_one_task_needs_no_thread_and_no_branch() -> None:
    trace = Trace()
    assert together(trace, [lambda own: (own is trace, threading.current_thread())]) == [
        (True, threading.current_thread())
    ]
    assert together(trace, []) == []
    assert trace.steps == []


def test_a_failure_is_raised_when_all_are_done_and_their_steps_are_kept() -> None:
    trace, done = Trace(), []

    def fails(own: Trace) -> None:
        own.add(Thought("failing"))
        raise ValueError("first")

    def works(own: Trace) -> None:
        own.add(Thought("working"))
        done.append(1)

    with pytest.raises(ValueError, match="first"):
        together(trace, [fails, works])
    assert done == [1]
    assert [step.text for step in trace.flat() if isinstance(step, Thought)] == ["failing", "working"]
    assert trace.lm_calls_critical_path == 1


def test_models_and_records_of_the_caller_reach_the_threads() -> None:
    predict = dspy.Predict("question -> answer")
    first_waits = threading.Event()

    def ask(n: int) -> str:
        if n == 0:
            first_waits.wait(10)
        reply = str(predict(question=f"{n}?").answer)
        first_waits.set()
        return reply

    with playing(scripted(answerer=lambda request: {"answer": request.inputs["question"]})):
        with dspy.context(trace=[]), dspy.track_usage() as usage:
            trace = Trace([Stopped("x")])
            assert together(trace, [lambda _, n=n: ask(n) for n in range(2)]) == ["0?", "1?"]  # type: ignore[misc]
            recorded = [inputs["question"] for _, inputs, _ in dspy.settings.trace]
        assert recorded == ["0?", "1?"]  # though the second was asked first
        assert len(usage.usage_data["scripted"]) == 2
