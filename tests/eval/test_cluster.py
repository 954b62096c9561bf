"""Ray's workers change neither records nor limits; what a lost worker did not finish is done by another one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import cloudpickle
import dspy
import pytest
from dspy import lm15

from polyhop.data.errors import PolyhopError
from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.engines.limits import LimitedLM, Limits, RateLimit
from polyhop.eval.cluster import Ray, _reduced_budget, _reduced_limit
from polyhop.eval.metrics import METRICS, Attempt, metric
from polyhop.eval.run import evaluate

from . import small
from .small import Fake, mixed, numbered, read_lines


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray on this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: make ray")
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    modules = (small, sys.modules[__name__])
    for module in modules:  # the workers do not have the tests
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
        ray.shutdown()


def facts(run: Path) -> list[dict[str, Any]]:
    """What is recorded, but for the time."""
    records = list(read_lines(run))
    for record in records:
        del record["costs"]["seconds"]
    return records


class DiesOnce:
    """Ends its process, but for the first time only."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __call__(self) -> str | None:
        if not self.marker.exists():
            self.marker.touch()
            os._exit(9)
        return "the wrong country"


@pytest.fixture
def letters() -> Iterator[None]:
    """A metric of one's own."""

    @metric(label="Letters", kind="number")
    def letters(attempt: Attempt) -> float:
        return len(attempt.output.answer)

    yield
    del METRICS["letters"]


def test_workers_give_the_records_of_threads_even_if_one_of_them_ends(
    cluster: None, letters: None, tmp_path: Path
) -> None:
    marker, executor = tmp_path / "marker", Ray(workers=2, threads=2)
    program = Fake({**mixed(20), "question 3": DiesOnce(marker)})
    evaluate(program, numbered(20), tmp_path / "ray", executor=executor)
    assert marker.exists()
    evaluate(program, numbered(20), tmp_path / "threads", threads=2)
    assert facts(tmp_path / "ray") == facts(tmp_path / "threads")
    assert sum("error" in fact for fact in facts(tmp_path / "threads")) == 3
    assert facts(tmp_path / "threads")[1]["scores"]["letters"] == len("France")


@pytest.mark.slow
def test_a_question_that_ends_its_workers_is_a_failure_of_its_own(cluster: None, tmp_path: Path) -> None:
    program = Fake({"question 1": lambda: os._exit(9)})
    evaluate(program, numbered(4), tmp_path / "run", executor=Ray("auto", workers=2, threads=4))
    assert [(fact["answer"], fact.get("error", {}).get("cause")) for fact in facts(tmp_path / "run")] == [
        ("France", None),
        (None, "worker"),
        ("France", None),
        ("France", None),
    ]


class Counting:
    """An engine that writes down how many requests are under way, in all processes together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def complete(self, request: lm15.Request) -> lm15.Response:
        mine = self.folder / f"{os.getpid()}-{time.monotonic_ns()}"
        mine.touch()
        with (self.folder / "counts.log").open("a") as file:
            file.write(f"{len(list(self.folder.iterdir())) - 1}\n")
        time.sleep(0.05)
        mine.unlink()
        usage = lm15.Usage(input_tokens=9, output_tokens=1)
        message = lm15.Message.assistant("[[ ## answer ## ]]\nFrance")
        return lm15.Response(id="1", model=request.model, message=message, usage=usage, finish_reason="stop")


class Asking(dspy.Module):
    """Asks a model."""

    def __init__(self, lm: dspy.LM) -> None:
        super().__init__()
        self.ask = dspy.Predict("question -> answer")
        self.ask.lm = lm

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=self.ask(question=question).answer, evidence=(), ranking=())


@pytest.mark.slow
def test_workers_share_limits_and_a_budget(cluster: None, tmp_path: Path) -> None:
    folder, executor = tmp_path / "requests", Ray(workers=2, threads=3)
    folder.mkdir()
    (folder / "counts.log").touch()
    lm = dspy.LM("made/up", engine=Counting(folder), cache=False)
    program, budget = Asking(LimitedLM(lm, RateLimit(Limits(concurrency=2)))), Budget(calls=12)
    budget.meter_program(program)
    with pytest.raises(BudgetSpent, match="12 LM calls"):
        evaluate(program, numbered(30), tmp_path / "run", executor=executor)
    under_way = [int(line) for line in (folder / "counts.log").read_text().splitlines()]
    assert (len(under_way), budget.spent.calls) == (12, 12)
    assert max(under_way) <= 2
    assert len(facts(tmp_path / "run")) <= 12


def test_a_program_that_does_not_pickle_is_an_error(cluster: None) -> None:
    with pytest.raises(PolyhopError, match="must pickle"):
        evaluate(Fake({"x": Lock().__enter__}), numbered(1), executor=Ray(workers=1))


def test_a_worker_has_its_part_of_the_limits() -> None:
    limit = RateLimit(Limits(concurrency=5, requests_per_minute=60, timeout=9))
    _, (part,) = _reduced_limit(limit, workers=2)
    assert part == Limits(concurrency=2, requests_per_minute=30, timeout=9)
    assert _reduced_limit(RateLimit(), workers=2)[1] == (Limits(),)
    with pytest.raises(PolyhopError, match="6 workers need a model that may get as many requests at once, not 5"):
        _reduced_limit(limit, workers=6)


def test_a_worker_without_the_file_of_the_budget_does_not_start(tmp_path: Path) -> None:
    budget = Budget(calls=2, file=tmp_path / "spent.json")
    make, arguments, _ = _reduced_budget(budget)
    assert make(*arguments).file == tmp_path / "spent.json"
    (tmp_path / "spent.json").unlink()
    with pytest.raises(PolyhopError, match="choose an --out on a file system that all nodes share"):
        make(*arguments)


JAVA_STAYS = """
import ctypes, signal
from polyhop.data.lucene.jvm import autoclass
from polyhop.eval.cluster import Ray, connected

def handler():
    action = ctypes.create_string_buffer(256)
    ctypes.CDLL(None).sigaction(signal.SIGSEGV, None, action)
    return action.raw[:8]

autoclass("java.lang.String")
java = handler()
ray, _ = connected(Ray(workers=1))
assert handler() == java != bytes(8)
ray.shutdown()
assert handler() == java
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads a structure of Linux")
def test_java_keeps_the_signal_by_which_it_notices_null() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: make ray")
    alone = {name: value for name, value in os.environ.items() if name != "RAY_DISABLE_FAILURE_SIGNAL_HANDLER"}
    asked = [sys.executable, "-c", JAVA_STAYS]
    done = subprocess.run(asked, env=alone, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
