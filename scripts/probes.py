"""What `polyhop doctor` asks a model server of this machine.

Does it enforce JSON schemas, does it cut long prompts without a word, does the model think before it writes, and how
many seconds does a question take?
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import monotonic
from typing import Any, Literal, NamedTuple

import dspy
from dspy import LMError

from ..data.text import plain
from ..engines.costs import Ledger
from ..engines.limits import LimitedLM
from ..engines.replies import CutReplyError, explain
from ..programs.run import PROMPT_TOKENS

# Calls of a question, thousands of tokens that a server reads for it, and tokens that it writes in a call: those of a
# model of 1.5 billion parameters (docs/results.md).
_QUESTION = {"naive": (1, 0.9), "polyhop": (2.8, 2.9), "prism": (8, 20.7)}
_WRITTEN = 90
_WORDS = "one two three four five six seven eight nine ten".split()
_WORD = "quokka"  # that no model says unless it must
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [_WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}
_LONGER = (
    "give it a longer context: num_ctx in the profile or OLLAMA_CONTEXT_LENGTH for Ollama, -c for llama.cpp, "
    "--max-model-len for vLLM; or show less: --set prompt_tokens={}"
)


class Finding(NamedTuple):
    """The result of a check; ``fix`` is what to do, empty if nothing is wrong."""

    status: Literal["ok", "warning", "failed"]
    check: str
    found: str
    fix: str = ""


class _Reply(NamedTuple):
    text: str
    read: int  # tokens
    written: int
    seconds: float
    thinks: bool = False
    estimated: bool = False  # the numbers of tokens


def probes(lm: LimitedLM) -> Iterator[Finding]:
    """Findings about a server that answers; a probe that it refuses is a text, too."""
    try:
        writing = _ask(lm, "Write the numbers from 1 to 40 as digits, separated by spaces, and nothing else.", 160)
    except LMError as error:
        yield Finding("failed", "speed", plain(explain(error)), "look at the server's log")
        return
    yield _thinking(writing)
    yield _schema(lm)
    context, reading = _context(lm)
    yield context
    if reading and writing.written:
        yield _speed(reading, writing)


def _ask(lm: LimitedLM, prompt: str, most: int, **more: Any) -> _Reply:
    """A request without cache and retries."""
    ledger, started, thinks = Ledger(), monotonic(), False
    with dspy.context(usage_tracker=ledger, disable_history=True):
        try:
            reply = lm.copy(cache=False, num_retries=0)(prompt, max_tokens=most, **more)[0]
            text = reply if isinstance(reply, str) else str(reply.get("text") or "")
        except CutReplyError as error:
            text, thinks = error.reply, not error.reply.strip()
    costs = ledger.costs()
    estimated = "tokens estimated" in ledger.incidents
    return _Reply(text, int(costs["tokens_in"]), int(costs["tokens_out"]), monotonic() - started, thinks, estimated)


def _thinking(reply: _Reply) -> Finding:
    if not reply.thinks:
        return Finding("ok", "thinking", "it writes without thinking first")
    fix = "if you need speed, switch it off: see the model's page for the field, and name it in extra_body of a profile"
    return Finding("warning", "thinking", "it thinks before it writes, so replies have no bound and take long", fix)


def _schema(lm: LimitedLM) -> Finding:
    """Whether a reply is what a schema allows, and nothing else would be."""
    form = {"type": "json_schema", "json_schema": {"name": "word", "schema": _SCHEMA, "strict": True}}
    try:
        reply = _ask(lm, "Which word names the capital of France? Reply as JSON.", 60, response_format=form)
        enforced = json.loads(reply.text) == {"word": _WORD}
    except ValueError:
        enforced = False
    except LMError as error:
        return Finding("ok", "schema", f"it refuses JSON schemas, and is sent none: {plain(explain(error))}")
    lm.traits.structured = enforced
    text = "it enforces JSON schemas" if enforced else "it ignores JSON schemas, and is sent none"
    return Finding("ok", "schema", text)


def _context(lm: LimitedLM) -> tuple[Finding, _Reply | None]:
    """Whether a prompt as long as an agent's may be is read as a whole: every word of it is a token at least."""
    words = " ".join(_WORDS[n % 10] for n in range(PROMPT_TOKENS))
    fix = _LONGER.format(PROMPT_TOKENS // 2)
    try:
        reply = _ask(lm, f"{words}\n\nWhich word is the last one above? Reply with that word.", 8)
    except LMError as error:
        text = f"it refuses a prompt of {PROMPT_TOKENS:,} words: {plain(explain(error))}"
        return Finding("failed", "context", text, fix), None
    if reply.estimated:
        text = "the server counts no tokens, so nobody can tell whether it cuts prompts"
        return Finding("warning", "context", text, fix), None
    if reply.read < PROMPT_TOKENS:
        text = f"of a prompt of {PROMPT_TOKENS:,} words it read {reply.read:,} tokens: it cuts prompts without a word"
        return Finding("failed", "context", text, fix), reply
    return Finding("ok", "context", f"it reads a prompt of {reply.read:,} tokens"), reply


def _speed(reading: _Reply, writing: _Reply) -> Finding:
    written = writing.written / writing.seconds  # a second; its prompt is short
    read = reading.read / max(reading.seconds - reading.written / written, 0.001)
    times = {name: 1000 * kilo / read + calls * _WRITTEN / written for name, (calls, kilo) in _QUESTION.items()}
    times_text = ", ".join(f"{name} {seconds:,.0f} s" for name, seconds in times.items())
    text = f"{read:,.0f} tokens a second read, {written:,.0f} written; a question takes about: {times_text}"
    return Finding("ok", "speed", text)
