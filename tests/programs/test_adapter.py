"""How agents ask the servers that people run on their own machines."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import AdapterParseError

from polyhop.data.passages import Passage
from polyhop.engines.costs import Ledger
from polyhop.engines.models import language_model, read_profile
from polyhop.programs import Naive
from polyhop.programs.run import together

from .local import Answer, Local

POOL = [Passage.of("Solaris (1972 film)", "Solaris was directed by Andrei Tarkovsky.", id="film")]
QUESTION = "Who directed Solaris?"
FIELDS = {"reasoning": "It is told.", "answer": "Andrei Tarkovsky", "confidence": 0.9}
CHAT = "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in FIELDS.items()) + "[[ ## completed ## ]]"


def wants_schema(asked: dict[str, Any]) -> bool:
    return bool(asked.get("response_format", {}).get("type") == "json_schema")


def bound(asked: dict[str, Any]) -> int | None:
    """OpenAI's newer name, or the older one."""
    return asked.get("max_completion_tokens") or asked.get("max_tokens")


def enforcing(asked: dict[str, Any], n: int) -> Answer:
    return (json.dumps(FIELDS) if wants_schema(asked) else CHAT), "stop"


def ignoring(asked: dict[str, Any], n: int) -> Answer:
    return CHAT, "stop"


def refusing(asked: dict[str, Any], n: int) -> Answer:
    if wants_schema(asked):
        return {"error": {"message": "'response_format.type' must be 'text'", "type": "invalid_request_error"}}
    return CHAT, "stop"


def ask(server: Local, times: int = 1, profile: Path | None = None, **arguments: Any) -> tuple[Any, Ledger]:
    lm = language_model(
        "openai/local", read_profile(profile) if profile else None, {"api_base": server.url, **arguments}
    )
    ledger, program = Ledger(), Naive()
    program.set_lm(lm)
    with dspy.context(usage_tracker=ledger):
        predictions = [program(question=f"{QUESTION}{' ' * n}", pool=POOL) for n in range(times)]
    return predictions[-1], ledger


def test_a_server_that_enforces_schemas_is_sent_one() -> None:
    with Local(enforcing) as server:
        prediction, _ = ask(server, 2, cache=False)
    assert (prediction.answer, len(server.seen)) == ("Andrei Tarkovsky", 2)
    assert all(map(wants_schema, server.seen))
    form = server.seen[0]["response_format"]["json_schema"]["schema"]
    assert form["required"] == ["reasoning", "answer", "confidence"]
    assert "Respond with a JSON object in the following order" in server.seen[0]["messages"][-1]["content"]


@pytest.mark.parametrize(("reply", "requests"), [(ignoring, 2), (refusing, 3)])
def test_a_server_that_does_not_is_sent_text_from_then_on(reply: Any, requests: int) -> None:
    with Local(reply) as server:
        prediction, _ = ask(server, 2, cache=False)
    assert (prediction.answer, len(server.seen)) == ("Andrei Tarkovsky", requests)
    assert [wants_schema(asked) for asked in server.seen] == [True, *[False] * (requests - 1)]


@pytest.mark.parametrize(("structured", "sent"), [("true", True), ("false", False), ('"auto"', True)])
def test_a_profile_decides(structured: str, sent: bool, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(f'[models."openai/*"]\nstructured = {structured}\ncache = false\n')
    with Local(enforcing) as server:
        ask(server, profile=tmp_path / "p.toml")
    assert wants_schema(server.seen[0]) is sent


def test_a_call_is_bounded_by_what_its_fields_need() -> None:
    with Local(ignoring) as server:
        ask(server, cache=False)
        ask(server, cache=False, max_tokens=77)
        ask(server, cache=False, reasoning_effort="low")
    first, second, third = map(bound, server.seen)
    assert 200 < (first or 0) < 1_000
    assert (second, third) == (77, None)


def test_a_list_that_runs_on_costs_no_question() -> None:
    endless = CHAT.partition("[[ ## confidence")[0] + "[[ ## confidence ## ]]\n0.99999"
    with Local(lambda asked, n: (endless, "length")) as server:
        prediction, ledger = ask(server, cache=False)
    assert (prediction.answer, prediction.confidence, len(server.seen)) == ("Andrei Tarkovsky", 0.5, 1)
    assert ledger.incidents == {"reply cut": 1}


def test_a_reply_without_its_main_field_is_asked_for_once_more_in_the_other_form() -> None:
    with Local(lambda asked, n: ("I think so.", "stop") if n == 1 else (CHAT, "stop")) as server:
        prediction, ledger = ask(server, cache=False)
    assert prediction.answer == "Andrei Tarkovsky"
    assert [wants_schema(asked) for asked in server.seen] == [True, False]
    assert bound(server.seen[1]) == 2 * (bound(server.seen[0]) or 0)
    assert ledger.incidents == {"reply unreadable": 1}
    with Local(lambda asked, n: ("I think so.", "stop")) as server, pytest.raises(AdapterParseError):
        ask(server, cache=False)
    assert len(server.seen) == 2


def test_a_model_that_thinks_is_not_cut() -> None:
    def thinking(asked: dict[str, Any], n: int) -> Answer:
        return ("<think>Let me see.", "length") if bound(asked) else (f"<think>So.</think>{CHAT}", "stop")

    with Local(thinking) as server:
        prediction, _ = ask(server, 2, cache=False)
    assert prediction.answer == "Andrei Tarkovsky"
    assert [bool(bound(asked)) for asked in server.seen] == [True, False, False]


def test_requests_to_this_machine_go_one_at_a_time_and_cost_nothing(tmp_path: Path) -> None:
    def slow(asked: dict[str, Any], n: int) -> Answer:
        time.sleep(0.05)
        return CHAT, "stop"

    with Local(slow) as server:
        together([lambda: ask(server, cache=False)] * 4)
        _, ledger = ask(server, cache=False)
        assert server.most == 1
        (tmp_path / "p.toml").write_text('[models."openai/*"]\nconcurrency = 4\ncache = false\n')
        together([lambda: ask(server, profile=tmp_path / "p.toml")] * 4)
    assert server.most > 1
    assert ledger.costs()["cost_usd"] == 0


def test_the_context_of_ollama_is_set() -> None:
    assert language_model("ollama_chat/qwen3").kwargs["num_ctx"] == 8192
    assert language_model("ollama_chat/qwen3", arguments={"num_ctx": 4096}).kwargs["num_ctx"] == 4096
    assert "num_ctx" not in language_model("openai/gpt-4o-mini").kwargs
