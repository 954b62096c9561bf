"""The experiments of a paper, as a TOML file describes them (``docs/papers``), and the files that they need."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..data.errors import PolyhopError, first_error


class Row(BaseModel):
    """A program with settings, or a figure of the paper only.

    Attributes:
        program: Its name; empty for what is not run here.
        set: Tunables.
        published: Dataset, then metric, then the figure as the source gives it.
    """

    model_config = ConfigDict(extra="forbid")
    name: str
    program: str = ""
    set: dict[str, bool | int | float | str] = {}
    published: dict[str, dict[str, str]] = {}


class Files(BaseModel):
    """The files of a dataset.

    Attributes:
        questions: Patterns of the names of its questions' file.
        corpus: Patterns of the names of what is searched; none for the questions' own contexts.
        source: What to get, and from where.
    """

    model_config = ConfigDict(extra="forbid")
    questions: list[str]
    corpus: list[str] = []
    source: str

    def find(self, folder: Path | None) -> tuple[Path, Path | None] | None:
        """The questions and the corpus in a folder; None if one of them is not there."""
        questions, corpus = _first(folder, self.questions), _first(folder, self.corpus)
        return (questions, corpus) if questions and (corpus or not self.corpus) else None


class Paper(BaseModel):
    """What a paper measures.

    Attributes:
        models: That wrote the published figures.
        retriever: Also of the baselines.
        questions: Of each dataset; None if the source does not say.
        notes: What the figures do not say, a sentence each.
    """

    model_config = ConfigDict(extra="forbid")
    title: str
    arxiv: str
    models: str = "models that our source does not name"
    retriever: str
    questions: int | None = None
    metrics: list[str]
    datasets: dict[str, Files]
    rows: list[Row] = Field(min_length=1)
    notes: list[str] = []

    @classmethod
    def read(cls, file: Path) -> Paper:
        """Raises: PolyhopError: the file cannot be read, or describes no paper."""
        try:
            record: Any = tomllib.loads(file.read_text("utf-8"))
            return cls.model_validate(record)
        except OSError as error:
            raise PolyhopError(f"{file} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise PolyhopError(f"{file}: {first_error(error)}") from error
        except ValueError as error:
            raise PolyhopError(f"{file}: {error}") from error


def _first(folder: Path | None, patterns: Sequence[str]) -> Path | None:
    found = (path for pattern in patterns if folder for path in sorted(folder.glob(pattern)))
    return next(found, None)
