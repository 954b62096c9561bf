"""Fits how a program weighs judgements, and its confidence, to finished runs; no model is called.

    python -m polyhop.scripts.training.calibration runs/par_rag-train [RUN ...]

Reads runs of `polyhop evaluate`, with the same settings, over questions that are not used for evaluation. Prints values
for ``--set`` (``--set review.confidence.threshold=...``) and what they change, cross-validated: answers that are
misjudged, how well right ones rank above wrong ones (AUROC), answers that do not pass and are tried again
(`polyhop.optimizers.confidence`); and the expected calibration error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from ...data.errors import PolyhopError
from ...eval.folder import read_manifest, read_records
from ...eval.statistics import calibration_error
from ...optimizers.confidence import FOLDS, ConfidenceFit, fit_runs
from ...programs.confidence import logit
from ...programs.prediction import UNKNOWN
from .command import new_app, run_command

Floats = npt.NDArray[np.float64]

app = new_app()


@app.command()
def calibrate(runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of finished runs.")]) -> None:
    """Fit what a program does with judgements, and its confidence, to runs of it."""
    names = read_manifest(runs[0]).program.tunables
    if any(name.endswith("least_credibility") for name in names):
        _show(fit_runs(runs))
    confidence, correct = observed(runs)
    slope, offset = fit(confidence, correct)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    crossed = cross_val_predict(LogisticRegression(), _logits(confidence), correct, cv=folds, method="predict_proba")
    before, after = calibration_error(confidence, correct), calibration_error(crossed[:, 1], correct)
    typer.echo(f"calibration.slope={slope:.3f} calibration.offset={offset:.3f}, from {len(correct):,} answers")
    typer.echo(f"expected calibration error: {before:.3f} before, {after:.3f} after Platt scaling")


def _show(found: ConfidenceFit) -> None:
    for name, value in found.values.items():
        typer.echo(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={str(value).lower()}")
    figures = ("misjudged", "AUROC", "retried")
    table = Table("answers", *(f"{name}, {of}" for name in figures for of in ("now", "fitted")))
    old, new = found.before, found.after
    pairs = ((old.error, new.error), (old.auroc, new.auroc), (old.retries, new.retries))
    table.add_row(str(old.answers), *(f"{100 * each:.1f}" for pair in pairs for each in pair))
    Console().print(table)
    typer.echo(f"misjudged: p {found.p:.3f}" + ("" if found.helps else "; the present values are as good or better"))


def observed(runs: list[Path]) -> tuple[Floats, Floats]:
    """The confidence of every answer, and whether it was correct (1.0 or 0.0).

    Raises:
        PolyhopError: there are too few answers, or all of them are correct or wrong.
    """
    records = [record for run in runs for record in read_records(run)]
    given = [each for each in records if not each.error and each.answer != UNKNOWN and each.confidence is not None]
    correct = np.array([each.scores["answer_em"] for each in given], dtype=float)
    if len(given) < 10 * FOLDS or min(correct.sum(), (1 - correct).sum()) < FOLDS:
        raise PolyhopError(
            f"{len(given)} answers with a confidence are too few, or nearly all are correct or wrong: at least "
            f"{10 * FOLDS} are needed, and {FOLDS} of both kinds"
        )
    return np.array([each.confidence for each in given], dtype=float), correct


def fit(confidence: Floats, correct: Floats) -> tuple[float, float]:
    """Slope and offset of sigmoid(slope * logit(confidence) + offset)."""
    model = LogisticRegression().fit(_logits(confidence), correct)
    return max(float(model.coef_[0, 0]), 0.0), float(model.intercept_[0])


def _logits(confidence: Floats) -> Floats:
    return np.array([[logit(each)] for each in confidence])


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.calibration")
