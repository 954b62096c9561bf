"""Tunables: values with a range that DSPy saves, loads, copies and compiles around."""

from __future__ import annotations

import copy
import itertools
import json
import re
from pathlib import Path
from typing import Any

import dspy
import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import PROGRAMS, Naive, PolyHop, Prism, Program, Tunable, tunables
from polyhop.programs.tunable import choice, conditions_of, integer, real

from .scripted import Request, Script, answer, lm, playing, scripted

POOL = [Passage.of(f"T{n}", sentences=[f"Sentence {n}.", "Another."], id=f"p{n}") for n in range(3)]
SWITCHES = {"analyze": True, "select": True, "add": True}  # stay on, so that every agent is asked
CHANGED: dict[str, Any] = SWITCHES | {
    "search.k": 2, "search.k1": 1.5, "search.b": 0.75, "search.by_document": True, "rounds": 4,
    "bridging": False, "prompt_tokens": 9_000, "abstain_below": 0.2,
}  # fmt: skip


def changed() -> Prism:
    """A program none of whose tunables has its default, but for the switches."""
    program = Prism(PassagePool(POOL))
    for name, tunable in tunables(program).items():
        assert name in SWITCHES or tunable.value != CHANGED[name]
        tunable.value = CHANGED[name]
    return program


def values(program: dspy.Module) -> dict[str, Any]:
    return {name: tunable.value for name, tunable in tunables(program).items()}


# --- one tunable -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 7, 2.0, "2", None, True, float("nan")])
def test_integers_outside_their_range_are_refused(value: Any) -> None:
    tunable = integer(3, 1, 6)
    with pytest.raises(ValueError, match=r"must be an integer in 1\.\.6, got "):
        tunable.value = value
    assert tunable.value == 3
    with pytest.raises(ValueError, match="must be an integer"):
        integer(value, 1, 6)


@pytest.mark.parametrize("value", [-0.1, 1.01, "0.5", None, True, float("nan"), float("inf")])
def test_reals_outside_their_range_are_refused(value: Any) -> None:
    tunable = real(0.5, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"must be a number in 0\.0\.\.1\.0, got "):
        tunable.value = value
    assert tunable.value == 0.5


@pytest.mark.parametrize(
    ("first", "choices", "bad"), [("a", ("a", "b"), "c"), (True, (True, False), 1), (1, (1, 2), 1.0)]
)
def test_choices(first: Any, choices: Any, bad: Any) -> None:
    tunable = choice(first, choices)
    tunable.value = choices[1]
    assert tunable.value == choices[1]
    with pytest.raises(ValueError, match="must be one of"):
        tunable.value = bad
    with pytest.raises(ValueError, match="must be one of"):
        choice(bad, choices)


def test_the_state_tells_the_range_and_loading_keeps_the_declared_one() -> None:
    assert real(0.5, 0.1, 3.0, log=True).dump_state() == {"value": 0.5, "low": 0.1, "high": 3.0, "log": True}
    assert choice(True, (True, False)).dump_state() == {"value": True, "choices": [True, False]}
    tunable = integer(3, 1, 6)
    tunable.load_state({"value": 5, "low": 0, "high": 100})
    assert (tunable.value, tunable.low, tunable.high) == (5, 1, 6)
    with pytest.raises(ValueError, match=r"in 1\.\.6, got 99"):
        tunable.load_state({"value": 99, "low": 0, "high": 100})
    assert tunable.value == 5


# --- in a program ----------------------------------------------------------------------------------------------------


def test_dspy_finds_them_by_name() -> None:
    program = Prism(k=7, rounds=2)
    found = {name: parameter for name, parameter in program.named_parameters() if isinstance(parameter, Tunable)}
    assert {name: tunable.value for name, tunable in found.items()} == {
        "search.k": 7, "search.k1": 0.9, "search.b": 0.4, "search.by_document": False, "rounds": 2,
        "analyze": True, "select": True, "add": True, "bridging": True, "prompt_tokens": 6_000, "abstain_below": 0.0,
    }  # fmt: skip
    assert tunables(program) == found
    assert set(tunables(Naive())) == {
        "search.k",
        "search.k1",
        "search.b",
        "search.by_document",
        "prompt_tokens",
        "abstain_below",
    }
    # They are no predictors: prompt optimizers walk past them.
    assert {name for name, _ in program.named_predictors()} == {
        "analyzer", "selector", "selector_without_bridging", "adder", "answerer",
    }  # fmt: skip


def test_saved_and_loaded_with_the_prompts(tmp_path: Path) -> None:
    program = changed()
    program.selector.signature = program.selector.signature.with_instructions("Keep it all.")
    program.selector.demos = [dspy.Example(question="Q", keep=["1s1"])]
    program.save(tmp_path / "x.json")
    fresh = Prism(PassagePool(POOL))
    fresh.load(tmp_path / "x.json")
    assert values(fresh) == CHANGED
    assert fresh.selector.signature.instructions == "Keep it all."
    assert fresh.selector.demos[0]["keep"] == ["1s1"]
    saved = json.loads((tmp_path / "x.json").read_text())
    assert saved["rounds"] == {"value": 4, "low": 1, "high": 6}


def test_a_state_out_of_range_changes_nothing(tmp_path: Path) -> None:
    changed().save(tmp_path / "x.json")
    state = json.loads((tmp_path / "x.json").read_text())
    state["rounds"]["value"] = 600
    (tmp_path / "x.json").write_text(json.dumps(state))
    program = Prism()
    before = values(program)
    with pytest.raises(ValueError, match="got 600"):
        program.load(tmp_path / "x.json")
    assert values(program) == before


@pytest.mark.parametrize("copier", [copy.deepcopy, dspy.Module.deepcopy, dspy.Module.reset_copy])
def test_copies_keep_the_values_and_are_independent(copier: Any) -> None:
    program = changed()
    twin = copier(program)
    assert values(twin) == CHANGED
    twin.rounds.value = 1
    assert program.rounds.value == 4


# --- through the teleprompters ---------------------------------------------------------------------------------------

TRAINSET = [
    dspy.Example(question=f"Which one is {n}?", answer="yes", pool=POOL).with_inputs("question", "pool")
    for n in range(6)
]


def metric(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float:
    return float(example.answer == prediction.answer)


def optimist() -> Script:
    """Agents that do well, and an optimizer's own prompts answered with whatever fields they ask for."""
    turn = itertools.count()

    def odd(_: Request) -> dict[str, Any]:
        return answer("yes" if next(turn) % 3 else "no")

    def other(request: Request) -> str:
        names = re.findall(r"^\d+\. `(\w+)` \(", request.system.split("Your output fields are:")[-1], re.MULTILINE)
        fields = {name: f"Proposed text {next(turn)}." for name in names}
        if request.as_json:
            return json.dumps(fields)
        return "\n\n".join([*(f"[[ ## {k} ## ]]\n{v}" for k, v in fields.items()), "[[ ## completed ## ]]"])

    script = scripted(selector={"keep": ["1s1"]}, adder={"add": ["2s1"]}, answerer=odd)
    script.replies["other"] = [other]
    return script


def bootstrap(program: Prism, model: dspy.LM) -> dspy.Module:
    return dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=2).compile(program, trainset=TRAINSET)


def test_bootstrapped_demos_reach_every_agent_and_survive_a_saved_program(tmp_path: Path) -> None:
    script = optimist()
    with playing(script):
        compiled = bootstrap(changed(), lm(script))
        compiled.save(tmp_path / "x.json")
        fresh = Prism(PassagePool(POOL))
        fresh.load(tmp_path / "x.json")
        script.requests.clear()
        compiled(question="Which one is it?")
        before, after = list(script.requests), len(script.requests)
        fresh(question="Which one is it?")
    assert before
    assert [request.messages for request in script.requests[after:]] == [request.messages for request in before]
    for request in before:
        assert request.demos >= 2, request.agent
    demo = next(request for request in before if request.agent == "selector").messages[0].text
    assert "\n1s1 Sentence " in demo  # passages as an agent reads them, not their JSON


def test_what_a_tunable_needs_is_told_by_its_full_name() -> None:
    assert conditions_of(Prism()) == {"bridging": ("select", (True,))}
    chain = conditions_of(PolyHop(ChainRetriever()))
    assert chain["search.chain['enough']"] == ("search.chain['adaptive']", (True,))
    assert chain["confidence.slope"] == ("confidence.adaptive", (True,))


@pytest.mark.parametrize("kind", PROGRAMS.values())
def test_every_need_names_a_tunable_and_some_of_its_values(kind: type[Program]) -> None:
    program = kind.over(ChainRetriever())
    known = tunables(program)
    for name, (other, wanted) in conditions_of(program).items():
        for value in wanted:
            known[other].value = value
        assert name in known


def test_polyhop_has_few_tunables_of_its_own() -> None:
    own = {name for name in tunables(PolyHop()) if "." not in name} - {"prompt_tokens", "abstain_below"}
    assert own == {"rounds", "first", "shown", "easy", "sure", "review"}


def test_optimizers_leave_the_weights_of_a_retriever_alone() -> None:
    weights = [each for name, each in tunables(PolyHop(ChainRetriever())).items() if "chain[" in name]
    assert len(weights) > 5
    assert all(each.usual == (each.value, each.value) for each in weights)


def test_a_tunable_is_not_replaced_by_a_number() -> None:
    program = Prism()
    with pytest.raises(TypeError, match=r"rounds\.value = 4"):
        program.rounds = 4  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"k\.value = 4"):
        program.search.k = 4  # type: ignore[assignment]
    program.rounds = integer(2, 1, 3)
    assert program.rounds.value == 2
