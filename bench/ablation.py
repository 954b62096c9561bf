"""Feature ablation of the chain retriever: one feature is left out at a time.

    python -m bench.ablation --limit 100 2wiki:2wiki_dev.json.gz:indexes/2wiki sample

Prints recall@5 (all gold@5) on each set of questions over an index, as a Markdown table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean

from polyhop.app.task import Task
from polyhop.data.benchmarks import SAMPLE
from polyhop.data.chain import ChainRetriever, ChainWeights
from polyhop.eval.gold import gold_of
from polyhop.eval.questions import Questions
from polyhop.eval.scoring import ranking_scores

FEATURES: dict[str, tuple[str, ...]] = {
    "the BM25 score": ("bm25",),
    "titles in the question": ("named",),
    "words of the question": ("coverage", "sentence", "opening", "pairs"),
    "... in one sentence": ("sentence",),
    "... in the first sentence": ("opening",),
    "... in pairs": ("pairs",),
    "explained words count less": ("explained",),
    "links and back-links": ("link",),
    "shared names": ("shared",),
    "links, shared names, back-links": ("link", "shared"),
    "hyperlinks": ("hyperlink",),
    "further ties": ("others",),
    "words beside a mention": ("cue",),
    "rarity of names": ("rarity",),
}
"""The weights that are set to 0 to leave a feature out."""

ROUND = dict.fromkeys(("coverage", "sentence", "pairs", "named", "link", "hyperlink", "cue"), 1.0) | {
    "bm25": 0.1,
    **dict.fromkeys(("opening", "explained", "shared", "others", "rarity"), 0.5),
}
"""Untuned, round weights."""


def variants(weights: ChainWeights) -> Iterator[tuple[str, ChainWeights]]:
    """BM25 alone, all features (tuned and round weights), and all without each."""
    nothing = dict.fromkeys(asdict(weights), 0.0)
    yield "the BM25 score alone", ChainWeights(**{**nothing, "bm25": 1.0})
    yield "everything", weights
    yield "everything, with round weights", replace(weights, **ROUND)
    for feature, names in FEATURES.items():
        yield f"without {feature}", replace(weights, **dict.fromkeys(names, 0.0))


def recall(task: Task, weights: ChainWeights) -> str:
    retriever, scores = ChainRetriever(task.source, weights), list[Mapping[str, float]]()
    for example in task.questions:
        titles = dict.fromkeys(fact.title for fact in example.gold)
        named = [passage for title in titles for passage in task.look_up(title)] if task.look_up else []
        if gold := gold_of(example, named).passages:
            ranking = [hit.passage.id for hit in retriever.search(example.question, 5)]
            scores.append(ranking_scores(ranking, frozenset(gold), (5,)))
    means = (100 * fmean(score[name] for score in scores) for name in ("passage_recall@5", "all_gold@5"))
    return "{:.1f} ({:.1f})".format(*means)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("on", nargs="+", metavar="DATASET:QUESTIONS:INDEX", help="or sample")
    parser.add_argument("--limit", type=int, help="so many random questions of each set")
    options = parser.parse_args(arguments)
    tasks = list[Task]()
    for text in options.on:
        dataset, _, files = text.partition(":")
        file, _, index = files.partition(":")
        split, seed = "dev" if dataset == SAMPLE else None, 0 if options.limit else None
        asked = Questions(dataset, file or None, split=split, setting="open", limit=options.limit, seed=seed)
        tasks.append(Task(asked, Path(index) if index else None))
    print(f"| Recall@5 (all gold@5) | {' | '.join(options.on)} |\n|---|{'---:|' * len(tasks)}")
    for label, weights in variants(ChainWeights()):
        print(f"| {label} | {' | '.join(recall(task, weights) for task in tasks)} |", flush=True)


if __name__ == "__main__":
    main()
