"""Prompts for use without polyhop and DSPy: messages as an adapter sends them, and Markdown.

    for prompt in prompts(program):
        print(prompt["agent"], prompt["messages"])

In the last message of a prompt, ``{{name}}`` is the placeholder of an input. The document (``templates/export.md.j2``)
says how inputs are written and replies are read. Replace all placeholders in one pass, since an input may contain one.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import Any, Literal

import dspy
from jinja2 import Environment, PackageLoader, StrictUndefined

from ..data.errors import PolyhopError
from ..engines.models import roles
from ..programs.agent import Agent, shown_demos
from ..programs.exemplars import Exemplars
from ..programs.tunable import tunables
from ..signatures import NumberedPassages
from ..signatures.fields import fenced
from .artifact import range_of

AdapterName = Literal["chat", "json"]

_ADAPTERS = {"chat": dspy.ChatAdapter(), "json": dspy.JSONAdapter()}


def prompts(program: dspy.Module, adapter: AdapterName = "chat") -> list[dict[str, Any]]:
    """The prompts of a program's agents, in its order: ``agent``, ``instructions``, ``inputs``, ``outputs`` and
    ``messages``. Works for any DSPy program whose inputs are text.

    ``messages`` has the demos with an output, and placeholders for inputs; with ``shown_exemplars`` the program adds
    demos at each call, before the last message.

    Raises:
        PolyhopError: an input or a demo is not text, such as an image.
    """
    short = {id(predictors[0]): role for role, predictors in roles(program).items() if len(predictors) == 1}
    parts = [part for _, part in program.named_sub_modules(Exemplars)]
    shows = any(part.mode.value != "none" and part.count.value and len(part.memory) for part in parts)
    described = []
    for name, predictor in program.named_predictors():
        agent, signature = short.get(id(predictor), name), predictor.signature
        demos = shown_demos(signature, predictor.demos)
        placeholders = {field: f"{{{{{field}}}}}" for field in signature.input_fields}
        messages = _ADAPTERS[adapter].format(
            signature, fenced(demos) if isinstance(predictor, Agent) else demos, placeholders
        )
        if not all(isinstance(message["content"], str) for message in messages):
            raise PolyhopError(f"agent {agent!r} cannot be exported: it has a demo that is not text")
        for field, info in signature.input_fields.items():
            if any(kind is not NumberedPassages for kind in _types(info)):
                raise PolyhopError(f"agent {agent!r} cannot be exported: its input {field!r} is not text")
        described.append(
            {
                "agent": agent,
                "instructions": signature.instructions,
                "inputs": [_described(*item) for item in signature.input_fields.items()],
                "outputs": [_described(*item) for item in signature.output_fields.items()],
                "shown_exemplars": bool(shows and name in getattr(program, "shown_exemplars", ())),
                "messages": messages,
            }
        )
    return described


def _types(info: Any) -> list[Any]:
    """DSPy's own types in a field's annotation."""
    return list(dspy.Type.extract_custom_type_from_annotation(info.annotation))


def _described(name: str, info: Any) -> dict[str, str]:
    """The name, type, format (of an input) and description of a field; DSPy's default description is its name."""
    texts = [info.json_schema_extra["desc"].removeprefix(f"${{{name}}}").lstrip()]
    return {
        "name": name,
        "type": getattr(info.annotation, "__name__", "") or str(info.annotation),
        "format": {str: "text", NumberedPassages: "passages"}.get(info.annotation, "value"),
        "description": "\n".join(filter(None, [*texts, *(kind.description() for kind in _types(info))])),
    }


def markdown(program: dspy.Module, name: str, adapter: AdapterName = "chat", agent: str = "") -> str:
    """The prompts (of one ``agent`` or all), exemplars and tunables of the program ``name`` as a document; it may be
    printed, and has U+FFFD for control characters."""
    agents = [prompt for prompt in prompts(program, adapter) if agent in ("", prompt["agent"])]
    text = _TEMPLATES.get_template("export.md.j2").render(
        program=name,
        about=(inspect.getdoc(type(program)) or "").partition("\n\n")[0] if type(program).__doc__ else "",
        agent=agent,
        agents=agents,
        used={field["format"] for prompt in agents for field in prompt["inputs"]},
        adapter=adapter,
        exemplars=[part for _, part in program.named_sub_modules(Exemplars)],
        tunables={name: tunable.dump_state() for name, tunable in tunables(program).items()},
    )
    return _CONTROLS.sub("\ufffd", text)


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")  # of terminals, and bidi

_TEMPLATES = Environment(  # Markdown, so nothing is escaped but what ends a cell or a block
    loader=PackageLoader(__package__), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters |= {
    "row": lambda field, kind: (field["name"], field[kind], field["description"]),
    "exemplar": lambda one: (one.question, str(one.hops), " / ".join(one.sub_questions)),
    "tunable": lambda item: (item[0], json.dumps(item[1]["value"]), range_of(item[1])),
    "fence": lambda text: "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0)),
}
