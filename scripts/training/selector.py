"""Fits what the lexical Selector and Adder weigh pages by, on benchmark questions with known evidence.

A chain is grown page by page, and at every step the next page competes with the others and with the end of the chain
(`polyhop.engines.lexical.chain`): a conditional logit (McFadden 1974). It is right to take any page of the evidence,
and to end where none is left. Which steps occur depends on the weights, so they are fitted several times, each time on
the steps that all weights so far led to (DAgger, Ross et al., arXiv 1011.0686). The report is cross-validated: every
question is judged by weights that were fitted without it. Needs scipy.

The shipped weights (their training sets over indexes of their own contexts):

    python -m polyhop.scripts.training.selector --limit 300 \\
        --on 2wiki:2wiki_open_dev.json.gz:indexes/2wiki:0.6 --on 2wiki:2wiki_dev_with_context.json.gz::0.6 \\
        --on hotpotqa:hotpotqa_dev_distractor.json.gz:indexes/hotpotqa:1.2 \\
        --on hotpotqa:hotpotqa_dev_distractor.json.gz::1.2 \\
        --on musique:musique_ans_dev.jsonl.gz:indexes/musique:1 --on musique:musique_ans_dev.jsonl.gz::1 \\
        --on 2wiki:2wiki_train.json.gz:indexes/2wiki_train:0.3 --on 2wiki:2wiki_train.json.gz::0.3 \\
        --on hotpotqa:hotpotqa_train.json.gz:indexes/hotpotqa_train:0.6 --on hotpotqa:hotpotqa_train.json.gz::0.6 \\
        --on musique:musique_ans_train.jsonl.gz:indexes/musique_train:0.5 \\
        --on musique:musique_ans_train.jsonl.gz::0.5 --on sample:::0.3

    F1 of pages                 over an index              own contexts
                          cross-validated  in sample  cross-validated  in sample
    2WikiMultihopQA dev              95.5       95.9             97.2       97.2
    2WikiMultihopQA train            96.3       96.4             97.2       97.4
    HotpotQA dev                     88.6       88.4             90.5       90.7
    HotpotQA train                   86.0       87.1             91.2       92.0
    MuSiQue dev                      55.4       56.5             62.3       63.3
    MuSiQue train                    65.4       66.0             67.6       67.6
    sample train                     82.8       82.4
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from ...data.benchmarks.registry import SAMPLE
from ...data.chain import ChainRetriever
from ...data.lucene.bm25 import BM25Index
from ...data.pool import PassagePool
from ...data.sample import sample_passages
from ...engines.lexical.chain import GOES_ON, LONGEST
from ...engines.lexical.chain_features import ChainFeatures, ExtensionFeatures, StopFeatures
from ...engines.lexical.decompose import decompose
from ...engines.lexical.prompt import ParsedPassage, parse_passages
from ...eval.gold import gold_of
from ...eval.questions import Questions
from ...eval.scoring import Scores, scores
from ...programs.candidates import Candidates
from .command import new_app, run_command

Array = NDArray[np.float64]

_SIGNS, _ENDS = len(ExtensionFeatures._fields), len(StopFeatures._fields)
_SIZE = 2 * _SIGNS + _ENDS  # weights of the first page, of those after it, and of the end
_ROUNDS = 3  # of going through the steps that the weights so far lead to
_SMALL = 3e-4  # cost of a weight of 1, where a sign's values have a deviation of 1
_CANDIDATES = 20  # as in PRISM


@dataclass(frozen=True)
class Step:
    """A choice: the pages that may come next, the signs of each and of the end, and which of them are right."""

    pages: tuple[ParsedPassage, ...]
    signs: Array
    right: Array


@dataclass
class Case:
    """A question with its pages.

    Attributes:
        name: Of the set that it is from.
        gold: The numbers of the pages of its evidence; what was not found has a number of its own.
        weight: How much it counts.
        steps: Those it has been through, by the numbers of the pages chosen before.
    """

    name: str
    question: str
    judge: ChainFeatures
    gold: frozenset[str]
    weight: float
    steps: dict[frozenset[str], Step] = field(default_factory=dict)

    def fold(self, folds: int) -> int:
        """By the question, which may be in several sets."""
        return int.from_bytes(blake2b(self.question.encode(), digest_size=4).digest()) % folds

    def step(self, chosen: Sequence[ParsedPassage]) -> Step:
        key = frozenset(page.number for page in chosen)
        if (found := self.steps.get(key)) is None:
            found = self.steps[key] = self._step(chosen)
        return found

    def _step(self, chosen: Sequence[ParsedPassage]) -> Step:
        judged = self.judge.of_passages(chosen)
        pages = tuple(page for page, _ in judged)
        signs = np.zeros((len(pages) + bool(chosen), _SIZE))
        start = _SIGNS if chosen else 0
        for row, (_, one) in enumerate(judged):
            signs[row, start : start + _SIGNS] = one
        right = np.array([page.number in self.gold for page in pages], float)
        if chosen:
            signs[-1, 2 * _SIGNS :] = self.judge.of_stop(chosen)
            right = np.append(right, float(not right.any()))
        return Step(pages, signs, right)

    def chain(self, weights: Array, goes_on: float = GOES_ON) -> list[ParsedPassage]:
        """The chain that some weights lead to."""
        chosen: list[ParsedPassage] = []
        while len(chosen) < min(LONGEST, len(self.judge.passages)):
            step = self.step(chosen)
            values = step.signs @ weights
            odds = np.exp(values - values.max())
            best = int(odds[: len(step.pages)].argmax())
            if chosen and odds[best] / odds.sum() < goes_on:
                break
            chosen.append(step.pages[best])
        return chosen

    def score(self, weights: Array) -> Scores:
        found = {page.number for page in self.chain(weights)}
        return scores(len(found & self.gold), len(found), len(self.gold))


def fit(cases: Sequence[Case]) -> Array:
    """The weights, from nothing."""
    for case in cases:
        for size in range(LONGEST):
            case.step(case.judge.passages[:size])
            case.step([page for page in case.judge.passages if page.number in case.gold][:size])
    weights = _fit_steps(cases)
    for _ in range(_ROUNDS):
        for case in cases:
            case.step(case.chain(weights))  # also where it ends
        weights = _fit_steps(cases, weights)
    return weights


def _fit_steps(cases: Sequence[Case], start: Array | None = None) -> Array:
    """The weights under which the right choices at all steps of the cases are likeliest."""
    from scipy.optimize import minimize

    steps = [
        (step, case.weight / len(case.steps)) for case in cases for step in case.steps.values() if step.right.any()
    ]
    signs = np.concatenate([step.signs for step, _ in steps])
    right = np.concatenate([step.right for step, _ in steps])
    weight = np.array([weight for _, weight in steps])
    weight /= weight.sum()
    sizes = [len(step.right) for step, _ in steps]
    starts, step_of = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
    scale = signs.std(axis=0)
    scale[scale == 0] = 1.0
    signs = signs / scale

    def loss(weights: Array) -> tuple[float, Array]:
        values = signs @ weights
        odds = np.exp(values - np.maximum.reduceat(values, starts)[step_of])
        total, good = np.add.reduceat(odds, starts), np.add.reduceat(odds * right, starts) + 1e-12
        likelihood = weight @ np.log(good / total)
        gradient = signs.T @ ((odds / total[step_of] - odds * right / good[step_of]) * weight[step_of])
        return float(_SMALL * (weights @ weights) / 2 - likelihood), gradient + _SMALL * weights

    at = np.zeros(_SIZE) if start is None else start * scale
    return np.asarray(minimize(loss, at, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x / scale)


# --- questions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuestionSet:
    """Questions, and the index that they are asked over; over their own contexts if there is none.

    Attributes:
        weight: How much the set counts.
    """

    dataset: str
    questions: Path | None
    index: Path | None
    weight: float

    @classmethod
    def parse(cls, text: str) -> QuestionSet:
        """
        Raises:
            ValueError: it is not DATASET:QUESTIONS[:INDEX[:WEIGHT]].
        """
        dataset, questions, index, weight, *more = *text.split(":"), *[""] * (3 - text.count(":"))
        if more or not dataset or bool(questions) == (dataset == SAMPLE):
            raise ValueError(f"{text!r} is not DATASET:QUESTIONS[:INDEX[:WEIGHT]] (sample::[:WEIGHT] for the sample)")
        value = float(weight or 1)
        if not 0 < value < math.inf:
            raise ValueError(f"a weight must be positive, got {weight} in {text!r}")
        return cls(dataset, Path(questions) if questions else None, Path(index) if index else None, value)

    @property
    def name(self) -> str:
        """The file's name without its endings, and where it is asked."""
        file = self.questions.name.partition(".")[0] if self.questions else self.dataset
        return f"{file}, {'open' if self.index or not self.questions else 'own contexts'}"

    def cases(self, limit: int | None, seed: int) -> list[Case]:
        """Its questions with the pages that the chain retriever finds; of the sample, the train questions."""
        sample = () if self.questions else sample_passages()
        index = BM25Index(self.index) if self.index else None
        source = index or (PassagePool(sample) if sample else None)
        examples = list(
            Questions(
                self.dataset,
                str(self.questions) if self.questions else None,
                split=None if self.questions else "train",
                setting="open" if source else "distractor",
                limit=limit,
                seed=seed if limit else None,
            )
        )
        found: list[Case] = []
        for example in examples:
            hits = ChainRetriever(source or PassagePool(example.pool)).search(example.question, _CANDIDATES)
            candidates = Candidates([hit.passage for hit in hits])
            titles = dict.fromkeys(fact.title for fact in example.get("gold") or ())
            known = [passage for title in titles for passage in index.titled(title)] if index else sample
            gold = gold_of(example, [*known, *candidates.passages]).passages
            numbers = {passage.id: str(number) for number, passage in enumerate(candidates.passages, 1)}
            judge = ChainFeatures(
                example.question, decompose(example.question), parse_passages(candidates.show().format())
            )
            evidence = frozenset(numbers.get(id, id) for id in gold)
            found.append(Case(self.name, example.question, judge, evidence, self.weight / len(examples)))
        return found


# --- the command -----------------------------------------------------------------------------------------------------

app = new_app()


@app.command()
def fit_selector(
    on: Annotated[
        list[str],
        typer.Option(
            metavar="DATASET:QUESTIONS[:INDEX[:WEIGHT]]",
            help="Fit on these questions over this index, or over their own contexts; sample: for the train questions "
            "of the sample. WEIGHT says how much the set counts (1). May be repeated.",
        ),
    ],
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 5,
    limit: Annotated[int | None, typer.Option(min=1, help="Take N random questions of each set.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample of questions.")] = 0,
) -> None:
    """Fit the weights of the lexical Selector and Adder, and print them as they stand in weights.py."""
    try:
        sets = [QuestionSet.parse(text) for text in on]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--on") from error
    cases = [case for each in sets for case in each.cases(limit, seed)]
    kept_apart = [fit([case for case in cases if case.fold(folds) != fold]) for fold in range(folds)]
    weights = fit(cases)
    typer.echo("| precision / recall / F1 of pages | questions | cross-validated | in sample |\n|---|---:|---:|---:|")
    for name in dict.fromkeys(case.name for case in cases):
        mine = [case for case in cases if case.name == name]
        apart = _mean([case.score(kept_apart[case.fold(folds)]) for case in mine])
        typer.echo(f"| {name} | {len(mine)} | {apart} | {_mean([case.score(weights) for case in mine])} |")
    typer.echo(f"\n{as_code(weights)}")


def _mean(values: Sequence[Scores]) -> str:
    return " / ".join(f"{100 * mean:.1f}" for mean in np.mean(values, axis=0))


def as_code(weights: Array) -> str:
    """The weights as Python."""
    first, after, end = np.split(weights, (_SIGNS, 2 * _SIGNS))
    return "\n".join(
        (
            _code("FIRST", ExtensionFeatures, first),
            _code("NEXT", ExtensionFeatures, after),
            _code("END", StopFeatures, end),
        )
    )


def _code(name: str, kind: type[ExtensionFeatures | StopFeatures], values: Array) -> str:
    rows = "".join(f"    {label}={float(f'{value:.3g}')},\n" for label, value in zip(kind._fields, values, strict=True))
    return f"{name} = {kind.__name__}(\n{rows})\n"


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.selector")
