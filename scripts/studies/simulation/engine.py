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

    Its name has the rates and the seed, which label every record of a run.

    Raises:
        ValueError: see `SimulatedEngine`.
    """
    engine = SimulatedEngine(examples, rates or Rates(), seed)
    settings = ",".join(f"{name}={value:g}" for name, value in engine.simulation.items())
    return dspy.LM(f"simulated/{settings}", engine=engine, cache=False)


class SimulatedEngine:
    """Simulates agents from the annotations of their questions, with errors at stated rates.

    Pseudo-random numbers are hashes of the seed, the prompt's inputs and the item: the same prompt gets the same reply
    in any thread, process and order, as from a model at temperature 0. Errors nest: an error at a rate of 5% also
    occurs at 10%. DSPy refuses to save a program with this model, since the gold evidence would have to be saved, too.

    Args:
        examples: Questions with their gold evidence and pools, as the loaders give them.

    Raises:
        ValueError: a question has no gold evidence, or two equal questions have different evidence.
    """

    writes_prompts = False

    def __init__(self, examples: Iterable[dspy.Example], rates: Rates, seed: int = 0) -> None:
        self.rates, self.seed = rates, seed
        self._known = annotate(examples)

    @property
    def simulation(self) -> dict[str, float]:
        """The label in manifests."""
        return {**asdict(self.rates), "seed": self.seed}

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Simulate the agent of the prompt.

        Raises:
            ValueError: the prompt has an unknown format, question or output field.
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
