"""Trains the complexity estimator (`polyhop.programs.complexity`) on your own finished runs, or on benchmarks.

    python -m polyhop.scripts.training.complexity --run runs/mine --out complexity.json
    python -m polyhop.scripts.training.complexity --on musique:musique_ans_train.jsonl --on sample:train \\
        --on squad:squad_train-v1.1.json --out complexity.json

A run of `polyhop evaluate` tells how many hops a question needed where its answer was right: the number of passages
that the evidence has. Benchmarks say it themselves. The sub-questions of MuSiQue that are whole questions have one hop:
they keep the estimator from learning the style of a benchmark instead of hops. A number of hops without questions is
never estimated; each of the others has the same weight, and within it a source the root of its size. Scores are
cross-validated, with all questions of an article or decomposition in one fold.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ...data.benchmarks import SAMPLE, find_benchmark, load_questions
from ...data.errors import PolyhopError
from ...eval.folder import read_records
from ...programs.complexity import HOPS, ComplexityHead, inputs
from .command import new_app, run_command

SINGLE = "musique sub-questions"

_STRENGTH = 0.03  # inverse of the regularization; larger is better on known sources and worse on unknown ones
_NEVER = -1e3  # the bias of a number of hops without questions
_DIGITS = 6

app = new_app()


@dataclass(frozen=True)
class Labelled:
    """A question with its number of hops. All questions of one ``group`` are in one fold."""

    question: str
    hops: int
    source: str
    group: str


def of_benchmark(dataset: str, file: str) -> Iterator[Labelled]:
    """The questions of a file (or of a split of the sample) with a known number of hops."""
    given: dict[str, Any] = {"split": file} if dataset == SAMPLE else {"path": file}
    seen: set[str] = set()
    for item in load_questions(dataset, given.get("path"), split=given.get("split")):
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
    counts = Counter(each.hops for each in examples)
    examples = [each for each in examples if counts[each.hops] >= folds]
    if len({each.hops for each in examples}) < 2:
        found = ", ".join(f"{counts[hops]} of {hops} hops" for hops in HOPS)
        raise PolyhopError(f"too few questions for {folds} folds: {found}; at least {folds} of two kinds are needed")
    x, y = inputs([each.question for each in examples]), np.array([each.hops for each in examples])
    kinds, groups = [f"{each.source} {each.hops}" for each in examples], [each.group for each in examples]
    estimated = np.zeros_like(y)
    for seen, rest in StratifiedGroupKFold(folds, shuffle=True, random_state=0).split(x, y, groups):
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
            "questions": dict(sorted(Counter(kinds).items())),
            "confusion matrix": matrix.tolist(),
            "accuracy": round(float(matrix.trace() / len(y)), 4),
        },
        mean=_rounded(scaler.mean_),
        scale=_rounded(scaler.scale_),
        weights=tuple(map(_rounded, weights)),
        biases=_rounded(biases),
    )


def _fit(x: NDArray[np.float64], examples: Sequence[Labelled]) -> Pipeline:
    counts = Counter((each.hops, each.source) for each in examples)
    roots = {hops: math.fsum(count**0.5 for (of, _), count in counts.items() if of == hops) for hops, _ in counts}
    share = len(examples) / len(roots)
    weights = [share / roots[each.hops] / counts[each.hops, each.source] ** 0.5 for each in examples]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=_STRENGTH, max_iter=2000))
    return model.fit(x, [each.hops for each in examples], logisticregression__sample_weight=weights)


def _rounded(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{number:.{_DIGITS}g}") for number in numbers)


@app.command()
def train_estimator(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The JSON file to write.")],
    run: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="A finished run of polyhop evaluate. May be repeated.")
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET:FILE", help="Questions of a benchmark; sample:SPLIT. May be repeated."),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
) -> None:
    """Train the estimator of how many hops a question needs, and print its cross-validated confusion matrix."""
    examples = [each for folder in run or () for each in of_run(folder)]
    for text in on or ():
        dataset, _, file = text.partition(":")
        if not dataset or not file:
            raise typer.BadParameter(f"{text!r} is not DATASET:FILE (sample:SPLIT for the sample)", param_hint="--on")
        examples += of_benchmark(dataset if dataset == SAMPLE else find_benchmark(dataset).name, file)
    if not run and not on:
        raise typer.BadParameter("give --run DIR or --on DATASET:FILE")
    head = train(examples, folds, " ".join(["python -m polyhop.scripts.training.complexity", *_words(sys.argv[1:])]))
    try:
        out.write_text(head.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise PolyhopError(f"cannot write {out}: {error.strerror}") from error
    table = Table("hops", *(f"estimated {hops}" for hops in HOPS), "recall", title="Cross-validated")
    for hops, row in zip(HOPS, head.training["confusion matrix"], strict=True):
        table.add_row(str(hops), *map(str, row), f"{100 * row[hops - 1] / (sum(row) or 1):.1f}")
    Console().print(table)
    typer.echo(f"{out}: the estimator, accuracy {100 * head.training['accuracy']:.1f}")


def _words(arguments: Sequence[str]) -> Iterator[str]:
    """A command line with file names instead of paths."""
    for word in arguments:
        yield word if word.startswith("-") else ":".join(Path(part).name for part in word.split(":"))


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.complexity")
