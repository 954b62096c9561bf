"""`polyhop serve` as a process: what it needs, what it logs, how it stops."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from typer.testing import CliRunner

from polyhop.data.lucene.index import build_index
from polyhop.data.sample import CORPUS
from polyhop.scripts.main import app

from ..faults.faults import FAULTS
from ..faults.schedule import Always
from ..faults.server import Server

pytest.importorskip("fastapi")
SERVE = [sys.executable, "-m", "polyhop.scripts.main", "serve", "--port", "0"]
QUESTION = "Where was the director of Stalker born?"


@contextmanager
def started(log: Path, *options: str, **variables: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server, and its process."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*SERVE, *options], env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert process.stdout
    try:
        found = re.search(r"http://\S+(?=/ )", process.stdout.readline())
        assert found, log.read_text()
        yield found[0], process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0", "--index", "sample"], "0.0.0.0 can be reached by others: set a token"),
        (["--allowed-host", "*", "--index", "sample"], "under any host name, this server can be reached by others"),
        (["--token", "", "--index", "sample"], "the token is empty"),
        (["--uploads", "x", "--index", "sample"], "--uploads needs an index of your own"),
        ([], "nothing to search in"),
        (["--index", "sample", "--program", "nope"], "unknown program 'nope'"),
        (["--index", "sample", "--lm", "nope"], "unknown language model 'nope'"),
    ],
)
def test_wrong_options_are_told(options: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["serve", *options])
    assert result.exit_code == 1
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_document_is_kept_in_the_index(tmp_path: Path) -> None:
    build_index([CORPUS], tmp_path / "ix")
    for folder in (tmp_path / "ix", tmp_path / "ix" / "new"):
        result = CliRunner().invoke(app, ["serve", "--index", str(tmp_path / "ix"), "--uploads", str(folder)])
        assert "is the index itself" in result.stderr


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> Any:
        return None if name == "fastapi" else find_spec(name)

    monkeypatch.setattr("polyhop.scripts.serve.find_spec", without)
    result = CliRunner().invoke(app, ["serve", "--index", "sample"])
    assert (result.exit_code, "make serve" in result.stderr) == (1, True)


def test_log_lines_are_json_without_keys(tmp_path: Path) -> None:
    key, token = "sk-planted-0123456789", "secret-token-0123456789"
    with (
        Server([(Always(), FAULTS["401-echo"])]) as model,
        started(
            tmp_path / "log",
            *("--index", "sample", "--lm", "openai/some"),
            OPENAI_API_KEY=key,
            OPENAI_BASE_URL=model.url,
            POLYHOP_TOKEN=token,
        ) as (address, _),
    ):
        headers = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{address}/page/%C2%9B2J%1B[2J%E2%80%AE").status_code == 404
        assert httpx.post(f"{address}/ask", json={"question": QUESTION}, headers=headers, timeout=60).status_code == 502
        assert httpx.get(f"{address}/index?token={token}").status_code == 401
        end = monotonic() + 60
        while (tmp_path / "log").read_text().count('"request"') < 3 and monotonic() < end:
            sleep(0.05)  # a request is logged after its reply
    text = (tmp_path / "log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["status"] for line in lines if line["event"] == "request"] == [404, 502, 401]
    assert all(line.isprintable() for line in text.splitlines())
    assert next(line["outcome"] for line in lines if line["event"] == "question") == "model"
    assert key not in text
    assert token not in text


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_also_amid_a_stream(how: signal.Signals, tmp_path: Path) -> None:
    with (
        Server(latency=120) as model,
        started(tmp_path / "log", "--index", "sample", "--lm", "openai/slow", OPENAI_BASE_URL=model.url) as (
            address,
            process,
        ),
        httpx.stream("POST", f"{address}/ask", json={"question": QUESTION, "stream": True}, timeout=60) as reply,
    ):
        assert next(reply.iter_lines()) == "event: start"
        process.send_signal(how)
        process.wait(90)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_server_over_an_index(tmp_path: Path) -> None:
    """Asked by its clients, with many connections open, and with more than it can have."""
    build_index([CORPUS], tmp_path / "mine")
    index = str(tmp_path / "mine")
    with started(tmp_path / "log", "--index", index) as (address, process):
        assert httpx.get(f"{address}/index").json()["index"] == "mine"
        hits = httpx.post(f"{address}/search", json={"query": "Stalker"}, timeout=60).text
        assert "Stalker" in hits
        assert str(tmp_path) not in hits

        parts = urlsplit(address)
        where = (str(parts.hostname), parts.port or 0)
        idle = [socket.create_connection(where) for _ in range(600)]
        assert httpx.get(f"{address}/health", timeout=60).status_code == 503
        for each in idle:
            each.close()
        assert answers(address)
        if sys.platform == "linux":
            import resource

            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (600, 600))
            idle = [socket.create_connection(where) for _ in range(700)]
            for each in idle:
                each.close()
            assert answers(address)


PROGRAM = """
import dspy


class Rag(dspy.Module):
    def __init__(self):
        super().__init__()
        self.respond = dspy.Predict("context, question -> answer")

    def forward(self, question):
        if "fail" in question:
            raise KeyError("no such page")
        return self.respond(context=["Kestrel was founded by Otto Lind."], question=question)
"""


def test_a_program_of_dspy_that_returns_an_answer_alone(tmp_path: Path) -> None:
    """By every door, without an index, and when it fails."""
    (tmp_path / "rag_of_mine.py").write_text(PROGRAM)
    ask = {"question": "Who founded Kestrel?"}
    chat = {"messages": [{"role": "user", "content": ask["question"]}]}
    options = ("--program", f"{tmp_path / 'rag_of_mine.py'}:Rag", "--lm", "openai/some")
    with (
        Server(canned="[[ ## answer ## ]]\nOtto Lind") as model,
        started(tmp_path / "log", *options, OPENAI_BASE_URL=model.url, OPENAI_API_KEY="-") as (address, _),
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        given = client.post("/ask", json=ask).json()
        assert (given["answer"], given["evidence"], given["ranking"]) == ("Otto Lind", [], [])
        assert given["by_agent"]["respond"]["lm_calls"] == 1
        lines = client.post("/ask", json={**ask, "stream": True}).text.splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert [event["event"] for event in events] == ["start", "asking", "step", "answer"]
        assert "respond" in events[1]["text"]
        told = client.post("/v1/chat/completions", json=chat).json()
        assert "Otto Lind" in told["choices"][0]["message"]["content"]
        failed = client.post("/ask", json={"question": "Will it fail?"})
        assert (failed.status_code, "no such page" in failed.text) == (500, True)
        assert client.post("/search", json={"query": "Kestrel"}).status_code == 404
        assert client.get("/").status_code == 200


def answers(address: str) -> bool:
    """Whether a server answers within a minute."""
    until = monotonic() + 60
    while monotonic() < until:
        with suppress(httpx.HTTPError):
            if httpx.get(f"{address}/health", timeout=60).status_code == 200:
                return True
    return False
