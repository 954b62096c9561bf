"""`polyhop diff`: what changed between two programs."""

from __future__ import annotations

import json

import typer

from ..app.named import NamedProgram
from ..data.text import plain
from ..optimizers.artifact import State, about, dump
from ..optimizers.artifact import diff as compare
from .options import Diff
from .terminal import short

_COLORS = {"-": typer.colors.RED, "+": typer.colors.GREEN}


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
