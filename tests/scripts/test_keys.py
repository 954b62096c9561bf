"""No key ever gets into an output: one is planted, every command runs against a real endpoint that answers, refuses and
repeats the key in its errors, and all that was printed and written is searched for it."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from contextlib import chdir
from pathlib import Path

from ..faults.faults import FAULTS
from ..faults.schedule import Always, Nth
from ..faults.server import Server
from .cli import done

KEY = "pk-planted-4f9d2b7c61e8"  # of no shape that anybody would recognise
SPEC = "openai/lexical-behind-http"
QUESTION = "Where was the director of Solaris born?"


def profile(folder: Path, server: Server) -> Path:
    path = folder / f"{server.port}.toml"
    path.write_text(f'lm = "{SPEC}"\n[models."openai/*"]\napi_base = "{server.url}"\napi_key_env = "PLANTED"\n')
    return path


COMMANDS = """
import json, sys
from polyhop.scripts.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["polyhop", *arguments]
    try:
        main()
    except SystemExit as end:
        print("status", end.code)
"""


def start(folder: Path, *commands: list[str]) -> str:
    """What a process prints that runs commands until one raises, to either stream; its files get into the folder."""
    own = {"PLANTED": KEY, "DSPY_CACHEDIR": str(folder / "cache"), "COLUMNS": "120", "POLYHOP_INDEX": "sample"}
    command = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    process = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)
    assert process.returncode == 1, process.stderr
    return process.stdout + process.stderr


def written(folder: Path) -> str:
    """The content of all files, of what is packed in them, too."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "replace")
            found.append(text)
            for packed in re.findall(r">([A-Za-z0-9+/=]{200,})<", text) if path.suffix == ".html" else ():
                found.append(gzip.decompress(b64decode(packed)).decode("utf-8", "replace"))
    assert len(found) > 3
    return "\n".join(found)


def test_a_server_tells_the_key_and_no_command_does(tmp_path: Path) -> None:
    options = "--out run --limit 4 --program naive --threads 4 --max-failures 99 --lm".split()
    with (
        Server([(Nth(2), FAULTS["401-echo"]), (Nth(3), FAULTS["429"])]) as server,
        Server([(Always(), FAULTS["401-echo"])]) as refusing,
    ):
        ask = ["ask", QUESTION, "--lm", str(profile(tmp_path, refusing))]
        said = start(tmp_path, ["evaluate", *options, str(profile(tmp_path, server))], ask, ["--debug", *ask])
        assert (server.injected["401-echo"], refusing.injected["401-echo"]) == (1, 2)
    assert "request failed (rate_limit)" in said
    assert re.findall("status .*", said) == ["status 0", "status 1"]
    assert said.count("Incorrect API key provided: ***") > 2
    assert "Traceback" in said
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["counts"]["failed"] == 1
    assert all("***" in failure["message"] for failure in summary["failures"])  # where the key stood
    with chdir(tmp_path):
        said += done("report", "run", "--out", "report.html").output
    assert [(tmp_path / folder).stat().st_mode & 0o777 for folder in ("run", "cache")] == [0o700, 0o700]
    assert KEY not in said
    assert KEY not in written(tmp_path)
