"""A made-up world in which prompts matter: the answerer knows easy questions, and the others only when it is shown how
(a demo) or told (an instruction with the magic word)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import dspy

from polyhop.data.passages import Passage
from polyhop.data.sample import SubQuestion
from polyhop.programs import Prism

from ..programs.scripted import Request, Script, answer, lm, scripted

MAGIC = "abracadabra"
TOWNS = ["Aldea", "Brunn", "Calder", "Dorne", "Elmet", "Fosse", "Grend", "Harle", "Ister", "Jorvik", "Kells", "Lund"]


def questions(easy: int, hard: int) -> list[dspy.Example]:
    """Easy and hard ones in turns, as far as there are both; of two hops, with their own passages."""
    kinds = [kind for pair in zip(["easy"] * easy, ["hard"] * hard, strict=False) for kind in pair]
    kinds += ["easy"] * (easy - hard) + ["hard"] * (hard - easy)
    return [question(n, kind) for n, kind in enumerate(kinds)]


def question(n: int, kind: str) -> dspy.Example:
    town, author = TOWNS[n % len(TOWNS)], f"Writer {n}"
    pool = (
        Passage.of(f"Book {n}", sentences=[f"Book {n} is a novel.", f"It was written by {author}."], id=f"book{n}"),
        Passage.of(author, sentences=[f"{author} was born in {town}.", "The weather was fine."], id=f"writer{n}"),
        Passage.of("Stones", sentences=["A stone is hard."], id=f"stone{n}"),
    )
    return dspy.Example(
        question=f"Where was the author of {kind} Book {n} born?",
        pool=pool,
        answers=(town,),
        gold_passages=(f"book{n}", f"writer{n}"),
        gold_facts=((f"book{n}", 1), (f"writer{n}", 0)),
        hops=2,
        sub_questions=(
            SubQuestion(f"Who wrote Book {n}?", author, f"book{n}"),
            SubQuestion("Where was #1 born?", town, f"writer{n}"),
        ),
    ).with_inputs("question", "pool")


GOLD = ["1s2", "2s1"]  # the search finds the book, then the writer


def players(**replies: Any) -> Script:
    """Plays the agents, right but for the replies that a test gives. What the answerer says depends on its prompt
    alone."""
    usual = {
        "analyzer": {"sub_questions": ["Who wrote the book?", "Where was #1 born?"]},
        "selector": {"keep": GOLD},
        "adder": {"add": []},
        "answerer": _answer,
    }
    return scripted(**{**usual, **replies})


def _answer(request: Request) -> dict[str, Any]:
    taught = MAGIC in request.system or request.demos > 0
    can_answer = taught or "easy" in request.inputs["question"]
    number = int(re.findall(r"Book (\d+)", request.inputs["question"])[0])
    answer = TOWNS[number % len(TOWNS)] if can_answer else "somewhere"
    return {"reasoning": "So it is [2s1].", "answer": answer, "confidence": 0.9}


def writer() -> Script:
    """Writes the same instruction whatever it is asked."""
    return Script({"other": [_write]})


def _write(request: Request) -> dict[str, Any] | str:
    listed = re.search(r"Your output fields are:\n(.*?)\nAll interactions", request.system, re.DOTALL)
    assert listed is not None
    names = re.findall(r"^\d+\. `(\w+)` \(", listed[1], re.MULTILINE)
    return {name: json.dumps({"answerer": MAGIC}) if name == "module_advice" else f"Say {MAGIC}." for name in names}


def program(script: Script) -> Prism:
    """Four calls a question."""
    prism = Prism(rounds=1)
    prism.set_lm(lm(script))
    return prism


def instructions(module: dspy.Module) -> Mapping[str, str]:
    return {name: predictor.signature.instructions for name, predictor in module.named_predictors()}


def example() -> dspy.Example:
    return questions(1, 0)[0]


def prism(**replies: Any) -> tuple[dspy.Module, Script]:
    """PRISM on a question, until a round changes nothing, with its script. The answerer reads."""
    script = players(**{"answerer": reader, **replies})
    program = Prism()
    program.stop.value = "stable"
    program.set_lm(lm(script))
    return program, script


def reader(request: Request) -> dict[str, Any]:
    """Answers right if the evidence has both hops."""
    evidence = request.inputs["evidence"]
    return answer("Aldea" if "written by" in evidence and "born in" in evidence else "unknown", 0.9)
