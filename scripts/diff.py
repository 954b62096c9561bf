"""`polyhop diff`: what changed between two programs."""

from __future__ import annotations

import json
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.text import plain
from .options import artifact_of, open_prompts, searches
from .text import MOST_TEXT

if TYPE_CHECKING:
    from ..optimizers.artifact import Artifact, State

_COLORS = {"-": typer.colors.RED, "+": typer.colors.GREEN}


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A program, or the folder of an artifact.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what changed from A to B: instructions, demos, exemplars, tunables; of two artifacts also scores, settings
    and versions.

    Lines that only A has begin with -, those that only B has with +. --json has them in full.
    """
    from ..optimizers.artifact import about
    from ..optimizers.artifact import diff as compare

    artifacts = {name: artifact for name in (before, after) if (artifact := artifact_of(name))}
    changes = compare(_state(before, artifacts), _state(after, artifacts))
    both = before in artifacts and after in artifacts
    made = about(artifacts[before].manifest, artifacts[after].manifest) if both else {}
    if as_json:
        found = [{name: each._asdict() for name, each in part.items()} for part in (changes, made)]
        shown = {"a": before, "b": after, "same": not changes, "changes": found[0], "about": found[1]}
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    if not changes:
        typer.echo("The same instructions, demos, exemplars and tunables.")
    for name, change in {**changes, **made}.items():
        typer.secho(plain(name), bold=True)
        for mark, lines in zip("-+", change, strict=True):
            for line in lines:
                typer.secho(f"  {mark} {shorten(plain(line), MOST_TEXT, placeholder=' …')}", fg=_COLORS[mark])


def _state(name: str, artifacts: dict[str, Artifact]) -> State:
    """The state of a side; an untuned program is built with the kind of retriever that the other was tuned with."""
    from ..optimizers.artifact import dump

    if name in artifacts:
        return artifacts[name].state
    chained = any(each.startswith("search.chain[") for found in artifacts.values() for each in found.state)
    return dump(open_prompts(name, "bm25" if artifacts and not chained and searches(name) else None)[0])
