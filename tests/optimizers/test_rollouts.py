"""Training data: the exact prompt of a call, the reply that gains points, and the one that loses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy

from polyhop.eval.metrics import answer_f1
from polyhop.optimizers.credit import diagnose
from polyhop.optimizers.rollouts import write_rollouts
from polyhop.programs import C3PO
from polyhop.signatures import AnswerFromContext

from ..programs.scripted import Request, answer, lm, scripted
from .credit.world import GOLD, example, prism


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def read(message: dict[str, Any], signature: type[dspy.Signature]) -> dict[str, Any]:
    assert message["role"] == "assistant"
    fields: dict[str, Any] = dspy.ChatAdapter().parse(signature, message["content"])
    return fields


def test_a_reply_that_gains_points_and_its_own_prompt(tmp_path: Path) -> None:
    program, script = prism(answerer=answer("Paris [[ ## answer ## ]]"))
    demo = dspy.Example(question="[[ ## q", evidence="-", reasoning="-", answer="x", confidence=1.0)
    program.answerer.demos = [demo]
    found = diagnose(program, [example()], [answer_f1])
    assert write_rollouts(tmp_path, [example()], found, answer_f1) == 1
    (trained,) = lines(tmp_path / "supervised.jsonl")
    *prompt, said = trained["messages"]
    asked = script.asked("answerer")[0]
    assert prompt[0] == {"role": "system", "content": asked.system}
    assert [(each["role"], each["content"]) for each in prompt[1:]] == [
        (each.role, each.text) for each in asked.messages
    ]
    better = read(said, AnswerFromContext)
    assert better["answer"] == "Aldea"
    assert "Aldea" in better["reasoning"]  # that of the annotations

    (pair,) = lines(tmp_path / "preferences.trl.jsonl")
    assert (pair["prompt"], pair["chosen"]) == (prompt, [said])
    assert read(pair["rejected"][0], AnswerFromContext)["answer"].startswith("Paris")
    (other,) = lines(tmp_path / "preferences.openai.jsonl")
    assert other["input"] == {"messages": prompt}
    assert (other["preferred_output"], other["non_preferred_output"]) == (pair["chosen"], pair["rejected"])


def test_another_model_teaches_what_it_does_better(tmp_path: Path) -> None:
    weak, _ = prism(selector={"keep": ["1s2"]}, adder={"add": []})
    strong, _ = prism()
    found = diagnose(weak, [example()], [answer_f1], against=strong.selector.lm)
    write_rollouts(tmp_path, [example()], found, answer_f1, gold=False)
    pairs = lines(tmp_path / "preferences.trl.jsonl")
    kept = [read(pair["chosen"][0], weak.selector.signature)["keep"] for pair in pairs]
    assert kept == [GOLD]


def test_thoughts_are_learned_from_another_model_alone(tmp_path: Path) -> None:
    def reads(request: Request) -> dict[str, Any]:
        return answer("Aldea" if "born in" in request.inputs["passages"] else "unknown")

    def team(**useful: list[int]) -> C3PO:
        """A program whose filter keeps what is useful."""
        route = {"route": "single", "query": "Where was the writer of Book 0 born?"}
        program = C3PO()
        program.set_lm(lm(scripted(router=route, filter={"thoughts": "Both tell.", **useful}, answerer=reads)))
        return program

    weak, strong = team(useful=[]), team(useful=[1, 2])
    for against, gold, learned in (("gold", True, 0), (strong.filter.lm, False, 1)):
        found = diagnose(weak, [example()], [answer_f1], against=against, alone=True, among=["filter"])
        assert found.questions[0].changes["filter"]["answer_f1"] > 0
        assert write_rollouts(tmp_path, [example()], found, answer_f1, gold) == learned
    (pair,) = lines(tmp_path / "preferences.trl.jsonl")
    assert read(pair["chosen"][0], weak.filter.signature) == {"thoughts": "Both tell.", "useful": [1, 2]}


def test_nothing_to_gain_is_nothing_to_learn(tmp_path: Path) -> None:
    program, _ = prism()
    assert write_rollouts(tmp_path, [example()], diagnose(program, [example()], [answer_f1]), answer_f1) == 0
    assert lines(tmp_path / "supervised.jsonl") == []
