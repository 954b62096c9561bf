"""What the page is called, and what it is about in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .numbers import count
from .runs import Group
from .section import Section


def title(groups: Sequence[Group], further: Sequence[Section]) -> str:
    """The runs by their names, those of evaluations with their datasets."""
    if not groups:
        return f"Optimization: {_some(_optimized(further))}" if _optimized(further) else "Optimization report"
    runs = _some(dict.fromkeys(run.name for group in groups for run in group.runs))
    return f"{runs} on {_some(dict.fromkeys(str(_dataset(group)) for group in groups))}"


def summary(groups: Sequence[Group], further: Sequence[Section]) -> str:
    """How much there is of what."""
    if not groups:
        return "What was tried, what it brought, and what was kept."
    runs = count(sum(len(group.runs) for group in groups), "run")
    if len(groups) == 1:
        told = [f"{runs} over {count(len(groups[0].questions), 'question')}: {groups[0].title}"]
    else:
        told = [runs, count(sum(len(group.questions) for group in groups), "question")]
        told.append(f"{len(groups)} sets of questions, each compared within itself")
    if optimized := _optimized(further):
        told.append(f"and {count(len(optimized), 'optimization')}: {_some(optimized)}")
    return ", ".join(told)


def _some(names: Iterable[str]) -> str:
    *most, last = known = list(names)
    if len(known) > 3:
        return f"{', '.join(known[:3])} and {len(known) - 3} more"
    return f"{', '.join(most)} and {last}" if most else last


def _optimized(further: Sequence[Section]) -> list[str]:
    return list(dict.fromkeys(section.of for section in further if section.of))


def _dataset(group: Group) -> object:
    return group.runs[0].manifest.get("dataset") or "questions of one’s own"
