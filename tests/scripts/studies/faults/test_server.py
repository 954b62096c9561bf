"""The server that misbehaves on request: what goes over the wire is what the fault says, and nothing else is."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import dspy
import pytest

from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.models import language_model
from polyhop.eval.run import evaluate
from polyhop.programs import PolyHop, Prism
from polyhop.scripts.studies.faults.faults import FAULTS, dies
from polyhop.scripts.studies.faults.schedule import Asked, During, Every, First, Longer, Nth, Share
from polyhop.scripts.studies.faults.server import Server

KEY = "sk-planted-0123456789"


def prompt(adapter: dspy.Adapter, question: str) -> list[dict[str, Any]]:
    """The messages of a small task that the lexical engine can do."""
    signature = dspy.Signature("question, passages -> reasoning, answer, confidence")
    passages = "[1] Solaris\n1s1 Solaris was directed by Andrei Tarkovsky."
    messages: list[dict[str, Any]] = adapter.format(signature, [], {"question": question, "passages": passages})
    return messages


def chat(question: str = "Who directed Solaris?", adapter: dspy.Adapter | None = None) -> dict[str, Any]:
    return {"model": "some-model", "messages": prompt(adapter or dspy.ChatAdapter(), question)}


class Reply:
    """What came back, as bytes and as what they mean."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.data = response.status, response.headers, response.read()

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.data)
        return parsed

    @property
    def content(self) -> str:
        return str(self.json["choices"][0]["message"]["content"])


def connect(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)


def ask(connection: http.client.HTTPConnection, body: dict[str, Any] | None = None) -> Reply:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body or chat()), headers)
    return Reply(connection.getresponse())


# --- without faults --------------------------------------------------------------------------------------------------


def test_a_reply_is_what_openai_sends() -> None:
    with Server() as server, closing(connect(server)) as connection:
        reply = ask(connection)
        assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")
        assert "[[ ## answer ## ]]\nAndrei Tarkovsky" in reply.content
        usage = reply.json["usage"]
        sent = sum(len(message["content"]) for message in chat()["messages"])
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (sent // 4, len(reply.content) // 4)
        assert reply.json["model"] == "some-model"
        connection.request("GET", "/v1/models")
        assert [model["object"] for model in Reply(connection.getresponse()).json["data"]] == ["model"]


def test_a_prompt_for_json_is_answered_in_json() -> None:
    with Server() as server, closing(connect(server)) as connection:
        body = {**chat(adapter=dspy.JSONAdapter()), "response_format": {"type": "json_object"}}
        assert json.loads(ask(connection, body).content)["answer"] == "Andrei Tarkovsky"


def test_what_is_no_chat_is_refused() -> None:
    with Server() as server, closing(connect(server)) as connection:
        for body in (
            {},
            {"model": "x", "messages": []},
            {"model": "x", "messages": [{"role": "user", "content": "?"}]},
        ):
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            reply = Reply(connection.getresponse())
            assert (reply.status, list(reply.json)) == (400, ["error"])
        connection.request("POST", "/v1/chat/completions", "no JSON")
        assert Reply(connection.getresponse()).status == 400
        connection.request("GET", "/v1/nothing")
        assert Reply(connection.getresponse()).status == 404


@pytest.mark.slow
def test_a_run_over_the_server_is_the_run_of_the_embedded_engine(tmp_path: Path) -> None:
    pool = PassagePool(sample_passages())
    with Server() as server:
        over_http = {"api_base": server.url, "api_key": KEY, "cache": False, "num_retries": 0}
        for program, engine in ((PolyHop(pool), "lm15"), (Prism(pool), "lm15"), (Prism(pool), "litellm")):
            questions = load_sample("test")[: 12 if engine == "litellm" else None]
            runs = []
            for model in (language_model("lexical"), dspy.LM("openai/behind-http", engine=engine, **over_http)):
                program.set_lm(model)
                out = tmp_path / str(server.requests) / model.model.replace("/", "-")
                summary = evaluate(program, questions, out, threads=4)
                assert summary["counts"]["failed"] == 0
                runs.append([timeless(line) for line in (out / "predictions.jsonl").read_text("utf-8").splitlines()])
            assert sorted(runs[0]) == sorted(runs[1])


def timeless(text: str) -> str:
    """A line of a run without what differs from one run to the next, seconds, or from one model to another, dollars."""
    line = json.loads(text)
    line["costs"] = {name: value for name, value in line["costs"].items() if name in ("lm_calls", "searches")}
    line["costs_by_agent"] = {agent: costs["lm_calls"] for agent, costs in line["costs_by_agent"].items()}
    return json.dumps({name: value for name, value in line.items() if name != "seconds"})


# --- schedules -------------------------------------------------------------------------------------------------------


def test_schedules_decide_from_the_request_alone() -> None:
    def asked(number: int = 1, prompt: str = "p", seen: int = 0, seconds: float = 0.0) -> Asked:
        return Asked(number, prompt, seen, seconds)

    assert [n for n in range(1, 8) if Every(3).hits(asked(number=n))] == [3, 6]
    assert [n for n in range(1, 8) if Nth(3).hits(asked(number=n))] == [3]
    assert [n for n in range(4) if First(2).hits(asked(seen=n))] == [0, 1]
    assert [s for s in range(6) if During(1, 3).hits(asked(seconds=s))] == [1, 2]
    assert [Longer(3).hits(asked(prompt=text)) for text in ("abc", "abcd")] == [False, True]
    prompts = [f"prompt {n}" for n in range(1000)]
    hit = {text for text in prompts if Share(0.2).hits(asked(prompt=text))}
    assert 150 < len(hit) < 250
    assert hit != {text for text in prompts if Share(0.2, seed=1).hits(asked(prompt=text))}
    assert hit != {text for text in prompts if Share(0.2).hits(asked(prompt=text, seen=1))}
    assert hit == {text for text in prompts if Share(0.2).hits(asked(number=7, prompt=text, seconds=9.0))}


def test_each_prompt_has_its_own_count() -> None:
    with Server([(First(1), FAULTS["500"])]) as server, closing(connect(server)) as connection:
        questions = (
            "Who directed Solaris?",
            "When was Solaris made?",
            "Who directed Solaris?",
            "Who directed Solaris?",
        )
        assert [ask(connection, chat(question)).status for question in questions] == [500, 500, 200, 200]
        assert (server.requests, server.injected) == (4, {"500": 2})
        connection.request("GET", "/counts")
        assert Reply(connection.getresponse()).json == {"requests": 4, "injected": {"500": 2}, "at_once": 1}


# --- faults ----------------------------------------------------------------------------------------------------------


def test_a_server_that_dies_drops_all_connections_and_comes_back_on_its_port() -> None:
    with Server([(Nth(2), dies(2.0))]) as server, closing(connect(server)) as idle, closing(connect(server)) as other:
        ask(idle)
        with pytest.raises(ConnectionError):
            ask(other)
        with pytest.raises(ConnectionError):
            ask(idle)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port))
        deadline = monotonic() + 60
        while monotonic() < deadline:
            with suppress(ConnectionRefusedError), closing(connect(server)) as again:
                assert ask(again).status == 200
                break
        assert (server.requests, server.injected) == (3, {"dies": 1})


# --- a process of its own --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_as_a_process_it_says_where_it_is_and_at_the_end_what_it_did() -> None:
    command = [sys.executable, "-m", "polyhop.scripts.studies.faults.server", "--fault", "401-echo"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout
    url = urlsplit(process.stdout.readline())
    assert (url.hostname, url.path.strip()) == ("127.0.0.1", "/v1")
    with closing(http.client.HTTPConnection("127.0.0.1", url.port or 0, timeout=10)) as connection:
        assert ask(connection).status == 401
    process.terminate()
    printed, _ = process.communicate(timeout=10)
    assert json.loads(printed) == {"requests": 1, "injected": {"401-echo": 1}}
    assert KEY not in printed
