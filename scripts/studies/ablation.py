"""Feature ablation of the chain retriever: one feature is left out at a time.

python -m polyhop.scripts.studies.ablation --on 2wiki:2wiki_dev.json.gz:indexes/2wiki
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Annotated

import typer

from ...data.chain.weights import ChainWeights
from ..training.chain.workers import ALL_GOLD, RECALL, QuestionSet, Scores, Workers
from ..training.command import new_app, run_command

FEATURES: dict[str, tuple[str, ...]] = {
    "the BM25 score": ("bm25",),
    "titles in the question": ("named",),
    "words of the question": ("coverage", "sentence", "opening", "pairs", "title"),
    "... in one sentence": ("sentence",),
    "... in the first sentence": ("opening",),
    "... in the title": ("title",),
    "... in pairs": ("pairs",),
    "explained words count less": ("explained",),
    "links": ("link",),
    "shared names": ("shared",),
    "back-links": ("back",),
    "links, shared names, back-links": ("link", "shared", "back"),
    "ties of a second kind": ("second",),
    "ties to other passages": ("others",),
    "words beside a mention": ("cue",),
    "words beside a shared name in the chosen passage": ("origin",),
    "fit of what is linked": ("fit",),
    "rarity of names": ("rarity",),
    "ambiguity of names": ("ambiguity",),
}
"""The weights that are set to 0 to leave a feature out."""

ROUND = dict.fromkeys(("coverage", "sentence", "named", "link", "cue", "origin", "fit"), 1.0) | {
    "bm25": 0.1,
    "in_title": 1.5,
    "surplus": 0.1,
    "length": 0.1,
    **dict.fromkeys(("pairs", "title"), 1.0),
    **dict.fromkeys(("opening", "explained", "inner", "taken", "later", "back", "shared", "second", "others"), 0.5),
    **dict.fromkeys(("rarity", "ambiguity"), 0.5),
}
"""Untuned, round weights."""


def ablate(workers: Workers, weights: ChainWeights, names: list[str]) -> Iterator[tuple[str, Scores]]:
    """Recall@5 and all-gold@5 of BM25 alone, of all features (tuned and round weights), and without each feature."""
    nothing = dict.fromkeys((name for name in asdict(weights) if name != "in_title"), 0.0)
    yield "the BM25 score alone", workers.recalls(ChainWeights(**{**nothing, "bm25": 1.0}), {0}, names)
    yield "everything", workers.recalls(weights, {0}, names)
    yield "everything, with round weights", workers.recalls(replace(weights, **ROUND), {0}, names)
    for feature, off in FEATURES.items():
        yield f"without {feature}", workers.recalls(replace(weights, **dict.fromkeys(off, 0.0)), {0}, names)


app = new_app()


@app.command()
def ablate_features(
    on: Annotated[
        list[str],
        typer.Option(
            metavar="DATASET:QUESTIONS:INDEX",
            help="Score these questions over this index; sample::INDEX for the sample. May be repeated.",
        ),
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Take N random questions of each set.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Recall@5 (all gold@5) of the chain retriever, with each of its features left out, as a Markdown table."""
    try:
        sets = tuple(QuestionSet.parse(text) for text in on)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--on") from error
    names = [each.name for each in sets]
    with Workers(sets, jobs, folds=1, limit=limit, seed=seed) as workers:
        typer.echo(_row("Recall@5 (all gold@5)", names))
        typer.echo(_row("---", ["---:"] * len(names)))
        for label, scores in ablate(workers, ChainWeights(), names):
            typer.echo(
                _row(
                    label, [f"{100 * scores[name][RECALL]:.1f} ({100 * scores[name][ALL_GOLD]:.1f})" for name in names]
                )
            )


def _row(label: str, cells: list[str]) -> str:
    return f"| {' | '.join((label, *cells))} |"


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.studies.ablation")
