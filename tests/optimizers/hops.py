"""Questions of two hops, and agents that play them right, except for those that a test makes err."""

from __future__ import annotations

from typing import Any

import dspy

from polyhop.programs import Prism

from ..programs.scripted import Request, Script, answer, lm, scripted
from .towns import questions

GOLD = ["1s2", "2s1"]  # the search finds the book, then the writer


def example() -> dspy.Example:
    return questions(1, 0)[0]


def prism(**replies: Any) -> tuple[dspy.Module, Script]:
    """PRISM on a question, with its script."""
    script = scripted(
        **{
            "analyzer": {"sub_questions": ["Who wrote Book 0?", "Where was #1 born?"]},
            "selector": {"keep": GOLD},
            "adder": {"add": []},
            "answerer": reader,
            **replies,
        }
    )
    program = Prism()
    program.set_lm(lm(script))
    return program, script


def reader(request: Request) -> dict[str, Any]:
    """Answers right if the evidence has both hops."""
    evidence = request.inputs["evidence"]
    return answer("Aldea" if "written by" in evidence and "born in" in evidence else "unknown", 0.9)
