"""`polyhop export`: the prompts of a program for use without polyhop and DSPy."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import dspy
import typer

from ..app.named import NamedProgram
from ..data.errors import PolyhopError
from ..eval.folder import replacing
from ..optimizers.export import markdown, prompts
from .options import Export
from .terminal import file_name


def export(options: Export) -> None:
    named = NamedProgram(options.program)
    program, name = named.open(), named.label
    agent, adapter, out = options.agent, options.adapter, options.out
    messages = {prompt["agent"]: prompt["messages"] for prompt in prompts(program, adapter)}
    if agent is not None and agent not in messages:
        raise PolyhopError(f"{name} has no agent {agent!r}: its agents are {', '.join(messages)}")
    if options.format == "markdown":
        text = markdown(program, name, adapter, agent or "")
    else:
        exported = _state(program) if options.format == "dspy" else messages[agent] if agent else messages
        text = json.dumps(exported, ensure_ascii=False, indent=2) + "\n"
    if out is None:
        typer.echo(text, nl=False)
        return
    ending = ".md" if options.format == "markdown" else ".json"
    path = out if out.suffix and not out.is_dir() else out / f"{file_name(agent or name)}{ending}"
    if path.exists() and not options.overwrite:
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
    return {name: part.dump_state() for name, part in program.named_parameters()} | {"metadata": metadata}
