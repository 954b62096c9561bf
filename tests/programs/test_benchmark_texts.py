"""No prompt and no exemplar has a text of a benchmark: a question, an answer or a title."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.data.text import title_key
from polyhop.programs import PROGRAMS, ExemplarMemory, new_program

TEXTS = {"question", "answer", "answers", "title", "query", "aliases", "answer_aliases", "possible_answers"}
_NAME = re.compile(r"\b[A-Z]\w+(?: (?:of |the |de )?[A-Z]\w+)+")
_QUOTED = re.compile(r"[\"“]([^\"”\[\]]{3,80})[\"”]")


def _texts(record: Any, name: str = "") -> Iterator[str]:
    if isinstance(record, dict):
        for key, value in record.items():
            yield from _texts(value, key)
    elif isinstance(record, list):
        for value in record:
            yield from _texts(value, name)
    elif isinstance(record, str) and (name in TEXTS or name == "context"):
        yield record


@cache
def benchmarks(folder: Path) -> frozenset[str]:
    """The questions, answers and titles of all benchmarks, folded."""
    found = set[str]()
    for path in sorted(folder.glob("*.json*.gz")):
        if "corpus" in path.name or "filler" in path.name:
            continue
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = [file.read()] if path.name.endswith(".json.gz") else list(file)
        for line in lines:
            found.update(title_key(text) for text in _texts(json.loads(line)) if len(text) < 300)
    return frozenset(found)


def prompts() -> list[type[dspy.Signature]]:
    found = (agent.signature for name in PROGRAMS for _, agent in new_program(name).named_predictors())
    return list(dict.fromkeys(found))  # in one order: parallel tests collect the same


@pytest.mark.parametrize("signature", prompts(), ids=lambda each: each.__name__)
def test_examples_in_prompts_are_our_own(signature: Any, shared_data: Path) -> None:
    texts = [signature.instructions, *(str(each.json_schema_extra["desc"]) for each in signature.fields.values())]
    examples = {found for text in texts for pattern in (_NAME, _QUOTED) for found in pattern.findall(text)}
    words = {"yes", "no", "unknown", "none", "direct", "single", "plan", "retrieve", "answer"}
    assert {each for each in examples if title_key(each) in benchmarks(shared_data)} - words == set()


def test_exemplars_are_our_own(shared_data: Path) -> None:
    texts = {text for each in ExemplarMemory().exemplars for text in (each.question, *each.sub_questions)}
    assert {text for text in texts if title_key(text) in benchmarks(shared_data)} == set()
    names = {name for text in texts for name in _NAME.findall(text)}
    assert {name for name in names if title_key(name) in benchmarks(shared_data)} == set()
