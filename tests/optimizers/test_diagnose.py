"""What an agent costs: the gain if it gave the reply that the annotations ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.eval.metrics import answer_f1, evidence_f1
from polyhop.optimizers.diagnose import RETRIEVAL, Diagnosis, QuestionCosts, diagnose, training_pairs, write_pairs

from ..programs.scripted import Request, answer
from .towns import GOLD, example, prism

METRICS = (answer_f1, evidence_f1)


def costs(program: dspy.Module, asked: dspy.Example | None = None, **options: object) -> dict[str, tuple[float, float]]:
    (one,) = diagnose(program, [asked or example()], METRICS, **options).questions  # type: ignore[arg-type]
    return {role: (change["answer_f1"], change["evidence_f1"]) for role, change in one.changes.items()}


LOSES = {"selector": {"keep": ["1s2"]}, "adder": {"add": []}}  # the second hop
FAILS = {"selector": {"keep": ["3s1"]}, "adder": {"add": []}, "answerer": answer("Paris")}
NOTHING = (0.0, 0.0)


@pytest.mark.parametrize(
    ("replies", "options", "expected"),  # the gains in answer F1 and evidence F1
    [
        ({}, {}, dict.fromkeys(["analyzer", "selector", "adder", "answerer", RETRIEVAL], NOTHING)),
        # Nothing is left to add, and the answer was not in the evidence.
        (LOSES, {}, {"selector": (1.0, 1 / 3), **dict.fromkeys(["analyzer", "adder", "answerer"], NOTHING)}),
        (LOSES, {"alone": True}, dict.fromkeys(["selector", "adder"], (1.0, 1 / 3))),  # either could repair it
        ({"answerer": answer("Paris")}, {}, {"answerer": (1.0, 0.0)}),  # it had the evidence
        (FAILS, {}, {"analyzer": NOTHING, "selector": (0.0, 1.0), "adder": NOTHING, "answerer": (1.0, 0.0)}),
        (FAILS, {"among": ["answerer"]}, {"answerer": (1.0, 0.0)}),  # as after the Selector
        (FAILS, {"among": ["answerer"], "alone": True}, {"answerer": NOTHING}),
    ],
)
def test_costs(replies: dict[str, Any], options: dict[str, Any], expected: dict[str, tuple[float, float]]) -> None:
    program, script = prism(**replies)
    actual = costs(program, **options)
    assert {role: actual[role] for role in expected} == {role: pytest.approx(gains) for role, gains in expected.items()}
    assert set(options.get("among", actual)) == actual.keys()
    assert replies or len(script.order) == 6  # nothing was asked twice


def test_a_question_on_which_a_run_fails_tells_nothing() -> None:
    def fails(request: Request) -> dict[str, object]:
        if "born in" in request.inputs["evidence"]:
            raise RuntimeError("the model is gone")
        return answer("unknown", 0.9)

    for keep in (["1s2"], GOLD):  # with the reply of the annotations, and in the run as it is
        program, _ = prism(selector={"keep": keep}, adder={"add": []}, answerer=fails)
        (one,) = diagnose(program, [example()], METRICS).questions
        assert "the model is gone" in one.error
        assert (one.changes, one.corrected) == ({}, {})


@pytest.mark.parametrize(
    ("changes", "mean", "low", "high"),
    [
        # Two pseudo-observations: n = 4, mean 1/4, variance (1 + 1) / 4 - 1/16 = 7/16, half 1.96 * sqrt(7/64).
        ([1.0, 0.0], 0.5, 0.25 - 1.96 * (7 / 64) ** 0.5, 0.25 + 1.96 * (7 / 64) ** 0.5),
        ([4.0, 0.0], 2.0, 1 - 4 * 1.96 * (7 / 64) ** 0.5, 1 + 4 * 1.96 * (7 / 64) ** 0.5),  # four times as much
        ([0.0] * 10, 0.0, -1.96 / 12, 1.96 / 12),  # ten zeros are not certain of 0
        ([1.0] * 98, 1.0, 0.98 - 1.96 * ((0.99 - 0.98**2) / 100) ** 0.5, 1.0),  # within -1 and 1, and around the mean
        ([float("nan"), -1.0, 0.0], -0.5, -0.25 - 1.96 * (7 / 64) ** 0.5, -0.25 + 1.96 * (7 / 64) ** 0.5),
    ],
)
def test_the_interval_of_a_cost(changes: list[float], mean: float, low: float, high: float) -> None:
    asked = [QuestionCosts(str(n), None, None, {}, {"a": {"m": change}}, {}, 0) for n, change in enumerate(changes)]
    interval = Diagnosis(asked, [], ["a", "b"]).costs("a", "m")
    assert interval == pytest.approx((mean, low, high), abs=1e-9)
    assert Diagnosis(asked, [], ["a", "b"]).costs("b", "m") is None


def test_what_the_annotations_do_not_tell_is_unknown() -> None:
    plain = dspy.Example(question=example().question, pool=example().pool, answers=("Aldea",))
    program, _ = prism()
    diagnosis = diagnose(program, [plain.with_inputs("question", "pool")], [answer_f1])
    assert diagnosis.costs("selector", "answer_f1") is None
    assert "answerer" in diagnosis.ranked("answer_f1")
    assert "selector" not in diagnosis.ranked("answer_f1")


def test_another_model_is_a_reference() -> None:
    better, _ = prism()
    assert costs(prism(selector={"keep": ["1s2"]})[0], against=better.selector.lm)["selector"][0] == 1.0


# --- training data ---------------------------------------------------------------------------------------------------


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def read(message: dict[str, Any], signature: type[dspy.Signature]) -> dict[str, Any]:
    assert message["role"] == "assistant"
    fields: dict[str, Any] = dspy.ChatAdapter().parse(signature, message["content"])
    return fields


def test_a_reply_that_gains_points_and_its_own_prompt(tmp_path: Path) -> None:
    program, script = prism(answerer=answer("Paris"))
    diagnosis = diagnose(program, [example()], [answer_f1])
    assert write_pairs(tmp_path, training_pairs([example()], diagnosis, answer_f1)) == 1
    (trained,) = lines(tmp_path / "supervised.jsonl")
    *prompt, taught = trained["messages"]
    asked = script.asked("answerer")[0]
    assert prompt[0] == {"role": "system", "content": asked.system}
    assert [(message["role"], message["content"]) for message in prompt[1:]] == [
        (message.role, message.text) for message in asked.messages
    ]
    signature = program.answerer.signature
    better = read(taught, signature)
    assert better["answer"] == "Aldea"
    assert "Aldea" in better["reasoning"]  # that of the annotations
    (pair,) = lines(tmp_path / "preferences.trl.jsonl")
    assert (pair["prompt"], pair["chosen"]) == (prompt, [taught])
    assert read(pair["rejected"][0], signature)["answer"] == "Paris"
    (other,) = lines(tmp_path / "preferences.openai.jsonl")
    assert other["input"] == {"messages": prompt}
    assert (other["preferred_output"], other["non_preferred_output"]) == (pair["chosen"], pair["rejected"])


def test_another_model_teaches_what_it_does_better() -> None:
    weak, _ = prism(**LOSES)
    strong, _ = prism()
    diagnosis = diagnose(weak, [example()], [answer_f1], against=strong.selector.lm)
    pairs = list(training_pairs([example()], diagnosis, answer_f1, gold=False))
    assert [read(pair.better, weak.selector.signature)["keep"] for pair in pairs] == [GOLD]


def test_a_change_without_a_gain_teaches_nothing() -> None:
    program, _ = prism(**FAILS)
    diagnosis = diagnose(program, [example()], [answer_f1])
    corrected = {role for one in diagnosis.questions for role, calls in one.corrected.items() if calls}
    assert corrected == {"selector", "answerer"}
    taught = list(training_pairs([example()], diagnosis, answer_f1))  # the Selector's better reply gained no answer
    assert [pair.prompt[0]["content"] for pair in taught] == [
        dspy.ChatAdapter().format_system_message(program.answerer.signature)
    ]
