"""Parses the messages that DSPy's ChatAdapter and JSONAdapter write, and formats replies for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from ...data.text import content_terms, title_key, title_names

_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\s*$", re.MULTILINE)
_OUTPUT_LIST = re.compile(r"^Your output fields are:\n(.*?)^All interactions", re.MULTILINE | re.DOTALL)
_INPUT_LIST = re.compile(r"^Your input fields are:\n(.*?)^Your output fields are:", re.MULTILINE | re.DOTALL)
_LISTED = re.compile(r"^\d+\. `(\w+)` \(", re.MULTILINE)
_JSON_REPLY = "Outputs will be a JSON object"
# The adapters' closing sentence, after the last field.
_CLOSING = re.compile(r"\n\nRespond with (?:the corresponding output fields|a JSON object)[^\n]*\Z")

Fields = tuple[frozenset[str], frozenset[str]]
"""The names of a signature's inputs and outputs, without the output ``reasoning``."""


def fields_of(inputs: Iterable[str], outputs: Iterable[str]) -> Fields:
    return frozenset(inputs), frozenset(outputs) - {"reasoning"}


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
        return fields_of(self.input_names or self.inputs, self.outputs)

    @property
    def question(self) -> str:
        return self.text("question")

    def text(self, name: str) -> str:
        """An input; empty if there is none."""
        return self.inputs.get(name, "")

    def listed(self, name: str) -> list[str]:
        """An input of type ``list[str]``."""
        return as_list(self.text(name))

    def passages(self, name: str) -> tuple[ParsedPassage, ...]:
        """An input of type `NumberedPassages`."""
        return parse_passages(self.text(name))


def read_prompt(system: str, task: str) -> ParsedPrompt:
    """Parse a system prompt and its last message."""
    input_names, output_names, as_json = _declared(system)
    inputs = _fields(task, input_names)
    if not output_names or (input_names and not inputs):
        raise ValueError("the lexical engine reads prompts of dspy.ChatAdapter and dspy.JSONAdapter only")
    return ParsedPrompt(inputs, output_names, as_json, input_names)


def write_reply(values: Mapping[str, Any], as_json: bool) -> str:
    """The reply in the adapter's format, with the fields in the given order."""
    if as_json:
        return json.dumps(values, ensure_ascii=False)
    parts = []
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"[[ ## {name} ## ]]\n{text}\n")
    return "\n".join([*parts, "[[ ## completed ## ]]"])


def as_list(text: str) -> list[str]:
    """A rendered list of strings: JSON, or one item per line."""
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


def _fields(text: str, names: frozenset[str]) -> dict[str, str]:
    """The marked fields of a message; a marker with an undeclared name is part of the text."""
    text = _CLOSING.sub("", text)
    marks = [mark for mark in _FIELD.finditer(text) if mark[1] in names]
    ends = [mark.start() for mark in marks[1:]] + [len(text)] * bool(marks)
    return {mark[1]: text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}


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


_TITLE = re.compile(r"^\[(\d+)\] (.*)$")
_SENTENCE = re.compile(r"^(>?)(\d+s\d+) (.*)$")
_LONGEST = 2000  # characters of a sentence; longer ones are split
_MOST = 100_000  # characters of a prompt; in a longer one, every passage is read up to its share
_PIECE = re.compile(rf".{{1,{_LONGEST}}}(?:\s|$)|.{{{_LONGEST}}}", re.DOTALL)


@lru_cache(maxsize=64)
def parse_passages(rendered: str) -> tuple[ParsedPassage, ...]:
    """The passages of a rendered `NumberedPassages` field. The pieces of a split sentence share its id."""
    found: list[tuple[str, str, str, list[tuple[str, bool, list[str]]]]] = []
    for row in rendered.splitlines():
        if head := _TITLE.match(row):
            title, _, headings = head[2].partition(" > ")
            found.append((head[1], "" if title == "(untitled)" else title, headings, []))
        elif found and (sentence := _SENTENCE.match(row)):
            found[-1][-1].append((sentence[2], bool(sentence[1]), [sentence[3]]))
        elif found and found[-1][-1]:  # a demo or a template may wrap a sentence
            found[-1][-1][-1][2].append(row.strip())
    share = _MOST // max(len(found), 1) if len(rendered) > _MOST else len(rendered)
    return tuple(
        ParsedPassage(number, title, tuple(_pieces(rows, share)), headings) for number, title, headings, rows in found
    )


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


def _pieces(sentences: Iterable[tuple[str, bool, list[str]]], most: int) -> Iterator[Sentence]:
    for id, selected, rows in sentences:
        if most <= 0:
            return
        text = " ".join(rows)[:most]
        most -= len(text)
        for piece in _PIECE.findall(text) if len(text) > _LONGEST else [text]:
            yield Sentence(id, piece, selected)
