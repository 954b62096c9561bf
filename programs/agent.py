"""An agent: a DSPy predictor whose inputs are fenced and fit into a prompt."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from ..engines.costs import current_attempt, go_on, record_incident
from ..engines.replies import estimated_tokens
from ..signatures.fields import NumberedPassage, NumberedPassages, fenced
from .run import current, in_thread, record
from .trace import Shortened, role_of
from .tunable import Tunable

_LEAST = 500  # tokens of passages that are shown beside the longest question
_LINE = 4  # tokens of a line's id
_SENTENCE = 10  # tokens; less is not shown


class Agent(dspy.Predict):
    """A `dspy.Predict` that escapes field markers in its inputs and demos, with any adapter.

    Questions and passages are untrusted: ``[[ ## answer ## ]]`` in one of them would start a field of the prompt.

    A call shows at most the run's ``prompt_tokens`` of instructions and inputs: the last passages that exceed them are
    left out, and the trace says so. If the prompt exceeds the model's context, the agent shows half as much, then no
    demos; then the error is raised. Inputs that the signature does not name are a `TypeError`, and so are missing ones.

    Attributes:
        role: The agent's name in its program; costs are recorded under it.
    """

    role = ""

    def forward(self, **kwargs: Any) -> Any:
        go_on()
        taken, given = self.signature.input_fields, kwargs.keys() - {"config", "demos", "lm", "prediction", "signature"}
        if given != taken.keys() and "signature" not in kwargs:
            raise TypeError(
                f"{role_of(self)} takes {', '.join(taken)}, and was given {', '.join(sorted(given)) or 'none'}"
            )
        run, demos = current(), kwargs.pop("demos", self.demos)
        if (attempt := current_attempt()) > 1:
            # DSPy's cache also keeps bad replies, with which a retried question would fail again.
            config = kwargs.get("config", {})
            kwargs["config"] = {**config, "rollout_id": 100 * attempt + config.get("rollout_id", 0)}
        others = [str(value) for value in kwargs.values() if not isinstance(value, NumberedPassages)]
        room = max(_LEAST, run.prompt_tokens - sum(map(estimated_tokens, [self.signature.instructions, *others])))
        if (needed := _tokens(kwargs)) > room:
            kwargs = _first(kwargs, room)
            record(Shortened(role_of(self), round(needed), round(_tokens(kwargs))))
            record_incident("passages shortened")
        tags = isinstance(dspy.settings.adapter, dspy.XMLAdapter)
        run.trace.calls += 1
        while True:
            try:
                return super().forward(**fenced(kwargs, tags), demos=fenced(demos, tags))
            except ContextWindowExceededError:
                half = _first(kwargs, max(_tokens(kwargs) / 2, _SENTENCE))
                if _tokens(half) < _tokens(kwargs):
                    kwargs = half
                elif demos:
                    demos = []
                else:
                    raise
                record_incident("prompt shortened")

    async def acall(self, **kwargs: Any) -> Any:
        return await in_thread(self, **kwargs)


def _first(inputs: dict[str, Any], tokens: float) -> dict[str, Any]:
    """The inputs with the first passages in so many tokens, or the start of the first one."""
    left, shown = tokens, dict(inputs)
    for name, value in inputs.items():
        if isinstance(value, NumberedPassages):
            kept: list[NumberedPassage] = []
            for passage in value.passages:
                left -= estimated_tokens(passage.title) + _LINE
                sentences = dict[int, str]()
                for number, text in passage.sentences.items():
                    left -= estimated_tokens(text) + _LINE
                    if left >= 0:
                        sentences[number] = text
                    elif not kept and not sentences:
                        sentences[number] = text[: int(2 * tokens)]
                if sentences:
                    kept.append(passage.model_copy(update={"sentences": sentences}))
            shown[name] = NumberedPassages(passages=kept)
    return shown


def _tokens(inputs: dict[str, Any]) -> float:
    """Of the passages among some inputs, estimated."""
    passages = [each for value in inputs.values() if isinstance(value, NumberedPassages) for each in value.passages]
    texts = [text for each in passages for text in (each.title, *each.sentences.values())]
    return sum(estimated_tokens(text) + _LINE for text in texts)


class Part(dspy.Module):
    """A part of a program: its agents know their names, and ``part.k = 4``, which would replace a tunable by a plain
    number, is refused."""

    shared: ClassVar[tuple[str, ...]] = ()  # attributes that copies share: a retriever is a resource, not state

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        return await in_thread(self, *args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(self.__dict__.get(name), Tunable) and not isinstance(value, Tunable):
            raise TypeError(f"{name} is a tunable: set its value with .{name}.value = {value!r}")
        if isinstance(value, Agent):
            value.role = name
        super().__setattr__(name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo |= {id(value): value for name in self.shared if (value := getattr(self, name)) is not None}
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin
