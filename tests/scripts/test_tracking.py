"""Runs in MLflow: only where they are asked for, never at the run's expense, and never with a key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ..faults.faults import FAULTS
from ..faults.schedule import Nth
from ..faults.server import ANSWER, Server
from .cli import done

KEY, PASSWORD = "sk-planted-0123456789", "secret-of-the-tracking-server"
WARNING = "not tracked: cannot write to MLFLOW_TRACKING_URI"
evaluate = partial(done, "evaluate", "--limit", "2", "--program", "naive")


@pytest.fixture(autouse=True)
def as_new() -> Iterator[None]:
    """As in a new process: nothing was told, and what MLflow is set to is forgotten."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def polyhop(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, which ends with what MLflow does at the end of one."""
    command = [sys.executable, "-m", "polyhop.scripts.main", *map(str, arguments)]
    return subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300, check=False
    )


ALL = ["set_experiment", "start_run", "log_params", "autolog", "log_metrics", "FINISHED"]


@pytest.mark.parametrize(
    ("fails", "expected"), [("", ALL), ("set_experiment", []), ("log_metrics", [*ALL[:4], "FINISHED"])]
)
def test_a_run_is_begun_told_and_ended_and_goes_on_if_the_server_fails(
    fails: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an MLflow that keeps what it is asked for."""
    asked = list[str]()

    def called(name: str) -> Callable[..., None]:
        def call(*_: Any, **__: Any) -> None:
            if name == fails:
                raise OSError(f"http://user:{PASSWORD}@127.0.0.1:9 refuses")
            asked.append(name)

        return call

    played = SimpleNamespace(**{name: called(name) for name in ALL})
    played.end_run, played.dspy = asked.append, SimpleNamespace(autolog=called("autolog"))
    monkeypatch.setitem(sys.modules, "mlflow", played)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://user:{PASSWORD}@127.0.0.1:9")
    result = evaluate()
    assert result.stderr == (f"{WARNING} (OSError)\n" if fails else "")
    assert asked == expected


# --- with MLflow -----------------------------------------------------------------------------------------------------


@pytest.fixture
def mlflow() -> Any:
    return pytest.importorskip("mlflow", reason="MLflow is not installed: make tracking")


def test_an_evaluation_is_there_with_the_traces_of_its_agents_and_without_a_key(mlflow: Any, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/mlflow.db"
    asked = ("evaluate", "--limit", "3", "--program", "naive", "--lm", "openai/some-model", "--out", tmp_path / "run")
    with Server([(Nth(2), FAULTS["401-echo"])], canned=ANSWER) as server:
        keys = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        result = polyhop(*asked, "--json", MLFLOW_TRACKING_URI=store, **keys)
        assert server.injected["401-echo"] == 1
    summary = json.loads(result.stdout)  # and nothing else
    client = mlflow.MlflowClient(store)
    (run,) = client.search_runs([client.get_experiment_by_name("polyhop").experiment_id])
    assert (run.info.run_name, run.info.status) == ("naive", "FINISHED")
    assert run.data.tags["polyhop.folder"] == str(tmp_path / "run")
    assert run.data.params["program.lms.answerer.model"] == "openai/some-model"
    assert run.data.metrics["answer_f1"] == summary["metrics"]["answer_f1"]
    assert run.data.metrics["passage_recall_at_5"] == summary["metrics"]["passage_recall@5"]
    assert run.data.metrics["counts.answered"] == 2
    mlflow.set_tracking_uri(store)
    traces = mlflow.search_traces(locations=[run.info.experiment_id], run_id=run.info.run_id, return_type="list")
    assert len(traces) == 3
    agents = [span for trace in traces for span in trace.data.spans if span.name == "Agent.forward"]
    assert len(agents) == 3
    written = (tmp_path / "mlflow.db").read_bytes()
    assert b"Incorrect API key provided" in written
    assert KEY.encode() not in written
    assert server.url.encode() not in written
    assert KEY not in result.stdout + result.stderr
