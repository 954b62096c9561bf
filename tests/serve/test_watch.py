"""Runs of `polyhop optimize` on the page: they are listed, drawn while they go on, and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest

from polyhop.serve.service import Service

from ..optimizers.report.run_folder import write_run
from .conftest import faults, listening

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

OPTIMIZE = [sys.executable, "-m", "polyhop.scripts.main", "optimize", "--program", "naive", "--retriever", "bm25"]
OPTIMIZE += ["--stages", "tunables", "--metric", "evidence_f1", "--cost", "searches", "--budget-calls", "50000"]
EVIL = "<img src=x onerror=alert(1)>"


def start_run(out: Path, trials: int) -> subprocess.Popen[bytes]:
    """In a process that ignores SIGINT, as under nohup."""
    options = [*OPTIMIZE, "--out", str(out), "--trials", str(trials)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.Popen(options, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    finally:
        signal.signal(signal.SIGINT, ignored)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server that has nothing to ask, and the folder that it watches."""
    with listening(Service(lambda name: None, [], None), watch=tmp_path) as address:
        yield address, tmp_path


def get(address: str, path: str) -> Any:
    reply = httpx.get(f"{address}/{path}", timeout=60)
    return reply.json() if reply.status_code == 200 else (reply.status_code, reply.json()["error"]["message"])


def test_runs_are_listed_and_shown(watched: tuple[str, Path]) -> None:
    address, folder = watched
    assert get(address, "runs") == {"runs": [], "sections": []}
    write_run(folder / "mine")
    (folder / "other").mkdir()
    found = get(address, "runs")
    assert found["runs"] == [{"name": "mine", "state": "not running"}]
    assert "Optimizations" in found["sections"][0]["title"]
    shown = get(address, "runs/mine")
    assert [each["name"] for each in shown["sections"]][:2] == ["optimization", "test"]
    assert shown["state"] == "not running"


def test_only_runs_in_the_folder_are_shown(watched: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> None:
    address, folder = watched
    outside = write_run(tmp_path_factory.mktemp("outside") / "secret")
    for name in ("secret", f"..%2F{outside.parent.name}%2Fsecret", str(outside).replace("/", "%2F")):
        assert get(address, f"runs/{name}")[0] == 404
    write_run(folder / "mine")
    reply = httpx.post(f"{address}/runs/mine/stop")
    assert (reply.status_code, reply.json()["error"]["message"]) == (422, "mine is not running")
    assert not list(folder.glob("mine/.stop"))


def test_a_damaged_run_does_not_hide_the_others(watched: tuple[str, Path]) -> None:
    address, folder = watched
    write_run(folder / "mine")
    write_run(folder / "broken")
    (folder / "broken/stages.jsonl").write_text("{}\n")
    found = get(address, "runs")
    assert {run["name"] for run in found["runs"]} == {"mine", "broken"}
    assert "mine" in found["sections"][0]["html"]
    assert "damaged" in get(address, "runs/broken")[1]


def test_asking_a_server_that_only_watches(watched: tuple[str, Path]) -> None:
    address, _ = watched
    assert httpx.get(address).headers["location"] == "page/runs.html"
    reply = httpx.post(f"{address}/ask", json={"question": "Who?"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (404, "unknown")
    chat = {"messages": [{"role": "user", "content": "Who?"}]}
    assert httpx.post(f"{address}/v1/chat/completions", json=chat).status_code == 404


@pytest.mark.slow
def test_a_running_run_is_stopped_and_resumes(watched: tuple[str, Path]) -> None:
    address, folder = watched
    process = start_run(folder / "mine", trials=500)
    try:
        until = monotonic() + 300
        while "so far" not in json.dumps(get(address, "runs/mine") if (folder / "mine/stages.jsonl").exists() else ""):
            assert monotonic() < until
            assert process.poll() is None
            sleep(0.2)
        assert get(address, "runs/mine")["state"] == "running"
        assert httpx.post(f"{address}/runs/mine/stop", timeout=60).status_code == 200
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "run the same command again to resume" in errors.decode()
    stopped = get(address, "runs/mine")
    assert stopped["state"] == "not running"
    assert "This run is not finished" in stopped["sections"][0]["html"]
    done = sum(1 for _ in (folder / "mine/stages.jsonl").open())
    again = start_run(folder / "mine", trials=500)  # it is the same run: the journal is read, and the search goes on
    try:
        while get(address, "runs/mine")["state"] != "running":
            assert monotonic() < until
            assert again.poll() is None
            sleep(0.2)
        assert sum(1 for _ in (folder / "mine/stages.jsonl").open()) == done
    finally:
        again.kill()
        again.communicate()


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("colors", ["light", "dark"])
def test_a_run_on_the_page(width: int, colors: str, watched: tuple[str, Path], visit: Callable[..., Any]) -> None:
    address, folder = watched
    write_run(folder / "mine", note=EVIL, instructions=EVIL)
    page = visit(address, viewport={"width": width, "height": 900}, color_scheme=colors, reduced_motion="reduce")
    page.click("#runs a")
    page.wait_for_selector("#search-1-tunables svg.plot")
    assert page.inner_text("h1") == "mine"
    assert page.inner_text("#state") == "Not running"
    assert page.locator("#stop").is_hidden()
    assert EVIL in page.inner_text("#optimization")
    assert page.locator("main img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not faults(page)
    page.click("#all")
    page.wait_for_selector("#optimizations")
    assert not faults(page)


def test_a_run_is_drawn_while_it_goes_on_and_stopped_on_the_page(
    watched: tuple[str, Path], visit: Callable[..., Any]
) -> None:
    address, folder = watched
    page = visit(address)
    process = start_run(folder / "mine", trials=500)
    try:
        page.set_default_timeout(300_000)
        page.click("#runs a")
        page.wait_for_selector("#stop:not([hidden])")
        page.wait_for_selector("#search-1-tunables svg.plot")
        assert page.inner_text("#state") == "Running"
        before = page.inner_text("#search-1-tunables")
        search = page.locator("#search-1-tunables")
        playwright.expect(search).not_to_have_text(before, use_inner_text=True, timeout=300_000)
        assert not faults(page)
        page.click("#stop")
        page.click("#sure button[value='']")
        assert process.poll() is None
        page.click("#stop")
        page.click("#sure .main")
        page.locator("#state", has_text="Not running").wait_for()
        process.wait(timeout=120)
    finally:
        process.kill()
        process.communicate()
    assert page.locator("#stop").is_hidden()
