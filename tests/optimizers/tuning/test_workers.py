"""Several workers on one search, in processes that may be killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from multiprocessing import active_children, get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import dspy
import pytest
from optuna.trial import TrialState

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tuning import Progress, TunableSearch, tune_in_processes
from polyhop.optimizers.tuning.storage import open_storage

from . import world
from .world import Slow, height, numbered, told

ROOT = Path(world.__file__).parents[3]
TRIALS, KILLS = 16, 10


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of this test's own, on a port of this machine alone."""
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        pytest.skip("no PostgreSQL here: initdb and pg_ctl are not found")
    if not find_spec("psycopg"):
        pytest.skip("no driver for PostgreSQL here: pip install 'polyhop[postgres]'")
    folder = tempfile.mkdtemp(prefix="polyhop-postgres-")
    user: dict[str, Any] = {}
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "nobody")
        user = {"user": "nobody", "env": {**os.environ, "HOME": folder}}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **user)
    run(["initdb", "-A", "trust", "-U", "polyhop", "-D", f"{folder}/data"])
    options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
    run(["pg_ctl", "-w", "-D", f"{folder}/data", "-l", f"{folder}/log", "-o", options, "start"])
    try:
        yield f"postgresql+psycopg://polyhop@127.0.0.1:{port}/postgres"
    finally:
        run(["pg_ctl", "-w", "-D", f"{folder}/data", "-m", "immediate", "stop"])
        shutil.rmtree(folder)


@pytest.fixture(params=["journal", "sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A storage of each kind."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return str(tmp_path / "study.journal") if request.param == "journal" else f"sqlite:///{tmp_path}/study.db"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServerContext]:
    """Makes processes in no time: a server that has imported everything is forked. This process must not be, for an
    earlier test may have started Java in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
        patch.syspath_prepend(str(ROOT))
        context = get_context("forkserver")
        context.set_forkserver_preload([world.__name__, "scipy.stats", "optuna.importance"])
        yield context


class Process:
    """A worker in a process of its own."""

    def __init__(
        self,
        server: ForkServerContext,
        where: str,
        *,
        trials: int = TRIALS,
        seconds: float = 0.005,
    ) -> None:
        self._said, say = server.Pipe(duplex=False)
        self._process = server.Process(target=world.work, args=(say, where, trials, seconds), daemon=True)
        self._process.start()
        say.close()
        assert self.hear() == 0

    def hear(self) -> int:
        """How many trials have ended, when it next says so."""
        return int(self._said.recv())

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        while True:
            try:
                self.hear()
            except EOFError:
                break
        self._process.join()
        assert self._process.exitcode == 0


def tried(where: str) -> list[Any]:
    """All trials of the storage."""
    storage, _ = open_storage(where, 2)
    return storage.get_all_trials(storage.get_study_id_from_name("tunables"))


def check_complete(where: str, trials: int = TRIALS) -> TunableSearch:
    """Every slot has ended exactly once; what was begun besides has failed and left no result."""
    found = tried(where)
    ended = [trial for trial in found if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    assert sorted(trial.user_attrs["slot"] for trial in ended) == list(range(trials))
    assert all(trial.state == TrialState.FAIL for trial in found if trial not in ended)
    search = TunableSearch(height, trials=trials, storage=where, grace=2, seed=3)
    search.compile(Slow(0.0), valset=numbered(30))
    return search


def test_two_workers_share_a_search_and_one_that_is_killed_is_replaced(server: ForkServerContext, where: str) -> None:
    killed, other = Process(server, where, seconds=0.01), Process(server, where, seconds=0.01)
    for _ in range(2):
        killed.hear()  # it has ended a trial and is in the next one
    time.sleep(0.05)
    killed.kill()
    other.end()
    check_complete(where)
    found = tried(where)
    assert len({trial.user_attrs["worker"] for trial in found}) == 2
    assert len({trial.user_attrs["slot"] for trial in found}) == TRIALS
    assert sum(trial.user_attrs["attempt"] > 0 for trial in found) <= 1  # what was left was tried once more, by one


def test_killed_at_random_moments_a_search_ends_as_it_would_have(server: ForkServerContext, tmp_path: Path) -> None:
    where, dice = str(tmp_path / "study.journal"), random.Random(1)
    whole = TunableSearch(height, trials=40, seed=3, storage=None)
    whole.compile(Slow(0.0), valset=numbered(30))
    for _ in range(KILLS):
        process = Process(server, where, trials=40)
        for _ in range(dice.randint(0, 3)):
            process.hear()
        time.sleep(dice.random() * 0.15)
        process.kill()
    Process(server, where, trials=40).end()
    part = check_complete(where, 40)
    assert part.outcome is not None
    assert whole.outcome is not None
    assert told(part) == told(whole)
    assert part.outcome.best.values == whole.outcome.best.values
    assert 1 <= part.outcome.states["retried"] <= KILLS


# --- tune_in_processes -----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process finds the tests where this one has found them."""
    monkeypatch.syspath_prepend(str(ROOT))


def search_in(where: str | Path, **more: Any) -> TunableSearch:
    return TunableSearch(height, trials=TRIALS, storage=where, seed=3, **more)


def test_processes_search_together(tmp_path: Path) -> None:
    heard: list[Progress] = []
    search = search_in(tmp_path / "study.journal", on_trial=heard.append)
    tuned = tune_in_processes(partial(world.slow, 0.002, 30), search, jobs=2)
    assert isinstance(tuned, Slow)
    assert sorted(progress.slot for progress in heard) == list(range(TRIALS))
    check_complete(str(tmp_path / "study.journal"))
    assert len({trial.user_attrs["worker"] for trial in tried(str(tmp_path / "study.journal"))}) == 2


def test_a_worker_that_dies_is_done_without(tmp_path: Path) -> None:
    def kill_one(progress: Progress) -> None:
        if progress.done >= 3 and not killed:
            killed.append(active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    killed: list[Any] = []
    search = search_in(tmp_path / "study.journal", on_trial=kill_one)
    tune_in_processes(partial(world.slow, 0.01, 30), search, jobs=2)
    assert killed
    check_complete(str(tmp_path / "study.journal"))


def test_when_all_workers_die_it_says_so_and_can_be_continued(tmp_path: Path) -> None:
    def kill_all(progress: Progress) -> None:
        for child in active_children():
            child.kill()

    make = partial(world.slow, 0.01, 30)
    with pytest.raises(PolyhopError, match="all workers were ended from outside; the search can be continued"):
        tune_in_processes(make, search_in(tmp_path / "study.journal", on_trial=kill_all), jobs=2)
    tune_in_processes(make, search_in(tmp_path / "study.journal"), jobs=1)
    check_complete(str(tmp_path / "study.journal"))


def test_an_interrupt_ends_the_workers_and_leaves_a_search_to_continue(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done >= 2:
            raise KeyboardInterrupt

    before = set(active_children())
    make = partial(world.slow, 0.01, 30)
    with pytest.raises(KeyboardInterrupt):
        tune_in_processes(make, search_in(tmp_path / "study.journal", on_trial=interrupt), jobs=2)
    assert set(active_children()) <= before
    search = search_in(tmp_path / "study.journal")
    search.compile(make()[0], valset=numbered(30))
    assert search.outcome is not None
    check_complete(str(tmp_path / "study.journal"))


def test_workers_end_with_the_process_that_began_them(tmp_path: Path) -> None:
    """However that ends: what they ask would be paid for by nobody."""
    journal = tmp_path / "study.journal"
    first = get_context("spawn").Process(target=begin, args=(str(journal),))
    first.start()
    end = time.monotonic() + 120
    while time.monotonic() < end and (not journal.exists() or journal.read_bytes().count(b"result") < 2):
        time.sleep(0.02)
    first.kill()
    first.join()
    time.sleep(1.0)
    size = journal.stat().st_size
    time.sleep(2.0)
    assert journal.stat().st_size == size


def begin(journal: str) -> None:
    tune_in_processes(
        partial(world.slow, 0.01, 30), TunableSearch(height, trials=1_000, storage=journal, seed=3), jobs=2
    )


def broken() -> tuple[dspy.Module, list[dspy.Example]]:
    if Path(os.environ["POLYHOP_TEST_PARENT"]).read_text() != str(os.getpid()):
        raise PolyhopError("the index is gone")
    return world.slow(0.0, 30)


def test_what_a_worker_raises_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parent").write_text(str(os.getpid()))
    monkeypatch.setenv("POLYHOP_TEST_PARENT", str(tmp_path / "parent"))
    with pytest.raises(PolyhopError, match="the index is gone"):
        tune_in_processes(broken, search_in(tmp_path / "study.journal"), jobs=2)


def test_processes_need_a_storage_that_they_can_share() -> None:
    make = partial(world.slow, 0.0, 3)
    with pytest.raises(PolyhopError, match="name a file or a database"):
        tune_in_processes(make, TunableSearch(height, storage=None), jobs=2)
    with pytest.raises(PolyhopError, match="functions of a module: .*lambda"):
        tune_in_processes(make, TunableSearch(lambda example, prediction: 1.0), jobs=2)
    with pytest.raises(PolyhopError, match="at least one process, got 0"):
        tune_in_processes(make, TunableSearch(height), jobs=0)
