"""`polyhop export` and `polyhop diff`: the prompts of a program for use elsewhere, and what changed between two."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import dspy
import typer

from ..app.named import NamedProgram
from ..data.errors import PolyhopError
from ..data.text import plain
from ..eval.folder import replacing
from ..optimizers.artifact import State, about, dump
from ..optimizers.artifact import diff as compare
from ..optimizers.export import markdown, prompts
from .options import Diff, Export
from .terminal import file_name, short

_COLORS = {"-": typer.colors.RED, "+": typer.colors.GREEN}


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


def diff(options: Diff) -> None:
    before, after = NamedProgram(options.before), NamedProgram(options.after)
    artifacts = [named.artifact for named in (before, after) if named.artifact]
    chained = any(name.startswith("search.chain[") for artifact in artifacts for name in artifact.state)

    def state(named: NamedProgram) -> State:
        """An untuned program is built with the kind of retriever that the other was tuned with."""
        if named.artifact:
            return named.artifact.state
        return dump(named.open(retriever="bm25" if artifacts and not chained and named.searches else None))

    changes = compare(state(before), state(after))
    made = about(*artifacts) if len(artifacts) == 2 else {}
    if options.as_json:
        parts = [{name: change._asdict() for name, change in part.items()} for part in (changes, made)]
        shown = {"a": options.before, "b": options.after, "same": not changes, "changes": parts[0], "about": parts[1]}
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    if not changes:
        typer.echo("The same instructions, demos, exemplars and tunables.")
    for name, change in {**changes, **made}.items():
        typer.secho(plain(name), bold=True)
        for mark, lines in zip("-+", change, strict=True):
            for line in lines:
                typer.secho(f"  {mark} {short(line)}", fg=_COLORS[mark])
