"""Fills exemplar memories (`polyhop.programs.exemplars`) from train questions.

python -m polyhop.scripts.training.exemplars --musique musique_ans_train.jsonl --out exemplars.jsonl
python -m polyhop.scripts.training.exemplars --run runs/prism-hotpotqa --out exemplars.jsonl
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...data.benchmarks import load_questions
from ...data.errors import PolyhopError
from ...optimizers.exemplars import MIN_F1, from_musique, from_run
from ...programs.complexity import HOPS
from ...programs.exemplars import Exemplar, ExemplarMemory
from .command import new_app, run_command

app = new_app()


@app.command()
def fill_memory(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The memory to write, as JSON lines.")],
    musique: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Gold decompositions of MuSiQue. May be repeated.")
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="The successes of a run of `polyhop evaluate --out`. May be repeated."),
    ] = None,
    min_f1: Annotated[float, typer.Option(min=0, max=1, help="Evidence F1, in passages, of a success.")] = MIN_F1,
) -> None:
    """Fill an exemplar memory from gold decompositions or from a program's successes."""
    if not musique and not run:
        raise typer.BadParameter("give --musique FILE or --run DIR")
    found: list[Exemplar] = []
    for file in musique or ():
        found += from_musique(load_questions("musique", file))
    for folder in run or ():
        found += from_run(folder, min_f1)
    kept = ExemplarMemory(()).joined(found)
    if not len(kept):
        raise PolyhopError("found no exemplars: the run has no success with a plan")
    try:
        kept.save(out)
    except OSError as error:
        raise PolyhopError(f"cannot write {out}: {error.strerror}") from error
    by_hops = ", ".join(f"{sum(each.hops == hops for each in kept.exemplars)} of {hops}" for hops in HOPS)
    typer.echo(f"{out}: {len(kept)} exemplars, by hops {by_hops}")


if __name__ == "__main__":
    run_command(app, "exemplars")
