"""A program's prompts and thresholds as a Markdown document, for people to read and to copy from."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dspy

from ...programs.exemplars import Exemplars
from ...programs.tunable import tunables
from .loading import tunable_range
from .prompts import FORMATS, REPLIES, AdapterName, Prompt, prompts
from .schema import Manifest


def markdown(
    program: dspy.Module, name: str, adapter: AdapterName = "chat", manifest: Manifest | None = None, agent: str = ""
) -> str:
    """The document.

    Args:
        name: What the program is called.
        manifest: Where it comes from, if it comes from an artifact.
        agent: The only agent to write about; all by default.
    """
    shown = [prompt for prompt in prompts(program, adapter) if agent in ("", prompt.agent)]
    parts = [f"# {name}", _about(program)]
    parts += _provenance(manifest) if manifest else []
    parts += _how(shown, adapter)
    for prompt in shown:
        parts += _agent(prompt)
    parts += [] if agent else [*_exemplars(program), *_tunables(program)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(program: dspy.Module) -> str:
    """The first paragraph of what its class says of itself."""
    return (inspect.getdoc(type(program)) or "").partition("\n\n")[0] if type(program).__doc__ else ""


def _provenance(manifest: Manifest) -> Iterator[str]:
    yield "## Where it comes from"
    versions = ", ".join(f"{package} {version}" for package, version in manifest.versions.items())
    lines = [f"Saved {manifest.created} by {versions}."]
    if manifest.dataset:
        lines.append(f"Dataset: {manifest.dataset}.")
    lines += [f"{split}: {each.count:,} questions of {each.file}." for split, each in manifest.splits.items()]
    lines += [f"Tuned for {manifest.metric}."] if manifest.metric else []
    for split, scores in manifest.scores.items():
        told = [f"{name} {score.mean:.3f} ({score.low:.3f} to {score.high:.3f})" for name, score in scores.items()]
        lines.append(f"Scores on {split}, with their intervals: {', '.join(told)}.")
    lines += [f"Spent: {', '.join(f'{name} {value:g}' for name, value in manifest.spent.items())}."] * bool(
        manifest.spent
    )
    models = sorted({model for model in manifest.lms.values() if model})
    lines += [f"Language models: {', '.join(models)}."] * bool(models)
    yield "\n".join(f"- {line}" for line in lines)


def _how(shown: list[Prompt], adapter: AdapterName) -> Iterator[str]:
    yield "## How to use the prompts"
    yield (
        "Below are the messages that each agent is sent, word for word. In the last one `{{name}}` stands in the place "
        "of an input; put in all of them at once. Inputs are written like this:"
    )
    used = {kind for prompt in shown for kind in prompt.formats.values()}
    yield "\n".join(f"- **{kind}**: {rule}" for kind, rule in FORMATS.items() if kind in used)
    yield REPLIES[adapter]


def _agent(prompt: Prompt) -> Iterator[str]:
    record = prompt.to_record()
    yield f"## {prompt.agent}"
    yield "\n".join(f"> {line}".rstrip() for line in record["instructions"].splitlines())
    inputs = [(each["name"], each["format"], each["description"]) for each in record["inputs"]]
    yield _table(("input", "format", ""), inputs)
    yield _table(
        ("output", "type", ""), [(each["name"], each["type"], each["description"]) for each in record["outputs"]]
    )
    if prompt.shown_exemplars:
        yield (
            "At each call the program adds exemplars, which it chooses for the question, as further pairs of a user's "
            "and an assistant's message before the last message. Those are not shown here."
        )
    for message in prompt.messages:
        yield f"**{message['role']}**"
        fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", message["content"])), default=0))
        yield f"{fence}text\n{message['content']}\n{fence}"


def _exemplars(program: dspy.Module) -> Iterator[str]:
    for _, part in program.named_sub_modules(Exemplars):
        yield "## Exemplars"
        yield (
            f"{len(part.memory)} solved questions, of which up to {part.count.value} are shown for a question "
            f"(mode: {part.mode.value}), the most similar last."
        )
        rows = [(each.question, str(each.hops), " / ".join(each.sub_questions)) for each in part.memory.exemplars]
        yield _table(("question", "hops", "sub-questions"), rows)


def _tunables(program: dspy.Module) -> Iterator[str]:
    found = tunables(program).items()
    rows = [(name, json.dumps(each.value), tunable_range(each.dump_state())) for name, each in found]
    if rows:
        yield "## Thresholds and switches"
        yield _table(("name", "value", "range"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def record(program: dspy.Module, name: str, adapter: AdapterName = "chat", agent: str = "") -> Mapping[str, Any]:
    """The same as one JSON object."""
    shown = [prompt for prompt in prompts(program, adapter) if agent in ("", prompt.agent)]
    return {
        "program": name,
        "adapter": adapter,
        "placeholders": "{{name}} in the last message; put in all of them at once",
        "formats": FORMATS,
        "replies": REPLIES[adapter],
        "agents": [prompt.to_record() for prompt in shown],
        "exemplars": [
            {"count": part.count.value, "mode": part.mode.value, "memory": part.memory.dump_state()["exemplars"]}
            for _, part in program.named_sub_modules(Exemplars)
        ],
        "tunables": {name: tunable.dump_state() for name, tunable in tunables(program).items()},
    }
