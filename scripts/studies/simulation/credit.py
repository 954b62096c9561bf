"""The study of credit: whether `polyhop diagnose` finds the agent that errs.

    python -m polyhop.scripts.studies.simulation.credit --on hotpotqa:train.json.gz --on musique:train.jsonl.gz \
        --out runs/credit

Simulated agents answer questions over their own contexts. In each condition one role of a program errs at 30% and the
others at 5% (`Rates.by_call`). The costs that `diagnose` finds with the annotations on a sample of the questions are
held against the true costs: the gain on twice as many questions, with other errors, if agents without errors
take the roles in the same order. A simulation says nothing about a real model.

    OUT/cells.jsonl   one line for each condition; the same command resumes
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Annotated, Any

import dspy
import typer

PLANTED, OTHERS = 0.3, 0.05
METRIC = "joint_f1"
PROGRAMS = ("prism", "polyhop", "par_rag", "c3po")
TRUTH = 1_000
"""The seed of the true costs."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Cell:
    """One diagnosis. With the seed `TRUTH` the reference is an agent without errors. ``limit``: number of questions."""

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
    limit: Annotated[int, typer.Option(min=2, help="Questions of a diagnosis.")] = 20,
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
    each = [(TRUTH, 2 * limit), *((seed, limit) for seed in range(seeds))]
    cells = [Cell(*one, seed, size) for one in planted for seed, size in each]
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

    from ....eval.metrics import METRICS
    from ....optimizers.credit import diagnose
    from ....programs import new_program
    from .agents import Rates
    from .engine import simulate, simulated_lm

    questions = _questions(cell.dataset, cell.file)
    chosen = Random(cell.seed).sample(questions, min(cell.limit, len(questions)))
    program = new_program(cell.program)
    simulate(program, chosen, {cell.role: Rates.by_call(PLANTED)}, Rates.by_call(OTHERS), cell.seed)
    perfect = simulated_lm(chosen, Rates(), cell.seed)
    reference = perfect if cell.seed == TRUTH else "gold"
    found = diagnose(program, chosen, [METRICS[METRIC]], against=reference, alone=False)
    if failed := next((one.error for one in found.questions if one.error), ""):
        raise RuntimeError(f"{cell}: {failed}")
    costs = {role: found.costs(role, METRIC) for role in found.roles}
    calls = sum(sum(one.calls.values()) for one in found.questions) / len(chosen)
    asked = sum(one.asked for one in found.questions) / len(chosen)
    return {"cell": asdict(cell), "costs": costs, "calls": calls, "asked": asked}


@cache
def _questions(dataset: str, file: str) -> list[dspy.Example]:
    from ....data.pool import PassagePool
    from ....eval.questions import Questions
    from .annotations import marked

    asked = Questions(dataset, file, setting="distractor", strict=True)
    return [marked(example).copy(pool=PassagePool(example.pool)) for example in asked]


def markdown(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A row for each program and set of questions: how often the planted role is found, and how good intervals are."""
    from .report import NOTICE

    yield from (NOTICE, "")
    yield "| questions | program | planted and truly first | ranked first | true cost in interval | calls a question |"
    yield "|---|---|---|---:|---:|---:|"
    truth = {_place(line): _means(line) for line in lines if line["cell"]["seed"] == TRUTH}
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in lines:
        if line["cell"]["seed"] != TRUTH:
            groups.setdefault((line["cell"]["dataset"], line["cell"]["program"]), []).append(line)
    for (dataset, program), found in groups.items():
        first = {place[-1]: _first(truth[place]) == place[-1] for place in map(_place, found)}
        judged = [line for line in found if first[line["cell"]["role"]]]
        hits = [_first(_means(line)) == line["cell"]["role"] for line in judged]
        within = [
            cost[1] - 1e-9 <= truth[_place(line)][role] <= cost[2] + 1e-9
            for line in found
            for role, cost in line["costs"].items()
            if cost is not None and role in truth[_place(line)]
        ]
        calls, asked = (sum(line[name] for line in found) / len(found) for name in ("calls", "asked"))
        named = f"{', '.join(role for role, is_first in first.items() if is_first) or 'none'} (of {len(first)})"
        shares = (f"{sum(each)} of {len(each)}" for each in (hits, within))
        yield f"| {dataset} | {program} | {named} | {' | '.join(shares)} | {asked:.1f} (the run itself: {calls:.1f}) |"


def _place(line: dict[str, Any]) -> tuple[str, str, str]:
    cell = line["cell"]
    return cell["dataset"], cell["program"], cell["role"]


def _means(line: dict[str, Any]) -> dict[str, float]:
    """The costs of the agents; the searches have no rate."""
    return {role: cost[0] for role, cost in line["costs"].items() if cost is not None and role != "retrieval"}


def _first(costs: dict[str, float]) -> str:
    return max(costs, key=lambda role: costs[role])


if __name__ == "__main__":
    app(prog_name="python -m polyhop.scripts.studies.simulation.credit")
