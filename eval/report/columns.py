"""The index of the questions: what the list in the page shows, filters and sorts, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .chunks import SIZE
from .outcomes import Outcome
from .runs import Floats, Group, Run

_COLUMNS = (("em", "answer_em"), ("f1", "answer_f1"), ("evidence", "evidence_f1"), ("confidence", "confidence"),
            ("calls", "lm_calls"), ("tokens", "tokens"), ("dollars", "cost_usd"), ("seconds", "seconds"))  # fmt: skip


def index_of(groups: Sequence[Group]) -> dict[str, Any]:
    """What the list of questions shows and filters, in columns."""
    return {
        "size": SIZE,
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


def _columns(run: Run, group: Group) -> dict[str, Any]:
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
    """Numbers of at most four digits behind the point; nothing where no question has one."""
    if np.isnan(values).all():
        return None
    return [
        None if value != value else int(value) if value == int(value) else round(value, 4) for value in values.tolist()
    ]
