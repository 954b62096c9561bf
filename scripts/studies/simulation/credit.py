"""The study of credit: whether `polyhop diagnose` finds the agent that errs.

    python -m polyhop.scripts.studies.simulation.credit --on hotpotqa:train.json.gz --on musique:train.jsonl.gz \
        --out runs/credit

Simulated agents answer questions over their own contexts. In each condition one role of a program errs at 30% and the
others at 5% (`Rates.by_call`). `diagnose` asks with the annotations which role costs the most, after 20 questions and
until it is clear, with a limit. Its costs are held against the true costs: the gain on all questions, each with two
other sets of errors, if agents without errors take the roles in the same order. A simulation says nothing about a real
model.

    OUT/cells.jsonl   one line for each condition; the same command resumes
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import isnan
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Annotated, Any

import dspy
import typer

PLANTED, OTHERS = 0.3, 0.05
METRIC = "joint_f1"
PROGRAMS = ("prism", "polyhop", "par_rag", "c3po")
TRUTH = (1_000, 1_001)
"""The seeds of the true costs."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Cell:
    """One diagnosis of at most ``limit`` questions. With a seed of `TRUTH` it takes all, and the reference is an agent
    without errors."""

    dataset: str
    file: str
    program: str
    role: str
    seed: int
    limit: int


@app.command()
def study(
    on: Annotated[list[str], typer.Option(metavar="DATASET:FILE", help="Questions with contexts. May be repeated.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the study.")],
    program: Annotated[list[str] | None, typer.Option(help="[default: prism, polyhop, par_rag, c3po]")] = None,
    limit: Annotated[int, typer.Option(min=2, help="The most questions of a diagnosis.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions, each with other errors and questions.")] = 5,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Plant a fault in each role of the programs in turn, and print a Markdown table of what is found."""
    from ....engines.models import roles
    from ....programs import new_program
    from .runs import QuestionSet

    sets = [QuestionSet.parse(text) for text in on]
    names = program or PROGRAMS
    planted = [
        (each.dataset, str(each.file), name, role)
        for each, name in product(sets, names)
        for role in roles(new_program(name))
    ]
    cells = [Cell(*one, seed, limit) for one in planted for seed in (*TRUTH, *range(seeds))]
    out.mkdir(parents=True, exist_ok=True)
    file = out / "cells.jsonl"
    known = (
        {Cell(**line["cell"]): line for line in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
    )
    with file.open("a", encoding="utf-8") as lines:
        for line in _played([cell for cell in cells if cell not in known], jobs):
            known[Cell(**line["cell"])] = line
            lines.write(json.dumps(line) + "\n")
            lines.flush()
    typer.echo("\n".join(markdown([known[cell] for cell in cells])))


def _played(cells: Sequence[Cell], jobs: int) -> Iterator[dict[str, Any]]:
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(play, cell) for cell in cells]):
            yield done.result()


def play(cell: Cell) -> dict[str, Any]:
    """The costs of all roles in one condition, with their intervals."""
    from dataclasses import asdict

    from ....engines.models import roles
    from ....eval.metrics import METRICS
    from ....optimizers.credit import diagnose
    from ....programs import new_program
    from .agents import Rates
    from .engine import simulate, simulated_lm

    questions, true = _questions(cell.dataset, cell.file), cell.seed in TRUTH
    chosen = questions if true else Random(cell.seed).sample(questions, min(cell.limit, len(questions)))
    program = new_program(cell.program)
    simulate(program, chosen, {cell.role: Rates.by_call(PLANTED)}, Rates.by_call(OTHERS), cell.seed)
    reference = simulated_lm(chosen, Rates(), cell.seed) if true else "gold"
    agents = list(roles(program))
    found = diagnose(
        program, chosen, [METRICS[METRIC]], against=reference, alone=False, among=agents, until_clear=not true
    )
    if failed := next((one.error for one in found.questions if one.error), ""):
        raise RuntimeError(f"{cell}: {failed}")
    return {
        "cell": asdict(cell),
        "costs": {role: found.costs(role, METRIC) for role in agents},
        "ranked": found.ranked(METRIC),
        "changes": [{role: change[METRIC] for role, change in one.changes.items()} for one in found.questions],
        "calls": [sum(one.calls.values()) for one in found.questions],
        "asked": [one.asked for one in found.questions],
    }


@cache
def _questions(dataset: str, file: str) -> list[dspy.Example]:
    from ....data.pool import PassagePool
    from ....eval.questions import Questions
    from .annotations import marked

    asked = Questions(dataset, file, setting="distractor", strict=True)
    return [marked(example).copy(pool=PassagePool(example.pool)) for example in asked]


def markdown(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A row for each program and set of questions: how often the role that truly costs the most is ranked first, and
    how good intervals are."""
    from .report import NOTICE

    yield from (NOTICE, "")
    yield (
        "| questions | program | planted and truly first | first after 20 questions | calls a question "
        "| first when clear | questions | calls | true cost in interval |"
    )
    yield "|---|---|---|---:|---:|---:|---:|---:|---:|"
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault((line["cell"]["dataset"], line["cell"]["program"]), []).append(line)
    totals, near = [_Counts(), _Counts()], _Counts()
    for (dataset, program), found in groups.items():
        truth = _true(found)
        lead = {role: _lead(truth[role], role) for role in truth}
        tried = [line for line in found if line["cell"]["seed"] not in TRUTH]
        counts = _Counts.of([line for line in tried if lead[line["cell"]["role"]] > 0])
        clear = {role: _leads_beyond_chance(known, role) for role, known in _true_changes(found).items()}
        totals[0] += counts
        totals[1] += _Counts.of([line for line in tried if clear[line["cell"]["role"]]])
        near += _Counts(
            len(tried),
            sum(_is_near(truth[line["cell"]["role"]], _first(_means(line["changes"][:20]))) for line in tried),
            sum(_is_near(truth[line["cell"]["role"]], line["ranked"][0]) for line in tried),
        )
        within = [
            cost[1] - 1e-9 <= truth[line["cell"]["role"]][role] <= cost[2] + 1e-9
            for line in tried
            for role, cost in line["costs"].items()
            if cost is not None and role in truth[line["cell"]["role"]]
        ]
        named = ", ".join(f"{role} (+{100 * ahead:.0f})" for role, ahead in lead.items() if ahead > 0) or "none"
        sums = (f"{_mean(line[name][:size] for line in tried):.1f}" for size, name in ((20, "asked"), (None, "asked")))
        early, late = sums
        size = _mean([len(line["asked"])] for line in tried)
        yield (
            f"| {dataset} | {program} | {named} of {len(lead)} | {counts.early} of {counts.all} | {early} "
            f"| {counts.late} of {counts.all} | {size:.0f} | {late} | {sum(within)} of {len(within)} |"
        )
    yield ""
    for what, total in zip(("Truly first", "Truly first beyond chance (95%)"), totals, strict=True):
        yield f"{what}: first after 20 questions {total.early} of {total.all}, first when clear {total.late}."
    yield (
        f"All conditions: the first role costs as much as any, but for {100 * NEAR:.0f} points, after 20 questions in "
        f"{near.early} of {near.all}, when clear in {near.late}."
    )


NEAR = 0.02


@dataclass
class _Counts:
    """Diagnoses, and those that rank the planted role first after 20 questions and at the end."""

    all: int = 0
    early: int = 0
    late: int = 0

    @classmethod
    def of(cls, lines: Sequence[dict[str, Any]]) -> _Counts:
        early = sum(_first(_means(line["changes"][:20])) == line["cell"]["role"] for line in lines)
        return cls(len(lines), early, sum(line["ranked"][0] == line["cell"]["role"] for line in lines))

    def __iadd__(self, other: _Counts) -> _Counts:
        self.all, self.early, self.late = self.all + other.all, self.early + other.early, self.late + other.late
        return self


def _true(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The true costs of all roles, by planted role."""
    return {role: _means(each) for role, each in _true_changes(lines).items()}


def _true_changes(lines: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """The true costs of all roles on each question, by planted role."""
    changes: dict[str, list[dict[str, float]]] = {}
    for line in lines:
        if line["cell"]["seed"] in TRUTH:
            changes.setdefault(line["cell"]["role"], []).extend(line["changes"])
    return changes


def _means(changes: Sequence[dict[str, float]]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for one in changes:
        for role, change in one.items():
            if not isnan(change):
                values.setdefault(role, []).append(change)
    return {role: sum(each) / len(each) for role, each in values.items()}


def _lead(costs: dict[str, float], role: str) -> float:
    """By how much a role costs more than any other."""
    return costs[role] - max(cost for other, cost in costs.items() if other != role)


def _leads_beyond_chance(changes: Sequence[dict[str, float]], role: str) -> bool:
    """Whether a role costs more than any other by the 95% interval of each paired difference."""
    from ....eval.statistics import interval

    others = {other for one in changes for other in one} - {role}
    leads = ([one[role] - one[other] for one in changes if role in one and other in one] for other in others)
    return all(interval([lead for lead in each if not isnan(lead)]).low > 0 for each in leads)


def _is_near(costs: dict[str, float], role: str) -> bool:
    return costs[role] >= max(costs.values()) - NEAR


def _first(costs: dict[str, float]) -> str:
    return max(costs, key=lambda role: costs[role])


def _mean(lists: Iterable[Sequence[float]]) -> float:
    values = [value for each in lists for value in each]
    return sum(values) / len(values)


if __name__ == "__main__":
    app(prog_name="python -m polyhop.scripts.studies.simulation.credit")
