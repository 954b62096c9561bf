"""Recorded replies: they are kept once, replied without a server, and their absence is told."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import dspy
import pytest

import polyhop
from polyhop.data.errors import PolyhopError
from polyhop.data.sample import REPLIES
from polyhop.engines.costs import Ledger
from polyhop.engines.models import language_model, read_profile
from polyhop.engines.recorded import Recorder, about, record
from polyhop.engines.replies import ModelError, model_errors
from polyhop.programs.agent import Agent
from polyhop.signatures import AnswerFromContext, PlanSteps

from ..programs.local import Local

QUESTION = "Who founded Kestrel?"
REPLY = '{"thought": "One step.", "sub_questions": ["Who founded Kestrel?"]}'
CHAT = '[[ ## thought ## ]]\nOne step.\n\n[[ ## sub_questions ## ]]\n["Who founded Kestrel?"]\n\n[[ ## completed ## ]]'


class Planner(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.planner = Agent(PlanSteps)

    def forward(self, question: str) -> Any:
        return self.planner(question=question)


def recorded(path: Path, reply: Any, *questions: str) -> list[Any]:
    """What a server's replies to some questions are read as; they are kept in the file."""
    with Local(reply) as server:
        profile = path.with_suffix(".toml")
        profile.write_text(f'[models."openai/*"]\napi_base = "{server.url}"\n')
        program = Planner()
        program.set_lm(language_model(f"openai/{path.stem}", read_profile(profile)))
        assert program.planner.lm.cache
        record(program, path)
        assert not program.planner.lm.cache  # or what the cache has would be missing
        return [program(question=question).toDict() for question in questions or (QUESTION,)]


def replied(path: Path, *questions: str) -> list[Any]:
    program = Planner()
    program.set_lm(language_model(f"recorded:{path}"))
    with model_errors():
        return [program(question=question).toDict() for question in questions or (QUESTION,)]


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("schema", lambda asked, n: (REPLY, "stop")),
        ("ignores", lambda asked, n: (CHAT, "stop")),  # of a server that ignores schemas, later prompts have none
        (
            "refuses",
            lambda asked, n: (
                {"error": {"message": "response_format"}} if "response_format" in asked else (CHAT, "stop")
            ),
        ),
        ("cut", lambda asked, n: (REPLY[:-1], "length")),
        ("unread", lambda asked, n: ("I see.", "stop") if n == 1 else (CHAT, "stop")),
    ],
)
def test_replies_are_replied_as_they_came(tmp_path: Path, name: str, reply: Any) -> None:
    questions = [QUESTION, "Who founded Sparrow?", QUESTION]
    first = recorded(tmp_path / f"{name}.jsonl", reply, *questions)
    assert replied(tmp_path / f"{name}.jsonl", *questions) == first
    lines = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
    assert lines[0]["about"].startswith(f"openai/{name}, 2")
    prompts = [line["prompt"] for line in lines[1:]]
    assert len(prompts) == len(set(prompts))  # the third question repeats the first


def test_tokens_count_as_they_did_and_cost_nothing(tmp_path: Path) -> None:
    recorded(path := tmp_path / "r.jsonl", lambda asked, n: (REPLY, "stop"))
    kept = json.loads(path.read_text().splitlines()[1])["tokens"]
    with dspy.context(usage_tracker=(ledger := Ledger())):
        replied(path)
    assert ledger.costs()["tokens"] == sum(kept)
    assert not ledger.costs().get("cost_usd")


def test_a_missing_reply_says_how_to_record_it(tmp_path: Path) -> None:
    recorded(path := tmp_path / "r.jsonl", lambda asked, n: (REPLY, "stop"))
    with pytest.raises(ModelError, match=r"r.jsonl has no reply to this prompt.*record it with --record FILE"):
        replied(path, "Who founded Sparrow?")
    assert replied(path)  # what there is is still replied


WRONG = '{"prompt": "x", "reply": 5, "finish": "stop", "schema": true, "tokens": [1, 2]}'


@pytest.mark.parametrize(
    "text", ["{", '["prompt"]', '{"prompt": "x"}', WRONG, WRONG.replace("5", '""').replace("1", "-1")]
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "r.jsonl").write_text(text)
    with pytest.raises(PolyhopError, match="recorded replies"):
        language_model(f"recorded:{path}")
    with pytest.raises(PolyhopError, match=r"cannot read .*none.jsonl"):
        language_model(f"recorded:{tmp_path / 'none.jsonl'}")


def test_workers_add_to_one_file(tmp_path: Path) -> None:
    recorded(path := tmp_path / "r.jsonl", lambda asked, n: (REPLY, "stop"))
    assert pickle.loads(pickle.dumps(Recorder(path).keep)).__self__.path == path


def test_there_must_be_a_model_to_record(tmp_path: Path) -> None:
    program = dspy.Predict(AnswerFromContext)
    program.set_lm(polyhop.lm("lexical"))
    with pytest.raises(PolyhopError, match="nothing to record: name a language model"):
        record(program, tmp_path / "r.jsonl")
    assert not (tmp_path / "r.jsonl").exists()


def test_the_replies_of_the_demo_name_their_model() -> None:
    said = about(REPLIES)
    assert "SHA-256" in said
    assert "Qwen2.5-Coder-1.5B" in said
