"""The data of the question browser: an index in columns, and the details of each question, packed.

The page parses the index when it opens. Details are gzipped in chunks, which the page unpacks when a question is
opened: a report on 5,000 questions holds a few megabytes of text instead of fifty megabytes of JSON.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .traces import Outcome

if TYPE_CHECKING:
    from .runs import EvaluationRun, Floats, Group

CHUNK = 64
"""Questions in a chunk: about 100 kB, which a browser inflates in a few milliseconds."""

_COLUMNS = (("em", "answer_em"), ("f1", "answer_f1"), ("evidence", "evidence_f1"), ("confidence", "confidence"),
            ("calls", "lm_calls"), ("tokens", "tokens"), ("dollars", "cost_usd"), ("seconds", "seconds"))  # fmt: skip


class Chunks:
    """Collects the details of questions in a temporary file; use it in a ``with`` block."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  # closed by __exit__
        self._ends = [0]
        self._open: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, details: Any) -> None:
        self._open.append(details)
        if len(self._open) == CHUNK:
            self.close()

    def close(self) -> None:
        """End the current chunk; the next details begin a new one."""
        if self._open:
            packed = gzip.compress(json.dumps(self._open, separators=(",", ":")).encode(), mtime=0)
            self._file.write(b64encode(packed))
            self._ends.append(self._file.tell())
            self._open = []

    def __iter__(self) -> Iterator[str]:
        self._file.seek(0)
        for start, end in zip(self._ends, self._ends[1:], strict=False):
            yield self._file.read(end - start).decode()


def index_of(groups: Sequence[Group]) -> dict[str, Any]:
    """What the list of questions shows, filters and sorts by."""
    return {
        "size": CHUNK,
        "outcomes": [{"key": kind.name, "name": kind.value} for kind in Outcome],
        "groups": [
            {
                "title": group.title,
                "id": [each.id for each in group.questions.values()],
                "question": [each.question for each in group.questions.values()],
                "hops": [each.hops for each in group.questions.values()],
                "kind": [each.kind for each in group.questions.values()],
                "gold": [list(each.gold_answers) for each in group.questions.values()],
                "titles": {id: group.titles[id] for id in sorted(group.missed) if id in group.titles},
                "runs": [_columns(run, group) for run in group.runs],
            }
            for group in groups
        ],
    }


def _columns(run: EvaluationRun, group: Group) -> dict[str, Any]:
    place = {n: at for at, n in enumerate(group.questions)}
    kinds = list(Outcome)
    stops = list(dict.fromkeys(run.stops))
    return {
        "name": run.name,
        "first": run.first,
        "at": [place[n] for n in run.numbers],
        "answer": run.answers,
        "outcome": [kinds.index(kind) for kind in run.outcomes],
        "stops": stops,
        "stop": [stops.index(stop) for stop in run.stops],
        **{name: _rounded(run.columns[metric]) for name, metric in _COLUMNS},
    }


def _rounded(values: Floats) -> list[float | None] | None:
    """At most four decimals; None if no question has a value."""
    if np.isnan(values).all():
        return None
    return [
        None if value != value else int(value) if value == int(value) else round(value, 4) for value in values.tolist()
    ]
