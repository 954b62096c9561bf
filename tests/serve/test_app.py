"""The HTTP API as a client uses and misuses it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from urllib.parse import urlsplit

import dspy
import httpx
import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.engines.budget import Budget
from polyhop.engines.models import language_model
from polyhop.programs import PolyHop
from polyhop.serve.app import LARGEST_REQUEST

from ..faults.exchange import Exchange
from ..faults.faults import FAULTS
from ..faults.listening import Listening
from ..faults.schedule import Always
from ..faults.server import Server
from .conftest import QUESTION, ask, events_of, sample, service, streamed


def ended(address: str, outcome: str) -> int:
    """How many questions have ended so."""
    return int(httpx.get(f"{address}/health").json()["questions"].get(outcome, 0))


def until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = monotonic() + seconds
    while not condition() and monotonic() < end:
        sleep(0.05)
    return condition()


def test_the_answer_is_that_of_the_program(address: str) -> None:
    reply = ask(address)
    assert reply.status_code == 200
    program = PolyHop(ChainRetriever(sample()))
    with dspy.context(lm=language_model("lexical")):
        expected = json.loads(program(question=QUESTION).to_json())
    record = reply.json()
    for name in ("answer", "confidence", "evidence", "ranking", "lm_calls"):
        assert record[name] == expected[name]
    assert record["costs"]["lm_calls"] == record["lm_calls"]


@pytest.mark.parametrize("way", ["accept", "body"])
def test_a_stream_tells_every_step_then_the_answer(way: str, address: str) -> None:
    headers = {"accept": "text/event-stream"} if way == "accept" else {}
    asked = {"question": QUESTION, "stream": way == "body"}
    with httpx.stream("POST", f"{address}/ask", json=asked, headers=headers, timeout=60) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        events = events_of(reply)
    assert [events[0]["event"], events[-1]["event"]] == ["start", "answer"]
    steps = [event["step"]["step"] for event in events if event["event"] == "step"]
    assert "searched" in steps
    assert steps[-1] == "stopped"
    passages = {id: passage for event in events for id, passage in event.get("passages", {}).items()}
    for item in events[-1]["evidence"]:
        assert passages[item["passage_id"]]["sentences"][item["sentence"]] == item["text"]
    assert [event["seconds"] for event in events] == sorted(event["seconds"] for event in events)
    calls = [event["costs"]["lm_calls"] for event in events if "costs" in event]
    assert calls == sorted(calls)
    assert calls[-1] > 0


def test_search_and_read(address: str) -> None:
    asked = {"query": "director of Stalker", "k": 3}
    hits = httpx.post(f"{address}/search", json=asked).json()["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert hits[0]["reason"]["via"] in ("named", "words")
    assert httpx.post(f"{address}/search", json={**asked, "retriever": "bm25"}).json()["hits"][0]["reason"] is None
    passage = httpx.get(f"{address}/read", params={"id": hits[0]["passage"]["id"]}).json()
    assert passage == hits[0]["passage"]
    assert httpx.get(f"{address}/read", params={"id": "../../etc/passwd"}).status_code == 404
    for wrong in ({"retriever": "os:system"}, {"k": True}, {"k": "3"}, {"offset": False}):
        assert httpx.post(f"{address}/search", json={**asked, **wrong}).status_code == 422


def test_the_state(address: str) -> None:
    assert httpx.get(f"{address}/health").json()["status"] == "ok"
    state = httpx.get(f"{address}/index").json()
    assert state["passages"] == len(sample().passages)
    assert state["programs"] == ["polyhop", "naive"]
    before = ended(address, "answered")
    ask(address)
    assert until(lambda: ended(address, "answered") == before + 1)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"[]", 422),
        (b'{"question": 1}', 422),
        (b'{"question": ""}', 422),
        (b'{"question": "Who?", "stream": "yes"}', 422),
        (b'{"question": "?!"}', 422),
        (b'{"question": "' + b"a" * 6_000 + b'"}', 422),
        (b'{"question": "\\ud800 who"}', 422),
        (b"[" * 100_000, 400),
    ],
)
def test_malformed_requests_get_an_error_of_one_line(body: bytes, status: int, address: str) -> None:
    reply = httpx.post(f"{address}/ask", content=body, headers={"content-type": "application/json"}, timeout=60)
    assert reply.status_code == status
    assert "\n" not in reply.json()["error"]["message"]
    assert httpx.get(f"{address}/health").status_code == 200


def test_a_body_is_bounded_with_and_without_a_length(address: str) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(2 + LARGEST_REQUEST // 65_536):
            yield b"a" * 65_536

    assert httpx.post(f"{address}/ask", content=endless(), timeout=60).status_code == 413
    assert httpx.post(f"{address}/ask", content=b"a" * (LARGEST_REQUEST + 1), timeout=60).status_code == 413


def test_a_token_is_needed_where_there_is_one(start: Callable[..., str]) -> None:
    for token in ("", " "):  # of a variable that is not set
        with pytest.raises(PolyhopError, match="the token is empty"):
            start(token=token)
    address = start(token="right", hosts=["127.0.0.1", "polyhop.example"])
    assert httpx.get(f"{address}/").status_code == 200
    assert httpx.get(f"{address}/health").status_code == 200
    for path in ("/index", "/v1/models", "/openapi.json", "/mcp", "/page/../index", "//index"):
        assert httpx.get(address + path).status_code == 401, path
        wrong = httpx.get(address + path, headers={"authorization": "Bearer wrong"})
        assert (wrong.status_code, "right" in wrong.text) == (401, False)
    right = {"authorization": "Bearer right"}
    assert httpx.get(f"{address}/index", headers=right).status_code == 200
    for host, status in (("polyhop.example", 200), ("polyhop.example:80", 200), ("evil.example", 400)):
        assert httpx.get(f"{address}/index", headers={**right, "host": host}).status_code == status


def test_without_a_token_other_hosts_and_pages_of_other_sites_are_refused(address: str) -> None:
    def asked(**headers: str) -> int:
        return ask(address, **headers).status_code

    for host in ("evil.example", "evil.example:80", "[::1", "localhost.evil.example", "127.0.0.1.evil.example"):
        assert asked(host=host) == 400, host
    port = address.rpartition(":")[2]
    elsewhere = "http://evil.example null http://[ localhost http:// http://127.0.0.1:1".split()
    for origin in (*elsewhere, f"{address}.evil"):
        assert asked(origin=origin) == 403, origin
    assert asked(host="evil.example", origin="http://evil.example") == 400  # a name that leads to this machine
    assert [asked(host=f"{host}:{port}") for host in ("localhost", "127.0.0.1", "[::1]")] == [200] * 3
    assert asked(origin=address) == 200


def test_the_page_may_load_nothing_from_elsewhere(address: str) -> None:
    policy = httpx.get(f"{address}/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    for path in ("/page/../service.py", "/page/..%2fservice.py", "/page//etc/passwd", "/page/%2e%2e/app.py"):
        assert httpx.get(address + path).status_code == 404


def test_time_is_limited(start: Callable[..., str]) -> None:
    with Server(latency=2.0) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", model.url)
        address = start(lm="openai/slow", seconds=0.3)
        reply = ask(address)
        assert reply.status_code == 504
        assert reply.json()["error"]["message"] == "no answer within 0.3 s"


def test_the_budget_is_that_of_all_questions(start: Callable[..., str]) -> None:
    address = start(budget=Budget(calls=1))
    reply = ask(address)
    assert (reply.status_code, reply.json()["error"]["type"]) == (429, "budget")


def test_a_question_is_counted_from_its_first_event_until_its_client_leaves() -> None:
    async def run() -> None:
        asked = service(concurrency=1, waiting=2)
        asked.program("polyhop")
        held = [asked.events(QUESTION) for _ in range(6)]
        first = await asyncio.gather(*map(anext, held), return_exceptions=True)
        assert [getattr(each, "kind", "") for each in first] == [""] * 3 + ["busy"] * 3
        for events in held[:2]:
            await events.aclose()
        assert (asked.waiting, asked.outcomes) == (1, {"left": 2})
        running, waits = held[2], asked.events(QUESTION)
        await anext(running)
        assert [(await anext(waits))["event"] for _ in range(2)] == ["start", "waiting"]
        waiting = asyncio.create_task(anext(waits))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert (asked.running, asked.waiting, asked.outcomes) == (1, 0, {"left": 3})
        await running.aclose()
        asked.close()

    asyncio.run(run())


def test_an_error_of_the_model_is_told_without_its_key(start: Callable[..., str]) -> None:
    key = "sk-planted-0123456789"
    with Server([(Always(), FAULTS["401-echo"])]) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", model.url)
        patch.setenv("OPENAI_API_KEY", key)
        address = start(lm="openai/some")
        reply = ask(address)
        assert (reply.status_code, reply.json()["error"]["type"]) == (502, "model")
        assert "Incorrect API key" in reply.text
        assert key not in reply.text
        assert streamed(address)[-1]["kind"] == "model"


def test_no_text_breaks_out_of_its_event(start: Callable[..., str]) -> None:
    passage = Passage.of("<script>", "Stalker was directed by </script>.")
    address = start(source=PassagePool([passage]))
    question = "Who directed Stalker?\n\nevent: answer\ndata: {}"
    events = streamed(address, question)
    assert [event["event"] for event in events].count("answer") == 1  # no line of a question ends an event
    assert events[0]["question"] == question


@pytest.mark.parametrize("stream", [True, False])
def test_the_call_that_is_under_way_is_left_when_the_client_leaves(
    stream: bool, start: Callable[..., str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked, done = threading.Event(), threading.Event()
    caplog.set_level("INFO", "polyhop.serve")

    def waits(exchange: Exchange) -> None:
        asked.set()
        done.wait(60)

    with Listening(waits) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        address = start(lm="openai/slow")
        parts = urlsplit(address)
        body = json.dumps({"question": QUESTION, "program": "naive", "stream": stream}).encode()
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as client:
            head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
            assert asked.wait(60)
        assert until(lambda: ended(address, "left") == 1)
        (told,) = (record.details for record in caplog.records if record.message == "question")  # type: ignore[attr-defined]
        assert (told["program"], told["outcome"], told["cancelled_calls"]) == ("naive", "left", 1)
        assert len(model.seen) == 1
        done.set()
