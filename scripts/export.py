"""`polyhop export`: the prompts of a program for use without polyhop and DSPy."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError
from .options import label, open_prompts
from .text import file_name

if TYPE_CHECKING:
    import dspy

    from ..optimizers.artifact_format import Manifest


class Format(StrEnum):
    markdown = "markdown"
    messages = "messages"
    json = "json"
    jinja = "jinja"


class Adapter(StrEnum):
    chat = "chat"
    json = "json"


def export(
    program: Annotated[str, typer.Argument(metavar="NAME|DIR", help="As for 'ask --program'.")],
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only this agent.  [default: all]")] = None,
    format: Annotated[
        Format,
        typer.Option(
            help="markdown: to read. messages: role and content, with {{input}} placeholders. json: everything about "
            "each agent. jinja: a template for each agent, which renders to the messages."
        ),
    ] = Format.markdown,
    adapter: Annotated[Adapter, typer.Option(help="DSPy's ChatAdapter (its default) or JSONAdapter.")] = Adapter.chat,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Where to write; a folder gets a file for each agent.  [default: print]"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """Export each agent's prompt.

    Filled with the inputs of a call, the messages are byte for byte what DSPy sends.
    """
    built, manifest = open_prompts(program)
    name = label(program)
    texts = _texts(built, name, format, adapter, agent, manifest)
    if out is None:
        if len(texts) > 1:
            raise PolyhopError("--format jinja writes a file for each agent: add --out DIR, or --agent NAME")
        typer.echo(next(iter(texts.values())), nl=False)
        return
    ending = {Format.markdown: ".md", Format.jinja: ".jinja"}.get(format, ".json")
    try:
        for path in _write(texts, out, name, ending, overwrite):
            typer.echo(path)
    except OSError as error:
        raise PolyhopError(f"cannot write {out}: {error.strerror}") from error


def _texts(
    program: dspy.Module, name: str, format: Format, adapter: Adapter, agent: str | None, manifest: Manifest | None
) -> dict[str, str]:
    """What to write, by agent; "" stands for all of them."""
    from ..optimizers.export import jinja_template, markdown, prompts, record

    found = {prompt.agent: prompt for prompt in prompts(program, adapter.value)}
    if agent is not None and agent not in found:
        raise PolyhopError(f"{name} has no agent {agent!r}: its agents are {', '.join(found)}")
    only = agent or ""
    if format is Format.jinja:
        return {key: jinja_template(prompt, name) for key, prompt in found.items() if agent in (None, key)}
    if format is Format.markdown:
        return {only: markdown(program, name, adapter.value, manifest, only)}
    if format is Format.json:
        return {only: _json(record(program, name, adapter.value, only))}
    messages = {key: list(prompt.messages) for key, prompt in found.items()}
    return {only: _json(messages[agent] if agent else messages)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _write(texts: dict[str, str], out: Path, name: str, ending: str, overwrite: bool) -> list[Path]:
    """Write a single text to ``out`` if that has a suffix, else each text to a file in the folder ``out``."""
    from ..eval.official.files import replacing

    single = len(texts) == 1 and bool(out.suffix) and not out.is_dir()
    (out.parent if single else out).mkdir(parents=True, exist_ok=True)
    paths = [out] if single else [out / f"{file_name(agent or name)}{ending}" for agent in texts]
    existing = [path for path in paths if path.exists()]
    if existing and not overwrite:
        raise PolyhopError(f"{existing[0]} exists: choose another --out, or add --overwrite")
    for path, text in zip(paths, texts.values(), strict=True):
        with replacing(path) as file:
            file.write(text)
    return paths
