"""A model that writes the right values in weak forms, as small models do: the embedded engine plays it, `Weak` rewrites
its replies. A habit lasts: the JSON of a second request has it, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import dspy
from dspy import lm15

from polyhop import signatures
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.lexical import LexicalEngine
from polyhop.engines.limits import LimitedLM, Limits, RateLimit
from polyhop.engines.replies import as_events, read_request, respond
from polyhop.programs import new_program
from polyhop.programs.program import ask

Values = dict[str, Any]
_SECTION = re.compile(r"\[\[ ## (\w+) ## \]\]\n(.*?)\n*(?=\[\[ ## \w+ ## \]\])", re.DOTALL)


_NUMBERS = {"confidence", "accuracy", "sufficiency", "diversity"}


def _typed(name: str, text: str) -> Any:
    if name in _NUMBERS:
        return float(text)
    try:
        return json.loads(text) if text.startswith("[") else text
    except ValueError:  # "[1s2] says so."
        return text


def _sections(values: Values, listed: Callable[[list[Any]], str] = json.dumps) -> str:
    """In DSPy's markers; ``listed`` writes the lists."""
    parts = [f"[[ ## {k} ## ]]\n{listed(v) if isinstance(v, list) else v}\n" for k, v in values.items()]
    return "\n".join([*parts, "[[ ## completed ## ]]"])


def _each(values: Values, kind: type, change: Callable[[Any], Any]) -> Values:
    return {name: change(value) if isinstance(value, kind) else value for name, value in values.items()}


def _bullets(items: list[Any]) -> str:
    return "\n".join(f"- {json.dumps(item) if isinstance(item, dict) else item}" for item in items) or "[]"


def _commas(items: list[Any]) -> str:
    plain = all(re.fullmatch(r"\d+(s\d+)?", str(item)) for item in items)
    return ", ".join(str(item) if plain else json.dumps(item) for item in items) or "[]"


def _likely(value: float) -> str:
    return "high" if value > 0.7 else "low" if value < 0.3 else "medium"


def _decorated(values: Values) -> str:
    """Sentences, bold, a label with a reason, and the template's note."""
    changed = dict(values)
    for name, value in values.items():
        if name == "answer" and value != "unknown":
            changed[name] = f"The answer is **{value}**."
        elif name in ("attribution", "decision", "route", "action"):
            changed[name] = f"{value.capitalize()}. That is what the passages say."
        elif name in _NUMBERS:
            changed[name] = f"{value}        # note: the value you produce must be a single float value"
    return _sections(changed)


FORMS: dict[str, Callable[[Values], str]] = {
    "percent": lambda values: _sections(_each(values, float, lambda value: f"{round(100 * value)}%")),
    "word": lambda values: _sections(_each(values, float, lambda value: f"{_likely(value)} ({value})")),
    "bullets": lambda values: _sections(values, _bullets),
    "commas": lambda values: _sections(values, _commas),
    "none": lambda values: _sections(values, lambda items: json.dumps(items) if items else "none"),
    "empty": lambda values: _sections(values, lambda items: json.dumps(items) if items else ""),
    "last field missing": _sections,  # unless it is the main one
    "labels": lambda values: "\n".join(
        f"**{name.replace('_', ' ').capitalize()}:** {json.dumps(value) if isinstance(value, list) else value}"
        for name, value in values.items()
    ),
    "json in a fence": lambda values: f"Here it is:\n```json\n{json.dumps(_each(values, float, str), indent=1)}\n```",
    "decorated": _decorated,
}
"""Ten forms of a reply, by name."""

_MAIN = {
    name
    for value in vars(signatures).values()
    if isinstance(value, dspy.SignatureMeta)
    for name, field in value.output_fields.items()
    if field.is_required()
}


@dataclass
class Weak:
    """An engine for `dspy.LM`.

    Args:
        form: Of `FORMS`.
        cut: Whether a reply with a list at its end, or a number, runs on to its cap.
    """

    form: str
    cut: bool = False
    calls: int = 0

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.calls += 1
        clean = LexicalEngine().complete(request).text or ""
        as_json = "Outputs will be a JSON object" in read_request(request)[0]
        values = json.loads(clean) if as_json else {name: _typed(name, text) for name, text in _SECTION.findall(clean)}
        values = {name: float(value) if name in _NUMBERS else value for name, value in values.items()}
        if self.form == "clean":
            return respond(request, clean)
        if self.form == "last field missing" and list(values)[-1] not in _MAIN:
            values.popitem()
        reply, last = FORMS[self.form](values), list(values.values())[-1]
        if not self.cut or not (isinstance(last, list) or (isinstance(last, float) and list(values)[-1] not in _MAIN)):
            return respond(request, reply)
        reply = re.sub(r"\n*\[\[ ## completed ## \]\]|\n```", "", reply).rstrip()
        if isinstance(last, list) and last:
            closed = re.search(r"\]\s*\}?\s*\Z", reply)
            more = f"\n{_bullets(last[-1:])}" if self.form == "bullets" else f", {json.dumps(last[-1])}"
            reply = (reply[: closed.start()].rstrip() if closed else reply) + 40 * more + more[: len(more) // 2]
        else:
            reply = reply[: len(reply) - 1]
        return replace(respond(request, reply), finish_reason="length")

    def stream(self, request: lm15.Request) -> Any:
        return as_events(self.complete(request))

    def __deepcopy__(self, memo: Any) -> Weak:
        return self


def play(name: str, engine: Weak) -> tuple[str, int]:
    """What a program answers, or withholds, to the first question of the sample, and its calls."""
    program = new_program(name, PassagePool(sample_passages()))
    program.set_lm(LimitedLM(dspy.LM("weak", engine=engine, cache=False), RateLimit(Limits(retries=0))))
    prediction = ask(program, load_sample("dev")[0])
    return prediction.guess or prediction.answer, engine.calls


@cache
def clean(name: str) -> tuple[str, int]:
    """The same with clean replies."""
    return play(name, Weak("clean"))
