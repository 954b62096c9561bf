"""Fits the weights of the lexical Selector and Adder to benchmark questions with gold evidence.

At every step of a chain, the next passage competes with the others and with the end of the chain
(`polyhop.engines.lexical.chain`): a conditional logit (McFadden 1974), which scikit-learn does not have. Any gold
passage is a correct choice, and the end if none is left. Which steps occur depends on the weights, so they are fitted
several times, each time on the steps that all weights so far led to (DAgger, Ross et al., arXiv 1011.0686). Scores are
cross-validated.

The shipped weights (train sets over indexes of their own contexts):

    python -m polyhop.scripts.training.selector --limit 300 \\
        --on 2wiki:2wiki_open_dev.json.gz:indexes/2wiki:0.6 --on 2wiki:2wiki_dev_with_context.json.gz::0.6 \\
        --on hotpotqa:hotpotqa_dev_distractor.json.gz:indexes/hotpotqa:1.2 \\
        --on hotpotqa:hotpotqa_dev_distractor.json.gz::1.2 \\
        --on musique:musique_ans_dev.jsonl.gz:indexes/musique:1 --on musique:musique_ans_dev.jsonl.gz::1 \\
        --on 2wiki:2wiki_train.json.gz:indexes/2wiki_train:0.3 --on 2wiki:2wiki_train.json.gz::0.3 \\
        --on hotpotqa:hotpotqa_train.json.gz:indexes/hotpotqa_train:0.6 --on hotpotqa:hotpotqa_train.json.gz::0.6 \\
        --on musique:musique_ans_train.jsonl.gz:indexes/musique_train:0.5 \\
        --on musique:musique_ans_train.jsonl.gz::0.5 --on sample:::0.3

    F1 of passages              over an index              own contexts
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

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.optimize import minimize

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
from .command import QuestionFile, new_app, run_command

Array = NDArray[np.float64]

_PASSAGE, _STOP = len(ExtensionFeatures._fields), len(StopFeatures._fields)
_SIZE = 2 * _PASSAGE + _STOP  # weights of the first passage, of those after it, and of the end
_ROUNDS = 3  # of collecting the steps that the weights so far lead to
_RIDGE = 3e-4  # for standardized features
_CANDIDATES = 20  # as in PRISM


@dataclass(frozen=True)
class ChoiceStep:
    """The passages that may come next, the features of each and of the end, and which choices are correct."""

    passages: tuple[ParsedPassage, ...]
    features: Array
    correct: Array


@dataclass
class SelectorCase:
    """A question with its passages."""

    name: str  # of its question set
    question: str
    features: ChainFeatures
    gold: frozenset[str]  # numbers of gold passages; one that was not retrieved has its id
    weight: float
    steps: dict[frozenset[str], ChoiceStep] = field(default_factory=dict)  # by the numbers of the chosen passages

    def fold(self, folds: int) -> int:
        """By the question, which may be in several sets."""
        return int.from_bytes(blake2b(self.question.encode(), digest_size=4).digest()) % folds

    def step(self, chosen: Sequence[ParsedPassage]) -> ChoiceStep:
        key = frozenset(passage.number for passage in chosen)
        if key not in self.steps:
            self.steps[key] = self._step(chosen)
        return self.steps[key]

    def _step(self, chosen: Sequence[ParsedPassage]) -> ChoiceStep:
        rows = self.features.of_passages(chosen)
        features = np.zeros((len(rows) + bool(chosen), _SIZE))
        start = _PASSAGE if chosen else 0
        for n, (_, row) in enumerate(rows):
            features[n, start : start + _PASSAGE] = row
        correct = np.array([passage.number in self.gold for passage, _ in rows], float)
        if chosen:
            features[-1, 2 * _PASSAGE :] = self.features.of_stop(chosen)
            correct = np.append(correct, float(not correct.any()))
        return ChoiceStep(tuple(passage for passage, _ in rows), features, correct)

    def chain(self, weights: Array) -> list[ParsedPassage]:
        """The chain that some weights lead to."""
        chosen: list[ParsedPassage] = []
        while len(chosen) < min(LONGEST, len(self.features.passages)):
            step = self.step(chosen)
            values = step.features @ weights
            odds = np.exp(values - values.max())
            best = int(odds[: len(step.passages)].argmax())
            if chosen and odds[best] / odds.sum() < GOES_ON:
                break
            chosen.append(step.passages[best])
        return chosen

    def score(self, weights: Array) -> Scores:
        found = {passage.number for passage in self.chain(weights)}
        return scores(len(found & self.gold), len(found), len(self.gold))


def fit(cases: Sequence[SelectorCase]) -> Array:
    """The weights, from zeros."""
    for case in cases:
        passages = case.features.passages
        for size in range(LONGEST):
            case.step(passages[:size])
            case.step([passage for passage in passages if passage.number in case.gold][:size])
    weights = _fit_steps(cases, np.zeros(_SIZE))
    for _ in range(_ROUNDS):
        for case in cases:
            case.step(case.chain(weights))  # also where it ends
        weights = _fit_steps(cases, weights)
    return weights


def _fit_steps(cases: Sequence[SelectorCase], start: Array) -> Array:
    """The weights that maximize the likelihood of the correct choices."""
    steps = [(step, case.weight / len(case.steps)) for case in cases for step in case.steps.values()]
    steps = [(step, weight) for step, weight in steps if step.correct.any()]
    features = np.concatenate([step.features for step, _ in steps])
    correct = np.concatenate([step.correct for step, _ in steps])
    weight = np.array([weight for _, weight in steps])
    weight /= weight.sum()
    sizes = [len(step.correct) for step, _ in steps]
    starts, step_of = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
    scale = features.std(axis=0)
    scale[scale == 0] = 1.0
    features = features / scale

    def loss(weights: Array) -> tuple[float, Array]:
        values = features @ weights
        odds = np.exp(values - np.maximum.reduceat(values, starts)[step_of])
        total, good = np.add.reduceat(odds, starts), np.add.reduceat(odds * correct, starts) + 1e-12
        likelihood = weight @ np.log(good / total)
        gradient = features.T @ ((odds / total[step_of] - odds * correct / good[step_of]) * weight[step_of])
        return float(_RIDGE * (weights @ weights) / 2 - likelihood), gradient + _RIDGE * weights

    found = minimize(loss, start * scale, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(found.x / scale)


def cases_of(file: QuestionFile, limit: int | None, seed: int) -> list[SelectorCase]:
    """The questions of a set (of the sample: train questions) with the passages that the chain retriever finds."""
    sample = () if file.questions else sample_passages()
    index = BM25Index(file.index) if file.index else None
    source = index or (PassagePool(sample) if sample else None)
    examples = list(
        Questions(
            file.dataset,
            str(file.questions) if file.questions else None,
            split=None if file.questions else "train",
            setting="open" if source else "distractor",
            limit=limit,
            seed=seed if limit else None,
        )
    )
    found: list[SelectorCase] = []
    for example in examples:
        hits = ChainRetriever(source or PassagePool(example.pool)).search(example.question, _CANDIDATES)
        candidates = Candidates([hit.passage for hit in hits])
        titles = dict.fromkeys(fact.title for fact in example.get("gold") or ())
        known = [passage for title in titles for passage in index.titled(title)] if index else sample
        gold = gold_of(example, [*known, *candidates.passages]).passages
        numbers = {passage.id: str(number) for number, passage in enumerate(candidates.passages, 1)}
        shown = parse_passages(candidates.show().format())
        features = ChainFeatures(example.question, decompose(example.question), shown)
        name = f"{file.name}, {'open' if source else 'own contexts'}"
        weight = (file.number or 1.0) / len(examples)
        found.append(
            SelectorCase(name, example.question, features, frozenset(numbers.get(id, id) for id in gold), weight)
        )
    return found


app = new_app()


@app.command()
def fit_selector(
    on: Annotated[
        list[str],
        typer.Option(
            metavar="DATASET:QUESTIONS[:INDEX[:WEIGHT]]",
            help="Fit to these questions over this index, or over their own contexts; sample: for the train questions "
            "of the sample. WEIGHT is the weight of the set (1). May be repeated.",
        ),
    ],
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    limit: Annotated[int | None, typer.Option(min=1, help="Take N random questions of each set.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random questions.")] = 0,
) -> None:
    """Fit the weights of the lexical Selector and Adder, and print them for weights.py."""
    cases = [case for text in on for case in cases_of(QuestionFile.parse(text), limit, seed)]
    crossed = [fit([case for case in cases if case.fold(folds) != fold]) for fold in range(folds)]
    weights = fit(cases)
    typer.echo(
        "| precision / recall / F1 of passages | questions | cross-validated | in sample |\n|---|---:|---:|---:|"
    )
    for name in dict.fromkeys(case.name for case in cases):
        own = [case for case in cases if case.name == name]
        held_out = _mean([case.score(crossed[case.fold(folds)]) for case in own])
        typer.echo(f"| {name} | {len(own)} | {held_out} | {_mean([case.score(weights) for case in own])} |")
    typer.echo(f"\n{as_code(weights)}")


def _mean(values: Sequence[Scores]) -> str:
    return " / ".join(f"{100 * mean:.1f}" for mean in np.mean(values, axis=0))


def as_code(weights: Array) -> str:
    """The weights as Python."""
    parts = zip(("FIRST", "NEXT", "END"), np.split(weights, (_PASSAGE, 2 * _PASSAGE)), strict=True)
    return "\n".join(_code(name, StopFeatures if name == "END" else ExtensionFeatures, part) for name, part in parts)


def _code(name: str, kind: type[ExtensionFeatures | StopFeatures], values: Array) -> str:
    rows = "".join(f"    {label}={float(f'{value:.3g}')},\n" for label, value in zip(kind._fields, values, strict=True))
    return f"{name} = {kind.__name__}(\n{rows})\n"


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.selector")
