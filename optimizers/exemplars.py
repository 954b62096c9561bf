"""What the stage ``exemplars`` learns from the training questions: plans for the memory of exemplars, and demos of
agents from runs that ended right.

    plans = [*from_musique(questions), *from_run("runs/polyhop-train")]
    variants = with_demos(program, successes(program, questions, metrics.answer_em), 8, seed=0)

`bench/exemplars.py` writes plans to a file.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import dspy

from ..engines.costs import Ledger
from ..eval.folder import read_manifest, read_records
from ..eval.run import in_order
from ..eval.steps import readable
from ..programs.complexity import HOPS
from ..programs.exemplars import Exemplar, ExemplarMemory
from .replay import Metric, Replay, shortened

MIN_F1 = 0.8
"""Evidence F1, in passages, from which a correct answer counts as a success."""


def from_musique(questions: Iterable[dspy.Example]) -> Iterator[Exemplar]:
    """The gold decompositions of MuSiQue as plans in words (`polyhop.eval.steps.readable`)."""
    for question in questions:
        if question.sub_questions and question.hops in HOPS:
            yield Exemplar(
                question.question,
                tuple(_capitals(readable(step.question), question.question) for step in question.sub_questions),
                question.hops,
                "musique",
            )


def from_run(run: Path, min_f1: float = MIN_F1) -> Iterator[Exemplar]:
    """The last plan of each question of a run that was answered correctly (exact match) from the right passages, with
    the benchmark's number of hops, or else that of sub-questions. Plans with invalid references are left out."""
    source = read_manifest(run).program.name
    for record in read_records(run):
        plans = [step["sub_questions"] for step in record.trace if step["step"] == "decomposed"]
        scores = record.scores
        if not plans or scores.get("answer_em") != 1 or scores.get("evidence_f1", 0.0) < min_f1:
            continue
        with suppress(ValueError):
            yield Exemplar(record.question, tuple(plans[-1]), record.hops or min(len(plans[-1]), HOPS[-1]), source)


def at_most(count: int, exemplars: Iterable[Exemplar]) -> list[Exemplar]:
    """The first so many exemplars for each number of hops."""
    by_hops: defaultdict[int, list[Exemplar]] = defaultdict(list)
    for exemplar in ExemplarMemory(()).joined(list(exemplars)).exemplars:
        by_hops[exemplar.hops].append(exemplar)
    return [exemplar for hops in sorted(by_hops) for exemplar in by_hops[hops][:count]]


def _capitals(step: str, question: str) -> str:
    """The step with capitals ("italy", "publix") where the question always has them."""
    written: dict[str, set[str]] = {}
    for word in re.findall(r"[^\W\d_]+", question.partition(" ")[2]):
        written.setdefault(word.lower(), set()).add(word)
    names = {lower: next(iter(forms)) for lower, forms in written.items() if len(forms) == 1 and lower not in forms}
    return re.sub(r"[^\W\d_]+", lambda match: names.get(match.group(), match.group()), step)


# --- demos -----------------------------------------------------------------------------------------------------------


class Success(NamedTuple):
    """A run that ended right: the benchmark's number of hops (0 if it tells none), and of each agent the last call."""

    hops: int
    demos: dict[str, dspy.Example]


def successes(
    program: dspy.Module, questions: Sequence[dspy.Example], metric: Metric, threads: int = 1
) -> list[Success]:
    """The runs of a program that a DSPy metric takes as good enough to learn from. What was asked before comes from
    DSPy's reply cache."""
    replay = Replay(program)

    def run(_: int, example: dspy.Example, ledger: Ledger) -> Success | None:
        done = replay.run(example)
        if done.prediction is None or not metric(example, done.prediction, []):
            return None
        demos = {
            call.key.agent: dspy.Example(**shortened(call.inputs, call.fields), **call.fields) for call in done.calls
        }
        return Success(example.get("hops") or 0, demos)

    return [success for success in in_order(run, list(enumerate(questions)), threads) if success]


def with_demos(program: dspy.Module, runs: Sequence[Success], count: int, seed: int) -> list[dspy.Module]:
    """So many copies of a program with demos from runs that ended right: of one to four runs that differ in their
    hops, beside the program's own demos and in their place."""
    copies = []
    for n in range(count):
        dice, ranked = random.Random(f"{seed} {n}"), list[tuple[int, Success]]()
        seen = Counter[int]()
        for one in dice.sample(runs, len(runs)):
            ranked.append((seen[one.hops], one))
            seen[one.hops] += 1
        chosen = [one for _, one in sorted(ranked, key=lambda pair: pair[0])[: 1 + n // 2 % 4]]
        twin: dspy.Module = program.deepcopy()
        for name, predictor in twin.named_predictors():
            demos = [one.demos[name] for one in chosen if name in one.demos]
            predictor.demos = [*(predictor.demos if n % 2 == 0 or not demos else []), *demos]
        copies.append(twin)
    return copies
