"""`polyhop ask` with one question, as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

from polyhop.data.sample import REPLIES

from .cli import done, polyhop, refused

QUESTION = "Where was the director of Stalker born?"


def ask(*arguments: str) -> Result:
    return polyhop("ask", *arguments, columns=100, POLYHOP_INDEX="sample")


@pytest.mark.parametrize(
    ("question", "is_told"),
    [
        ("How many pages mention Solaris?", True),
        ("List all documents about Stalker", True),
        ("How many films did Tarkovsky direct?", False),
        ("Who listed the pages of Stalker?", False),
    ],
)
def test_a_question_about_all_documents_is_told_to_be_one(question: str, is_told: bool) -> None:
    shown = done("ask", question, "--index", "sample", "--program", "naive")
    assert ("a count or a list is not complete" in shown.stderr) == is_told


def test_the_answer_comes_with_evidence_cost_and_trace() -> None:
    result = ask(QUESTION, "--trace")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert QUESTION in text
    assert "stalker-1979-film:0" in text
    assert "Stalker (1979 film) the question names it: stalker (" in text
    assert "Andrei Tarkovsky Stalker (1979 film) mentions it: andrei tarkovsky" in text
    assert re.search(r"\d+ search(es)? · \d+\.\d\d s · searched sample", text)
    assert "the question names it" not in ask(QUESTION, "--trace", "--retriever", "bm25").stdout


def test_without_a_model_the_chain_leads_and_a_guess_says_what_it_rests_on() -> None:
    lines = [" ".join(line.split()) for line in ask(QUESTION).stdout.splitlines() if line.strip()]
    text = "\n".join(lines)
    film, director = (
        text.index("Stalker (1979 film) the question names it"),
        text.index("Stalker (1979 film) mentions it"),
    )
    guess = re.search(r"(best guess|perhaps): Zavrazhye \(\d+%\), as andrei-tarkovsky:\d says", text)
    assert guess
    assert film < director < guess.start()
    assert lines[-1].startswith("No language model was asked. To ask one: --lm")
    assert not re.search("verified|confidence|LM call", text)
    assert "No language model" not in ask(QUESTION, "--json").stdout


def test_with_recorded_replies_the_answer_comes_as_that_of_a_model() -> None:
    text = " ".join(
        ask("Where was the librettist of Dvořák's Rusalka born?", f"--lm=recorded:{REPLIES}").stdout.split()
    )
    assert "Chudenice confidence" in text
    assert re.search(r"stopped: [\w ]+ · \d+ LM calls · \d+ search(es)? · [\d,.k]+ tokens · \d+\.\d\d s", text)
    assert "No language model" not in text


@pytest.mark.parametrize("program", ["polyhop", "prism", "naive", "direct"])
def test_json_is_one_object_and_nothing_else(program: str) -> None:
    record = json.loads(ask(QUESTION, "--program", program, "--json").stdout)
    assert " ".join(record) == (
        "question answer guess confidence status evidence ranking trace stop_reason lm_calls lm_calls_critical_path "
        "searches dropped seconds costs costs_by_agent incidents index"
    )
    assert record["index"] == (None if program == "direct" else "sample")
    assert record["costs"]["lm_calls"] == sum(each["lm_calls"] for each in record["costs_by_agent"].values())
    assert record["question"] == QUESTION
    assert record["trace"][-1] == {"step": "stopped", "reason": record["stop_reason"]}
    assert all(set(item) == {"passage_id", "title", "sentence", "text"} for item in record["evidence"])
    assert bool(record["ranking"]) == (program != "direct")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["?!"], "a question is a text with words"),
        (["word " * 2_000], "a question of 10,000 characters; the limit is 5,000"),
        ([QUESTION, "--program", "nope"], "unknown program 'nope'"),
        ([QUESTION, "--lm", "nope"], "unknown language model 'nope'"),
        ([QUESTION, "--lm", "judge=lexical"], "has no role 'judge'"),
        ([QUESTION, "--retriever", "dense"], "--retriever needs an --index with vectors"),
        ([QUESTION, "--lm", "openai/gpt-4o-mini"], "no API key found"),
    ],
)
def test_errors_are_one_line_on_stderr(arguments: list[str], message: str) -> None:
    assert message in refused("ask", *arguments, POLYHOP_INDEX="sample")


@pytest.mark.parametrize("arguments", [[], [QUESTION, "-k", "0"], [QUESTION, "--nope"], [QUESTION, "--out", "a"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    assert ask(*arguments).exit_code == 2


def test_nonsense_from_a_model_is_an_error(parrot: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyhop.engines.models.language_model", lambda spec, **settings: parrot("Cats!"))
    fields = "reasoning, answer, confidence, citations, missing"
    told = f"the model's reply to AnswerWithCitations does not have the expected fields ({fields}): 'Cats!'"
    one = polyhop("ask", QUESTION, POLYHOP_INDEX="sample")
    assert (one.exit_code, one.stdout) == (1, "")
    assert told in one.stderr.splitlines()[-1]
    several = polyhop("ask", "--file", "-", "--index", "sample", stdin=f"{QUESTION}\nWho directed Stalker?\n")
    assert several.stderr.count("does not have the expected fields") == 2
    assert "2 questions failed" in several.stderr


def test_a_closed_pipe_is_quiet() -> None:
    command = [sys.executable, "-m", "polyhop.scripts.main", "search", QUESTION, "--index", "sample", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(60)
