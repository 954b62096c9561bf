"""What the run changed, as `polyhop diff` has it: instructions word by word, demos, exemplars, tunables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....eval.report.html import Html, details, join, table, tag
from ....eval.report.numbers import count
from ....eval.report.page import Section
from ....programs.exemplars import Exemplar
from ...diff import AgentChange, Difference, Piece, Side, compare
from .reading import Line, Run
from .words import short, value

_LISTED = 100  # demos or exemplars of a kind


def changes(run: Run) -> Section | None:
    """From the start to the best program so far; and what stages proposed in vain."""
    if run.kept is None:
        return None
    start = run.lines[0]
    if run.kept.n:
        said = "From the start to the result: what was taken out is red and struck, what was put in is green."
        parts = [tag("p", said, class_="small"), _change(run, start, run.kept, open=True)]
    else:
        parts = [tag("p", "Nothing was kept: it is the program it was.")]
    kept = start
    for line in run.lines[1:]:
        if line.kept:
            kept = line
        elif line.score is not None:
            said = f"What {line.stage} (stage {line.n}) proposed in vain"
            parts.append(details(said, _change(run, kept, line)))
    return Section("changes", "What changed", join(parts))


def _change(run: Run, before: Line, after: Line, *, open: bool = False) -> Html:
    sides = [Side.of_artifact(line.name, run.program_of(line)) for line in (before, after)]
    found = compare(*sides)
    if found.same:
        return tag("p", "The same instructions, demos, exemplars and tunables.")
    return join(
        [
            *_missing(found),
            *(_agent(name, change, open=open) for name, change in found.agents.items()),
            *_exemplars(found, sides[0].memories, sides[1].memories),
            *_tunables(found),
        ]
    )


def _missing(found: Difference) -> list[Html]:
    return [
        tag("p", f"Only {where}: {', '.join(names)}.")
        for where, names in (("before", found.only_before), ("after", found.only_after))
        if names
    ]


def _agent(name: str, change: AgentChange, *, open: bool) -> Html:
    told = [
        *(["instructions"] if change.instructions else []),
        *([count(len(change.added), "demo") + " added"] if change.added else []),
        *([count(len(change.removed), "demo") + " removed"] if change.removed else []),
        *([f"other fields: {', '.join(change.fields)}"] if change.fields else []),
    ]
    parts: list[Html] = []
    if change.instructions:
        parts.append(tag("p", *map(_piece, change.instructions), style="white-space:pre-wrap"))
    parts += _demos("ins", change.added)
    parts += _demos("del", change.removed)
    return details(join([tag("strong", name), f": {'; '.join(told)}"]), *parts, open=open)


def _piece(piece: Piece) -> Html | str:
    kind, words = piece
    return words if kind == "=" else tag("ins" if kind == "+" else "del", words)


def _demos(mark: str, demos: Sequence[Mapping[str, Any]]) -> list[Html]:
    return _listed(tag("dl", *_fields(mark, demo)) for demo in demos)


def _fields(mark: str, demo: Mapping[str, Any]) -> Iterable[Html]:
    for name, content in demo.items():
        if name == "augmented":  # DSPy's note of where it got it
            continue
        told = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        yield tag("dt", name)
        yield tag("dd", tag(mark, short(told)), style="white-space:pre-wrap")


def _exemplars(
    found: Difference, before: Mapping[str, Sequence[Exemplar]], after: Mapping[str, Sequence[Exemplar]]
) -> Iterable[Html]:
    for name, change in found.exemplars.items():
        old, new = Counter(before[name]), Counter(after[name])
        told = f": {change.added} added, {change.removed} removed"
        hops = sorted({*change.before, *change.after})
        yield details(
            join([tag("strong", name), told]),
            table(
                "Exemplars by their number of hops",
                ["hops", "before", "after"],
                [[str(n), str(change.before.get(n, 0)), str(change.after.get(n, 0))] for n in hops],
            ),
            *_listed(_plan("ins", each) for each in (new - old).elements()),
            *_listed(_plan("del", each) for each in (old - new).elements()),
        )


def _plan(mark: str, exemplar: Exemplar) -> Html:
    steps = (tag("li", tag(mark, short(each))) for each in exemplar.sub_questions)
    return tag("div", tag(mark, short(exemplar.question)), tag("ol", *steps))


def _listed(items: Iterable[Html]) -> list[Html]:
    """The first of many, and how many are left out."""
    known = list(items)
    left = len(known) - _LISTED
    return [*known[:_LISTED], *([tag("p", f"and {left:,} more")] if left > 0 else [])]


def _tunables(found: Difference) -> Iterable[Html]:
    rows = [
        [name, tag("td", tag("del", value(old))), tag("td", tag("ins", value(new))), tag("td", range_, class_="words")]
        for name, (old, new, range_) in found.tunables.items()
    ]
    if rows:
        range_of = tag("th", "range", class_="words", scope="col")
        yield table("Tunables", ["tunable", "before", "after", range_of], rows)
