"""The copy of a program that an optimizer works on, and the way back to a program.

DSPy's optimizers reset the models of agents, attach records to programs and make demos of everything that an agent was
shown. So they get a copy whose predictors keep their models, and only instructions and demos are taken from the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import dspy

from ...data.errors import PolyhopError
from ...programs.trace import Trace
from ...signatures import NumberedPassages

_DISTRACTORS = 2  # passages in a demo that nothing in it refers to
_ID = re.compile(r"(?<![\w#.])(\d{1,3})(?:s\d{1,3})?(?![\w.])")


class StudentPredictor(dspy.Predict):
    """Runs another predictor with its own prompt and model. It keeps the model when it is reset, and shares it with its
    copies, since a model may count what is spent. With ``brief``, demos in DSPy's trace have few passages.
    """

    def __init__(self, predictor: dspy.Predict, lm: Any, brief: bool) -> None:
        super().__init__(predictor.signature)
        self.demos, self.fields, self.config = list(predictor.demos), dict(predictor.fields), predictor.config
        self.lm, self.brief = lm, brief
        self.run = partial(predictor)  # the predictor as an attribute would be a part of the program

    def reset(self) -> None:
        lm = getattr(self, "lm", None)
        super().reset()
        self.lm = lm

    def __deepcopy__(self, memo: dict[int, Any]) -> StudentPredictor:
        twin = StudentPredictor.__new__(StudentPredictor)
        memo[id(self)] = twin
        twin.__dict__.update(self.__dict__, demos=list(self.demos), fields=dict(self.fields))
        return twin

    def forward(self, **kwargs: Any) -> Any:
        trace = dspy.settings.trace
        # Copies: programs go on to append to lists that agents were shown.
        inputs = {name: copy(kwargs[name]) for name in self.signature.input_fields if name in kwargs}
        with dspy.context(trace=None):
            prediction = self.run(**{"signature": self.signature, "demos": self.demos, "lm": self.lm, **kwargs})
        if trace is not None:
            trace.append((self, shortened(inputs, prediction) if self.brief else inputs, prediction))
        return prediction


def prepared(program: dspy.Module, *, brief: bool = False) -> dspy.Module:
    """A copy of the program to compile, with a model for each predictor. With ``brief``, demos have only the passages
    that matter to them and a few others.
    """
    models = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    if not models:
        raise PolyhopError("the program has no agents (dspy.Predict), so there are no prompts to optimize")
    if None in models:
        raise PolyhopError(
            "the program has no language model: call program.set_lm(...) or dspy.configure(lm=...) first"
        )
    student = program.deepcopy()
    if isinstance(student, dspy.Predict):
        return StudentPredictor(student, models[0], brief)
    remaining = iter(models)
    return student.map_named_predictors(lambda predictor: StudentPredictor(predictor, next(remaining), brief))


def transplanted(program: dspy.Module, compiled: dspy.Module) -> dspy.Module:
    """A copy of the program with the instructions and demos of a compiled one."""
    result = program.deepcopy()
    found = dict(compiled.named_predictors())
    for (name, predictor), own in zip(result.named_predictors(), program.predictors(), strict=True):
        predictor.lm = own.lm
        predictor.demos = [dspy.Example(**demo) for demo in found[name].demos if dict(demo)]
        instructions = found[name].signature.instructions
        if instructions != own.signature.instructions:
            predictor.signature = own.signature.with_instructions(instructions)
    return result


def shortened(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    """An agent's inputs with only the passages that the reply or the other inputs cite, and the first few others.

    Passages keep their numbers and become text: DSPy draws among an agent's demos by their pickle, which for passages
    differs between processes.
    """
    texts = [value for value in inputs.values() if not isinstance(value, NumberedPassages)]
    cited = {int(number) for number in _ID.findall(" ".join(map(str, [*texts, *outputs.values()])))}
    return {
        name: _few(value, cited).format() if isinstance(value, NumberedPassages) else value
        for name, value in inputs.items()
    }


def _few(shown: NumberedPassages, cited: set[int]) -> NumberedPassages:
    others = [passage.number for passage in shown.passages if passage.number not in cited][:_DISTRACTORS]
    return NumberedPassages(passages=[each for each in shown.passages if each.number in cited.union(others)])


def with_steps(prediction: Any, predictions: Sequence[Any]) -> Any:
    """A prediction whose trace holds the steps of several predictions, so that it shows their cost; unchanged if it has
    no trace."""
    if not isinstance(prediction.get("trace"), Trace):
        return prediction
    steps = [step for each in predictions for step in each.trace.steps]
    calls = sum(each.trace.lm_calls for each in predictions)
    return dspy.Prediction(**{**prediction, "trace": Trace(steps, calls)})
