"""The engine behind ``dspy.LM("simulated/...")``; `simulated_lm` makes the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import dspy
from dspy import lm15

from ....engines.lexical.prompt import read_prompt, write_reply
from ....engines.requests import read_request, respond
from .agents import FIELDS, Rates, Scene
from .annotations import annotate, question_key


def simulated_lm(examples: Iterable[dspy.Example], rates: Rates | None = None, seed: int = 0) -> dspy.LM:
    """A simulated model for the questions of a benchmark: ``program.set_lm(simulated_lm(examples, Rates.alike(0.1)))``.

    Its name carries the rates and the seed, so that no record of a run can hide what it was.

    Raises:
        ValueError: see `SimulatedEngine`.
    """
    engine = SimulatedEngine(examples, rates or Rates(), seed)
    settings = ",".join(f"{name}={value:g}" for name, value in engine.simulation.items())
    return dspy.LM(f"simulated/{settings}", engine=engine, cache=False)


class SimulatedEngine:
    """Plays agents from the annotations of their questions, with errors at stated rates.

    Everything is drawn by hash from the seed, the inputs of the prompt, and the item in question. So the same prompt
    always gets the same reply, in any thread, process and order of calls, as from a model at temperature 0: a round
    that is given the same candidates and the same selected ids makes the same errors again, and a round whose
    ``selected`` differs in one id makes new ones. And errors nest: what goes wrong in a prompt at a rate of 5% goes
    wrong in the same prompt at 10%.

    DSPy refuses to save a program with this model, for the gold evidence would have to go along.

    Args:
        examples: Questions with their gold evidence and pools, as the loaders give them.

    Raises:
        ValueError: a question has no gold evidence, or two of the same words have not the same.
    """

    writes_prompts = False

    def __init__(self, examples: Iterable[dspy.Example], rates: Rates, seed: int = 0) -> None:
        self.rates, self.seed = rates, seed
        self._known = annotate(examples)

    @property
    def simulation(self) -> dict[str, float]:
        """What is simulated: by this, manifests know that a run was one."""
        return {**asdict(self.rates), "seed": self.seed}

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Play the agent that the prompt describes.

        Raises:
            ValueError: the prompt is in no dialect that is read, its question is not among the examples, or it asks for
                fields that nothing is known about.
        """
        system, messages = read_request(request)
        prompt = read_prompt(system, messages[-1].text)
        known = self._known.get(question_key(prompt.inputs.get("question", "")))
        if known is None:
            question = prompt.inputs.get("question", "(the prompt has no field 'question')")
            raise ValueError(f"the simulation was built without this question: {question[:200]!r}")
        unknown = [name for name in prompt.outputs if name not in FIELDS]
        if unknown:
            raise ValueError(f"no agent is simulated that fills {', '.join(unknown)}; known are {', '.join(FIELDS)}")
        scene = Scene(prompt, known, self.rates, self.seed)
        return respond(request, write_reply({name: FIELDS[name](scene) for name in prompt.outputs}, prompt.as_json))

    def __deepcopy__(self, memo: dict[int, Any]) -> SimulatedEngine:
        return self  # immutable, and teleprompters copy language models
