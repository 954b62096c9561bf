"""What the training commands share: they behave as ``polyhop`` does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import typer

from ...data.benchmarks import SAMPLE, find_benchmark
from ...data.errors import PolyhopError


def new_app() -> typer.Typer:
    """An app with plain help and tracebacks, which start faster."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def run_command(app: typer.Typer, module: str) -> None:
    """Run an app as ``python -m MODULE``; a `PolyhopError` prints one line."""
    try:
        app(prog_name=f"python -m {module}")
    except PolyhopError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        raise SystemExit(1) from None


@dataclass(frozen=True)
class QuestionFile:
    """An option DATASET:QUESTIONS[:INDEX[:NUMBER]]: questions over an index, or over their own contexts."""

    dataset: str
    questions: Path | None  # None for the sample
    index: Path | None = None
    number: float | None = None

    @classmethod
    def parse(cls, text: str) -> QuestionFile:
        """
        Raises:
            PolyhopError: the text has another form, or the number is not positive.
        """
        dataset, questions, index, number, *more = *text.split(":"), *[""] * (3 - text.count(":"))
        try:
            value = float(number) if number else None
        except ValueError:
            value = math.nan
        if more or bool(questions) == (dataset == SAMPLE) or not (value is None or 0 < value < math.inf):
            raise PolyhopError(f"{text!r} is not DATASET:QUESTIONS[:INDEX[:NUMBER]] (sample::[:NUMBER] for the sample)")
        name = dataset if dataset == SAMPLE else find_benchmark(dataset).name
        return cls(name, Path(questions) if questions else None, Path(index) if index else None, value)

    @property
    def name(self) -> str:
        """The file's name without its endings."""
        return self.questions.name.partition(".")[0] if self.questions else self.dataset
