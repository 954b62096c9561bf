"""Providers charge less for the beginning of a prompt that they have seen: what stays the same comes first."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import Any

import dspy
import pytest
from dspy import lm15

from polyhop.data.chain import ChainRetriever
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.costs import Ledger
from polyhop.engines.lexical import LexicalEngine
from polyhop.engines.replies import Message, read_request
from polyhop.programs import PROGRAMS, new_program

SOURCE = PassagePool(sample_passages())
QUESTIONS = [question for question in load_sample() if (question.hops or 0) > 1][::36]

Asked = tuple[str, tuple[Message, ...]]


class Recorder:
    """Plays the agents, and keeps what they were sent."""

    def __init__(self) -> None:
        self.engine = LexicalEngine()
        self.asked: list[Asked] = []

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.asked.append(read_request(request))
        return self.engine.complete(request)

    def __deepcopy__(self, memo: dict[int, Any]) -> Recorder:
        return self


@pytest.fixture(scope="module", params=sorted(set(PROGRAMS) - {"oracle"}))
def prompts(request: pytest.FixtureRequest) -> dict[str, list[list[Asked]]]:
    """What each agent of a program was sent, question by question; agents are identified by their system message."""
    recorder = Recorder()
    program = new_program(request.param, ChainRetriever(SOURCE), SOURCE)
    program.set_lm(dspy.LM("recorder", engine=recorder, cache=False))
    found: dict[str, list[list[Asked]]] = defaultdict(list)
    for question in QUESTIONS:
        recorder.asked.clear()
        with dspy.context(usage_tracker=Ledger(), disable_history=True):
            program(question=question.question)
        for system in dict.fromkeys(system for system, _ in recorder.asked):
            found[system].append([asked for asked in recorder.asked if asked[0] == system])
    return dict(found)


def fields(prompt: Asked) -> dict[str, str]:
    """The inputs of the last message, in their order."""
    parts = re.split(r"^\[\[ ## (\w+) ## \]\]$", prompt[1][-1].text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_an_agent_has_one_beginning_for_all_questions(prompts: dict[str, list[list[Asked]]]) -> None:
    for asked in prompts.values():
        structures = {tuple(fields(prompt)) for question in asked for prompt in question}
        assert len(structures) == 1


def test_what_changes_from_round_to_round_comes_last(prompts: dict[str, list[list[Asked]]]) -> None:
    for asked in prompts.values():
        for question in asked:
            for one, other in pairwise(question):
                before, after = fields(one), fields(other)
                if before.get("question") != after.get("question"):
                    continue  # a step of a plan is another question
                same = [before[name] == after[name] for name in before]
                beyond = list(before)[same.index(False) :] if False in same else []
                wasted = sum(len(after[name]) for name in beyond if before[name] == after[name])
                assert wasted < 400  # characters: what tells answers and queries, never passages
