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


class Format(StrEnum):
    markdown = "markdown"
    messages = "messages"
    json = "json"
    dspy = "dspy"


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
            "each agent. dspy: the state that DSPy's own load() reads, without polyhop."
        ),
    ] = Format.markdown,
    adapter: Annotated[Adapter, typer.Option(help="DSPy's ChatAdapter (its default) or JSONAdapter.")] = Adapter.chat,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Where to write.  [default: print]"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """Export each agent's prompt.

    Filled with the inputs of a call, the messages are byte for byte what DSPy sends.
    """
    from ..eval.folder import replacing

    built, _ = open_prompts(program)
    name = label(program)
    text = _text(built, name, format, adapter, agent)
    if out is None:
        typer.echo(text, nl=False)
        return
    ending = ".md" if format is Format.markdown else ".json"
    path = out if out.suffix and not out.is_dir() else out / f"{file_name(agent or name)}{ending}"
    if path.exists() and not overwrite:
        raise PolyhopError(f"{path} exists: choose another --out, or add --overwrite")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(text)
    except OSError as error:
        raise PolyhopError(f"cannot write {out}: {error.strerror}") from error
    typer.echo(path)


def _text(program: dspy.Module, name: str, format: Format, adapter: Adapter, agent: str | None) -> str:
    """The prompts of one agent or of all."""
    from ..optimizers.export import markdown, prompts, record

    found = {prompt["agent"]: prompt for prompt in prompts(program, adapter.value)}
    if agent is not None and agent not in found:
        raise PolyhopError(f"{name} has no agent {agent!r}: its agents are {', '.join(found)}")
    if format is Format.markdown:
        return markdown(program, name, adapter.value, agent or "")
    if format is Format.dspy:
        return _state(program)
    if format is Format.json:
        return _json(record(program, name, adapter.value, agent or ""))
    messages = {key: prompt["messages"] for key, prompt in found.items()}
    return _json(messages[agent] if agent else messages)


def _state(program: dspy.Module) -> str:
    """What `dspy.Module.save` writes, without models. DSPy itself cannot save a program that has a `dspy.Retrieve`."""
    from tempfile import TemporaryDirectory

    import dspy

    with TemporaryDirectory() as folder:
        path = Path(folder, "state.json")
        dspy.Predict("question -> answer").save(path)
        metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    return _json({name: each.dump_state() for name, each in program.named_parameters()} | {"metadata": metadata})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
