"""The engine behind ``dspy.LM("simulated/...")``; `simulated_lm` and `simulate` make the models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Self

import dspy
from dspy import lm15

from ....engines.lexical.prompt import read_prompt, write_reply
from ....engines.models import roles
from ....engines.replies import read_request, respond
from .agents import FIELDS, Rates, Scene
from .annotations import Annotated, annotate, question_key

_MARK = re.compile(r"\bq([0-9a-f]{8})p(\d+)\b")


def simulated_lm(examples: Iterable[dspy.Example], rates: Rates | None = None, seed: int = 0) -> dspy.LM:
    """A simulated model for the questions of a benchmark: ``program.set_lm(simulated_lm(examples, Rates.alike(0.1)))``.

    Its name has the rates and the seed, which label every record of a run.

    Raises:
        ValueError: see `SimulatedEngine`.
    """
    return _lm(SimulatedEngine(examples, rates or Rates(), seed))


def simulate(
    program: dspy.Module, examples: Iterable[dspy.Example], by_role: Mapping[str, Rates], others: Rates, seed: int = 0
) -> None:
    """Give every agent of a program a simulated model, with rates by role.

    Raises:
        ValueError: an unknown role, or see `SimulatedEngine`.
    """
    if unknown := by_role.keys() - roles(program).keys():
        raise ValueError(f"no role {', '.join(sorted(unknown))}: the roles are {', '.join(roles(program))}")
    engine = SimulatedEngine(examples, others, seed)
    for role, predictors in roles(program).items():
        lm = _lm(engine.with_rates(by_role.get(role, others)))
        for predictor in predictors:
            predictor.lm = lm


def _lm(engine: SimulatedEngine) -> dspy.LM:
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
        self._by_id = {known.id: known for known in self._known.values()}

    def with_rates(self, rates: Rates) -> Self:
        """The same questions and seed with other rates."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, rates=rates)
        return twin

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
        unknown = [name for name in prompt.outputs if name not in FIELDS]
        known, step = self._asked(prompt.inputs.get("question", "(the prompt has no field 'question')"))
        if unknown:
            raise ValueError(f"no agent is simulated that fills {', '.join(unknown)}; known are {', '.join(FIELDS)}")
        scene = Scene(prompt, known, self.rates, self.seed, step)
        return respond(request, write_reply({name: FIELDS[name](scene) for name in prompt.outputs}, prompt.as_json))

    def _asked(self, question: str) -> tuple[Annotated, int | None]:
        """The question, and the gold passage that one step of its plan asks for."""
        if (known := self._known.get(question_key(question))) is not None:
            return known, None
        if (mark := _MARK.search(question)) and mark[1] in self._by_id:
            return self._by_id[mark[1]], int(mark[2])
        raise ValueError(f"the simulation was built without this question: {question[:200]!r}")

    def __deepcopy__(self, memo: dict[int, Any]) -> SimulatedEngine:
        return self  # immutable, and teleprompters copy language models
