"""Worker processes share the questions of a trial; drivers and workers may be killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.engines.budget import BudgetSpent
from polyhop.eval.workers import Processes
from polyhop.optimizers.tunables import TrialProgress, TunableSearch
from polyhop.optimizers.tunables.storage import read_trials

from . import world
from .world import Hill, height, numbered, wait

ROOT = Path(world.__file__).parents[3]
TRIALS = 8


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """New processes find the tests where this one found them."""
    monkeypatch.syspath_prepend(str(ROOT))


def search_in(where: Path | str | None, **more: Any) -> TunableSearch:
    return TunableSearch(height, **{"trials": TRIALS, "storage": where, "seed": 3, **more})


def facts(search: TunableSearch) -> list[Any]:
    assert search.result
    return [(trial.model_dump(exclude={"costs"}), trial.scores) for trial in search.result.trials]


def whole(trials: int = TRIALS, **more: Any) -> list[Any]:
    search = search_in(None, trials=trials, **more)
    search.compile(Hill(wait), valset=numbered(30))
    return facts(search)


def resumed(where: Path | str, trials: int = TRIALS, **more: Any) -> list[Any]:
    search = search_in(where, trials=trials, **more)
    search.compile(Hill(wait), valset=numbered(30))
    return facts(search)


@pytest.mark.parametrize("parallel", [1, 3])
def test_workers_do_not_change_the_result_nor_does_a_killed_worker(tmp_path: Path, parallel: int) -> None:
    def kill_one(progress: TrialProgress) -> None:
        if progress.done == 3:
            killed.append(active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    killed: list[Any] = []
    given = {"executor": Processes(2, threads=2), "parallel_trials": parallel, "on_trial": kill_one}
    search = search_in(tmp_path / "study.journal", **given)
    search.compile(Hill(wait), valset=numbered(30))
    assert killed
    assert facts(search) == whole(parallel_trials=parallel)
    assert not active_children()


class Met:
    """Waits for a question of another trial, which another process asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, question: str) -> None:
        mine, end = self.folder / str(os.getpid()), time.monotonic() + 120
        mine.touch()
        while len(list(self.folder.iterdir())) < 2:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_workers_that_are_free_answer_questions_of_the_next_trial(tmp_path: Path) -> None:
    search = search_in(None, trials=2, parallel_trials=2, executor=Processes(2))
    search.compile(Hill(Met(tmp_path)), valset=numbered(1))  # each trial has one question
    assert [trial.state for trial in search.result.trials] == ["complete"] * 2  # type: ignore[union-attr]


class Fatal(Hill):
    """Kills its process; it fails to answer or spends too much on other questions."""

    def forward(self, question: str) -> Any:
        if question == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        if question == "2":
            raise BudgetSpent("10 LM calls")
        return super().forward(question)


@pytest.mark.parametrize(
    ("numbers", "error", "message"),
    [
        ([0, 1], PolyhopError, "3 workers ended on the same question: .* the search can be resumed"),
        ([0, 2], BudgetSpent, "10 LM calls"),
    ],
)
def test_what_ends_a_search_in_workers(numbers: list[int], error: type[BaseException], message: str) -> None:
    questions = [numbered(3)[n] for n in numbers]
    with pytest.raises(error, match=message):
        search_in(None, executor=Processes(2)).compile(Fatal(), valset=questions)
    assert not active_children()


def test_an_interrupt_ends_the_workers_and_the_search_can_be_resumed(tmp_path: Path) -> None:
    def interrupt(progress: TrialProgress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_in(tmp_path / "study.journal", executor=Processes(2), on_trial=interrupt).compile(
            Hill(wait), valset=numbered(30)
        )
    assert not active_children()
    assert resumed(tmp_path / "study.journal") == whole()


def test_workers_need_a_program_that_pickles() -> None:
    program = Hill()
    program.lock = threading.Lock()
    with pytest.raises(PolyhopError, match="with workers, program, questions and metric must pickle: .*lock"):
        search_in(None, executor=Processes(2)).compile(program, valset=numbered(3))


# --- drivers in processes of their own -------------------------------------------------------------------------------


class Driver:
    """`world.run` in a process of its own."""

    def __init__(self, where: str, report: Path, trials: int = TRIALS, workers: int = 0, parallel: int = 1) -> None:
        self._report = report
        report.write_text("0")
        code = (
            f"import {world.__name__} as world; world.run({where!r}, {trials}, {workers}, {parallel}, {str(report)!r})"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        self.process = subprocess.Popen([sys.executable, "-c", code], env=environment)

    def kill_after(self, trials: int, pause: float = 0.05) -> None:
        """Kill it in the middle of a trial."""
        end = time.monotonic() + 120
        while int(self._report.read_text() or 0) < trials and self.process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(pause)
        self.process.kill()
        self.process.wait()


def test_a_killed_driver_resumes_to_the_same_result_and_takes_its_workers_along(tmp_path: Path) -> None:
    where = tmp_path / "study.journal"
    driver = Driver(str(where), tmp_path / "report", workers=2)
    driver.kill_after(2)
    assert 2 <= len(read_trials(where)) < TRIALS
    assert resumed(where) == whole()
    end = time.monotonic() + 60
    while left := descendants(driver.process.pid):
        assert time.monotonic() < end, left
        time.sleep(0.05)


def descendants(pid: int) -> list[str]:
    """Processes that a driver started: orphans with spawn's command line in this session of the driver."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if "spawn_main" in command and f"parent_pid={pid}," in command:
            found.append(command)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "parallel"), [(0, 1), (2, 3)])
def test_kills_at_random_moments_change_nothing(tmp_path: Path, workers: int, parallel: int) -> None:
    where, dice = tmp_path / "study.journal", random.Random(1)
    for kill in range(4):
        driver = Driver(str(where), tmp_path / f"report-{kill}", 20, workers, parallel)
        driver.kill_after(dice.randint(0, 3), 0.3 * dice.random())
    assert resumed(where, 20, parallel_trials=parallel) == whole(20, parallel_trials=parallel)


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_driver_that_is_killed_twice_resumes_in_a_database(postgres: str, tmp_path: Path) -> None:
    Driver(postgres, tmp_path / "report").kill_after(2)
    Driver(postgres, tmp_path / "report", workers=2).kill_after(4)
    assert resumed(postgres) == whole()
