"""Where searches are stored: what is refused, and what survives a kill."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tunables import TunableSearch
from polyhop.optimizers.tunables.storage import open_study, read_trials

from .world import Hill, height, numbered


def run(where: Path | str, trials: int = 3) -> TunableSearch:
    search = TunableSearch(height, trials=trials, storage=where)
    search.compile(Hill(), valset=numbered(8))
    return search


@pytest.mark.parametrize("where", ["study.journal", "sqlite:///{}/study.db"])
def test_optuna_sees_the_trials(where: str, tmp_path: Path) -> None:
    """Optuna's dashboard can show them."""
    where = where.format(tmp_path) if "://" in where else str(tmp_path / where)
    result = run(where).result
    assert result
    with open_study(where, "tunables", cost=False) as study:
        assert [trial.params for trial in study.trials] == [trial.values for trial in result.trials]
        assert [trial.value for trial in study.trials] == [trial.score for trial in result.trials]
        assert study.best_trial.number == max(result.trials, key=lambda trial: trial.score or 0).number


def test_a_line_that_a_kill_cut_off_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"
    run(path, 2)
    with path.open("ab") as file:
        file.write(b'{"op_code": 8, "trial_id')
    assert len(read_trials(path)) == 2  # nothing is written
    assert path.read_bytes().endswith(b'"trial_id')
    run(path, 3)
    assert [trial.number for trial in read_trials(path)] == [0, 1, 2]


def test_a_journal_is_used_by_one_process(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"
    with open_study(path, "tunables", cost=False), pytest.raises(PolyhopError, match="another process is running"):
        run(path)


def test_invalid_journals(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"
    with pytest.raises(PolyhopError, match="study.journal does not exist"):
        read_trials(path)
    path.write_text("once upon a time\nthere was a file\n")
    for read in (read_trials, run):
        with pytest.raises(PolyhopError, match="study.journal is not a journal of a search, or damaged"):
            read(path)
    with pytest.raises(PolyhopError, match="cannot be stored in"):
        run(path / "below" / "a file")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("oracle+nothing://host/name", "oracle\\+nothing://... is not a database that SQLAlchemy supports"),
        ("sqlite:////no/such/folder/study.db", "the database sqlite://... cannot be opened: unable to open database"),
        (
            "postgresql+pg8000://me:secret@localhost/x",
            "the driver of postgresql\\+pg8000://... is not installed .*postgres",
        ),
    ],
)
def test_invalid_databases(url: str, message: str) -> None:
    with pytest.raises(PolyhopError, match=message) as raised:
        run(url)
    assert "secret" not in str(raised.value)


def test_a_failing_database_is_one_line(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    failed = pytest.raises(PolyhopError, match="the storage of the search failed: .*; the search can be resumed")
    with failed, open_study(url, "tunables", cost=False):
        raise optuna.exceptions.StorageInternalError("server closed the connection")
