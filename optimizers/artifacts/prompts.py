"""The prompt of each agent as an adapter sends it, for use without DSPy.

    for prompt in prompts(program):
        print(prompt.agent, prompt.messages)

In the last message of a prompt ``{{name}}`` stands in the place of an input. How an input is written there is told by
its format, `FORMATS`; how a reply is read, by `REPLIES`. Put in all inputs at once, or what stands in one of them may
be taken for the place of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import dspy

from ...data.errors import PolyhopError
from ...engines.models import roles
from ...programs.agent import Agent
from ...signatures import NumberedPassages
from ...signatures.fields import fenced
from .agents import field_states
from .schema import FieldState

AdapterName = Literal["chat", "json"]

FORMATS = {
    "text": (
        'The text itself, as it is; polyhop has broken up the markers of fields in it before, with a space between "[" '
        'and "[" where "##" or nothing follows, and between "<" and "<" before "CUSTOM-TYPE" or "/CUSTOM-TYPE".'
    ),
    "passages": (
        'A line for each passage, its number in brackets and its title, such as "[2] John Farrow" ("(untitled)" if it '
        'has none), and after it a line for each sentence, the number of the passage, "s", the number of the sentence '
        'and the text, such as "2s1 John Farrow was a director."; lines are joined by "\\n". White space within a '
        'title or sentence, line breaks too, becomes one space. There, "[[" before "##" or at the end is written '
        '"[ [", and "<<" before "CUSTOM-TYPE" or "/CUSTOM-TYPE" is written "< <". Where there are no passages: '
        '"(none)".'
    ),
    "value": (
        "Numbers, True, False and None as Python prints them; a list or object as JSON on one line with a space after "
        'each comma and colon, letters beyond ASCII as they are, such as ["Who was Zoë?", "2s1"]; no items: [].'
    ),
}
"""How inputs are written into a prompt."""

REPLIES: dict[AdapterName, str] = {
    "chat": (
        'A reply consists of sections. A line "[[ ## name ## ]]" begins the section of the output field of that name, '
        'which goes to the next such line; white space around it does not count, and the section "completed" ends '
        "the reply. A field of type str is the text of its section. Others are JSON; polyhop also takes what models "
        "write instead: lists as lines, ids as numbers, percentages, words with marks around them."
    ),
    "json": (
        "A reply is one JSON object with the output fields by name; text around it does not count. polyhop also takes "
        "what models write instead: lists as lines, ids as numbers, percentages, words with marks around them. DSPy "
        "asks providers that can do so to enforce the JSON schema of the fields."
    ),
}
"""How replies are read."""

_ADAPTERS = {"chat": dspy.ChatAdapter(), "json": dspy.JSONAdapter()}


@dataclass(frozen=True)
class Prompt:
    """What one agent is sent.

    Attributes:
        agent: Its name in the program, such as "selector".
        demos: As they were saved, of which ``messages`` shows those that have an output.
        messages: Role and content each; the inputs are placeholders.
        shown_exemplars: Whether the program adds demos of its own at each call, before the last message.
    """

    agent: str
    adapter: AdapterName
    signature: type[dspy.Signature] = field(repr=False)
    demos: Sequence[Any] = field(repr=False)
    messages: tuple[dict[str, str], ...] = field(repr=False)
    shown_exemplars: bool = False

    @property
    def fields(self) -> list[FieldState]:
        return field_states(self.signature)

    @property
    def formats(self) -> dict[str, str]:
        """The format of each input, one of `FORMATS`."""
        return {name: _format(info.annotation) for name, info in self.signature.input_fields.items()}

    def to_record(self) -> dict[str, Any]:
        """All that another program needs, as JSON."""
        formats = self.formats
        fields = [{**each.shape, "description": _told(each)} for each in self.fields]
        return {
            "agent": self.agent,
            "instructions": self.signature.instructions,
            "inputs": [
                {key: item[key] for key in ("name", "type", "description")} | {"format": formats[item["name"]]}
                for item in fields
                if item["role"] == "input"
            ],
            "outputs": [
                {key: item[key] for key in ("name", "type", "description", "schema")}
                for item in fields
                if item["role"] == "output"
            ],
            "demos": [dict(demo.items()) for demo in self.demos],
            "shown_exemplars": self.shown_exemplars,
            "messages": list(self.messages),
        }


def prompts(program: dspy.Module, adapter: AdapterName = "chat") -> list[Prompt]:
    """The prompts of a program's agents, in its order. Works for any DSPy program whose inputs are text.

    Raises:
        PolyhopError: an input or a demo is no text, such as an image or a conversation.
    """
    return list(_prompts(program, adapter))


def place(name: str) -> str:
    """What stands in the place of an input."""
    return f"{{{{{name}}}}}"


def _prompts(program: dspy.Module, adapter: AdapterName) -> Iterator[Prompt]:
    short = {id(predictors[0]): role for role, predictors in roles(program).items() if len(predictors) == 1}
    sent = getattr(program, "sent_signature", None)
    for name, predictor in program.named_predictors():
        agent = short.get(id(predictor), name)
        signature = sent(name) if sent else predictor.signature
        for input_, info in signature.input_fields.items():
            types = dspy.Type.extract_custom_type_from_annotation(info.annotation)
            if any(kind is not NumberedPassages for kind in types):
                raise PolyhopError(f"agent {agent!r} has an input {input_!r} that is no text: it cannot be exported")
        places = {input_: place(input_) for input_ in signature.input_fields}
        demos = fenced(predictor.demos) if isinstance(predictor, Agent) else predictor.demos
        messages = tuple(_ADAPTERS[adapter].format(signature, demos, places))
        if not all(isinstance(message["content"], str) for message in messages):
            raise PolyhopError(f"agent {agent!r} has a demo that is no text: it cannot be exported")
        shown = name in getattr(program, "shown_exemplars", ())
        yield Prompt(agent, adapter, signature, tuple(map(_plain, predictor.demos)), messages, shown)


def _told(field: FieldState) -> str:
    """The description of a field; DSPy's where there is none says nothing."""
    return field.description.removeprefix(f"${{{field.name}}}").lstrip()


def _plain(demo: Any) -> dict[str, Any]:
    from dspy.adapters.utils import serialize_for_json

    return {name: serialize_for_json(value) for name, value in demo.items()}


def _format(annotation: Any) -> str:
    if annotation is str:
        return "text"
    return "passages" if annotation is NumberedPassages else "value"
