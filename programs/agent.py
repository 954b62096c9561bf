"""An agent: a DSPy predictor whose inputs are fenced and fit into a prompt."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from math import log
from typing import Any, ClassVar, Self

import dspy
from dspy.utils.exceptions import ContextWindowExceededError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from ..data.languages import is_english
from ..data.text import content_terms
from ..engines.costs import current_attempt, go_on, record_incident
from ..engines.replies import estimated_tokens
from ..signatures.fields import NumberedPassages, fenced, passages_in
from .adapter import Asking
from .run import current, in_thread, record
from .trace import Shortened, role_of
from .tunable import Tunable

# What `dspy.Predict` takes besides inputs.
_OF_PREDICT = frozenset("config demos lm prediction signature".split())
_IN_ITS_LANGUAGE = "Answer in the language of the question."
_LEAST = 500  # tokens of passages that are shown beside the longest question
_LINE = 4  # tokens of a line's id
_SENTENCE = 10  # tokens; less is not shown


class Agent(dspy.Predict):
    """A `dspy.Predict` that escapes field markers in its inputs and demos, and reads replies leniently: see
    `polyhop.programs.adapter`, which replaces DSPy's adapters for chat and JSON, and no other one.

    Questions and passages are untrusted: ``[[ ## answer ## ]]`` in one of them would start a field of the prompt.

    A call shows at most the run's ``prompt_tokens`` of instructions and inputs: of passages that exceed them, it shows
    the sentences that have most of the inputs' words, and the trace says so. If the prompt exceeds the model's context,
    the agent shows half as much, then no demos; then the error is raised. Inputs that the signature does not name are a
    `TypeError`, and so are missing ones.

    Attributes:
        role: The agent's name in its program; costs are recorded under it.
    """

    role = ""

    def forward(self, **kwargs: Any) -> Any:
        go_on()
        taken, named = self.signature.input_fields, kwargs.keys() - _OF_PREDICT
        if named != taken.keys() and "signature" not in kwargs:
            raise TypeError(
                f"{role_of(self)} takes {', '.join(taken)}, and was given {', '.join(sorted(named)) or 'none'}"
            )
        signature = kwargs.get("signature") or self.signature
        if not is_english(str(kwargs.get("question", ""))):
            signature = signature.with_instructions(f"{signature.instructions}\n{_IN_ITS_LANGUAGE}")
            kwargs["signature"] = signature
        run, demos = current(), shown_demos(signature, kwargs.pop("demos", self.demos))
        if (attempt := current_attempt()) > 1:
            # DSPy's cache also keeps bad replies, with which a retried question would fail again.
            config = kwargs.get("config", {})
            kwargs["config"] = {**config, "rollout_id": 100 * attempt + config.get("rollout_id", 0)}
        others = [
            str(value)
            for name, value in kwargs.items()
            if name not in _OF_PREDICT and not isinstance(value, NumberedPassages)
        ]
        room = max(_LEAST, run.prompt_tokens - sum(map(estimated_tokens, [signature.instructions, *others])))
        if (needed := _tokens(kwargs)) > room:
            kwargs = _best(kwargs, room)
            record(Shortened(role_of(self), round(needed), round(_tokens(kwargs))))
            record_incident("passages shortened")
        adapter = dspy.settings.adapter
        tags = isinstance(adapter, dspy.XMLAdapter)
        if adapter is None or type(adapter) in (dspy.ChatAdapter, dspy.JSONAdapter):
            adapter = Asking(role_of(self), adapter)
        run.trace.calls += 1
        while True:
            try:
                with dspy.context(adapter=adapter):
                    return super().forward(**fenced(kwargs, tags), demos=fenced(demos, tags))
            except ContextWindowExceededError:
                half = _best(kwargs, max(_tokens(kwargs) / 2, _SENTENCE))
                if _tokens(half) < _tokens(kwargs):
                    kwargs = half
                elif demos:
                    demos = []
                else:
                    raise
                record_incident("prompt shortened")

    async def acall(self, **kwargs: Any) -> Any:
        return await in_thread(self, **kwargs)


def shown_demos(signature: type[dspy.Signature], demos: Iterable[Any]) -> list[dspy.Example]:
    """Demos as an agent is shown them, and an artifact has them: the fields of the signature alone, passages as text,
    other values as JSON. A value of another type than its field, such as a question's gold steps where a plan has
    texts, is left out, and so is a demo without an output."""
    shown = []
    for demo in demos:
        fields = dict[str, Any]()
        for name, field in signature.fields.items():
            if (value := demo.get(name)) is None:
                continue
            if isinstance(value, str) or any(dspy.Type.extract_custom_type_from_annotation(field.annotation)):
                fields[name] = value.format() if isinstance(value, NumberedPassages) else value
                continue
            try:
                kind = TypeAdapter(field.annotation)
                fields[name] = kind.dump_python(kind.validate_python(value), mode="json")
            except ValidationError:
                continue
            except PydanticSerializationError:  # of a class of the user's own
                fields[name] = value
        if fields.keys() & signature.output_fields.keys():
            shown.append(dspy.Example(**fields))
    return shown


def _best(inputs: dict[str, Any], tokens: float) -> dict[str, Any]:
    """The inputs with the sentences of their passages that have most of the rare words of the other inputs, and half as
    much of the titles, in so many tokens; of equal ones the first. A sentence gains from its neighbours: what is asked
    often stands beside what names it."""
    lists = {name: value.passages for name, value in inputs.items() if isinstance(value, NumberedPassages)}
    rows = [
        (name, n, number, text)
        for name, passages in lists.items()
        for n, passage in enumerate(passages)
        for number, text in passage.sentences.items()
    ]
    others = (str(value) for name, value in inputs.items() if name not in {*lists, *_OF_PREDICT})
    asked = set(content_terms(" ".join(others)))
    titles = set(content_terms(" ".join(passage.title for passages in lists.values() for passage in passages)))
    terms = [(asked | titles).intersection(content_terms(text)) for *_, text in rows]
    count = Counter(chain.from_iterable(terms))
    weight = {term: log(1 + len(rows) / many) * (1 if term in asked else 0.5) for term, many in count.items()}
    worths = [sum(weight[term] for term in shared) for shared in terms]

    def worth(at: int) -> float:
        beside = (worths[n] for n in (at - 1, at + 1) if 0 <= n < len(rows) and rows[n][:2] == rows[at][:2])
        return worths[at] + max(beside, default=0) / 2

    left, kept = tokens, dict[tuple[str, int], dict[int, str]]()
    for at in sorted(range(len(rows)), key=worth, reverse=True):
        name, n, number, text = rows[at]
        title = 0 if (name, n) in kept else estimated_tokens(lists[name][n].title) + _LINE
        if (cost := estimated_tokens(text) + _LINE + title) > left and kept:
            continue
        kept.setdefault((name, n), {})[number] = text if cost <= left else text[: int(2 * tokens)]
        left -= cost
    return inputs | {
        name: NumberedPassages(
            passages=[
                passage.model_copy(update={"sentences": dict(sorted(kept[name, n].items()))})
                for n, passage in enumerate(passages)
                if (name, n) in kept
            ]
        )
        for name, passages in lists.items()
    }


def _tokens(inputs: dict[str, Any]) -> float:
    """Of the passages among some inputs, estimated."""
    texts = [text for passage in passages_in(inputs) for text in (passage.title, *passage.sentences.values())]
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
