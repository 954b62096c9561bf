"""Reads the fields of a reply leniently, each for itself: markers, JSON, tags, labels; "90%", "high", bullets, commas.

    read(signature, "[[ ## answer ## ]]\\n**1941**")  ->  Reading({"answer": "**1941**"}, {}, ...)

Small models write fields in many forms. What cannot be read takes the default of its field. A field without a default
is a main field: a reply that lacks one is not a reply. `polyhop.programs.prediction.tidy` trims short answers.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

import dspy
import json_repair
from pydantic import TypeAdapter, ValidationError

from ..signatures.fields import ID, Bound, bound_of, is_nothing

_EXCERPT = 80  # characters of what could not be read

_MARKER = re.compile(r"^[ \t>*_`]*\[\[?\s*#{2,4}\s*(\w+)\s*#{0,4}\s*\]?\][*_`]*:?[ \t]*", re.MULTILINE)
_INLINE = re.compile(r"[ \t]+(?=\[\[ ## \w+ ## \]\])")  # a marker within a line
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)
_NONE_OF = re.compile(r"\W*(?:none|nothing)\b", re.IGNORECASE)
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)
_NOTE = re.compile(r"[ \t]*# note:.*", re.DOTALL)  # of DSPy's template, copied
_BULLET = re.compile(r"^[ \t]*(?:[-*•‣–]|\(?\d{1,3}[.)])[ \t]+")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?|-?\.\d+")
_RATIO = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/|out of)\s*(\d+(?:\.\d+)?)")
_ITEM = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|((?:\[[^\]]*\]|[^,\[\]])+))\s*(,|$)""", re.DOTALL)
_ID = re.compile(ID, re.IGNORECASE)
_IDS = re.compile(rf"\W*{ID}(?:\W+{ID})+\W*", re.IGNORECASE)
_BETWEEN_IDS = re.compile(r"\s*[,;]\s*|\s+and\s+")
_BETWEEN_TEXTS = re.compile(r"(?<=[?\]\"”])\s*[,;]\s*|\s*;\s*")
_WORDS = (  # the first that fits
    ("very high", 0.95), ("very low", 0.05), ("certain", 1.0), ("high", 0.9), ("likely", 0.75),
    ("medium", 0.5), ("moderate", 0.5), ("low", 0.1),
)  # fmt: skip
_NEGATED = re.compile(r"\b(?:not|un|non|never|no)[\s-]*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """The fields of a reply.

    Attributes:
        values: By name, in the order of the signature, with the defaults of those that could not be read. A main field
            that could not be read is missing.
        unread: What stood in the fields that could not be read; empty for those that were missing.
        is_object: Whether the reply is a JSON object of exactly these fields.
    """

    values: dict[str, Any]
    unread: dict[str, str] = field(default_factory=dict)
    is_object: bool = False


def read(signature: type[dspy.Signature], reply: str, cut: bool = False) -> Reading:
    """The fields of a reply.

    Args:
        cut: Whether the reply was cut: of its last field, a list keeps its complete items, and anything else counts as
            unread.
    """
    fields = signature.output_fields
    reply = _INLINE.sub("\n", reply.replace("\r\n", "\n").lstrip("\ufeff"))
    try:
        sections, is_object = _sections(list(fields), reply)
    except _UNREADABLE:
        sections, is_object = {}, False
    last = _last(sections, reply) if cut else None
    values, unread = {}, {}
    for name, info in fields.items():
        if name in sections:
            try:
                values[name] = _value(sections[name], info.annotation, bound_of(info), cut=name == last)
                continue
            except _UNREADABLE:
                unread[name] = " ".join(str(sections[name]).split())[:_EXCERPT]
        else:
            unread[name] = ""
        if not info.is_required():
            values[name] = info.get_default(call_default_factory=True)
    return Reading(values, unread, is_object)


# --- fields -----------------------------------------------------------------------------------------------------------


def _sections(names: list[str], reply: str) -> tuple[dict[str, Any], bool]:
    """What stands in each field, in the order of the reply, and whether all of it is one JSON object."""
    if fenced := _FENCE.match(reply):
        reply = fenced[1]
    marked = _split(_MARKER, reply, names)
    if not marked:
        if (written := _object(reply, names)) is not None:
            return written, written.keys() == set(names) and reply.strip().startswith("{")
        marked = _tagged(names, reply)
    if len(marked) < len(names):
        before, spoken = r"^(?:\d{1,2}[.)])?[ \t>*_#`\-]*(?:final[ \t]+)?", "|".join(map(_spoken, names))
        label = rf"{before}({spoken})[*_`]*[ \t]*(?:[:：=][*_`]*[ \t]*|[ \t]*[*_`]*$)"
        marked = {**_split(re.compile(label, re.MULTILINE | re.IGNORECASE), reply, names, marked), **marked}
    if not marked and len(names) == 1 and _is_list(reply.strip()):
        marked = {names[0]: reply.strip()}
    return marked, False


def _split(header: re.Pattern[str], reply: str, names: list[str], marked: Mapping[str, Any] = {}) -> dict[str, str]:
    """What follows each header, up to the next; of a field that stands twice the first that is not the template's."""
    spoken = {name.replace("_", ""): name for name in names}  # "Sub-questions"
    heads = list(header.finditer(reply))
    ends = [*(head.start() for head in heads[1:]), len(reply)]
    texts: dict[str, str] = {}
    for head, end in zip(heads, ends, strict=False):
        name = spoken.get(re.sub(r"[\W_]+", "", head[1].lower()), "")
        text = reply[head.end() : end].strip()
        if marked:  # a label before or behind the markers: its text ends where they begin
            text = _MARKER.split(text)[0].strip()
        if name in names and name not in texts and text != f"{{{name}}}":
            texts[name] = text
    return texts


def _is_list(text: str) -> bool:
    """Whether a text without its field's name is plainly a list, not a refusal."""
    return (text[:1] == "[" and text[:2] != "[[") or all(
        _BULLET.match(line) for line in text.splitlines() if line.strip()
    )


def _spoken(name: str) -> str:
    """A pattern of a field's name as a label: "sub-questions"."""
    return re.escape(name).replace("_", r"[ _-]?")


def _tagged(names: list[str], reply: str) -> dict[str, str]:
    pattern = rf"<({'|'.join(names)})>\s*(.*?)\s*(?:</\1>|(?=<(?:{'|'.join(names)})>)|\Z)"
    return {match[1].lower(): match[2] for match in re.finditer(pattern, reply, re.DOTALL | re.IGNORECASE)}


def _object(reply: str, names: list[str]) -> dict[str, Any] | None:
    """The fields of the JSON object in a reply, if it has one of them; its lists and texts may be cut."""
    start = reply.find("{")
    if start < 0 or not re.search(rf"[\"'](?:{'|'.join(names)})[\"']\s*:", reply[start:]):
        return None
    try:
        value = json.loads(reply[start:])
    except ValueError:
        value = json_repair.loads(reply[start:])
        value = (
            next((candidate for candidate in value if isinstance(candidate, dict)), None)
            if isinstance(value, list)
            else value
        )
    if not isinstance(value, dict):
        return None
    return {str(name): candidate for name, candidate in value.items() if name in names} or None


def _last(sections: Mapping[str, Any], reply: str) -> str | None:
    """The field in which a reply was cut; None if it had written them all."""
    if not sections or re.search(r"\[\[ ?## ?completed ?## ?\]\]", reply):
        return None
    if not all(isinstance(text, str) for text in sections.values()) or not _MARKER.search(reply):
        with suppress(*_UNREADABLE):
            json.loads(reply[reply.find("{") :])
            return None
        return list(sections)[-1]
    ends = {name: reply.rfind(text) + len(text) for name, text in sections.items() if text}
    if not sections[last := list(sections)[-1]]:
        return last
    last = max(ends, key=lambda name: ends[name])
    return None if len(reply.rstrip()) > ends[last] + 2 else last  # another marker stands behind it


# --- values -----------------------------------------------------------------------------------------------------------


def _value(raw: Any, annotation: Any, bound: Bound | None, cut: bool) -> Any:
    """A value of a type; raises a `ValueError` if there is none."""
    if isinstance(raw, str):
        raw = _NOTE.sub("", raw).strip()
        raw = fenced[1].strip() if (fenced := _FENCE.match(raw)) else raw
    origin = get_origin(annotation)
    if origin is Literal:
        return _label(str(raw), get_args(annotation))
    if origin is list:
        items = _items(raw, cut, of_ids=annotation == list[int] or (bound is not None and bound.of_ids))
        while cut and len(items) > 1 and items[-1] == items[-2]:  # a list that runs on repeats itself
            items.pop()
        return _list(items[: bound.items] if bound else items, annotation)
    if annotation in (float, int):
        if cut or raw is None:
            raise ValueError
        raw = raw[0] if isinstance(raw, list) and len(raw) == 1 else raw
        return annotation(_number(raw) if isinstance(raw, str) else raw)
    if annotation is str:
        if cut or raw is None or isinstance(raw, bool | dict):
            raise ValueError
        return ", ".join(map(str, raw)) if isinstance(raw, list) else str(raw)
    if isinstance(raw, str):
        raw = json_repair.loads(raw)
    try:
        return TypeAdapter(annotation).validate_python(raw)
    except ValidationError as error:
        raise ValueError from error


def _list(items: list[Any], annotation: Any) -> list[Any]:
    (kind,) = get_args(annotation) or (str,)
    if kind is int:
        numbers = (_ID.search(str(int(item) if isinstance(item, float) else item)) for item in items)
        return [int(re.split(r"\D", match.group())[0]) for match in numbers if match]
    if kind is str:
        texts = (next(iter(item.values()), "") if isinstance(item, dict) else item for item in items)
        return [str(text) for text in texts]
    try:
        return list(TypeAdapter(annotation).validate_python(items))
    except ValidationError as error:
        raise ValueError from error


def _items(raw: Any, cut: bool, of_ids: bool) -> list[Any]:
    """The items of a list; of one that was cut those that are complete."""
    if not isinstance(raw, str):  # of a JSON object, which closes what was cut
        items = raw[: len(raw) - cut] if isinstance(raw, list) else [raw]
    elif is_nothing(text := raw.strip()):
        items = []
    elif (whole := _json_list(text, cut)) is not None:
        items = whole
    elif of_ids and not cut and "\n" not in text and _IDS.fullmatch(text):
        items = _ID.findall(text)
    elif (whole := _literal(text)) is not None:
        items = whole
    elif of_ids and _NONE_OF.match(text):
        items = []
    elif text.startswith(("{", "[{")):
        items = _as_list(json_repair.loads(f"[{text}]" if text[0] == "{" else text))
        items = items[: len(items) - cut]
    elif cut and text[0] in '["' and '"' in text:
        if text.replace('\\"', "").count('"') % 2:  # within an item
            text = text[: text.rfind('"')]
        items = _quoted(text.removeprefix("[").rstrip().removesuffix("]"))
    elif text[0] == "[" and text.endswith("]") and not (of_ids and "]" in text[:-1]):  # "[2s1] is the one" is no list
        items = _quoted(text[1:-1])
    elif text[0] == "[" and cut and "]" not in text:
        items = _quoted(text[1:])[:-1]
    else:
        items = _in_lines(text) if "\n" in text or _BULLET.match(text) else _between_commas(text, of_ids)
        items = items[: len(items) - cut]
    if of_ids:  # several may stand in one item: "2s1 3s2"
        several = (_ID.findall(item) if isinstance(item, str) and _IDS.fullmatch(item) else [item] for item in items)
        items = [id for ids in several for id in ids]
    # Items may be aligned with others: none is left out, or all are.
    return [] if all(item is None or (isinstance(item, str) and is_nothing(item)) for item in items) else items


def _json_list(text: str, cut: bool) -> list[Any] | None:
    """The list of JSON that a text is, or begins with: what follows it is prose."""
    with suppress(ValueError, RecursionError):
        items, end = json.JSONDecoder().raw_decode(text)
        more = re.match(r"\s*(?:[,;\[]|and\b)", text[end:])
        if isinstance(items, list) and not more and not (cut and text[end:].strip()):
            return items
    return None


def _literal(text: str) -> list[Any] | None:
    """A complete list of JSON or Python, also without its brackets."""
    for form in (text, f"[{text}]"):
        for load in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                if isinstance(items := load(form), list) and (form == text or text[0] in "\"'{"):
                    return items
    return None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _in_lines(text: str) -> list[str]:
    """An item a line; with bullets or numbers, what stands before the first is none, and other lines continue one."""
    lines = [line for line in text.splitlines() if line.strip()]
    marks = [bool(_BULLET.match(line)) for line in lines]
    items: list[str] = []
    for line, is_new in zip(lines, marks, strict=True):
        if is_new or not any(marks):
            items.append(line)
        elif items:
            items[-1] += f" {line.strip()}"
    return [_unquoted(_BULLET.sub("", line)) for line in items]


def _between_commas(text: str, of_ids: bool) -> list[str]:
    """Ids between commas; texts between semicolons, or commas behind a question, a quote or a citation."""
    parts = (_BETWEEN_IDS if of_ids else _BETWEEN_TEXTS).split(text)
    return [_unquoted(part) for part in parts if part.strip()]


def _quoted(text: str) -> list[str]:
    """Items between commas, quoted or not."""
    items, at = list[str](), 0
    while at < len(text) and (match := _ITEM.match(text, at)) and match.end() > at:
        items.append((match[1] or match[2] or match[3] or "").replace('\\"', '"').strip())
        at = match.end()
    return items


def _unquoted(text: str) -> str:
    text = text.strip().rstrip(",")
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text


def _number(text: str) -> float:
    """The number of a text: a share, in percent, or in a word; of several the first that can be a probability."""
    text = text[:200]
    if (ratio := _RATIO.search(text)) and (whole := float(ratio[2])) > 0:
        return float(ratio[1]) / whole
    numbers = list(_NUMBER.finditer(text))
    likely = (n for n in numbers if n.group()[:2] in ("0.", "1.") or text[n.end() :].lstrip()[:1] == "%")
    if number := next(likely, numbers[0] if numbers else None):
        value = float(number.group().replace(",", "."))
        return value / 100 if text[number.end() :].lstrip()[:1] == "%" else value
    for word, value in _WORDS:
        if match := re.search(rf"\b{word}\b", text, re.IGNORECASE):
            return 1 - value if _NEGATED.search(text[: match.start()]) else value
    raise ValueError


def _label(text: str, labels: tuple[Any, ...]) -> Any:
    """The label that a text is, begins with, or alone names, in any case."""
    plain = text.strip().strip("\"'`*_.:[]() ").lower()
    named = {str(label).lower(): label for label in labels}
    if plain in named:
        return named[plain]
    for name, label in named.items():
        if re.match(rf"\W*{re.escape(name)}\b", plain):
            return label
    fitting = [
        (name, label)
        for name, label in named.items()
        if (at := re.search(rf"\b{re.escape(name)}\b", plain)) and not _NEGATED.search(plain[: at.start()])
    ]
    if len(fitting) != 1:
        raise ValueError
    return fitting[0][1]
