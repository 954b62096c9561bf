"""`polyhop export`: the prompts of a program for use without polyhop and DSPy."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import dspy
import typer

from ..data.errors import PolyhopError
from ..eval.folder import replacing
from ..optimizers.export import markdown, prompts
from .options import Export
from .program import Named
from .terminal import file_name


def export(given: Export) -> None:
    named = Named(given.program)
    program, name = named.open(), named.label
    agent, adapter, out = given.agent, given.adapter, given.out
    messages = {prompt["agent"]: prompt["messages"] for prompt in prompts(program, adapter)}
    if agent is not None and agent not in messages:
        raise PolyhopError(f"{name} has no agent {agent!r}: its agents are {', '.join(messages)}")
    if given.format == "markdown":
        text = markdown(program, name, adapter, agent or "")
    else:
        exported = _state(program) if given.format == "dspy" else messages[agent] if agent else messages
        text = json.dumps(exported, ensure_ascii=False, indent=2) + "\n"
    if out is None:
        typer.echo(text, nl=False)
        return
    ending = ".md" if given.format == "markdown" else ".json"
    path = out if out.suffix and not out.is_dir() else out / f"{file_name(agent or name)}{ending}"
    if path.exists() and not given.overwrite:
        raise PolyhopError(f"{path} exists: choose another --out, or add --overwrite")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text)
    typer.echo(path)


def _state(program: dspy.Module) -> dict[str, object]:
    """What `dspy.Module.save` writes, without models. DSPy itself cannot save a program that has a `dspy.Retrieve`."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "state.json")
        dspy.Predict("question -> answer").save(path)
        metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    return {name: each.dump_state() for name, each in program.named_parameters()} | {"metadata": metadata}
