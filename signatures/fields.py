"""Field types of inputs: how passages are shown to an agent.

Passages are numbered and each sentence has a short id, so that agents refer to evidence instead of repeating it:

    [2] Ann Lee
    2s1 Ann Lee is a novelist who lives by the sea.
    2s3 Her first novel is called Dust.

"2" means the whole passage, "2s3" its third sentence; the numbers do not depend on what is shown. ("2.10" in a reply
without quotes would become 2.1.) ">2s3 Her first ..." marks a selected sentence, and a line above the passages says so.
A sentence is always one line, and the adapters' field markers in it are escaped, so the text of a passage cannot
imitate another passage, another field or the end of the prompt. `fenced` escapes the markers in all other inputs, also
those with invisible characters or look-alikes ("［", "＃", "＜").
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import dspy
from pydantic import BaseModel

_BRACKETS, _ANGLES = "[［﹇", "<＜﹤"  # may open a marker
_WINDOW = 200  # characters after an opening one that are checked
_VISIBLE = 20  # of them must be visible to tell that there is no marker
_INVISIBLE = (  # formats, controls, fillers, variation selectors and tags
    (0x7F, 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, 0xE0001),
    *(range(first, last + 1) for first, last in ((0x00, 0x08), (0x0E, 0x1B), (0x80, 0x84), (0x86, 0x9F))),
    *(range(first, last + 1) for first, last in ((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E))),
    *(range(first, last + 1) for first, last in ((0x2060, 0x206F), (0xFE00, 0xFE0F), (0xFFF9, 0xFFFB))),
    *(range(first, last + 1) for first, last in ((0x1D173, 0x1D17A), (0xE0020, 0xE007F), (0xE0100, 0xE01EF))),
    *(range(first, last + 1) for first, last in ((0x13430, 0x1343F), (0x1BCA0, 0x1BCA3))),
)
# For `str.translate`: without invisible characters, with plain ones for those that look like them.
_LOOK_ALIKES = {code: "" for codes in _INVISIBLE for code in codes} | str.maketrans("［﹇＃﹟＜﹤／", "[[##<</")
# What makes "<" a marker: of DSPy's custom types, or of a model's thinking.
_AFTER_ANGLE = ("<custom-type", "</custom-type", "think", "/think", "reasoning", "/reasoning")
_MARKED = "(> marks the sentences that are kept as evidence)"

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_OPENING = re.compile(f"[{re.escape(_BRACKETS)}{_ANGLES}]")


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
        lines = [f"[{self.number}] {one_line(self.title) or '(untitled)'}"]
        lines += [
            f"{'>' * (n in self.selected)}{self.number}s{n} {one_line(text)}" for n, text in self.sentences.items()
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


def fenced(value: Any, tags: bool = False) -> Any:
    """An input or a demo with a space in each marker of its texts: "[[ ## answer ## ]]" becomes "[ [ ## answer ## ]]",
    also at the end of a text ("[["), and "<think>" becomes "< think>".

    Args:
        tags: Whether every tag of XML is a marker.
    """
    if tags and isinstance(value, NumberedPassages):  # their sentences are fenced against other markers anyway
        return NumberedPassages(
            passages=[
                each.model_copy(update={"title": fenced(each.title, tags), "sentences": fenced(each.sentences, tags)})
                for each in value.passages
            ]
        )
    if isinstance(value, str):
        return _OPENING.sub(lambda opening: _spaced(opening, tags), value)
    if isinstance(value, list | tuple):
        return [fenced(item, tags) for item in value]
    if isinstance(value, dict):
        return {fenced(name, tags): fenced(item, tags) for name, item in value.items()}
    if isinstance(value, dspy.Example):
        return value.copy(**fenced(dict(value.items()), tags))
    return value


def _spaced(opening: re.Match[str], tags: bool) -> str:
    character = opening[0]
    window = opening.string[opening.end() : opening.end() + _WINDOW]
    rest = window.translate(_LOOK_ALIKES).lower()
    if len(window) == _WINDOW and len(rest) < _VISIBLE:  # what would be shown is out of sight
        marks = not rest[:1].isspace()
    elif character in _BRACKETS:
        inner = rest[1:].strip()
        marks = rest.startswith("[") and (inner.startswith("##") or not inner)
    else:
        marks = rest.startswith(_AFTER_ANGLE) or (
            tags and (rest[:1].isalpha() or rest.startswith(("/", "_", "!", "?")))
        )
    return f"{character} " if marks else character


def one_line(text: str) -> str:
    """A title or a sentence as it is shown."""
    line: str = fenced(" ".join(_BREAK.sub(" ", text).split()))
    return line


# --- replies ----------------------------------------------------------------------------------------------------------

_NUMBERED = re.compile(r"\s*(\d{1,3})[.)]\s+(?=\S)")
_NOTHING = re.compile(r"\W*(?:none|null|nothing|n/?a|empty)?\W*", re.IGNORECASE)


def read_texts(reply: Iterable[str]) -> list[str]:
    """The texts of a list on one line each, without blanks, "none", and the numbers of a numbered list."""
    texts = [" ".join(text.split()) for text in reply if not _NOTHING.fullmatch(text)]
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
