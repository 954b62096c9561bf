"""Field types of outputs: how an agent's reply is read.

In a prompt they look like the plain types (list[str], float, Literal). Replies may also use what models commonly write:
ids as numbers, lists as lines, "85%", "[No Retrieval]", "**Attributable.**". Anything else is an error (DSPy's
AdapterParseError). `without_thinking` removes what a reasoning model writes before it replies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import Any, ClassVar

from pydantic_core import CoreSchema, core_schema


def _reads(read: Callable[[Any], Any], plain: CoreSchema) -> CoreSchema:
    """The schema of a plain type, with a lenient reader in front."""
    return core_schema.no_info_before_validator_function(read, plain)


class Ids(list[str]):
    """A list of ids, also given as numbers ([2, 5]), as objects ([{"id": "2s1"}]) or as text ("2s1, 5s3")."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _reads(read_ids, core_schema.list_schema(core_schema.str_schema()))


class Questions(list[str]):
    """A list of questions, also given as objects ([{"question": "..."}]) or as lines with or without numbers."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _reads(_read_asked, core_schema.list_schema(core_schema.str_schema()))


class Answers(list[str]):
    """One answer for each question, also given as objects ([{"answer": "..."}]) or as lines; "none" keeps its place."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _reads(read_answers, core_schema.list_schema(core_schema.str_schema()))


class Texts(list[str]):
    """A list of statements, queries or quotations, written like `Questions`; "none" is an empty list."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _reads(read_texts, core_schema.list_schema(core_schema.str_schema()))


class Probability(float):
    """A number from 0 to 1, also given in percent (85, "85%"), with a remark ("0.9 (high)") or as a word ("high")."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _reads(read_probability, core_schema.float_schema())


class Steps(list[dict[str, str]]):
    """The steps of a plan, {"thought", "question"} each, also given as bare questions or as lines."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        text = core_schema.typed_dict_field(core_schema.str_schema())
        step = core_schema.typed_dict_schema({"thought": text, "question": text}, extra_behavior="forbid")
        return _reads(read_steps, core_schema.list_schema(step))


Ids.__name__ = Questions.__name__ = Answers.__name__ = Texts.__name__ = (
    "list[str]"  # what an adapter writes into the prompt
)
Steps.__name__ = "list[dict[str, str]]"
Probability.__name__ = "float"

_ITEM = re.compile(r"^\s*(?:[-*•]|(?P<number>\d{1,3})[.)])\s+(?=\S)")
_LABEL = re.compile(r"^\s*(?:(?i:step|question|q)\W*|#)(?P<number>\d{1,3})[.):]?\s+(?=[\"'(]*[A-Z])")
_THOUGHT = re.compile(r"thought\W*:\W*(.*?)\W*question\W*:\W*([^\n]+)", re.IGNORECASE | re.DOTALL)
_NOTHING = re.compile(r"\W*(?:none|null|nothing|n/?a|empty)?\W*", re.IGNORECASE)
_ID = r"[\[(\"'`*]*\d+(?:[sS:./]\d+)?[\])\"'`*]*"
_ID_LINE = re.compile(rf"{_ID}(?:(?:\s*[,;]\s*|\s+and\s+|\s+){_ID})*[\s.,;]*")
_KIND = re.compile(r"\b(?:passages?|sentences?|statements?)\s+(?=[\[(\"'`*]*\d)", re.IGNORECASE)  # "Passages 1 and 4"
_REMARK = re.compile(
    r"(?:(?<=s\d)|(?<=s\d\d))(?:\s+\((?=[^)]*[^\W\d]{2})[^)]*\)|:\s+.*)"
)  # "1s2 (his son)", "1s2: He ..."
_CITING = re.compile(r"\W*\d{1,6}s\d{1,6}\b.*|.*\b\d{1,6}s\d{1,6}\W*")  # a line that an id begins or ends
_SPLIT_IDS = re.compile(r"[\s,;]+(?:and\s+)?")
_STATED = re.compile(
    r"[^\w.-]*(?:(?:confidence|probability|accuracy|sufficiency|score|about|around|near)[^\w.-]*)*"
    r"(-?(?:\d+(?:[.,]\d+)?|\.\d+)(?:e-?\d+)?)"
)
_WORDS = {"certain": 1.0, "very high": 0.95, "high": 0.85, "medium": 0.5, "moderate": 0.5, "low": 0.2, "very low": 0.05}


def read_ids(reply: Any) -> Any:
    """A list of ids as strings. Raises ValueError for anything but a list or a text of ids."""
    reply = unwrap(reply)
    if isinstance(reply, str):
        return _ids_in(reply)
    if not isinstance(reply, list | tuple):
        reply = [] if reply is None else [reply]
    ids: list[str] = []
    for item in reply:
        if isinstance(item, dict):
            item = item.get("id", item.get("sentence_id", item))
        text = str(item).strip()
        ids += _ids_in(text) if _ID_LINE.fullmatch(text) else [text]  # "1s1, 2s1" in one item is two
    return ids


def _ids_in(text: str) -> list[str]:
    if _NOTHING.fullmatch(text):
        return []
    ids: list[str] = []
    for line in text.strip().splitlines():
        line = _REMARK.sub("", _KIND.sub("", _ITEM.sub("", line))).strip()
        if line and not _ID_LINE.fullmatch(line):
            raise ValueError(f"not a list of ids: {line[:80]!r}")
        ids += [piece for piece in _SPLIT_IDS.split(line) if piece]
    return ids


def read_questions(reply: Any) -> Any:
    """A list of questions without their numbers. Raises ValueError for a text that is neither a question nor a list."""
    reply = unwrap(reply)
    if isinstance(reply, str):
        lines = [line.strip() for line in reply.splitlines() if line.strip()]
        items = [line for line in lines if _ITEM.match(line)]
        reply = items or lines
        if not items and len(lines) > 1 and not all(line.endswith("?") for line in lines):
            raise ValueError(f"not a list of questions: {lines[0][:80]!r}")
    if isinstance(reply, dict) and len(reply) > 1 and all(isinstance(value, str) for value in reply.values()):
        reply = list(reply.values())  # {"1": "Who ...?", "2": "Where ...?"}
    if not isinstance(reply, list | tuple):
        reply = [] if reply is None else [reply]
    questions = [_question_of(item) for item in reply]
    marks = [_ITEM.match(question) for question in questions]
    # "1. FC Köln" alone is a name; a list whose items all count is numbered.
    if all(mark and mark["number"] in (None, str(n)) for n, mark in enumerate(marks, 1)) and len(marks) > 1:
        return [_ITEM.sub("", question) for question in questions]
    labels = [_LABEL.match(question) for question in questions]
    # "#1 Who was ...?" has a label, "#1 was born where?" a reference.
    if all(label and label["number"] == str(n) for n, label in enumerate(labels, 1)):
        return [_LABEL.sub("", question) for question in questions]
    return questions


def read_answers(reply: Any) -> Any:
    """A list of answers without their numbers, one for each line or object."""
    reply = unwrap(reply)
    if isinstance(reply, str):
        reply = [line for line in reply.splitlines() if line.strip()]
    if isinstance(reply, list | tuple):
        reply = [item.get("answer", item) if isinstance(item, dict) else item for item in reply]
    return [text.strip() for text in read_questions(reply)]


def read_texts(reply: Any) -> Any:
    """A list of texts without their numbers and without blanks. Raises ValueError for a text that is no list."""
    reply = unwrap(reply)
    if isinstance(reply, str):
        lines = [line.strip() for line in reply.splitlines() if line.strip()]
        items = [line for line in lines if _ITEM.match(line)]
        if not items and len(lines) > 1 and not all(_CITING.fullmatch(line) for line in lines):
            raise ValueError(f"not a list: {lines[0][:80]!r}")
        reply = items or lines
    return [text for text in read_questions(reply) if not _NOTHING.fullmatch(text)]


def _read_asked(reply: Any) -> Any:
    """A list of questions without "none"."""
    return [question for question in read_questions(reply) if not _NOTHING.fullmatch(question)]


def _question_of(item: Any) -> str:
    if isinstance(item, dict):
        item = {str(key).lower(): value for key, value in item.items()}
        named = [item[key] for key in ("question", "sub_question", "text") if key in item]
        return str((named or [value for value in item.values() if isinstance(value, str)] or [""])[0] or "")
    return str(item)


def read_steps(reply: Any) -> Any:
    """The steps of a plan; a missing thought is empty. Raises ValueError as `read_questions` does."""
    reply = unwrap(reply)
    if isinstance(reply, dict):
        reply = [reply] if "question" in reply else list(reply.values())  # {"1": {"thought": ..., "question": ...}}
    if isinstance(reply, str) and (pairs := _THOUGHT.findall(reply)):
        reply = [{"thought": thought, "question": question} for thought, question in pairs]
    if not isinstance(reply, list | tuple):
        return [{"thought": "", "question": question} for question in read_questions(reply)]
    reply = [{str(k).lower(): v for k, v in item.items()} if isinstance(item, dict) else item for item in reply]
    thoughts = [str(item.get("thought") or "") if isinstance(item, dict) else "" for item in reply]
    questions = read_questions([{**item, "thought": None} if isinstance(item, dict) else item for item in reply])
    return [{"thought": thought, "question": text} for thought, text in zip(thoughts, questions, strict=True)]


def read_probability(reply: Any) -> Any:
    """A probability in [0, 1]; 2 and more is percent. Raises ValueError for anything but a number or a few words."""
    if isinstance(reply, str):
        text = reply.strip().lower()
        word = _WORDS.get(re.sub(r"\W+", " ", text).removesuffix(" confidence").strip())
        stated = _STATED.match(text)
        if word is not None:
            return word
        if stated is None:
            raise ValueError(f"not a probability: {reply[:80]!r}")
        number = min(float(stated[1].replace(",", ".")), 1e9)  # not infinite
        if out_of := re.match(r"\s*(?:%|(?:/|out of)\s*(\d+))", text[stated.end() :]):
            return min(max(number / max(float(out_of[1] or 100), 1.0), 0.0), 1.0)
        reply = number
    if isinstance(reply, bool) or not isinstance(reply, int | float):
        raise ValueError(f"not a probability: {str(reply)[:80]!r}")
    if reply != reply:
        return 0.0
    return reply / 100 if 2 <= reply <= 100 else float(min(max(reply, 0), 1))  # 1.2 is an overstated 1


def unwrap(reply: Any) -> Any:
    """The content of ``{"keep": [...]}``, a field repeated inside the field."""
    if isinstance(reply, dict) and len(reply) == 1 and isinstance(next(iter(reply.values())), list | str):
        return next(iter(reply.values()))
    return reply


_THINKING = re.compile(r"<(/?)(think|thinking|reasoning)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_FIRST = {  # thinking of Magistral, Seed-OSS and gpt-oss, which a reply can only begin with
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "<|channel|>analysis": "<|channel|>final<|message|>",
}


def without_thinking(reply: str, fields: Container[str] = ()) -> str:
    """A reply without ``<think>``, ``<thinking>`` and ``<reasoning>`` blocks, so that no draft in one is an answer.

    A block ends at the tag that closes its own name, blocks of this name inside it included; one that is not closed
    lasts to the end. Before a closing tag that nothing opened, all is thinking: chat templates of some models open it
    in the prompt. A reply that begins with another model's mark of thinking is thinking up to the last mark of its end.

    Args:
        fields: Names of tags that are fields of the reply.
    """
    for opening, closing in _FIRST.items():
        if reply.lstrip().startswith(opening):
            reply = reply.rpartition(closing)[2] if closing in reply else ""
    kept, block, depth, end = list[str](), "", 0, 0
    for tag in _THINKING.finditer(reply):
        name = tag[2].lower()
        if name in fields or (depth and name != block):
            continue
        if depth == 0:
            kept.append(reply[end : tag.start()])
            block = name
        if tag[1] and depth == 0:
            kept.clear()
        elif not tag[0].endswith("/>"):
            depth += -1 if tag[1] else 1
        end = tag.end()
    # A space: what stood on both sides of a block does not become one marker.
    return " ".join([*kept, reply[end:]] if depth == 0 else kept)


# --- choices ----------------------------------------------------------------------------------------------------------


class _Choice(str):
    """One of a few words.

    Attributes:
        field: A name that may precede the word in a reply ("Route: plan").
        words: Each word with a pattern of its spellings.
    """

    field: ClassVar[str]
    words: ClassVar[dict[str, str]]

    def __init_subclass__(cls) -> None:
        cls.__name__ = f"Literal[{', '.join(map(repr, cls.words))}]"  # what an adapter writes into the prompt

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_before_validator_function(cls.read, core_schema.literal_schema(list(cls.words)))

    @classmethod
    def read(cls, reply: Any) -> str:
        """The word that a reply starts with."""
        reply = unwrap(reply)
        if isinstance(reply, list | tuple) and len(reply) == 1:
            reply = reply[0]  # "[Retrieval] population of Paris", as dspy reads it
        if isinstance(reply, str):
            text = re.sub(rf"^\W*(?:{cls.field}\W+)?", "", reply.strip().lower())
            # Punctuation or the end follows; "Search engines are ..." is prose.
            for word, written in cls.words.items():
                if re.match(rf"(?:{written})(?:\s*[\W_]*$|\s*[^\w\s]|\s*\n)", text):
                    return word
        raise ValueError(f"not one of {', '.join(cls.words)}: {str(reply)[:80]!r}")


class Route(_Choice):
    """ "direct", "single" or "plan", or C-3PO's spellings: "[Retrieval] population of Paris" is "single"."""

    field = "route"
    words: ClassVar[dict[str, str]] = {
        "direct": r"direct(?:ly|[ _-]answer\w*)?|no[ _-]?retriev(?:al|e)|no[ _-]?search|none",
        "single": r"single(?:[ _-]\w+)?|retriev(?:al|e)|search",
        "plan": r"plan(?:ning)?|multi[ _-]?\w+",
    }


class Action(_Choice):
    """ "retrieve" or "answer", or C-3PO's spellings: "[LLM]" is "answer"."""

    field = "action"
    words: ClassVar[dict[str, str]] = {
        "retrieve": r"(?:retriev(?:al|e)|search)(?:[ _-](?:again|(?:once[ _-])?more))?",
        "answer": r"(?:final[ _-]?)?answer(?:[ _-]now)?|llm|generate|stop|finish(?:ed)?|done",
    }


class Attribution(_Choice):
    """One of AttrScore's classes: "attributable", "extrapolatory" or "contradictory"."""

    field = "attribution"
    words: ClassVar[dict[str, str]] = {
        "attributable": r"attributable|attributed|supported",
        "extrapolatory": r"extrapolat(?:ory|ed|ion)|partially[ _-]attributable|unsupported|not enough information",
        "contradictory": r"contradict(?:ory|ed|s|ion)|refuted",
    }


class Revision(_Choice):
    """The decision of PAR-RAG's reviser: "revised" or "unconfident"."""

    field = "verdict"
    words: ClassVar[dict[str, str]] = {
        "revised": r"revised?(?:[ _-]answer)?|confirmed|confident|supported",
        "unconfident": r"unconfident|not confident|unchanged|kept|keep(?:[ _-]the)?[ _-]draft|(?:un|not[ _-])revised",
    }
