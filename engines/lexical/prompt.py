"""Reads the messages that DSPy's ChatAdapter and JSONAdapter write, and writes replies in their dialect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\s*$", re.MULTILINE)
_OUTPUT_LIST = re.compile(r"^Your output fields are:\n(.*?)^All interactions", re.MULTILINE | re.DOTALL)
_INPUT_LIST = re.compile(r"^Your input fields are:\n(.*?)^Your output fields are:", re.MULTILINE | re.DOTALL)
_LISTED = re.compile(r"^\d+\. `(\w+)` \(", re.MULTILINE)
_COMPLETED = "completed"
_JSON_REPLY = "Outputs will be a JSON object"
# The adapters' closing sentence, which stands behind the last field.
_CLOSING = re.compile(r"\n\nRespond with (?:the corresponding output fields|a JSON object)[^\n]*\Z")


# What an adapter writes for an output that a demo lacks.
_NOT_SUPPLIED = re.compile(r"Not supplied for this (?:particular example|conversation history message)\.\s*")


Fields = tuple[frozenset[str], frozenset[str]]
"""The names of a signature's inputs and outputs; the output ``reasoning`` is left out."""


def fields_of(inputs: Iterable[str], outputs: Iterable[str]) -> Fields:
    return frozenset(inputs), frozenset(outputs) - {"reasoning"}


@dataclass(frozen=True)
class Demo:
    """A task that was done before: its inputs and outputs as text; what it lacks is left out."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True)
class Prompt:
    """What an agent is given: its inputs as text, the names of the fields that it must fill, and demos, in order."""

    inputs: Mapping[str, str]
    outputs: tuple[str, ...]
    as_json: bool = False
    demos: tuple[Demo, ...] = ()
    input_names: frozenset[str] = frozenset()

    @property
    def fields(self) -> Fields:
        """The fields of the signature, by which the engine finds a skill."""
        return fields_of(self.input_names or self.inputs, self.outputs)

    def listed(self, name: str) -> list[str]:
        """An input of type list[str]."""
        return as_list(self.inputs.get(name, ""))


def read_prompt(system: str, task: str, turns: Iterable[tuple[str, str]] = ()) -> Prompt:
    """Parse a system prompt and the message with the task, the last one.

    Args:
        turns: The messages before it, in pairs: what was asked and what was replied. Those that are no demos are left
            out.

    Raises:
        ValueError: the prompt is not one of DSPy's ChatAdapter or JSONAdapter.
    """
    input_names, output_names, as_json = _declared(system)
    inputs = _fields(task, input_names)
    if not output_names or (input_names and not inputs):
        raise ValueError("the lexical engine reads prompts of dspy.ChatAdapter and dspy.JSONAdapter only")
    demos = (Demo(_fields(asked, input_names), _outputs(reply, output_names, as_json)) for asked, reply in turns)
    kept = tuple(demo for demo in demos if demo.inputs and demo.outputs)
    return Prompt(inputs, output_names, as_json, kept, input_names)


def write_reply(values: Mapping[str, Any], as_json: bool) -> str:
    """The reply in the adapter's dialect, fields in the given order."""
    if as_json:
        return json.dumps(values, ensure_ascii=False)
    parts = []
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"[[ ## {name} ## ]]\n{text}\n")
    return "\n".join([*parts, "[[ ## completed ## ]]"])


def as_list(text: str) -> list[str]:
    """A rendered list of strings, whichever way a template or a demo wrote it."""
    text = text.strip()
    if text.startswith("["):
        try:
            return [str(item) for item in json.loads(text)]
        except ValueError:
            pass
    return [line.strip(" -*\t") for line in text.splitlines() if line.strip(" -*\t")]


@lru_cache(maxsize=256)
def _declared(system: str) -> tuple[frozenset[str], tuple[str, ...], bool]:
    inputs, outputs = _INPUT_LIST.search(system), _OUTPUT_LIST.search(system)
    return (
        frozenset(_LISTED.findall(inputs.group(1))) if inputs else frozenset(),
        tuple(_LISTED.findall(outputs.group(1))) if outputs else (),
        _JSON_REPLY in system,
    )


def _outputs(reply: str, names: tuple[str, ...], as_json: bool) -> dict[str, str]:
    """The fields of a demo's reply."""
    if as_json:
        try:
            values = json.loads(reply)
        except ValueError:
            return {}
        found = {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in (values.items() if isinstance(values, dict) else ())
            if name in names
        }
    else:
        found = _fields(reply, frozenset({*names, _COMPLETED}))
        found.pop(_COMPLETED, None)
    return {name: value for name, value in found.items() if not _NOT_SUPPLIED.fullmatch(value)}


def _fields(text: str, names: frozenset[str]) -> dict[str, str]:
    """The marked fields of a message; a marker with a name that was not declared is part of the text."""
    text = _CLOSING.sub("", text)
    marks = [mark for mark in _FIELD.finditer(text) if mark[1] in names]
    ends = [mark.start() for mark in marks[1:]] + [len(text)] * bool(marks)
    return {mark[1]: text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}
