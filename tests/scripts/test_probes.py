"""What `polyhop doctor` finds out about model servers on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..programs.local import Answer, Local
from .cli import polyhop

_SUB_QUESTIONS = '[[ ## sub_questions ## ]]\n["Who directed Solaris?"]\n\n[[ ## completed ## ]]'


def playing(asked: dict[str, Any], schema: bool = True) -> Answer:
    prompt = asked["messages"][-1]["content"]
    if "sub_questions" in prompt:
        return _SUB_QUESTIONS, "stop"
    if schema and asked.get("response_format"):
        return json.dumps({"word": "quokka"}), "stop"
    return ("1 2 3 4" if "numbers" in prompt else "Paris"), "stop"


def findings(server: Local, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "p.toml").write_text(f'lm = "openai/local"\n[models."openai/*"]\napi_base = "{server.url}"\n')
    result = polyhop("doctor", "--lm", tmp_path / "p.toml", "--json")
    return {check["check"]: check for check in json.loads(result.stdout)["checks"]}


def test_a_long_prompt_that_is_cut_without_a_word_is_a_failure(tmp_path: Path) -> None:
    with Local(lambda asked, n: playing(asked, schema=False), window=4096) as server:
        found = findings(server, tmp_path)
    assert found["context"]["status"] == "failed"
    assert "it read 4,096 tokens" in found["context"]["found"]
    assert "num_ctx" in found["context"]["fix"]
    assert found["schema"]["found"] == "it ignores JSON schemas, and is sent none"


@pytest.mark.parametrize("thinks", [True, False])
def test_what_a_server_refuses_and_thinking_are_told(thinks: bool, tmp_path: Path) -> None:
    def reply(asked: dict[str, Any], n: int) -> Answer:
        if asked.get("response_format"):
            return {"error": {"message": "response_format is not supported"}}
        if len(asked["messages"][-1]["content"]) > 20_000:
            return {
                "error": {"message": "the request exceeds the available context size", "type": "exceed_context_size"}
            }
        if thinks and "numbers" in asked["messages"][-1]["content"]:
            return "<think>Let me count", "length"
        return playing(asked)

    with Local(reply) as server:
        found = findings(server, tmp_path)
    assert (found["thinking"]["status"] == "warning") is thinks
    assert "it refuses JSON schemas" in found["schema"]["found"]
    assert (found["context"]["status"], "prompt_tokens=3000" in found["context"]["fix"]) == ("failed", True)
