"""Trains the complexity estimator (`polyhop.programs.complexity`) on questions whose number of hops is annotated.

    python -m polyhop.scripts.training.complexity --musique musique_ans_train.jsonl --squad squad_train-v1.1.json \\
        --also 2wiki:2wiki_train.json --also hotpotqa:hotpot_train.json --out complexity.json

MuSiQue has 2 to 4 hops, SQuAD one; so have those sub-questions of MuSiQue that are whole questions, which keeps the
estimator from telling hops by the style of a benchmark. Every number of hops counts the same, and within it a dataset
by the root of its size. Scores are cross-validated, with all questions of an article or of a decomposition in one fold.
The record also says how the questions of a dataset fare when training never saw that dataset: from MuSiQue and SQuAD
alone, half of HotpotQA would be taken for one hop, and nearly all of its comparisons, of which MuSiQue has none.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...data.benchmarks import find_benchmark, load_questions
from ...data.errors import PolyhopError
from ...programs.complexity import HOPS, Head, inputs, write_head
from .command import new_app, run_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...data.dense import Encoder

    Array = NDArray[np.float64]

SINGLE = "musique sub-questions"
THRESHOLDS = (0.5, 0.7, 0.9)
_STRENGTH = 0.03  # inverse of the regularisation; weaker is better on known datasets and worse on unknown ones
_DIGITS = 6


@dataclass(frozen=True)
class Labelled:
    """A question with its number of hops. All of one ``group`` go into one fold."""

    question: str
    hops: int
    dataset: str
    group: str


app = new_app()


@app.command()
def train_estimator(
    musique: Annotated[list[Path], typer.Option(metavar="FILE", help="Questions of MuSiQue. May be repeated.")],
    squad: Annotated[list[Path], typer.Option(metavar="FILE", help="Questions of SQuAD. May be repeated.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the estimator is written, as JSON.")],
    also: Annotated[
        list[str],
        typer.Option(metavar="DATASET:FILE", help="Train on these too; sample:SPLIT for the sample. May be repeated."),
    ] = [],  # noqa: B006  # typer copies it
    held_out: Annotated[
        list[str],
        typer.Option(metavar="DATASET:FILE", help="Only score on these. May be repeated."),
    ] = [],  # noqa: B006
    encoder: Annotated[
        str | None, typer.Option(metavar="minilm", help="Add the question's vector; needs the extra dense.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the folds.")] = 0,
) -> None:
    """Train the estimator of how many hops a question needs, and print its cross-validated confusion matrix."""
    if encoder not in (None, "minilm"):
        raise typer.BadParameter(f"there is no encoder {encoder!r}: choose minilm", param_hint="--encoder")
    examples = [
        *(each for file in musique for each in labelled("musique", str(file))),
        *(each for file in squad for each in labelled("squad", str(file))),
        *(each for text in also for each in labelled(*_named(text, "--also"))),
    ]
    kept_apart = [each for text in held_out for each in labelled(*_named(text, "--held-out"))]
    head = train(examples, kept_apart, _encoder(encoder), folds, seed, command=_command())
    try:
        write_head(head, out)
    except OSError as error:
        raise PolyhopError(f"cannot write {out}: {error.strerror}") from error
    _print(head.training)
    typer.echo(f"{out}: the estimator")


def labelled(dataset: str, source: str) -> Iterator[Labelled]:
    """The questions of a file (or of a split of the sample) that say how many hops they need."""
    of_sample = dataset == "sample"
    seen: set[str] = set()
    for item in load_questions(dataset, None if of_sample else source, split=source if of_sample else None):
        if item.hops in HOPS and item.answerable:
            yield Labelled(item.question, item.hops, dataset, item.article or item.id)
        for part in item.sub_questions if dataset == "musique" else ():
            if ">>" not in part.question and "#" not in part.question and part.question not in seen:
                seen.add(part.question)
                yield Labelled(part.question, 1, SINGLE, item.id)


def train(
    examples: Sequence[Labelled],
    held_out: Sequence[Labelled] = (),
    encoder: Encoder | None = None,
    folds: int = 5,
    seed: int = 0,
    command: str = "",
) -> Head:
    """A head trained on all examples; in its ``training`` stands how well it does on questions that it has not seen.

    Raises:
        PolyhopError: a number of hops has fewer questions than there are folds.
    """
    import numpy as np

    missing = [hops for hops in HOPS if sum(each.hops == hops for each in examples) < folds]
    if missing:
        raise PolyhopError(f"too few questions of {missing[0]} hop(s) for {folds} folds: add files that have them")
    x, x_apart = (inputs([each.question for each in some], encoder) if some else None for some in (examples, held_out))
    assert x is not None
    known = _cross_validated(x, examples, folds, seed)
    unseen = _unseen_datasets(x, examples)
    apart = _fitted(x, examples)(x_apart) if x_apart is not None else np.empty((0, len(HOPS)))
    mean, scale, weights, biases = _parameters(x, examples)
    training = {
        "command": command,
        "versions": {name: version(name) for name in ("polyhop", "scikit-learn", "numpy")},
        "questions": {name: dict(counts) for name, counts in _counts(examples).items()},
        "folds": folds,
        "seed": seed,
        "cross-validated": {**_matrix(examples, known), "datasets": _by_dataset(examples, known)},
        "trained without the dataset": _by_dataset(examples, unseen),
        "held out": _by_dataset(held_out, apart),
    }
    return Head(mean, scale, weights, biases, encoder.name if encoder else None, training)


# --- fitting ---------------------------------------------------------------------------------------------------------


def _weights(examples: Sequence[Labelled]) -> list[float]:
    """Every number of hops counts the same, and within it a dataset by the root of its size; 1 on average."""
    counts = Counter((each.hops, each.dataset) for each in examples)
    roots = {hops: math.fsum(count**0.5 for (of, _), count in counts.items() if of == hops) for hops, _ in counts}
    share = len(examples) / len(roots)
    return [share / roots[each.hops] / counts[each.hops, each.dataset] ** 0.5 for each in examples]


def _fit(x: Array, examples: Sequence[Labelled]) -> tuple[Any, Any]:
    """The scaler and the classifier."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(x)
    classifier = LogisticRegression(C=_STRENGTH, max_iter=2000)
    hops = [each.hops for each in examples]
    return scaler, classifier.fit(scaler.transform(x), hops, sample_weight=_weights(examples))


def _fitted(x: Array, examples: Sequence[Labelled]) -> Any:
    """A function from inputs to probabilities, shape (questions, 4); a number of hops that was not seen has 0."""
    import numpy as np

    scaler, classifier = _fit(x, examples)

    def probabilities(some: Array) -> Array:
        found = np.zeros((len(some), len(HOPS)))
        found[:, [hops - 1 for hops in classifier.classes_]] = classifier.predict_proba(scaler.transform(some))
        return found

    return probabilities


def _parameters(x: Array, examples: Sequence[Labelled]) -> tuple[Any, Any, Any, Any]:
    scaler, classifier = _fit(x, examples)
    mean, scale, biases = (_rounded(each) for each in (scaler.mean_, scaler.scale_, classifier.intercept_))
    return mean, scale, tuple(_rounded(row) for row in classifier.coef_), biases


def _rounded(numbers: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{number:.{_DIGITS}g}") for number in numbers)


def _cross_validated(x: Array, examples: Sequence[Labelled], folds: int, seed: int) -> Array:
    import numpy as np
    from sklearn.model_selection import StratifiedGroupKFold

    found = np.zeros((len(x), len(HOPS)))
    kinds = [f"{each.hops} {each.dataset}" for each in examples]
    groups = [each.group for each in examples]
    for seen, rest in StratifiedGroupKFold(folds, shuffle=True, random_state=seed).split(x, kinds, groups):
        found[rest] = _fitted(x[seen], [examples[i] for i in seen.tolist()])(x[rest])
    return found


def _unseen_datasets(x: Array, examples: Sequence[Labelled]) -> Array:
    """Each dataset's questions as judged by what was trained on the others."""
    import numpy as np

    found = np.zeros((len(x), len(HOPS)))
    families = np.array(["musique" if each.dataset == SINGLE else each.dataset for each in examples])
    for family in sorted(set(families)):
        seen = np.flatnonzero(families != family)
        if len({examples[i].hops for i in seen.tolist()}) > 1:
            rest = np.flatnonzero(families == family)
            found[rest] = _fitted(x[seen], [examples[i] for i in seen.tolist()])(x[rest])
    return found


# --- the record ------------------------------------------------------------------------------------------------------


def _counts(examples: Sequence[Labelled]) -> dict[str, dict[str, int]]:
    """Questions by dataset and hops."""
    counts = Counter((each.dataset, each.hops) for each in examples)
    found: dict[str, dict[str, int]] = {}
    for dataset, hops in sorted(counts):
        found.setdefault(dataset, {})[str(hops)] = counts[dataset, hops]
    return found


def _matrix(examples: Sequence[Labelled], probabilities: Array) -> dict[str, Any]:
    """The confusion matrix, a row a true number of hops, and what can be read off it."""
    predicted = probabilities.argmax(axis=1) + 1
    pairs = Counter(zip((each.hops for each in examples), predicted.tolist(), strict=True))
    matrix = [[pairs[true, guess] for guess in HOPS] for true in HOPS]
    recalls = {str(hops): _share(matrix[hops - 1][hops - 1], sum(matrix[hops - 1])) for hops in HOPS}
    return {
        "confusion matrix": matrix,
        "accuracy": _share(sum(matrix[i][i] for i in range(len(HOPS))), len(examples)),
        "recall": recalls,
        "mean recall": round(sum(recalls.values()) / len(recalls), 4),
        "2 hops taken for 1": _share(matrix[1][0], sum(matrix[1])),
    }


def _by_dataset(examples: Sequence[Labelled], probabilities: Array) -> dict[str, Any]:
    """For each dataset and number of hops: how many, what they are taken for, how often P(1 hop) is above a value."""
    found: dict[str, Any] = {}
    for dataset, hops in sorted({(each.dataset, each.hops) for each in examples}):
        rows = [
            row
            for each, row in zip(examples, probabilities, strict=True)
            if (each.dataset, each.hops) == (dataset, hops)
        ]
        guesses = Counter(int(row.argmax()) + 1 for row in rows)
        found[f"{dataset}, {hops} hop{'s' * (hops > 1)}"] = {
            "questions": len(rows),
            "taken for": [guesses[guess] for guess in HOPS],
            "P(1 hop)": {f"> {limit}": _share(sum(row[0] > limit for row in rows), len(rows)) for limit in THRESHOLDS},
        }
    return found


def _share(part: float, whole: int) -> float:
    return round(float(part) / whole, 4)


# --- the command -----------------------------------------------------------------------------------------------------


def _named(text: str, option: str) -> tuple[str, str]:
    dataset, _, source = text.partition(":")
    if not dataset or not source:
        raise typer.BadParameter(f"{text!r} is not DATASET:FILE (sample:SPLIT for the sample)", param_hint=option)
    return dataset if dataset == "sample" else find_benchmark(dataset).name, source


def _encoder(name: str | None) -> Encoder | None:
    from ...data.dense import MiniLM

    return MiniLM() if name else None


def _command() -> str:
    """What was called, with the names of files and not their folders."""
    words = [
        word if word.startswith("-") else ":".join(Path(part).name for part in word.split(":")) for word in sys.argv[1:]
    ]
    return " ".join(["python -m polyhop.scripts.training.complexity", *words])


def _print(training: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console, scores = Console(), training["cross-validated"]
    table = Table(title="Cross-validated: hops by row, estimate by column", title_justify="left", header_style="bold")
    for heading in ("", *map(str, HOPS), "recall"):
        table.add_column(heading, justify="right")
    for hops, row in zip(HOPS, scores["confusion matrix"], strict=True):
        table.add_row(str(hops), *map(str, row), f"{100 * scores['recall'][str(hops)]:.1f}")
    console.print(table)
    typer.echo(
        f"accuracy {100 * scores['accuracy']:.1f}, mean recall {100 * scores['mean recall']:.1f}, "
        f"2 hops taken for 1: {100 * scores['2 hops taken for 1']:.1f}%"
    )
    for title, by_dataset in (
        ("Cross-validated, by dataset", scores["datasets"]),
        ("Trained without the dataset", training["trained without the dataset"]),
        ("Held out", training["held out"]),
    ):
        if not by_dataset:
            continue
        table = Table(title=title, title_justify="left", header_style="bold")
        for heading in ("", "questions", "taken for 1", "2", "3", "4", *(f"P(1) > {limit}" for limit in THRESHOLDS)):
            table.add_column(heading, justify="right" if heading else "left")
        for name, row in by_dataset.items():
            shares = (f"{100 * share:.1f}%" for share in row["P(1 hop)"].values())
            table.add_row(name, str(row["questions"]), *map(str, row["taken for"]), *shares)
        console.print(table)


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.complexity")
