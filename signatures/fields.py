"""Field types of inputs: how passages are shown to an agent.

Passages are numbered and each sentence has a short id, so that agents refer to evidence instead of repeating it:

    [2] Ann Lee
    2s1 Ann Lee is a novelist who lives by the sea.
    2s3 Her first novel is called Dust.

"2" means the whole passage, "2s3" its third sentence; the numbers do not depend on what is shown. ("2.10" in a reply
without quotes would become 2.1.) ">2s3 Her first ..." marks a selected sentence, and a line above the passages says so.
A sentence is always one line, and the adapters' field markers in it are escaped, so the text of a passage cannot
imitate another passage, another field or the end of the prompt. `fenced` escapes the markers in all other inputs, also
those with invisible characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import dspy
from pydantic import BaseModel
from pydantic.fields import FieldInfo

# Formats, controls, fillers, variation selectors and tags, as a set of regular expressions.
_UNSEEN = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)


def _seen(text: str) -> str:
    """A pattern of a text, whatever is unseen before its characters."""
    return "".join(f"[{_UNSEEN}]*{re.escape(character)}" for character in text)


# The first character of a marker of a field, of DSPy's custom types, or of a model's thinking.
_FIELD = rf"\[(?={_seen('[')}[\s{_UNSEEN}]*(?:{_seen('##')}|\Z))"
_NAMES = "<custom-type </custom-type think /think reasoning /reasoning".split()
_TAG = rf"<(?={'|'.join(map(_seen, _NAMES))})"
_ANY_TAG = rf"<(?=[{_UNSEEN}]*(?:[^\W\d_]|[/_!?]))"
_MARKERS = re.compile(f"{_FIELD}|{_TAG}", re.IGNORECASE)
_MARKERS_OF_XML = re.compile(f"{_FIELD}|{_TAG}|{_ANY_TAG}", re.IGNORECASE)
_MARKED = "(> marks the sentences that are kept as evidence)"

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


class NumberedPassage(BaseModel):
    """A passage as shown to an agent.

    Attributes:
        title: Of a passage of a document also the headings above it: "Handbook > Leave".
        sentences: 1-based sentence number -> text.
        selected: The numbers of the sentences that are marked.
    """

    number: int
    title: str
    sentences: dict[int, str]
    selected: frozenset[int] = frozenset()

    def render(self) -> str:
        lines = [f"[{self.number}] {_one_line(self.title) or '(untitled)'}"]
        lines += [
            f"{'>' * (n in self.selected)}{self.number}s{n} {_one_line(text)}" for n, text in self.sentences.items()
        ]
        return "\n".join(lines)


class NumberedPassages(dspy.Type):
    """Passages as an agent reads them."""

    passages: list[NumberedPassage]

    @classmethod
    def description(cls) -> str:
        return (
            "passages, each sentence to be read with its title; 2 is the id of passage [2], 2s3 the id of its third "
            "sentence; numbers have gaps where others are not shown"
        )

    def format(self) -> str:
        marked = [_MARKED] if any(passage.selected for passage in self.passages) else []
        return "\n".join([*marked, *(passage.render() for passage in self.passages)]) or "(none)"


def passages_in(inputs: Mapping[str, Any]) -> list[NumberedPassage]:
    """All passages among the inputs of an agent."""
    shown = [value for value in inputs.values() if isinstance(value, NumberedPassages)]
    return [passage for value in shown for passage in value.passages]


# --- fields of replies ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """The most that an output field needs: so many items, of so many words each. A text is one item.

    Attributes:
        of_ids: Whether the items are ids of passages or sentences, or numbers.
    """

    items: int
    words: int = 1
    of_ids: bool = False

    @property
    def tokens(self) -> int:
        """About half as many again as an English reply of this length has."""
        return self.items * (6 if self.of_ids else 4 + 2 * self.words)


Short: TypeAlias = Annotated[str, Bound(1, 30)]
"""An answer or a query."""
Thought: TypeAlias = Annotated[str, Bound(1, 120)]
"""A few sentences."""
Brief: TypeAlias = Annotated[str, Bound(1, 70)]
"""A sentence for each part of a question: in more words, a small model repeats itself."""
Texts: TypeAlias = Annotated[list[str], Bound(12, 16)]
"""Sub-questions, queries or facts."""
Ids: TypeAlias = Annotated[list[str], Bound(24, of_ids=True)]
"""Ids of passages or sentences."""
Numbers: TypeAlias = Annotated[list[int], Bound(24, of_ids=True)]
"""Numbers of passages or statements."""

_OTHER = Bound(1, 10)  # numbers and labels
_UNBOUND = Bound(10, 60)  # a field of somebody else's signature


def bound_of(field: FieldInfo) -> Bound | None:
    """The bound of a field; None if its type names none."""
    return next((item for item in field.metadata if isinstance(item, Bound)), None)


def tokens_of(signature: type[dspy.Signature]) -> int:
    """The most tokens that a reply needs, with the names of its fields."""
    total = 40
    for field in signature.output_fields.values():
        other = _UNBOUND if field.annotation is str or "list" in str(field.annotation) else _OTHER
        total += 20 + (bound_of(field) or other).tokens
    return total


# --- inputs -----------------------------------------------------------------------------------------------------------


def fenced(value: Any, tags: bool = False) -> Any:
    """An input or a demo with a space in each marker of its texts: "[[ ## answer ## ]]" becomes "[ [ ## answer ## ]]",
    also at the end of a text ("[["), and "<think>" becomes "< think>".

    Args:
        tags: Whether every tag of XML is a marker.
    """
    if tags and isinstance(value, NumberedPassages):  # their sentences are fenced against other markers anyway
        return NumberedPassages(
            passages=[
                item.model_copy(update={"title": fenced(item.title, tags), "sentences": fenced(item.sentences, tags)})
                for item in value.passages
            ]
        )
    if isinstance(value, str):
        return (_MARKERS_OF_XML if tags else _MARKERS).sub(r"\g<0> ", value)
    if isinstance(value, list | tuple):
        return [fenced(item, tags) for item in value]
    if isinstance(value, dict):
        return {fenced(name, tags): fenced(item, tags) for name, item in value.items()}
    if isinstance(value, dspy.Example):
        return value.copy(**fenced(dict(value.items()), tags))
    return value


def _one_line(text: str) -> str:
    """A title or a sentence as it is shown."""
    line: str = fenced(" ".join(_BREAK.sub(" ", text).split()))
    return line


# --- replies ----------------------------------------------------------------------------------------------------------

ID = r"\d{1,6}(?:s\d{1,6})?"
"""A pattern of the id of a passage or a sentence."""

_NUMBERED = re.compile(r"\s*(\d{1,3})[.)]\s+(?=\S)")
_NOTHING = re.compile(r"\W*(?:none|null|nil|nothing|n/?a|empty)?\W*", re.IGNORECASE)


def is_nothing(text: str) -> bool:
    """Whether a text only says that there is none."""
    return _NOTHING.fullmatch(text) is not None


def read_texts(reply: Iterable[str]) -> list[str]:
    """The texts of a list on one line each, without blanks, "none", and the numbers of a numbered list."""
    texts = [" ".join(text.split()) for text in reply if not is_nothing(text)]
    marks = [_NUMBERED.match(text) for text in texts]
    # "1. FC Köln" alone is a name; a list whose items all count is numbered.
    if len(texts) > 1 and all(mark and int(mark[1]) == n for n, mark in enumerate(marks, 1)):
        return [_NUMBERED.sub("", text, count=1) for text in texts]
    return texts


def read_probability(reply: float) -> float:
    """A probability in [0, 1]; 2 to 100 is percent, 1.2 an overstated 1, and what is no number is 0."""
    if reply != reply:
        return 0.0
    return reply / 100 if 2 <= reply <= 100 else float(min(max(reply, 0), 1))
