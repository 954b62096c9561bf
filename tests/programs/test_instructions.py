"""Every instruction reaches the model: it is tagged, and the tag is found in what was sent."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.programs import PROGRAMS, Complexity, ParRag, PolyHop, new_program, tunables

from .scripted import Script, answer, playing, scripted

POOL = [
    Passage.of("Vertigo", sentences=["Vertigo is a film.", "It was directed by Alfred Hitchcock."]),
    Passage.of("Alfred Hitchcock", sentences=["He made films.", "He came from Leytonstone."]),
    Passage.of("Leytonstone", sentences=["Leytonstone is a part of London."]),
]
QUESTION = "Where was the director of Vertigo born?"
PLAN = ["Who directed Vertigo?", "Where was #1 born?"]
OPEN = {"answers": ["Alfred Hitchcock [1s2]", "unknown"], "keep": ["1s2"], "required": ["Hitchcock Leytonstone"]}


def busy() -> Script:
    """Replies with which as many agents as possible are asked."""
    return scripted(
        analyzer={"sub_questions": PLAN},
        planner={"route": "plan", "sub_questions": PLAN, "steps": [{"thought": "", "question": each} for each in PLAN]},
        gatherer=OPEN,
        router=[{"route": "plan", "query": ""}, {"route": "single", "query": ""}, {"route": "direct", "query": ""}],
        roadmap={"roadmap": PLAN},
        decider=[
            {"thought": "", "action": "retrieve", "query": "Vertigo"},
            {"thought": "", "action": "answer", "query": ""},
        ],
        filter={"thoughts": "", "useful": [1]},
        reasoner=[{"next_thought": "Hitchcock directed it."}, {"next_thought": "So the answer is: Leytonstone."}],
        selector={"keep": ["1s2"]},
        adder={"add": ["2s2"]},
        querier={"queries": ["Alfred Hitchcock"], "diversity": 0.5},
        updater={"new_facts": ["He directed it. (1s2)"], "contradicted": [], "gaps": ["Where was he born?"]},
        filterer={"spans": ["1s2"], "supported": ["1s2"]},
        verifier={"attribution": "contradictory", "accuracy": 0.0, "correction": "London"},
        refiner={"refined_question": "Where was Alfred Hitchcock born?"},
        accuracy_judge={"accuracy": 0.0},
        attribution_judge={"attribution": "contradictory"},
        step_answerer={"cited": ["1"], "answer": "Alfred Hitchcock"},
        answerer=answer("Leytonstone", 0.1),
    )


OFF: dict[str, dict[tuple[str, Any], set[str]]] = {
    "prism": {
        ("analyze", False): {"analyzer"},
        ("select", False): {"selector"},
        ("add", False): {"adder"},
        ("bridging", False): {"selector"},
        ("rounds", 1): set(),
    },
    "kair": {("agents", 3): set(), ("roles", True): set(), ("moderated", True): set()},
    "par_rag": {
        ("planned", False): {"planner", "refiner"},
        ("review.judges", "accuracy"): {"review.attribution_judge"},
        ("review.judges", "credibility"): {"review.accuracy_judge"},
        ("review.judges", "none"): {"review.accuracy_judge", "review.attribution_judge", "review.reviser"},
        ("review.confidence.adaptive", False): set(),
        ("exemplars.mode", "none"): set(),
        ("misjudged", 1): set(),
    },
    "c3po": {
        ("routes", "direct"): {"router", "planner", "filter", "step_filter", "decider", "answerer"},
        ("routes", "single"): {"router", "planner", "step_filter", "decider", "knower"},
        ("routes", "plan"): {"router", "filter", "knower"},
    },
}
"""By program and ablation the agents that it switches off."""
ON = {"prism": {("bridging", False): {"selector_without_bridging"}}, "kair": {("moderated", True): {"moderator"}}}
"""And those that only it asks."""


def tagged(name: str, setting: tuple[str, Any] | None) -> tuple[set[str], set[str]]:
    """The agents of a program, and those whose instruction was sent for one of a few questions."""
    program = new_program(name)
    if isinstance(program, ParRag | PolyHop):
        program.estimator = lambda question: Complexity.of(2)
    if setting:
        tunables(program)[setting[0]].value = setting[1]
    agents = dict(program.named_predictors())
    for path, agent in agents.items():
        agent.signature = agent.signature.with_instructions(f"{agent.signature.instructions} <{path} 4711>")
    with playing(busy()) as script:
        for _ in range(3):  # the router goes three ways
            program(question=QUESTION, pool=POOL)
        if name == "polyhop":
            script.replies["planner"] = [{"route": "direct", "sub_questions": [], "steps": []}]
            program(question=QUESTION, pool=POOL)
    return set(agents), {path for path in agents if any(f"<{path} 4711>" in each.system for each in script.requests)}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "oracle"])
def test_every_instruction_is_sent(name: str) -> None:
    agents, sent = tagged(name, None)
    assert agents - sent == set().union(*ON.get(name, {}).values())


def test_two_agents_of_a_program_never_share_a_prompt() -> None:
    for name in PROGRAMS:
        prompts = [agent.signature.instructions for _, agent in new_program(name).named_predictors()]
        assert len(set(prompts)) == len(prompts)
        assert all(isinstance(agent, dspy.Predict) for _, agent in new_program(name).named_predictors())
