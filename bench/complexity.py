"""Trains the complexity estimator (`polyhop.programs.complexity`) on your own finished runs, or on benchmarks.

    python -m bench.complexity complexity.json --run runs/mine
    python -m bench.complexity complexity.json --on musique:musique_ans_train.jsonl sample:train squad:squad_train.json

A run of `polyhop evaluate` tells how many hops a question needed where its answer was right: the number of passages
that the evidence has. Benchmarks say it themselves. The sub-questions of MuSiQue that are whole questions have one hop:
they keep the estimator from learning the style of a benchmark instead of hops. A number of hops without questions is
never estimated; each of the others has the same weight, and within it a source the root of its size. Scores are
cross-validated, with all questions of an article or decomposition in one fold.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from polyhop.data.benchmarks import SAMPLE, find_benchmark, load_questions
from polyhop.data.errors import PolyhopError
from polyhop.eval.folder import read_records
from polyhop.programs.complexity import HOPS, ComplexityHead, inputs

SINGLE = "musique sub-questions"

_STRENGTH = 0.03  # inverse of the regularization; larger is better on known sources and worse on unknown ones
_NEVER = -1e3  # the bias of a number of hops without questions


@dataclass(frozen=True)
class Labelled:
    """A question with its number of hops. All questions of one ``group`` are in one fold."""

    question: str
    hops: int
    source: str
    group: str


def of_benchmark(dataset: str, file: str) -> Iterator[Labelled]:
    """The questions of a file (or of a split of the sample) with a known number of hops."""
    is_sample, seen = dataset == SAMPLE, set[str]()
    for item in load_questions(dataset, None if is_sample else file, split=file if is_sample else None):
        if item.hops in HOPS and item.answerable:
            yield Labelled(item.question, item.hops, dataset, item.article or item.id)
        for part in item.sub_questions if dataset == "musique" else ():
            if ">>" not in part.question and "#" not in part.question and part.question not in seen:
                seen.add(part.question)
                yield Labelled(part.question, 1, SINGLE, item.id)


def of_run(run: Path) -> Iterator[Labelled]:
    """The questions of a run that were answered rightly (exact match), with the number of passages that it took."""
    for record in read_records(run):
        if record.scores.get("answer_em") == 1 and record.evidence:
            needed = len({item.passage_id for item in record.evidence})
            yield Labelled(record.question, min(needed, HOPS[-1]), run.name, record.id)


def train(examples: Sequence[Labelled], folds: int = 5, command: str = "") -> ComplexityHead:
    """Train a head on all examples; its ``training`` has the scores on questions that training did not see.

    Raises:
        PolyhopError: fewer than two numbers of hops have as many questions as there are folds.
    """
    counts = Counter(example.hops for example in examples)
    examples = [example for example in examples if counts[example.hops] >= folds]
    if len({example.hops for example in examples}) < 2:
        listed = ", ".join(f"{counts[hops]} of {hops} hops" for hops in HOPS)
        raise PolyhopError(f"too few questions for {folds} folds: {listed}; at least {folds} of two kinds are needed")
    x, y = inputs([example.question for example in examples]), np.array([example.hops for example in examples])
    estimated = np.zeros_like(y)
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=0)
    for seen, rest in splitter.split(x, y, [example.group for example in examples]):
        estimated[rest] = _fit(x[seen], [examples[n] for n in seen]).predict(x[rest])
    matrix = confusion_matrix(y, estimated, labels=HOPS)
    model = _fit(x, examples)
    scaler, classifier = model[0], model[-1]
    weights, biases = np.zeros((len(HOPS), x.shape[1])), np.full(len(HOPS), _NEVER)
    rows, shift = classifier.coef_, classifier.intercept_
    if len(classifier.classes_) == 2:  # one row of scikit-learn: the second class against the first
        rows, shift = np.vstack([np.zeros_like(rows), rows]), np.append(0.0, shift)
    weights[classifier.classes_ - 1], biases[classifier.classes_ - 1] = rows, shift
    return ComplexityHead(
        training={
            "command": command,
            "versions": {name: version(name) for name in ("polyhop", "scikit-learn", "numpy")},
            "questions": dict(sorted(Counter(f"{example.source} {example.hops}" for example in examples).items())),
            "confusion matrix": matrix.tolist(),
            "accuracy": round(float(matrix.trace() / len(y)), 4),
        },
        mean=_rounded(scaler.mean_),
        scale=_rounded(scaler.scale_),
        weights=tuple(map(_rounded, weights)),
        biases=_rounded(biases),
    )


def _fit(x: NDArray[np.float64], examples: Sequence[Labelled]) -> Pipeline:
    counts = Counter((example.hops, example.source) for example in examples)
    roots = {hops: math.fsum(count**0.5 for (of, _), count in counts.items() if of == hops) for hops, _ in counts}
    share = len(examples) / len(roots)
    weights = [share / roots[one.hops] / counts[one.hops, one.source] ** 0.5 for one in examples]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=_STRENGTH, max_iter=2000))
    return model.fit(x, [example.hops for example in examples], logisticregression__sample_weight=weights)


def _rounded(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{number:.6g}") for number in numbers)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the JSON file to write")
    parser.add_argument("--run", type=Path, nargs="*", default=[], help="finished runs of polyhop evaluate")
    parser.add_argument("--on", nargs="*", default=[], metavar="DATASET:FILE", help="benchmarks; sample:SPLIT")
    parser.add_argument("--folds", type=int, default=5, help="folds of the cross-validation")
    words = list(arguments if arguments is not None else sys.argv[1:])
    options = parser.parse_args(words)
    examples = [example for folder in options.run for example in of_run(folder)]
    for text in options.on:
        dataset, _, file = text.partition(":")
        examples += of_benchmark(dataset if dataset == SAMPLE else find_benchmark(dataset).name, file)
    names = (":".join(Path(part).name for part in word.split(":")) for word in words)  # without folders
    head = train(examples, options.folds, " ".join(["python -m bench.complexity", *names]))
    options.out.write_text(head.model_dump_json(indent=1) + "\n", encoding="utf-8")
    print("hops:", *(f"estimated {hops}" for hops in HOPS), "recall", sep="\t")
    for hops, row in zip(HOPS, head.training["confusion matrix"], strict=True):
        print(hops, *row, f"{100 * row[hops - 1] / (sum(row) or 1):.1f}", sep="\t")
    print(f"{options.out}: the estimator, accuracy {100 * head.training['accuracy']:.1f}")


if __name__ == "__main__":
    main()
