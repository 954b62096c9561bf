"""Fills exemplar memories (`polyhop.programs.exemplars`) from train questions.

python -m bench.exemplars exemplars.jsonl --musique musique_ans_train.jsonl --run runs/prism-hotpotqa
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from polyhop.data.benchmarks import load_questions
from polyhop.optimizers.exemplars import MIN_F1, from_musique, from_run
from polyhop.programs.complexity import HOPS
from polyhop.programs.exemplars import Exemplar, ExemplarMemory


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the memory to write, as JSON lines")
    parser.add_argument("--musique", type=Path, nargs="*", default=[], help="files with gold decompositions")
    parser.add_argument("--run", type=Path, nargs="*", default=[], help="runs of `polyhop evaluate`: their successes")
    parser.add_argument("--min-f1", type=float, default=MIN_F1, help="evidence F1, in passages, of a success")
    options = parser.parse_args(arguments)
    plans = list[Exemplar]()
    for file in options.musique:
        plans += from_musique(load_questions("musique", file))
    for folder in options.run:
        plans += from_run(folder, options.min_f1)
    memory = ExemplarMemory(()).joined(plans)
    if not len(memory):
        raise SystemExit("no exemplars: give --musique or --run, a run with successes that have a plan")
    memory.save(options.out)
    by_hops = ", ".join(f"{sum(plan.hops == hops for plan in memory.exemplars)} of {hops}" for hops in HOPS)
    print(f"{options.out}: {len(memory)} exemplars, by hops {by_hops}")


if __name__ == "__main__":
    main()
