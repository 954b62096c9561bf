"""`polyhop ask` as a user runs it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyhop.scripts.main import app

QUESTION = "Where was the director of Stalker born?"
POLYHOP = [sys.executable, "-m", "polyhop.scripts.main"]


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["ask", *arguments], env={"COLUMNS": "100", "POLYHOP_INDEX": "sample"})


def test_the_answer_comes_with_evidence_and_cost() -> None:
    result = ask(QUESTION)
    assert result.exit_code == 0, result.output
    assert QUESTION in result.stdout
    assert "Stalker (1979 film)" in result.stdout
    assert "stalker-1979-film:0" in result.stdout
    assert re.search(
        r"stopped: \w+ · \d+ LM calls · 1 search · [\d,.k]+ tokens · \d\.\d\d s · searched sample", result.stdout
    )


def test_who_asks_the_embedded_engine_is_told_what_it_cannot() -> None:
    hint, doubtful = "or ask a language model with --lm", "--set=abstain_below=1.0"
    assert hint in ask(QUESTION, doubtful).stdout
    assert hint not in ask(QUESTION, doubtful, "--json").stdout
    assert hint not in ask(QUESTION, "--program", "naive", "--set=abstain_below=0.0").stdout  # nothing was checked


def test_the_trace_tells_why_each_passage_was_found() -> None:
    text = " ".join(ask(QUESTION, "--trace").stdout.split())
    assert "Stalker (1979 film) the question names it: stalker (" in text
    assert "Andrei Tarkovsky Stalker (1979 film) mentions it: andrei tarkovsky" in text
    assert "the question names it" not in ask(QUESTION, "--trace", "--retriever", "bm25").stdout


@pytest.mark.parametrize("program", ["polyhop", "prism", "naive", "direct"])
def test_json_is_one_object_and_nothing_else(program: str) -> None:
    result = ask(QUESTION, "--program", program, "--json")
    record = json.loads(result.stdout)
    assert list(record) == [
        "question",
        "answer",
        "guess",
        "confidence",
        "status",
        "evidence",
        "ranking",
        "trace",
        "stop_reason",
        "lm_calls",
        "lm_calls_critical_path",
        "searches",
        "dropped",
        "seconds",
        "costs",
        "costs_by_agent",
        "incidents",
        "index",
    ]
    assert record["index"] == (None if program == "direct" else "sample")
    assert record["costs"]["lm_calls"] == sum(each["lm_calls"] for each in record["costs_by_agent"].values())
    assert record["question"] == QUESTION
    assert record["trace"][-1] == {"step": "stopped", "reason": record["stop_reason"]}
    assert all(set(item) == {"passage_id", "title", "sentence", "text"} for item in record["evidence"])
    assert bool(record["ranking"]) == (program != "direct")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "the question '' has no word in it"),
        (["?!"], "has no word in it: ask something"),
        (["word " * 2_000], "a question of 10,000 characters; the limit is 5,000"),
        ([QUESTION, "--program", "nope"], "unknown program 'nope'"),
        ([QUESTION, "--lm", "nope"], "unknown language model 'nope'"),
        ([QUESTION, "--lm", "judge=lexical"], "has no role 'judge'"),
        ([QUESTION, "--adaptive", "--retriever", "bm25"], "--adaptive: PolyHop has no search.chain"),
        ([QUESTION, "--retriever", "dense"], "--retriever needs an --index with vectors"),
        ([QUESTION, "--retriever", "chain-dense"], "--retriever needs an --index with vectors"),
        ([QUESTION, "--lm", "openai/gpt-4o-mini"], "no API key found"),
    ],
)
def test_errors_are_one_line_on_stderr(arguments: list[str], message: str) -> None:
    result = ask(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], [QUESTION, "-k", "0"], [QUESTION, "--nope"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    assert ask(*arguments).exit_code == 2


def test_nonsense_from_a_model_is_an_error(parrot: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.engines.models.language_model", lambda spec, **settings: parrot("Cats!"))
    result = ask(QUESTION)
    assert result.exit_code == 1
    assert (
        "the model's reply to PlanResearch does not have the expected fields (route, sub_questions): 'Cats!'"
        in result.stderr
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_first_answer_takes_under_400_mb_without_torch() -> None:
    code = (
        "import sys; sys.argv = ['polyhop', 'ask', *sys.argv[1:]]\n"
        "from polyhop.scripts.main import main\n"
        "try: main()\n"
        "finally:\n"
        "    status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "    print('torch' in sys.modules, status['VmHWM'].split()[0], file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, QUESTION, "--index", "sample"], capture_output=True, text=True, check=True
    )
    assert "Stalker" in result.stdout
    torch, peak = result.stderr.split()
    assert torch == "False"
    assert int(peak) < 400 * 1024  # KiB


def test_a_closed_pipe_is_quiet() -> None:
    process = subprocess.Popen(
        [*POLYHOP, "ask", QUESTION, "--index", "sample", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(60)


def test_ctrl_c_is_130() -> None:
    code = (
        "import os, signal\n"
        "import polyhop.engines.models as models\n"
        "def interrupt(*_): os.kill(os.getpid(), signal.SIGINT)\n"
        "models.assign_models = interrupt\n"
        "from polyhop.scripts.main import main\n"
        "main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, "ask", QUESTION, "--index", "sample"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 128 + signal.SIGINT
    assert result.stderr == "interrupted\n"
