"""Parses the messages that DSPy's ChatAdapter and JSONAdapter write, and formats replies for them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from ...data.text import content_terms, title_key, title_names

_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\s*$", re.MULTILINE)
_DECLARED = re.compile(r"^Your input fields are:\n(.*?)^Your output fields are:\n(.*?)^All interactions", re.M | re.S)
_LISTED = re.compile(r"^\d+\. `(\w+)` \(", re.MULTILINE)
# The adapters' closing sentence, after the last field.
_CLOSING = re.compile(r"\n\nRespond with (?:the corresponding output fields|a JSON object)[^\n]*\Z")

Fields = tuple[frozenset[str], frozenset[str]]
"""The names of a signature's inputs and outputs, without the output ``reasoning``."""


@dataclass(frozen=True)
class ParsedPrompt:
    """A parsed prompt, without its demonstrations."""

    inputs: Mapping[str, str]  # the input fields as text
    outputs: tuple[str, ...]  # the names of the output fields, in order
    as_json: bool = False  # the reply is a JSON object (JSONAdapter)
    input_names: frozenset[str] = frozenset()  # the inputs of the signature; by default those in `inputs`

    @property
    def fields(self) -> Fields:
        """The fields of the signature, by which the engine finds a skill."""
        return frozenset(self.input_names or self.inputs), frozenset(self.outputs) - {"reasoning"}

    @property
    def question(self) -> str:
        return self.text("question")

    def text(self, name: str) -> str:
        """An input; empty if there is none."""
        return self.inputs.get(name, "")

    def listed(self, name: str) -> list[str]:
        """An input of type ``list[str]``: JSON, or one item per line."""
        text = self.text(name).strip()
        if text.startswith("["):
            try:
                return [str(item) for item in json.loads(text)]
            except ValueError:
                pass
        return [item for line in text.splitlines() if (item := line.strip(" -*\t"))]

    def passages(self, name: str) -> tuple[ParsedPassage, ...]:
        """An input of type `NumberedPassages`."""
        return parse_passages(self.text(name))


def read_prompt(system: str, task: str) -> ParsedPrompt:
    """Parse a system prompt and its last message."""
    names, outputs = _declared(system)
    task = _CLOSING.sub("", task)
    marks = [mark for mark in _FIELD.finditer(task) if mark[1] in names]  # any other marker is part of the text
    ends = [mark.start() for mark in marks[1:]] + [len(task)]
    inputs = {mark[1]: task[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False)}
    if not outputs or (names and not inputs):
        raise ValueError("the lexical engine reads prompts of dspy.ChatAdapter and dspy.JSONAdapter only")
    return ParsedPrompt(inputs, outputs, "Outputs will be a JSON object" in system, names)


@lru_cache(maxsize=256)
def _declared(system: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names of the inputs and of the outputs."""
    inputs, outputs = found.groups() if (found := _DECLARED.search(system)) else ("", "")
    return frozenset(_LISTED.findall(inputs)), tuple(_LISTED.findall(outputs))


def write_reply(values: Mapping[str, Any], as_json: bool) -> str:
    """The reply in the adapter's format, with the fields in the given order."""
    if as_json:
        return json.dumps(values, ensure_ascii=False)
    parts = []
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"[[ ## {name} ## ]]\n{text}\n")
    return "\n".join([*parts, "[[ ## completed ## ]]"])


# --- passages --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sentence:
    """A sentence with its id in the prompt ("2s3"); ``selected`` if it is marked (">2s3")."""

    id: str
    text: str
    selected: bool = False

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(content_terms(self.text))

    @cached_property
    def key(self) -> str:
        """Its folded words between spaces, to find titles and names in."""
        return f" {title_key(self.text)} "


@dataclass(frozen=True)
class ParsedPassage:
    """A `NumberedPassage`, parsed from a prompt."""

    number: str
    title: str
    sentences: tuple[Sentence, ...]
    headings: str = ""  # above it in its document, behind the title: "Handbook > Leave"

    @property
    def selected(self) -> bool:
        """Whether one of its sentences is."""
        return any(sentence.selected for sentence in self.sentences)

    @cached_property
    def title_terms(self) -> frozenset[str]:
        return frozenset(content_terms(self.title))

    @cached_property
    def terms(self) -> frozenset[str]:
        return self.title_terms.union(content_terms(self.headings), *(sentence.terms for sentence in self.sentences))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The keys by which other texts may mention its subject, the most specific first."""
        return title_names(self.title)


_TITLE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"^(>?)(\d+s\d+) ", re.MULTILINE)
_PIECE = re.compile(r".{1,2000}(?:\s|$)|.{2000}", re.DOTALL)  # of a sentence, which may be a whole table


@lru_cache(maxsize=64)
def parse_passages(rendered: str) -> tuple[ParsedPassage, ...]:
    """The passages of a rendered `NumberedPassages` field. The pieces of a long sentence share its id."""
    _, *parts = _TITLE.split(rendered)
    found = []
    for number, head, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        _, *rows = _SENTENCE.split(body)
        title, _, headings = head.partition(" > ")
        sentences = tuple(
            Sentence(id, piece, bool(mark))
            for mark, id, text in zip(rows[::3], rows[1::3], rows[2::3], strict=True)
            for piece in _PIECE.findall(" ".join(map(str.strip, text.splitlines()))) or [""]
        )
        found.append(ParsedPassage(number, "" if title == "(untitled)" else title, sentences, headings))
    return tuple(found)


def documents(passages: Sequence[ParsedPassage]) -> tuple[ParsedPassage, ...]:
    """Passages of the same title as one, in the place and with the number of the first of them."""
    found: dict[str, list[ParsedPassage]] = {}
    for passage in passages:
        found.setdefault(passage.title or f"[{passage.number}]", []).append(passage)
    return tuple(
        replace(
            parts[0],
            sentences=tuple(sentence for part in parts for sentence in part.sentences),
            headings=" ".join(dict.fromkeys(part.headings for part in parts if part.headings)),
        )
        for parts in found.values()
    )
