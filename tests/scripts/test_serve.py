"""`polyhop serve`: its options, any program of DSPy behind every door, and the process: log, connections, end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from polyhop.data.lucene.index import build_index
from polyhop.data.sample import CORPUS
from polyhop.scripts.options import Serve

from ..faults.exchange import Exchange
from ..faults.faults import FAULTS
from ..faults.listening import Listening
from ..faults.server import Server
from .cli import refused

pytest.importorskip("fastapi")
from polyhop.scripts.serve import application

from ..serve.conftest import listening

SERVE = [sys.executable, "-m", "polyhop.scripts.main", "serve", "--port", "0"]
QUESTION = "Where was the director of Stalker born?"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--host 0.0.0.0 --index sample", "0.0.0.0 can be reached by others: set a token"),
        ("--allowed-host * --index sample", "under any host name, this server can be reached by others"),
        ("--uploads x --index sample", "--uploads needs an index of your own"),
        ("", "nothing to search in"),
        ("--index sample --program nope", "unknown program 'nope'"),
        ("--index sample --lm nope", "unknown language model 'nope'"),
    ],
)
def test_wrong_options_are_told(options: str, told: str) -> None:
    assert told in refused("serve", *options.split())
    assert "the token is empty" in refused("serve", "--index", "sample", "--token", "")


def test_an_index_is_served_by_its_name(tmp_path: Path) -> None:
    index = tmp_path / "mine"
    build_index([CORPUS], index)
    with listening(application(Serve(index=index))) as address:
        assert httpx.get(f"{address}/index").json()["index"] == "mine"
        hits = httpx.post(f"{address}/search", json={"query": "Stalker"}, timeout=60).text
        assert "Stalker" in hits
        assert str(tmp_path) not in hits


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


def test_a_program_of_dspy_that_returns_an_answer_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By every door, without an index, and when it fails."""
    (tmp_path / "rag_of_mine.py").write_text(PROGRAM)
    ask = {"question": "Who founded Kestrel?"}
    chat = {"messages": [{"role": "user", "content": ask["question"]}]}
    monkeypatch.setenv("OPENAI_API_KEY", "-")
    given = Serve(program=f"{tmp_path / 'rag_of_mine.py'}:Rag", lm=("openai/some",))
    with Server(canned="[[ ## answer ## ]]\nOtto Lind") as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        with listening(application(given)) as address, httpx.Client(base_url=address, timeout=60) as client:
            answer = client.post("/ask", json=ask).json()
            assert (answer["answer"], answer["evidence"], answer["ranking"]) == ("Otto Lind", [], [])
            assert answer["by_agent"]["respond"]["lm_calls"] == 1
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


def test_a_process_logs_without_keys_bears_many_connections_and_stops_amid_a_stream(tmp_path: Path) -> None:
    key, token, ended = "sk-planted-0123456789", "secret-token-0123456789", Event()
    headers = {"authorization": f"Bearer {token}"}

    def act(exchange: Exchange) -> None:
        if "hang" in exchange.prompt:
            ended.wait(60)
        else:
            FAULTS["401-echo"].act(exchange)

    with Listening(act) as model:
        keys = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": model.url, "POLYHOP_TOKEN": token}
        with started(tmp_path / "log", "--index", "sample", "--lm", "openai/some", **keys) as (address, process):

            def ask(**asked: Any) -> dict[str, Any]:
                return {"url": f"{address}/ask", "json": {"question": QUESTION, **asked}, "headers": headers}

            assert httpx.get(f"{address}/page/%C2%9B2J%1B[2J%E2%80%AE").status_code == 404
            assert httpx.post(**ask(), timeout=60).status_code == 502
            assert httpx.get(f"{address}/index?token={token}").status_code == 401
            parts = urlsplit(address)
            idle = [socket.create_connection((str(parts.hostname), parts.port or 0)) for _ in range(520)]
            assert httpx.get(f"{address}/health", timeout=60).status_code == 503
            for each in idle:
                each.close()
            until = monotonic() + 60
            while httpx.get(f"{address}/health", timeout=60).status_code != 200 and monotonic() < until:
                sleep(0.05)
            slow = ask(question="Does it hang?", stream=True, program="naive")
            with httpx.stream("POST", **slow, timeout=60) as reply:
                assert next(reply.iter_lines()) == "event: start"
                process.send_signal(signal.SIGTERM)
                process.wait(90)
            ended.set()
    text = (tmp_path / "log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["status"] for line in lines if line["event"] == "request"][:3] == [404, 502, 401]
    assert all(line.isprintable() for line in text.splitlines())
    assert next(line["outcome"] for line in lines if line["event"] == "question") == "model"
    assert not [secret for secret in (key, token, "Traceback") if secret in text]
