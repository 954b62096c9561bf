"""Workers change neither results nor limits; what a lost worker did not finish is done by another one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Event, Thread
from typing import Any

import dspy
import pytest
from dspy import lm15

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import PolyhopError
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.engines import desk as desk_module
from polyhop.engines.budget import Budget, BudgetSpent
from polyhop.engines.desk import Desk, fetch_indexes, loads
from polyhop.engines.limits import LimitedLM, Limits, RateLimit
from polyhop.eval import workers as workers_module
from polyhop.eval.metrics import METRICS, Attempt, metric
from polyhop.eval.records import QuestionRecord, read_records
from polyhop.eval.run import evaluate
from polyhop.eval.workers import Pool, Processes, WorkerLost
from polyhop.programs.program import Program

from . import small
from .small import Fake, mixed, numbered

ROOT = Path(small.__file__).parents[2]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """New processes find the tests where this one found them."""
    monkeypatch.syspath_prepend(str(ROOT))


def facts(run: Path) -> list[dict[str, Any]]:
    """What is recorded, but for the time."""

    def fact(record: QuestionRecord) -> dict[str, Any]:
        return {**record.model_dump(), "costs": {k: v for k, v in record.costs.items() if k != "seconds"}}

    return sorted(map(fact, read_records(run)), key=lambda each: each["n"])


# --- processes -------------------------------------------------------------------------------------------------------


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


def test_processes_give_the_records_of_threads_even_if_one_of_them_ends(letters: None, tmp_path: Path) -> None:
    marker, special = tmp_path / "marker", mixed(20)
    program = Fake({**special, "question 3": DiesOnce(marker)})
    evaluate(program, numbered(20), tmp_path / "processes", executor=Processes(2, threads=2))
    assert marker.exists()
    evaluate(program, numbered(20), tmp_path / "threads", threads=2)
    assert facts(tmp_path / "processes") == facts(tmp_path / "threads")
    assert sum(bool(fact["error"]) for fact in facts(tmp_path / "threads")) == 3
    assert facts(tmp_path / "threads")[1]["scores"]["letters"] == len("France")


class Recorder:
    """An engine that writes down when it begins and ends to answer which question."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def note(self, what: str, request: lm15.Request) -> None:
        question = request.messages[-1].text.partition("question ## ]]")[2].split("\n")[1]
        with self.file.open("ab", buffering=0) as file:
            file.write(f"{what} {question}\n".encode())

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.note("begin", request)
        time.sleep(0.02)
        self.note("end", request)
        message, usage = (
            lm15.Message.assistant("[[ ## answer ## ]]\nFrance"),
            lm15.Usage(input_tokens=9, output_tokens=1),
        )
        return lm15.Response(id="1", model=request.model, message=message, usage=usage, finish_reason="stop")


class Asking(dspy.Module):
    """Asks a model."""

    def __init__(self, lm: dspy.LM) -> None:
        super().__init__()
        self.ask = dspy.Predict("question -> answer")
        self.ask.lm = lm

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=self.ask(question=question).answer, evidence=(), ranking=())


def test_processes_share_limits_budget_and_replies(tmp_path: Path) -> None:
    dspy.configure_cache(enable_disk_cache=False)  # the replies of other tests
    log, workers = tmp_path / "log", Processes(2, threads=3)

    def asking(budget: Budget) -> Asking:
        lm = dspy.LM("made/up", engine=Recorder(log), temperature=0.5)
        program = Asking(LimitedLM(lm, RateLimit(Limits(concurrency=2))))
        budget.meter_program(program)
        return program

    few = Budget(calls=12)
    with pytest.raises(BudgetSpent, match="12 LM calls"):
        evaluate(asking(few), numbered(30), tmp_path / "run", executor=workers)
    first = log.read_text().splitlines()
    assert few.spent.calls == 12
    assert len([line for line in first if line.startswith("begin")]) <= 12
    done = {f"end {fact['question']}" for fact in facts(tmp_path / "run")}
    assert done <= set(first)

    summary = evaluate(asking(Budget(calls=40)), numbered(30), tmp_path / "run", executor=workers)
    assert summary["counts"]["answered"] == 30
    lines = log.read_text().splitlines()
    ended = [line for line in lines if line.startswith("end")]
    assert len(set(ended)) == 30
    assert len(ended) <= 30 + 6  # all but what ran when the first run ended is asked once
    under_way = most = 0
    for line in lines:
        under_way += 1 if line.startswith("begin") else -1
        most = max(most, under_way)
    assert most <= 2 + len(first) - 2 * sum(line.startswith("end") for line in first)  # and what was cut off


def test_a_killed_driver_takes_its_workers_along_and_the_run_resumes(tmp_path: Path) -> None:
    code = f"import {small.__name__} as small; small.main({str(tmp_path / 'run')!r}, '30', '0.1', '1', '2')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    driver = subprocess.Popen([sys.executable, "-c", code], env=environment)
    lines, end = tmp_path / "run" / "predictions.jsonl", time.monotonic() + 300
    while not lines.exists() or lines.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < end
        assert driver.poll() is None
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    while left := [each for each in Path("/proc").glob("[0-9]*") if f"parent_pid={driver.pid}," in command(each)]:
        assert time.monotonic() < end, left
        time.sleep(0.05)
    evaluate(Fake(mixed(30)), numbered(30), tmp_path / "run")
    evaluate(Fake(mixed(30)), numbered(30), tmp_path / "whole")
    assert facts(tmp_path / "run") == facts(tmp_path / "whole")


def command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_a_program_of_a_script_is_sent_to_workers() -> None:
    class Mine(Program):
        """Knows one answer."""

        def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(answer="France", evidence=(), ranking=())

    assert evaluate(Mine(), numbered(2), executor=Processes(1))["counts"]["answered"] == 2


def test_what_does_not_pickle_is_said() -> None:
    program = Fake()
    program.event = Event()
    with pytest.raises(PolyhopError, match="program, questions and metric must pickle: .*lock"):
        evaluate(program, numbered(2), executor=Processes(1))


# --- the pool, with workers in this process --------------------------------------------------------------------------


class Local:
    """Workers in threads of this process."""

    threads = 2

    def __init__(self, workers: int = 2, hanging: int = 0, stillborn: bool = False) -> None:
        self.workers, self.hanging, self.stillborn = workers, hanging, stillborn
        self.started: list[LocalWorker] = []

    def start(self, content: bytes, desk: Desk, number: int) -> LocalWorker:
        self.started.append(LocalWorker(content, desk, number, number < self.hanging, self.stillborn))
        return self.started[-1]


class Death(BaseException):
    """Ends a worker."""


class LocalWorker:
    def __init__(self, content: bytes, desk: Desk, number: int, hangs: bool, stillborn: bool) -> None:
        self.task = loads(content, lambda *call: desk.call(number, *call))
        self.hangs, self.futures, self.alive = hangs, set[Future[Any]](), True
        self.ready: Future[Any] = Future()
        if stillborn:
            self.ready.set_exception(WorkerLost("it could not start"))
        else:
            self.ready.set_result(None)

    def submit(self, item: Any) -> Future[Any]:
        future = Future[Any]()
        self.futures.add(future)
        if not self.alive:
            self.kill()
        elif not self.hangs:
            Thread(target=self.run, args=(future, item), daemon=True).start()
        return future

    def run(self, future: Future[Any], item: Any) -> None:
        try:
            result = self.task(item)
        except Death:
            self.kill()
        except BaseException as error:  # noqa: BLE001  # raised by the pool
            self.futures.discard(future)
            future.set_exception(error)
        else:
            if self.alive:
                self.futures.discard(future)
                future.set_result(result)

    def ping(self) -> Future[Any]:
        future = Future[Any]()
        if not self.hangs:
            future.set_result(None)
        return future

    def kill(self) -> None:
        self.alive = False
        while self.futures:
            self.futures.pop().set_exception(WorkerLost("the process ended"))


def square(n: int) -> int:
    if n == 5:
        raise Death
    return n * n


def same(n: int) -> int:
    return n


def test_an_item_that_ends_its_workers_fails_and_the_others_do_not() -> None:
    local = Local()
    pool: Pool[int, int]
    with Pool(local, square) as pool:
        found = dict(pool.run(range(20)))
    assert isinstance(found.pop(5), WorkerLost)
    assert found == {n: n * n for n in range(20) if n != 5}
    assert len(local.started) == 2 + 3


def test_a_worker_that_shows_no_sign_of_life_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "_PING", 0.01)
    monkeypatch.setattr(workers_module, "_HANGS", 0.01)
    local = Local(hanging=1)
    pool: Pool[int, int]
    with Pool(local, same) as pool:
        assert dict(pool.run(range(9))) == {n: n for n in range(9)}
    assert len(local.started) >= 3


def test_workers_that_do_not_start_end_the_run() -> None:
    pool: Pool[int, int]
    with Pool(Local(stillborn=True), same) as pool, pytest.raises(PolyhopError, match="it could not start.*__main__"):
        list(pool.run([1]))


def test_what_a_task_raises_ends_the_run() -> None:
    def fail(n: int) -> int:
        if n == 3:
            raise BudgetSpent("3 LM calls")
        return n

    with Pool(Local(), fail) as pool, pytest.raises(BudgetSpent, match="3 LM calls"):
        list(pool.run(range(9)))


def test_items_may_depend_on_results() -> None:
    found = [1]

    def items() -> Iterator[int | None]:
        for n in range(1, 6):
            while len(found) < n:
                yield None
            yield 2 * found[-1]

    pool: Pool[int, int]
    with Pool(Local(), same) as pool:
        for _, result in pool.run(items()):
            assert isinstance(result, int)
            found.append(result)
    assert found == [1, 2, 4, 8, 16, 32]


# --- the desk and the gate -------------------------------------------------------------------------------------------


def test_a_lost_worker_gives_its_slots_back_once() -> None:
    desk, gate = Desk(), RateLimit(Limits(concurrency=2))
    ours = [loads(desk.dumps(gate), calling(desk, worker)) for worker in (0, 1)]
    assert ours[0].shared.enter(0) == ours[0].shared.enter(0) == (True, 0.0)
    assert ours[1].shared.enter(0) == (False, 0.0)
    desk.lost(0)
    ours[0].shared.leave()  # it comes late
    ours[0].shared.enter(0)
    assert ours[1].shared.enter(0) == ours[1].shared.enter(0) == (True, 0.0)
    assert ours[1].shared.enter(0) == (False, 0.0)


def calling(desk: Desk, worker: int) -> Callable[..., Any]:
    return lambda *call: desk.call(worker, *call)


def test_a_budget_of_workers_is_the_one_of_their_driver() -> None:
    desk, budget = Desk(), Budget(calls=3)
    theirs = [loads(desk.dumps({"here": budget, "there": budget}), calling(desk, worker)) for worker in (0, 1)]
    assert theirs[0]["here"] is theirs[0]["there"]
    with budget.keeping_back(calls=1):
        theirs[0]["here"].pay()
        theirs[1]["here"].pay()
        with pytest.raises(BudgetSpent):
            theirs[0]["here"].pay()
    theirs[1]["here"].pay()
    theirs[1]["here"].correct(tokens_in=7, usd=0.5)
    assert (budget.spent.calls, budget.spent.tokens_in, budget.spent.usd) == (3, 7, 0.5)


def test_an_index_that_a_machine_does_not_have_is_copied_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "_CHUNK", 1_000)  # files have several parts
    (tmp_path / "kestrel.md").write_text("# Kestrel\n\nKestrel was founded by Otto Lind in 2004.")
    here, there = tmp_path / "here", tmp_path / "there"
    build_index([tmp_path / "kestrel.md"], here)
    desk, read = Desk(), list[Any]()
    with BM25Index(here) as index:
        content = desk.dumps(ChainRetriever(index))
    here.rename(there)  # as on the driver's machine

    def call(number: int, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        read.append(method)
        return desk.call(0, number, method, (there, *arguments[1:]) if arguments else (), named)

    fetch_indexes(call)
    assert loads(content, call).search("Who founded Kestrel?", 1)[0].passage.title == "Kestrel"
    assert {path.name for path in here.iterdir()} >= {path.name for path in there.iterdir()} - {"write.lock"}
    assert read.count("read") > read.count("files") == 1
    fetch_indexes(call)
    assert read.count("files") == 1
