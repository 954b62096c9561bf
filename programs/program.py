"""The base class of programs, the programs by name, and how any `dspy.Module` is asked a question:

    prediction = ask(program, example)

A `Program` records its own steps. Of any other module each call of a predictor is a step, under the name of the
predictor; what `Search` and `record` add inside of it is in the trace, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import dspy
from dspy.streaming import StatusMessageProvider
from dspy.utils.callback import BaseCallback

from ..data.errors import PolyhopError
from ..data.passages import ON_TOOL_SEARCH, Evidence, Hit, Passage, Retriever
from ..engines.models import name_predictors
from .agent import Agent, Part
from .prediction import UNKNOWN, Prediction, check_question
from .run import ABSTAIN_BELOW, PROMPT_TOKENS, Pool, Run, running
from .search import Search
from .trace import Replied, Searched, Trace, asking
from .tunable import integer, real

P = TypeVar("P", bound="type[Program]")
T = TypeVar("T")

PROGRAMS: dict[str, type[Program]] = {}
"""The registered programs by name; `polyhop.programs` imports all of them."""


class Program(Part):
    """A `dspy.Module` that answers a question over its own passages (``pool``), or over the program's retriever, its
    first argument: ``forward(question, pool=None)`` runs inside a `Run` of that question.

    ``prompt_tokens`` is what one call of an agent may show, ``abstain_below`` the least confidence of an answer; with
    a lower one it is "unknown".
    """

    searches: ClassVar[bool] = True  # whether the program takes a retriever
    reads_gold: ClassVar[bool] = False  # whether an evaluation passes it a question's gold evidence, as ``gold``
    shown_exemplars: ClassVar[tuple[str, ...]] = ()  # the agents that get exemplars as additional demos at each call
    role_groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # agents that ``--lm GROUP=SPEC`` gives a model together

    def __init__(self, abstain_below: float = ABSTAIN_BELOW) -> None:
        super().__init__()
        # Optimizers leave the budget as it is unless they are given a range.
        usual = (PROMPT_TOKENS, PROMPT_TOKENS)
        self.prompt_tokens = integer(PROMPT_TOKENS, 1_000, 1_000_000, log=True, usual=usual)
        self.abstain_below = real(abstain_below, 0.0, 1.0)

    def __call__(self, question: str, pool: Pool = None, **inputs: Any) -> Any:
        run = Run(check_question(question), pool, self.prompt_tokens.value, self.abstain_below.value)
        inputs |= {} if pool is None else {"pool": pool}
        with running(run):
            return super().__call__(question=run.question, **inputs)

    def answer(self, question: str) -> dspy.Prediction:
        """Answer a question whose evidence is spread over several documents, with the sentences that support it."""
        return self(question)


def register(name: str) -> Callable[[P], P]:
    """Class decorator: make a program available by name, on the command line and in artifacts."""

    def add(kind: P) -> P:
        PROGRAMS[name] = kind
        return kind

    return add


def new_program(name: str, retriever: Retriever | None = None) -> Program:
    """An untuned program by name, over a retriever if it searches."""
    kind: Any = PROGRAMS[name]
    program: Program = kind(retriever) if kind.searches else kind()
    return program


def name_of(program: dspy.Module) -> str | None:
    """The registered name of a program; None for any other module, including subclasses of programs."""
    return next((name for name, kind in PROGRAMS.items() if type(program) is kind), None)


# --- any program ------------------------------------------------------------------------------------------------------


def ask(program: dspy.Module, example: dspy.Example, **more: Any) -> dspy.Prediction:
    """The prediction of a program for a question, with further inputs if it takes them; ``trace`` is a `Trace`, unless
    the program returns a field of that name. DSPy's histories and its own trace, which would keep the last 10,000
    calls, are off."""
    inputs, quiet = inputs_of(program, example) | more, dspy.context(disable_history=True, trace=None)
    if isinstance(program, Program):
        with quiet:
            answered: dspy.Prediction = program(**inputs)
            return answered
    name_predictors(program)
    run = Run(example.get("question") or "", more.get("pool", example.get("pool")))

    def searched(query: str, hits: list[Hit], offset: int) -> None:
        run.trace.add(
            Searched(query, tuple((hit.passage.id, hit.passage.title, hit.score) for hit in hits), (), offset)
        )

    token = ON_TOOL_SEARCH.set(searched)
    try:
        with running(run), quiet, dspy.context(callbacks=[*(dspy.settings.callbacks or ()), _Steps(run.trace)]):
            prediction = program(**inputs)
    finally:
        ON_TOOL_SEARCH.reset(token)
    if isinstance(prediction, dspy.Prediction):
        if "trace" not in prediction:
            prediction.trace = run.trace
        if run.seen and "ranking" not in prediction:
            prediction.ranking = tuple(run.passages.values())
    return prediction


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
            values = tuple((name, str(outputs[name])) for name in predictor.signature.output_fields if name in outputs)
            self._trace.add(Replied(str(getattr(predictor, "role", "")), values))


def completed(prediction: dspy.Prediction) -> Prediction:
    """A prediction for people, with what `conclude` gives it: where a program returns no answer, its first field."""
    if isinstance(prediction, Prediction):
        return prediction
    result = prediction if isinstance(prediction, dspy.Prediction) else dspy.Prediction(answer=str(prediction))
    outputs = {name: value for name, value in result.items() if name not in ("trace", "ranking", "reasoning")}
    trace, confidence = result.get("trace"), result.get("confidence")
    return Prediction(
        answer=str(outputs.get("answer", next(iter(outputs.values()), UNKNOWN))),
        evidence=items_of(result, "evidence", Evidence) or (),
        ranking=items_of(result, "ranking", Passage) or (),
        confidence=confidence if isinstance(confidence, float) else None,
        status="not checked",
        trace=trace if isinstance(trace, Trace) else Trace(),
        guess="",
        stop_reason=str(result.get("stop_reason") or "end"),
    )


def items_of(prediction: dspy.Prediction, name: str, kind: type[T]) -> tuple[T, ...] | None:
    """The items of a field; None if there is none, or a program that is not polyhop's has other content in it."""
    items = prediction.get(name)
    if not isinstance(items, list | tuple) or not all(isinstance(item, kind) for item in items):
        return None
    return tuple(items)


def inputs_of(program: dspy.Module, example: dspy.Example) -> dict[str, Any]:
    """The inputs of a question that a program takes. A program with a single input of another name, such as ``claim``,
    takes the question under that name.

    Raises:
        PolyhopError: the question lacks an input.
    """
    required, taken = takes(program)
    try:
        inputs = {name: value for name, value in example.inputs().items() if value is not None}
    except ValueError:  # an example without `with_inputs`
        inputs = {name: value for name, value in example.items() if name in (taken or ("question",))}
    if taken is None:
        return inputs
    missing = [name for name in required if name not in inputs]
    if "question" in inputs and "question" not in taken and len(missing) == 1:
        inputs[missing.pop()] = inputs["question"]
    if missing:
        raise PolyhopError(
            f"{type(program).__name__} takes {', '.join(taken)}; the question has no {missing[0]!r}, but "
            f"{', '.join(inputs) or 'no inputs'}"
        )
    return {name: value for name, value in inputs.items() if name in taken}


def as_asked(program: dspy.Module, example: dspy.Example) -> dspy.Example:
    """An example whose inputs are those that a program takes, for optimizers that pass on all of them."""
    inputs = inputs_of(program, example)
    return example.copy(**inputs).with_inputs(*inputs)


def takes(program: dspy.Module) -> tuple[list[str], list[str] | None]:
    """The names of the inputs that a program requires, and of all that it takes; None if it takes any."""
    forward = vars(program).get("forward")  # DSPy warns of reading `program.forward`
    parameters = [*inspect.signature(forward or type(program).forward).parameters.values()][forward is None :]
    variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    named = [parameter for parameter in parameters if parameter.kind not in variable]
    required = [parameter.name for parameter in named if parameter.default is parameter.empty]
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return required, [parameter.name for parameter in named]
    # dspy.Predict, ChainOfThought and ReAct say in a signature what they take.
    predictors = program.predictors()
    signature = getattr(program, "signature", None) or (predictors[0].signature if len(predictors) == 1 else None)
    if signature is None or isinstance(program, Program):
        return required, None
    fields = list(signature.input_fields)
    return fields, fields


class StatusMessages(StatusMessageProvider):
    """The messages of `dspy.streamify` on a program: searches, and agents that are asked."""

    def module_start_status_message(self, instance: Any, inputs: dict[str, Any]) -> str | None:
        if isinstance(instance, dspy.Predict):
            return asking(instance)
        if isinstance(instance, Search):
            query = inputs.get("query") or next(iter(inputs.get("args") or ()), "")
            return f"searching for “{query}”"
        return None
