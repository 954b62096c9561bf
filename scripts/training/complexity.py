"""Trains the complexity estimator (`polyhop.programs.complexity`) on questions with a known number of hops.

    python -m polyhop.scripts.training.complexity --musique musique_ans_train.jsonl --squad squad_train-v1.1.json \\
        --also 2wiki:2wiki_train.json --also hotpotqa:hotpot_train.json --out complexity.json

MuSiQue has 2 to 4 hops, SQuAD one. The sub-questions of MuSiQue that are whole questions have one, too: they keep the
estimator from learning the style of a benchmark instead of hops. Every number of hops has the same weight, and within
it a dataset the root of its size. Scores are cross-validated, with all questions of an article or decomposition in one
fold. The record also scores each dataset with an estimator that was trained without it: from MuSiQue and SQuAD alone,
half of HotpotQA would be classified as one hop, and nearly all of its comparisons, of which MuSiQue has none.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ...data.benchmarks import find_benchmark, load_questions
from ...data.errors import PolyhopError
from ...data.form import FEATURES
from ...programs.complexity import HOPS, ComplexityHead, inputs
from .command import new_app, run_command

Array = NDArray[np.float64]

SINGLE = "musique sub-questions"
THRESHOLDS = (0.5, 0.7, 0.9)
_DIGITS = 6


@dataclass(frozen=True)
class Setting:
    """How the classifier is fitted.

    Attributes:
        strength: Inverse of the regularization; larger is better on known datasets and worse on unknown ones.
        features: The number of features that are used.
    """

    strength: float = 0.03
    features: int = len(FEATURES)


@dataclass(frozen=True)
class Labelled:
    """A question with its number of hops. All questions of one ``group`` are in one fold."""

    question: str
    hops: int
    dataset: str
    group: str

    @property
    def kind(self) -> str:
        return f"{self.dataset}, {self.hops} hop{'s' * (self.hops > 1)}"


def labelled(dataset: str, source: str) -> Iterator[Labelled]:
    """The questions of a file (or of a split of the sample) with a known number of hops."""
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
    folds: int = 5,
    seed: int = 0,
    command: str = "",
) -> ComplexityHead:
    """Train a head on all examples; its ``training`` has the scores on questions that training did not see.

    Raises:
        PolyhopError: a number of hops has fewer questions than there are folds.
    """
    missing = [hops for hops in HOPS if sum(each.hops == hops for each in examples) < folds]
    if missing:
        raise PolyhopError(f"too few questions of {missing[0]} hop(s) for {folds} folds: add files that have them")
    data = _Data(inputs([each.question for each in examples]), examples, folds, seed)
    setting = Setting()
    model = _fit(data.x, examples, setting)
    apart = inputs([each.question for each in held_out]) if held_out else data.x[:0]
    known = data.known(setting)
    training = {
        "command": command,
        "versions": {name: version(name) for name in ("polyhop", "scikit-learn", "numpy")},
        "questions": _counts(examples),
        "folds": folds,
        "seed": seed,
        "setting": asdict(setting),
        "cross-validated": {**_scores(examples, known), "datasets": _by_dataset(examples, known)},
        "trained without the dataset": _by_dataset(examples, data.unknown(setting)),
        "held out": _by_dataset(held_out, _predict(model, apart)) if held_out else {},
    }
    used, scaler, classifier = (model[name] for name in ("used", "scaled", "classified"))
    mean, scale, biases = (_rounded(each) for each in (scaler.mean_, scaler.scale_, classifier.intercept_))
    names = tuple(FEATURES[i] for i in used.get_support(indices=True))
    weights = tuple(_rounded(row) for row in classifier.coef_)
    return ComplexityHead(training=training, inputs=names, mean=mean, scale=scale, weights=weights, biases=biases)


class _Data:
    """Examples with their features, shape (examples, features), and how they are divided."""

    def __init__(self, x: Array, examples: Sequence[Labelled], folds: int, seed: int) -> None:
        self.x, self.examples = x, examples
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
        groups = [each.group for each in examples]
        self._folds = list(splitter.split(x, [each.kind for each in examples], groups))
        families = np.array(["musique" if each.dataset == SINGLE else each.dataset for each in examples])
        others = [(np.flatnonzero(families != name), np.flatnonzero(families == name)) for name in sorted({*families})]
        self._others = [(seen, rest) for seen, rest in others if len({examples[i].hops for i in seen.tolist()}) > 1]

    def known(self, setting: Setting) -> Array:
        """The probabilities of each fold by a classifier that was trained on the others."""
        return self._crossed(setting, self._folds)

    def unknown(self, setting: Setting) -> Array:
        """The probabilities of each dataset by a classifier that was trained without it."""
        return self._crossed(setting, self._others)

    def _crossed(self, setting: Setting, splits: Iterable[tuple[Any, Any]]) -> Array:
        found = np.zeros((len(self.x), len(HOPS)))
        for seen, rest in splits:
            model = _fit(self.x[seen], [self.examples[i] for i in seen.tolist()], setting)
            found[rest] = _predict(model, self.x[rest])
        return found


def _fit(x: Array, examples: Sequence[Labelled], setting: Setting) -> Pipeline:
    counts = Counter((each.hops, each.dataset) for each in examples)
    roots = {hops: math.fsum(count**0.5 for (of, _), count in counts.items() if of == hops) for hops, _ in counts}
    share = len(examples) / len(roots)
    weights = [share / roots[each.hops] / counts[each.hops, each.dataset] ** 0.5 for each in examples]
    model = Pipeline(
        [
            ("used", SelectKBest(_separation, k=setting.features)),
            ("scaled", StandardScaler()),
            ("classified", LogisticRegression(C=setting.strength, max_iter=2000)),
        ]
    )
    return model.fit(x, [each.hops for each in examples], classified__sample_weight=weights)


def _separation(x: Array, hops: Sequence[int]) -> Array:
    """How well each feature tells the hops apart: F values, 0 for a feature that never varies."""
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings(action="ignore", category=UserWarning):
        values: Array = np.nan_to_num(f_classif(x, hops)[0], posinf=np.finfo(float).max)
    return values


def _predict(model: Pipeline, x: Array) -> Array:
    """Probabilities, shape (questions, 4); 0 for a number of hops that training did not have."""
    found = np.zeros((len(x), len(HOPS)))
    if len(x):
        found[:, model.classes_ - 1] = model.predict_proba(x)
    return found


def _rounded(numbers: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{number:.{_DIGITS}g}") for number in numbers)


# --- the record ------------------------------------------------------------------------------------------------------


def _counts(examples: Sequence[Labelled]) -> dict[str, dict[str, int]]:
    """Questions by dataset and hops."""
    found: dict[str, dict[str, int]] = {}
    for (dataset, hops), count in sorted(Counter((each.dataset, each.hops) for each in examples).items()):
        found.setdefault(dataset, {})[str(hops)] = count
    return found


def _scores(examples: Sequence[Labelled], probabilities: Array) -> dict[str, Any]:
    """The confusion matrix, a row per true number of hops, and scores derived from it."""
    matrix = confusion_matrix([each.hops for each in examples], probabilities.argmax(axis=1) + 1, labels=HOPS)
    recalls = {str(hops): _share(matrix[hops - 1, hops - 1], matrix[hops - 1].sum()) for hops in HOPS}
    return {
        "confusion matrix": matrix.tolist(),
        "accuracy": _share(matrix.trace(), len(examples)),
        "recall": recalls,
        "mean recall": round(sum(recalls.values()) / len(recalls), 4),
        "2 hops taken for 1": _share(matrix[1, 0], matrix[1].sum()),
    }


def _by_dataset(examples: Sequence[Labelled], probabilities: Array) -> dict[str, Any]:
    """By dataset and hops: the number of questions, the classes given, and how often P(1 hop) exceeds a threshold."""
    found: dict[str, Any] = {}
    for kind in sorted({each.kind for each in examples}):
        rows = probabilities[[each.kind == kind for each in examples]]
        found[kind] = {
            "questions": len(rows),
            "taken for": np.bincount(rows.argmax(axis=1), minlength=len(HOPS)).tolist(),
            "P(1 hop)": {f"> {limit}": _share((rows[:, 0] > limit).sum(), len(rows)) for limit in THRESHOLDS},
        }
    return found


def _share(part: float, whole: int) -> float:
    return round(float(part) / float(whole), 4)


# --- the command -----------------------------------------------------------------------------------------------------

app = new_app()
_FILE = typer.Option(metavar="DATASET:FILE", help="Train on these, too; sample:SPLIT for the sample. May be repeated.")
_HELD_OUT = typer.Option(metavar="DATASET:FILE", help="Only score on these. May be repeated.")


@app.command()
def train_estimator(
    musique: Annotated[list[Path], typer.Option(metavar="FILE", help="Questions of MuSiQue. May be repeated.")],
    squad: Annotated[list[Path], typer.Option(metavar="FILE", help="Questions of SQuAD. May be repeated.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The JSON file to write.")],
    also: Annotated[list[str], _FILE] = [],  # noqa: B006  # typer copies it
    held_out: Annotated[list[str], _HELD_OUT] = [],  # noqa: B006
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the folds.")] = 0,
) -> None:
    """Train the estimator of how many hops a question needs, and print its cross-validated confusion matrix."""
    examples = [
        *(each for file in musique for each in labelled("musique", str(file))),
        *(each for file in squad for each in labelled("squad", str(file))),
        *(each for text in also for each in _labelled(text, "--also")),
    ]
    apart = [each for text in held_out for each in _labelled(text, "--held-out")]
    head = train(examples, apart, folds, seed, _command())
    try:
        head.save(out)
    except OSError as error:
        raise PolyhopError(f"cannot write {out}: {error.strerror}") from error
    _print(head.training)
    typer.echo(f"{out}: the estimator")


def _labelled(text: str, option: str) -> Iterator[Labelled]:
    dataset, _, source = text.partition(":")
    if not dataset or not source:
        raise typer.BadParameter(f"{text!r} is not DATASET:FILE (sample:SPLIT for the sample)", param_hint=option)
    return labelled(dataset if dataset == "sample" else find_benchmark(dataset).name, source)


def _command() -> str:
    """The command line, with file names instead of paths."""
    words = [
        word if word.startswith("-") else ":".join(Path(part).name for part in word.split(":")) for word in sys.argv[1:]
    ]
    return " ".join(["python -m polyhop.scripts.training.complexity", *words])


def _print(training: Mapping[str, Any]) -> None:
    scores = training["cross-validated"]
    matrix = zip(HOPS, scores["confusion matrix"], scores["recall"].values(), strict=True)
    rows = [(str(hops), *map(str, row), f"{100 * recall:.1f}") for hops, row, recall in matrix]
    table = Table("", *map(str, HOPS), "recall", title="Cross-validated: hops by row, estimate by column")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    typer.echo(", ".join(f"{name} {value}" for name, value in training["setting"].items()))
    typer.echo(
        f"accuracy {100 * scores['accuracy']:.1f}, mean recall {100 * scores['mean recall']:.1f}, "
        f"2 hops taken for 1: {100 * scores['2 hops taken for 1']:.1f}%"
    )


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.complexity")
