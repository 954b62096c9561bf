"""`polyhop export`: the prompts of a program for use without polyhop, and without DSPy."""

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

    from ..optimizers.artifacts.schema import Manifest


class Format(StrEnum):
    markdown = "markdown"
    messages = "messages"
    json = "json"
    jinja = "jinja"


class Adapter(StrEnum):
    chat = "chat"
    json = "json"


_ENDINGS = {Format.markdown: ".md", Format.messages: ".json", Format.json: ".json", Format.jinja: ".jinja"}


def export(
    program: Annotated[
        str, typer.Argument(metavar="DIR|NAME|FILE", help="An artifact, a program as it ships, or a saved state.")
    ],
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only this agent.  [default: all]")] = None,
    format: Annotated[
        Format,
        typer.Option(
            help="markdown: to read. messages: role and content, {{input}} in the place of inputs. json: all about "
            "each agent. jinja: a template for each agent, which renders to the messages."
        ),
    ] = Format.markdown,
    adapter: Annotated[
        Adapter, typer.Option(help="DSPy's ChatAdapter, its default, or its JSONAdapter.")
    ] = Adapter.chat,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Where to write; a folder gets a file for each agent.  [default: print]"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Export each agent's prompt, word for word as it is sent.

    Filled with the inputs of a call, the messages are byte for byte those that DSPy sends.
    """
    built, manifest = open_prompts(program)
    name = label(program)
    texts = _texts(built, name, format, adapter, agent, manifest)
    if out is None:
        if len(texts) > 1:
            raise PolyhopError("--format jinja writes a file for each agent: name a folder with --out, or one --agent")
        typer.echo(next(iter(texts.values())), nl=False)
        return
    try:
        for path in _write(texts, out, name, _ENDINGS[format], overwrite):
            typer.echo(path)
    except OSError as error:
        raise PolyhopError(f"cannot write {out}: {error.strerror}") from error


def _texts(
    program: dspy.Module, name: str, format: Format, adapter: Adapter, agent: str | None, manifest: Manifest | None
) -> dict[str, str]:
    """What to write, by agent; "" is for all of them."""
    from ..optimizers.artifacts.prompts import prompts
    from ..optimizers.artifacts.prose import markdown, record
    from ..optimizers.artifacts.templates import jinja_template

    found = {prompt.agent: prompt for prompt in prompts(program, adapter.value)}
    if agent is not None and agent not in found:
        raise PolyhopError(f"no agent {agent!r} in {name}: its agents are {', '.join(found)}")
    chosen = {key: prompt for key, prompt in found.items() if agent in (None, key)}
    if format is Format.jinja:
        return {key: jinja_template(prompt, name) for key, prompt in chosen.items()}
    if format is Format.markdown:
        return {agent or "": markdown(program, name, adapter.value, manifest, agent or "")}
    if format is Format.json:
        return {agent or "": _json(record(program, name, adapter.value, agent or ""))}
    messages = {key: list(prompt.messages) for key, prompt in chosen.items()}
    return {agent or "": _json(messages[agent] if agent else messages)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _write(texts: dict[str, str], out: Path, name: str, ending: str, overwrite: bool) -> list[Path]:
    """A file for each text: ``out`` itself if it has an ending and there is but one, else in the folder ``out``.

    Raises:
        PolyhopError: one is there; an export looks like any other text, so that nobody knows whose it is.
    """
    if len(texts) == 1 and out.suffix and not out.is_dir():
        out.parent.mkdir(parents=True, exist_ok=True)
        paths = [out]
    else:
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / f"{file_name(agent or name)}{ending}" for agent in texts]
    there = [path for path in paths if path.exists()]
    if there and not overwrite:
        raise PolyhopError(f"{there[0]} is there: give --out another name, or say --overwrite")
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8", newline="")
    return paths
