"""Fits a program's calibration to a finished run: how often an answer of a stated confidence has been right.

    python -m polyhop.scripts.training.calibration runs/polyhop-hotpotqa [RUN ...]

Platt scaling (two parameters, maximum likelihood) on the questions of runs of `polyhop evaluate`. Prints slope and
offset, for ``--set calibration.slope=... --set calibration.offset=...``, and the expected calibration error before and
after; the one after is of a five-fold cross-validation. Use runs over questions that nothing is measured on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from ...data.errors import PolyhopError
from ...eval.records import read_lines
from ...programs.confidence import logit
from ...programs.prediction import UNKNOWN
from .command import new_app, run_command

Floats = npt.NDArray[np.float64]

FOLDS, BINS = 5, 10

app = new_app()


@app.command()
def calibrate(runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of finished runs.")]) -> None:
    """Fit a program's calibration to runs of it."""
    confidence, right = observed(runs)
    slope, offset = fit(confidence, right)
    crossed = np.empty_like(confidence)
    for fold in range(FOLDS):
        out = np.arange(len(right)) % FOLDS == fold
        crossed[out] = apply(confidence[out], *fit(confidence[~out], right[~out]))
    typer.echo(f"calibration.slope={slope:.3f} calibration.offset={offset:.3f}, from {len(right):,} answers")
    typer.echo(f"expected calibration error: {error(confidence, right):.3f} before, {error(crossed, right):.3f} after")


def observed(runs: list[Path]) -> tuple[Floats, Floats]:
    """The confidence of every answer that was given, and whether it was right.

    Raises:
        PolyhopError: too few answers, or all of them right or wrong.
    """
    lines: list[Any] = [line for run in runs for line in read_lines(run)]
    given = [line for line in lines if "error" not in line and line["answer"] != UNKNOWN]
    given = [line for line in given if line.get("confidence") is not None]
    right = np.array([line["scores"]["answer_em"] for line in given], dtype=float)
    if len(given) < 10 * FOLDS or right.min() == right.max():
        raise PolyhopError(
            f"{len(given)} answers with a confidence are too few, or all are right or all wrong: at least {10 * FOLDS} "
            "are needed, of both kinds"
        )
    return np.array([line["confidence"] for line in given], dtype=float), right


def fit(confidence: Floats, right: Floats) -> tuple[float, float]:
    """Slope and offset of the likeliest sigmoid(slope * logit(confidence) + offset), by Newton's method; a slight
    penalty keeps both finite where confidence tells everything or nothing."""
    design = np.stack([np.array([logit(p) for p in confidence]), np.ones(len(confidence))], axis=1)
    weights, penalty = np.array([1.0, 0.0]), np.eye(2)
    for _ in range(50):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (chance - right) + penalty @ (weights - [1.0, 0.0])
        curvature = design.T @ (design * (chance * (1 - chance))[:, None]) + penalty
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return max(float(weights[0]), 0.0), float(weights[1])


def apply(confidence: Floats, slope: float, offset: float) -> Floats:
    """What `Calibration` makes of confidences."""
    scaled: Floats = 1.0 / (1.0 + np.exp(-(slope * np.array([logit(p) for p in confidence]) + offset)))
    return scaled


def error(confidence: Floats, right: Floats) -> float:
    """The expected calibration error: of ten bins of confidence, the mean distance to the share of right answers."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    distances = [
        abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)
    ]
    return float(sum(distances))


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.calibration")
