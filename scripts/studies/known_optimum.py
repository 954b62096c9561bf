"""Does the search for tunables find a known optimum? A study with simulated agents.

    python -m polyhop.scripts.studies.known_optimum

PRISM's Adder misses evidence and adds false evidence at stated rates (`polyhop.scripts.studies.simulation`), so that
more rounds repair more errors; a verifier judges the answer, and alpha(h), whose midpoint is searched, weighs its two
judgements. The value of a run is evidence F1, less the squared error of the confidence, less a price per call. Both
tunables have their best values inside their ranges, where a full grid finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import dspy
import typer

from ...data.benchmarks import GoldFact, QuestionRecord
from ...data.passages import Evidence, Passage
from ...optimizers.tunables import TunableSearch
from ...programs import Prism
from ...programs.candidates import Candidates
from ...programs.complexity import estimate_complexity
from ...programs.confidence import CREDIBILITY, Confidence
from ...programs.program import Program
from ...programs.trace import Judged, Trace
from ...programs.tunable import tunables
from ...signatures import VerifyAnswer
from .simulation import Rates, simulated_lm

RATES = Rates(miss=0.5, false_keep=0.1, wrong_verdict=0.15, wrong_answer=0.15, lucky=0.3)
QUESTIONS, TRIALS, SEEDS = 30, 60, (0, 1, 2)

_PRICE = 0.01  # of a call
_POINTS = 25  # of the grid: of the midpoint; the rounds have 6
_SEARCHED = ("loop.rounds", "confidence.midpoint")


class Verified(Program):
    """PRISM without its Selector, so that evidence grows with the rounds, and with a confidence.

    Results that do not depend on alpha are cached per number of rounds.
    """

    def __init__(self, rounds: int, midpoint: float) -> None:
        super().__init__()
        self.loop = Prism(None, rounds=rounds)
        self.loop.select.value = False
        self.verifier = dspy.Predict(VerifyAnswer)
        self.confidence = Confidence()
        self.confidence.midpoint.value = midpoint
        self.kept = _Kept()

    def forward(self, question: str, pool: Sequence[Passage]) -> dspy.Prediction:
        key = (question, self.loop.rounds.value)
        if key not in self.kept:
            self.kept[key] = self._verified(question, pool)
        answer, evidence, judged, trace = self.kept[key]
        hops = estimate_complexity(question).expected
        weighed = self.confidence(hops, judged.score, CREDIBILITY[judged.verdict])
        return dspy.Prediction(answer=answer, evidence=evidence, confidence=weighed.confidence, trace=trace)

    def _verified(self, question: str, pool: Sequence[Passage]) -> tuple[str, list[Evidence], Judged, Trace]:
        found = self.loop(question=question, pool=pool)
        shown = Candidates(item.passage for item in found.evidence)
        reply = self.verifier(
            question=question,
            sub_questions=[question],
            passages=shown.show(found.evidence, found.evidence),
            proposed_answer=found.answer,
        )
        judged = Judged("verification", reply.accuracy, reply.attribution)
        found.trace.add(judged)
        return found.answer, found.evidence, judged, found.trace


class _Kept(dict[tuple[str, int], Any]):
    """Shared by the copies of a program."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Kept:
        return self


def worth(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
    """Evidence F1 in passages, less the squared error of the confidence, less the price of the calls."""
    gold = {fact.title for fact in example.gold}
    found = {item.passage.title for item in prediction.evidence}
    f1 = 2 * len(gold & found) / (len(gold) + len(found))
    right = float(prediction.answer in example.answers)
    return float(f1 - (prediction.confidence - right) ** 2 - _PRICE * prediction.trace.lm_calls)


def made_up(count: int) -> list[dspy.Example]:
    """Questions of alternately two and three hops, each with ten passages of its own."""
    return [_question(n, 2 + n % 2).to_example() for n in range(count)]


def _question(n: int, hops: int) -> QuestionRecord:
    chain = [
        Passage.of(f"Town {n}", sentences=(f"It lies on River {n}.", "It has a market.")),
        Passage.of(f"River {n}", sentences=("It is long.", f"It flows from Land {n}.")),
        Passage.of(f"Land {n}", sentences=(f"It is ruled by Queen {n}.", "It has hills.")),
    ][:hops]
    others = [
        Passage.of(f"Hill {n}-{i}", sentences=(f"It is {i} m high.", "Sheep graze on it.")) for i in range(10 - hops)
    ]
    asked = "From which land does the river of" if hops == 2 else "Who rules the land from which flows the river of"
    answer = f"Land {n}" if hops == 2 else f"Queen {n}"
    gold = tuple(GoldFact(passage.title, at % 2, unique_title=True) for at, passage in enumerate(chain))
    pool = (*others[::2], *reversed(chain), *others[1::2])
    return QuestionRecord(str(n), f"{asked} Town {n}?", (answer,), gold, pool, hops)


# --- the study -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The result of a search or of the grid.

    Attributes:
        start: The value of the defaults.
    """

    name: str
    trials: int
    rounds: int
    midpoint: float
    value: float
    start: float


def study(
    sampler: str = "tpe", trials: int = TRIALS, seeds: Iterable[int] = SEEDS, questions: int = QUESTIONS
) -> list[Found]:
    """The best point of a full grid, then the result of a search with each seed."""
    examples = made_up(questions)
    program = Verified(rounds=6, midpoint=4.0)
    program.set_lm(simulated_lm(examples, RATES))
    others = [name for name in tunables(program) if name not in _SEARCHED]

    def search(name: str, **settings: Any) -> Found:
        made = TunableSearch(worth, freeze=others, storage=None, **settings)
        made.compile(program, valset=examples)
        assert made.result is not None
        best, default = made.result.best, made.result.default
        rounds, midpoint = (best.values[each] for each in _SEARCHED)
        return Found(name, len(made.result.trials), rounds, midpoint, best.score or 0.0, default.score or 0.0)

    grid = search("full grid", sampler="grid", trials=10_000, points=_POINTS, prune=False)
    return [grid, *(search(f"{sampler}, seed {seed}", sampler=sampler, trials=trials, seed=seed) for seed in seeds)]


def table(found: Sequence[Found]) -> str:
    """As Markdown."""
    best = found[0].value
    lines = [
        "| search | trials | N | midpoint | value | of the grid's best | the defaults |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for each in found:
        cells = [each.name, each.trials, each.rounds, f"{each.midpoint:.2f}", f"{each.value:.4f}"]
        cells += [f"{100 * each.value / best:.1f}%", f"{each.start:.4f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main(
    sampler: Annotated[str, typer.Option(help="tpe, cmaes or random.")] = "tpe",
    trials: Annotated[int, typer.Option(min=1)] = TRIALS,
    seeds: Annotated[int, typer.Option(min=1, help="How many searches.")] = len(SEEDS),
) -> None:
    """Compare the search with a full grid, on simulated agents, and print a table."""
    typer.echo("Simulation: agents are simulated from made-up gold evidence; not a result of a system.\n")
    typer.echo(table(study(sampler, trials, range(seeds))))


if __name__ == "__main__":
    typer.run(main)
