"""The steps of a recorded trace, as `Trace.to_records` wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Record = Mapping[str, Any]


def flat(records: Iterable[Record]) -> Iterator[Record]:
    """Every step, those that ran side by side branch by branch."""
    for record in records:
        if record["step"] == "parallel":
            for branch in record["branches"]:
                yield from flat(branch)
        else:
            yield record


def hits(step: Record) -> list[str]:
    """The ids of the passages that a search found, best first; none for any other step."""
    return [id for id, _, _ in step["found"]] if step["step"] == "searched" else []


def passages(facts: Iterable[tuple[str, int | None]]) -> set[str]:
    """The passages of some facts."""
    return {id for id, _ in facts}
