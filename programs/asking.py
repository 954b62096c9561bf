"""Ask any DSPy program a question as polyhop's own are asked: with the inputs that it takes, and with a trace.

    prediction = ask(program, example)

A `Program` records its own steps. Of any other `dspy.Module`, each call of a predictor is a step, under the name of the
predictor; what `Search` and `record` add inside of it is in the trace, too.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

import dspy
from dspy.utils.callback import BaseCallback

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Passage
from ..engines.models import name_predictors
from .agent import Agent
from .prediction import UNKNOWN, Prediction
from .program import Program
from .run import Run, running
from .trace import Replied, Trace

T = TypeVar("T")


def ask(program: dspy.Module, example: dspy.Example, **more: Any) -> dspy.Prediction:
    """The prediction of a program; ``trace`` is a `Trace`, unless the program returns a field of that name.

    Args:
        more: Further inputs.
    """
    inputs = inputs_of(program, example) | more
    if isinstance(program, Program):
        found: dspy.Prediction = program(**inputs)
        return found
    name_predictors(program)
    run = Run(example.get("question") or "", more.get("pool", example.get("pool")))
    callbacks = [*(dspy.settings.callbacks or ()), _Steps(run.trace)]
    with running(run), dspy.context(callbacks=callbacks):
        prediction = program(**inputs)
    if isinstance(prediction, dspy.Prediction):
        if "trace" not in prediction:
            prediction.trace = run.trace
        if run.seen and "ranking" not in prediction:
            prediction.ranking = tuple({hit.passage.id: hit.passage for hit in run.seen}.values())
    return prediction


def completed(prediction: dspy.Prediction) -> dspy.Prediction:
    """A prediction for people, with what `conclude` gives it: where a program returns no answer, its first field."""
    found = prediction if isinstance(prediction, dspy.Prediction) else dspy.Prediction(answer=str(prediction))
    if isinstance(found, Prediction):
        return found
    own = {name: value for name, value in found.items() if name not in ("trace", "ranking", "reasoning")}
    trace, confidence = found.get("trace"), found.get("confidence")
    return Prediction(
        answer=str(own.get("answer", next(iter(own.values()), UNKNOWN))),
        evidence=items_of(found, "evidence", Evidence) or (),
        ranking=items_of(found, "ranking", Passage) or (),
        confidence=confidence if isinstance(confidence, float) else None,
        status="not checked",
        trace=trace if isinstance(trace, Trace) else Trace(),
        guess="",
        stop_reason=str(found.get("stop_reason") or "end"),
    )


def items_of(prediction: dspy.Prediction, name: str, kind: type[T]) -> tuple[T, ...] | None:
    """The items of a field; None if there is none, or a program that is not polyhop's has other content in it."""
    found = prediction.get(name)
    if not isinstance(found, list | tuple) or not all(isinstance(item, kind) for item in found):
        return None
    return tuple(found)


def inputs_of(program: dspy.Module, example: dspy.Example) -> dict[str, Any]:
    """The inputs of a question that a program takes. A program with a single input of another name, such as ``claim``,
    takes the question under that name.

    Raises:
        PolyhopError: the question lacks an input.
    """
    required, taken = takes(program)
    try:
        given = {name: value for name, value in example.inputs().items() if value is not None}
    except ValueError:  # an example without `with_inputs`
        given = {name: value for name, value in example.items() if name in (taken or ("question",))}
    if taken is None:
        return given
    missing = [name for name in required if name not in given]
    if "question" in given and "question" not in taken and len(missing) == 1:
        given[missing.pop()] = given["question"]
    if missing:
        raise PolyhopError(
            f"{type(program).__name__} takes {', '.join(taken)}; the question has no {missing[0]!r}, but "
            f"{', '.join(given) or 'no inputs'}"
        )
    return {name: value for name, value in given.items() if name in taken}


def as_asked(program: dspy.Module, example: dspy.Example) -> dspy.Example:
    """An example whose inputs are those that a program takes, for optimizers that pass on all of them."""
    inputs = inputs_of(program, example)
    return example.copy(**inputs).with_inputs(*inputs)


def takes(program: dspy.Module) -> tuple[list[str], list[str] | None]:
    """The names of the inputs that a program requires, and of all that it takes; None if it takes any."""
    own = vars(program).get("forward")  # DSPy warns of reading `program.forward`
    parameters = [*inspect.signature(own or type(program).forward).parameters.values()][own is None :]
    named = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    required = [each.name for each in named if each.default is each.empty]
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        return required, [each.name for each in named]
    # dspy.Predict, ChainOfThought and ReAct say in a signature what they take.
    predictors = program.predictors()
    signature = getattr(program, "signature", None) or (predictors[0].signature if len(predictors) == 1 else None)
    if signature is None or isinstance(program, Program):
        return required, None
    fields = list(signature.input_fields)
    return fields, fields


class _Steps(BaseCallback):
    """Records the calls of predictors in a trace, from any thread."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._asked = trace, dict[str, dspy.Predict]()

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        if isinstance(instance, dspy.Predict) and not isinstance(instance, Agent):
            self._trace.calls += 1
            self._asked[call_id] = instance

    def on_module_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        predictor = self._asked.pop(call_id, None)
        if predictor is not None and isinstance(outputs, dspy.Prediction):
            said = tuple((name, str(outputs[name])) for name in predictor.signature.output_fields if name in outputs)
            self._trace.add(Replied(str(getattr(predictor, "role", "")), said))
