"""Runs of `polyhop optimize` as they go: the sections of their report, and how to stop them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from ..data.errors import PolyhopError
from ..eval.folder import MANIFEST, is_running
from ..eval.report.page import Section
from ..optimizers.records import STAGE_LINES
from ..optimizers.report import comparison, sections
from ..optimizers.stopping import is_asked_to_stop, request_stop
from .service import Record, Service, ServiceError


def runs_in(folder: Path) -> dict[str, Path]:
    """The run that a folder is, or the runs in it, by name; the latest first."""
    lines = [each / STAGE_LINES for each in (folder, *folder.glob("*/")) if (each / MANIFEST).exists()]
    latest = sorted(filter(Path.exists, lines), key=lambda file: file.stat().st_mtime, reverse=True)
    return {file.parent.resolve().name: file.parent for file in latest}


def add_runs(app: FastAPI, service: Service, folder: Path) -> None:
    """Add ``/runs``, ``/runs/NAME`` and ``/runs/NAME/stop``. Names are looked up among those in the folder."""

    def find(name: str) -> Path:
        runs = runs_in(folder)
        if name not in runs:
            raise ServiceError("unknown", f"no run {name!r}")
        return runs[name]

    def listed() -> Record:
        runs = runs_in(folder)
        each = [{"name": name, "state": _state(run)} for name, run in runs.items()]
        readable = {name: run for name, run in runs.items() if _is_readable(run)}
        return {"runs": each, "sections": _shown([comparison(readable)] if readable else [])}

    def one(name: str) -> Record:
        run = find(name)
        state = _state(run)  # first, so that the sections of a run that has ended are the last ones
        return {"name": name, "state": state, "sections": _shown(sections(run))}

    def stop(name: str) -> Record:
        run = find(name)
        if not is_running(run):
            raise ServiceError("question", f"{name} is not running")
        request_stop(run)
        return {"name": name, "state": _state(run)}

    @app.get("/runs")
    async def list_runs() -> dict[str, Any]:
        """The runs and their states, and a table of them as HTML."""
        return await service.in_thread(listed)

    @app.get("/runs/{name}")
    async def show_run(name: str) -> dict[str, Any]:
        """The state of a run, and the sections of its report as HTML."""
        return await service.in_thread(lambda: one(name))

    @app.post("/runs/{name}/stop")
    async def stop_run(name: str) -> dict[str, Any]:
        """Stop a run as Ctrl-C does; the same command resumes it."""
        return await service.in_thread(lambda: stop(name))


def _state(run: Path) -> str:
    return ("stopping" if is_asked_to_stop(run) else "running") if is_running(run) else "not running"


def _is_readable(run: Path) -> bool:
    try:
        comparison({"": run})
    except PolyhopError:
        return False  # `show_run` tells why
    return True


def _shown(found: Iterable[Section]) -> list[Record]:
    return [{"name": each.name, "title": each.title, "html": str(each.body)} for each in found]
