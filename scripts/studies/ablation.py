"""Feature ablation of the chain retriever: one feature is left out at a time.

python -m polyhop.scripts.studies.ablation --on 2wiki:2wiki_dev.json.gz:indexes/2wiki
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Annotated

import typer

from ...data.benchmarks import SAMPLE
from ...data.chain import ChainRetriever, ChainWeights
from ...eval.gold import gold_of
from ...eval.questions import Questions
from ...eval.scoring import ranking_scores
from ..source import Source
from ..training.command import QuestionFile, new_app, run_command

FEATURES: dict[str, tuple[str, ...]] = {
    "the BM25 score": ("bm25",),
    "titles in the question": ("named",),
    "words of the question": ("coverage", "sentence", "opening", "pairs"),
    "... in one sentence": ("sentence",),
    "... in the first sentence": ("opening",),
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
    "rarity of names": ("rarity",),
    "ambiguity of names": ("ambiguity",),
}
"""The weights that are set to 0 to leave a feature out."""

ROUND = dict.fromkeys(("coverage", "sentence", "pairs", "named", "link", "cue", "origin"), 1.0) | {
    "bm25": 0.1,
    "in_title": 1.5,
    "surplus": 0.1,
    "length": 0.1,
    **dict.fromkeys(("opening", "explained", "taken", "later", "back", "shared", "second", "others"), 0.5),
    **dict.fromkeys(("rarity", "ambiguity"), 0.5),
}
"""Untuned, round weights."""


def ablate(sources: Sequence[Source], weights: ChainWeights) -> Iterator[tuple[str, list[str]]]:
    """Recall@5 (all gold@5) on each set of BM25 alone, of all features (tuned and round weights), and without each."""

    def scores(tried: ChainWeights) -> list[str]:
        return [_recall(source, tried) for source in sources]

    nothing = dict.fromkeys((name for name in asdict(weights) if name != "in_title"), 0.0)
    yield "the BM25 score alone", scores(ChainWeights(**{**nothing, "bm25": 1.0}))
    yield "everything", scores(weights)
    yield "everything, with round weights", scores(replace(weights, **ROUND))
    for feature, off in FEATURES.items():
        yield f"without {feature}", scores(replace(weights, **dict.fromkeys(off, 0.0)))


def _recall(source: Source, weights: ChainWeights) -> str:
    retriever, found = ChainRetriever(source.searched, weights), list[Mapping[str, float]]()
    for example in source.questions:
        titles = dict.fromkeys(fact.title for fact in example.gold)
        known = [passage for title in titles for passage in source.look_up(title)] if source.look_up else []
        if gold := gold_of(example, known).passages:
            ranking = [hit.passage.id for hit in retriever.search(example.question, 5)]
            found.append(ranking_scores(ranking, frozenset(gold), (5,)))
    means = (100 * fmean(each[name] for each in found) for name in ("passage_recall@5", "all_gold@5"))
    return "{:.1f} ({:.1f})".format(*means)


app = new_app()


@app.command()
def ablate_features(
    on: Annotated[
        list[str],
        typer.Option(
            metavar="DATASET:QUESTIONS:INDEX", help="Questions over an index; sample: for the sample. May be repeated."
        ),
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Take N random questions of each set.")] = None,
    seed: Annotated[int, typer.Option(help="Of these.")] = 0,
) -> None:
    """Recall@5 (all gold@5) of the chain retriever, with each of its features left out, as a Markdown table."""
    files = [QuestionFile.parse(text) for text in on]
    sources = []
    for file in files:
        split = "dev" if file.dataset == SAMPLE else None
        name = str(file.questions) if file.questions else None
        drawn = seed if limit else None
        sources.append(
            Source(Questions(file.dataset, name, split=split, setting="open", limit=limit, seed=drawn), file.index)
        )
    typer.echo(_row("Recall@5 (all gold@5)", [file.name for file in files]))
    typer.echo(_row("---", ["---:"] * len(files)))
    for label, cells in ablate(sources, ChainWeights()):
        typer.echo(_row(label, cells))


def _row(label: str, cells: list[str]) -> str:
    return f"| {' | '.join((label, *cells))} |"


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.studies.ablation")
