"""A PostgreSQL server for searches, where PostgreSQL is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import pytest


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of this test's own, on a port of this machine alone."""
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        pytest.skip("PostgreSQL is not installed: initdb and pg_ctl are not found")
    if not find_spec("psycopg"):
        pytest.skip("the PostgreSQL driver is not installed: make postgres")
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
