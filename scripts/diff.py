"""`polyhop diff`: what changed between two programs."""

from __future__ import annotations

import json

import typer

from ..data.text import plain
from ..optimizers.artifact import State, about, dump
from ..optimizers.artifact import diff as compare
from .options import Diff
from .program import artifact_of, open_program, searches
from .terminal import short

_COLORS = {"-": typer.colors.RED, "+": typer.colors.GREEN}


def diff(given: Diff) -> None:
    names = (given.before, given.after)
    artifacts = {name: artifact for name in names if (artifact := artifact_of(name))}
    chained = any(each.startswith("search.chain[") for found in artifacts.values() for each in found.state)

    def state(name: str) -> State:
        """An untuned program is built with the kind of retriever that the other was tuned with."""
        if name in artifacts:
            return artifacts[name].state
        return dump(open_program(name, retriever="bm25" if artifacts and not chained and searches(name) else None))

    changes = compare(state(given.before), state(given.after))
    made = about(*(artifacts[name] for name in names)) if all(name in artifacts for name in names) else {}
    if given.as_json:
        found = [{name: each._asdict() for name, each in part.items()} for part in (changes, made)]
        shown = {"a": given.before, "b": given.after, "same": not changes, "changes": found[0], "about": found[1]}
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    if not changes:
        typer.echo("The same instructions, demos, exemplars and tunables.")
    for name, change in {**changes, **made}.items():
        typer.secho(plain(name), bold=True)
        for mark, lines in zip("-+", change, strict=True):
            for line in lines:
                typer.secho(f"  {mark} {short(line)}", fg=_COLORS[mark])
