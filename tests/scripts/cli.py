"""Commands, as a user gives them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from polyhop.scripts.main import app


def polyhop(*arguments: Any, stdin: str | None = None, columns: int = 200, **variables: str) -> Result:
    """The result of a command in this process."""
    return CliRunner().invoke(app, [*map(str, arguments)], input=stdin, env={"COLUMNS": str(columns), **variables})


def done(*arguments: Any, **more: Any) -> Result:
    """The result of a command that succeeds."""
    result = polyhop(*arguments, **more)
    assert result.exit_code == 0, result.output
    return result


def records(text: str | Path) -> list[Any]:
    """The objects of JSON lines."""
    return [json.loads(line) for line in (text.read_text("utf-8") if isinstance(text, Path) else text).splitlines()]


def written(path: Path, lines: Iterable[Any]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def of_run(out: Path, name: str = "summary") -> Any:
    """The summary of a run, or its manifest."""
    return json.loads((out / f"{name}.json").read_text("utf-8"))


def refused(*arguments: Any, status: int = 1, **more: Any) -> str:
    """The message of a command that fails: one line, and nothing else."""
    result = polyhop(*arguments, **more)
    assert (result.exit_code, result.stdout) == (status, ""), result.output
    assert status == 2 or (result.stderr.startswith("error: ") and result.stderr.count("\n") == 1), result.stderr
    return result.stderr
