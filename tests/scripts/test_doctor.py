"""`polyhop doctor`: a whole machine, broken ones, and models that answer, refuse and hang; no key on any stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from polyhop.data.lucene.index import build_index
from polyhop.scripts import doctor

from ..faults.exchange import Exchange
from ..faults.faults import FAULTS
from ..faults.listening import Listening, fails, says
from ..programs.local import Answer, Local
from .cli import polyhop

KEY, SPEC = "sk-planted-0123456789-never-shown", "openai/some-model"
FIELDS = '[[ ## sub_questions ## ]]\n["Who directed Solaris?", "Where was #1 born?"]\n\n[[ ## completed ## ]]'


def run(*arguments: Any) -> Result:
    return polyhop("doctor", *arguments)


def test_everything_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing private on any stream, and it ends although a model hangs."""
    corpus, index = tmp_path / "corpus.jsonl", tmp_path / "ix"
    lines = [("Rome", "Rome is in Italy."), ("Paris", "In France."), ("Paris", "In Texas.")]
    corpus.write_text("".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in lines))
    build_index([corpus], index)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("POLYHOP_INDEX", str(index))
    monkeypatch.setattr(doctor, "_SECONDS", 1.0)
    with Listening(FAULTS["hang"].act) as endpoint:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.url)
        done = run("--json", "--lm", "openai/a-model")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert not report["ok"]
    found = {each["check"]: (each["status"], each["found"]) for each in report["checks"]}
    assert [found[name][0] for name in ("packages", "java", "index", "retriever")] == ["ok"] * 4
    assert "is sound: 3 passages" in found["index"][1]
    assert "; 2 share their title with others, 2 are called 'Paris'" in found["documents"][1]
    assert found["ties"][1].startswith("0% of the documents link to others, 0% are linked by others, ")
    assert found["retriever"][1] == "chain, because 67% of the documents are tied by links or names"
    assert found["model openai/a-model"][0] == "failed"
    assert [each["key"] for each in endpoint.seen] == [f"Bearer {KEY}"]  # it was the model that took the time
    assert KEY not in done.output


@pytest.mark.parametrize(
    ("act", "status", "told"),
    [
        (says(FIELDS, 7_000, 7), "ok", "answers in the expected fields ("),
        (says("Cats!", 70, 7), "failed", "does not have the expected fields"),
        (FAULTS["401-echo"].act, "failed", "Incorrect API key provided: ***"),
        (fails(500), "failed", "some-model"),
    ],
)
def test_a_model_is_asked_once_and_its_key_is_not_told(
    act: Callable[[Exchange], None], status: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Listening(act) as endpoint:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.url)
        result = run("--lm", SPEC)
    line = next(line for line in result.stdout.splitlines() if f"model {SPEC}" in line)
    assert line.startswith(status)
    assert told in line
    assert result.exit_code == (status == "failed")
    assert ("-> set its key" in result.stdout) == (status == "failed")
    assert KEY not in result.stdout + result.stderr


# --- servers on this machine ----------------------------------------------------------------------------------------


def playing(asked: dict[str, Any], schema: bool = True) -> Answer:
    prompt = asked["messages"][-1]["content"]
    if "sub_questions" in prompt:
        return FIELDS, "stop"
    if schema and asked.get("response_format"):
        return json.dumps({"word": "quokka"}), "stop"
    return ("1 2 3 4" if "numbers" in prompt else "Paris"), "stop"


def findings(server: Local, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "p.toml").write_text(f'lm = "openai/local"\n[models."openai/*"]\napi_base = "{server.url}"\n')
    result = run("--lm", tmp_path / "p.toml", "--json")
    return {check["check"]: check for check in json.loads(result.stdout)["checks"]}


def test_a_long_prompt_that_is_cut_without_a_word_is_a_failure(tmp_path: Path) -> None:
    with Local(lambda asked, n: playing(asked, schema=False), window=4096) as server:
        found = findings(server, tmp_path)
    assert found["context"]["status"] == "failed"
    assert "it read 4,096 tokens" in found["context"]["found"]
    assert "num_ctx" in found["context"]["fix"]
    assert found["schema"]["found"] == "it ignores JSON schemas, and is sent none"
    assert " written; a question takes about: naive " in found["speed"]["found"]


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
