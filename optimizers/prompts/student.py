"""The copy of a program that a teleprompter works on, and the way back from what it makes of it.

Teleprompters forget the models of agents (`Predict.reset`), hang their records on programs, freeze them, and make demos
of everything that an agent was shown. So they get a copy whose agents keep their models, and of the result only what
they are for is taken over: instructions and demos. Tunables, exemplars, models and the class stay the program's own.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from ...data.errors import PolyhopError
from ...programs.agent import Agent
from ...programs.trace import Trace
from ...signatures import NumberedPassages

_DISTRACTORS = 2  # passages in a demo that nothing in it refers to
_ID = re.compile(r"(?<![\w#.])(\d{1,3})(?:s\d{1,3})?(?![\w.])")


class _Seat(dspy.Predict):
    """A predictor that keeps its model, and shares it with its copies: a model may count what is spent.

    With ``brief`` it leaves a trace that makes short demos.
    """

    brief = False

    def reset(self) -> None:
        lm = getattr(self, "lm", None)
        super().reset()
        self.lm = lm

    def __deepcopy__(self, memo: dict[int, Any]) -> _Seat:
        memo[id(self.lm)] = self.lm
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin

    def _forward_postprocess(self, completions: Any, signature: Any, **kwargs: Any) -> dspy.Prediction:
        prediction = super()._forward_postprocess(completions, signature, **kwargs)
        trace = dspy.settings.trace
        if self.brief and trace and trace[-1][0] is self:
            trace[-1] = (self, shortened(trace[-1][1], prediction), prediction)
        return prediction


def _seat(kind: Any) -> Any:
    """The class of a predictor, as a seat, under its old name: MIPROv2 shows the source of what is not a Predict. Ours
    are no more than that."""
    if issubclass(kind, _Seat):
        return kind
    name = dspy.Predict.__name__ if issubclass(kind, Agent) else kind.__name__
    return type(name, (_Seat, kind), {"__module__": kind.__module__})


def is_agent(predictor: dspy.Predict) -> bool:
    """Whether a predictor is one of a program that is being compiled, and not the teleprompter's own."""
    return isinstance(predictor, _Seat)


def prepared(program: dspy.Module, *, brief: bool = False) -> dspy.Module:
    """A copy of the program to compile, with a model for each predictor.

    Args:
        brief: Of the passages that an agent was shown, its demos hold those that matter and a few others.

    Raises:
        PolyhopError: there is no predictor, or no model for one of them.
    """
    student = program.deepcopy()
    student._compiled = False  # such are refused, although all of them compile again
    given = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    if not given or None in given:
        raise PolyhopError(
            "the program has no language model: call program.set_lm(...) or dspy.configure(lm=...) before"
            if given
            else "the program has no agents (dspy.Predict), so there are no prompts to optimize"
        )
    for predictor, lm in zip(student.predictors(), given, strict=True):
        predictor.__class__ = _seat(predictor.__class__)
        predictor.lm, predictor.brief = lm, brief
    return student


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
    """What an agent was asked, with those of its passages that the reply or the other inputs name by id, and the first
    few others. They keep their numbers, and are the text that models read: DSPy draws among an agent's demos by their
    pickle, and that of passages is another in every process."""
    said = [value for value in inputs.values() if not isinstance(value, NumberedPassages)]
    named = {int(number) for number in _ID.findall(" ".join(map(str, [*said, *outputs.values()])))}
    return {
        name: _few(value, named).format() if isinstance(value, NumberedPassages) else value
        for name, value in inputs.items()
    }


def _few(shown: NumberedPassages, named: set[int]) -> NumberedPassages:
    others = [passage.number for passage in shown.passages if passage.number not in named][:_DISTRACTORS]
    return NumberedPassages(passages=[each for each in shown.passages if each.number in named.union(others)])


def with_steps(prediction: Any, predictions: Sequence[Any]) -> Any:
    """A prediction with the steps of several in its trace, one after the other, so that it shows what they cost; one
    without a trace as it is."""
    if not isinstance(prediction.get("trace"), Trace):
        return prediction
    steps = [step for each in predictions for step in each.trace.steps]
    return dspy.Prediction(**{**prediction, "trace": Trace(steps)})
