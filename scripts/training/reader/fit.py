"""The fit of the reader: cross-fitted, calibrated, scored.

Questions on the same gold passages are in one fold. For each fold, a ranker of sub-questions is fitted without it. The
chains of all questions are read with the ranker that does not know them, and the rankers of whole questions are fitted
to these. Cross-validated scores come from rankers and a calibration that were fitted without the question's fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from ....engines.lexical.features import FEATURES, features, parse_question
from ....engines.lexical.hops import read_hops, same
from ....engines.lexical.prompt import parse_passages
from ....engines.lexical.ranker import Models, Ranker, log_odds
from ....engines.lexical.reader import answer_chances, compare, weighed, whole_features
from ....engines.lexical.span_table import SpanTable, Vector, span_table
from ....engines.lexical.vocabulary import countries
from ....eval.scoring import answer_scores, exact_match, normalize_answer
from ..calibration import calibration_error
from .examples import MIXED, AnnotatedHop, Example
from .network import RankingTask, Recipe, train

HOP, BARE, WHOLE = Recipe(24, epochs=7), Recipe(40, epochs=7, networks=3), Recipe(40, epochs=7)
CORRECT = 0.8  # least F1 of an answer that counts as correct
YES_NO = ("yes", "no")
STEP = "step"  # the condition under which an annotated sub-question is read as a question of its own

Inputs = tuple[str, tuple[float, ...]]
"""How an answer was found, and the inputs of its calibrated probability."""


@dataclass(frozen=True, eq=False)
class ReadQuestion:
    """A question read under one condition."""

    example: int  # the index of its example
    asked: AnnotatedHop  # the example's question or one of its hops
    condition: str
    passages: str
    task: RankingTask
    answer: str = ""  # of a comparison
    inputs: Inputs | None = None  # of a comparison


@dataclass(frozen=True)
class ScoredAnswer:
    source: str
    condition: str
    fold: int
    inputs: Inputs
    f1: float
    exact: float


# --- reading ---------------------------------------------------------------------------------------------------------


def scored(table: SpanTable, answers: Sequence[str], is_country: bool = False) -> Vector:
    """The F1 of every candidate; for a country, 1 for each of its names and adjectives."""
    wanted = {mention.country for mention in countries(answers[0])} if is_country else set()
    words = frozenset(word for answer in answers for word in normalize_answer(answer).split())

    def score(text: str) -> float:
        named = countries(text) if wanted else ()
        if len(named) == 1 and named[0].written == text and named[0].country in wanted:
            return 1.0
        return 0.0 if words.isdisjoint(normalize_answer(text).split()) else answer_scores(text, answers).f1

    scores = {text: score(text) for text in dict.fromkeys(table.texts)}
    return np.array([scores[text] for text in table.texts], np.float32)


def hop_tasks(example: Example) -> list[RankingTask]:
    """The annotated sub-questions of an example, or the question itself if it has none and is a single one."""
    hops = example.hops
    if not hops and len(example.sub_questions) == 1 and example.answers[0].lower() not in YES_NO:
        hops = (AnnotatedHop(example.question, (), example.answers),)
    others = [passages for condition, passages in example.passages.items() if condition != MIXED]
    tasks = []
    for n, hop in enumerate(hops):
        # Each is read alone over mixed passages, if there are any, and in turn over one of the others.
        other = others[(n + len(example.question)) % len(others)]
        for bound, passages in (((), example.passages.get(MIXED, "")), (hop.bound, other)):
            table = span_table(parse_passages(passages))
            if table.texts:
                rows = features(parse_question(hop.question, bound), table).astype(np.float16)
                task = RankingTask(rows, scored(table, hop.answers, hop.is_country))
                tasks.append(task.thinned(np.random.default_rng(len(hop.question))))
    return tasks


def read_all(ranker: Ranker, numbered: Sequence[tuple[int, Example]]) -> list[ReadQuestion]:
    """Read examples under all their conditions, with a ranker of sub-questions."""
    return [read for number, example in numbered for read in _read(ranker, number, example)]


def _read(ranker: Ranker, number: int, example: Example) -> Iterator[ReadQuestion]:
    whole = AnnotatedHop(example.question, (), example.answers)
    for condition, passages in example.passages.items():
        asked, sub_questions = whole, example.sub_questions
        if condition == MIXED:
            condition = STEP
            asked = example.hops[len(example.question) % len(example.hops)] if example.hops else whole
            sub_questions = (asked.question,)
        table = span_table(parse_passages(passages))
        if not table.texts:
            continue
        hops = read_hops(sub_questions, table, ranker)
        rows = whole_features(asked.question, hops, table).astype(np.float16)
        found = ReadQuestion(
            number, asked, condition, passages, RankingTask(rows, scored(table, asked.answers, asked.is_country))
        )
        if comparison := compare(asked.question, hops, table, ranker):
            answer, chance = comparison.ranked()[0]
            found = replace(found, answer=answer, inputs=(comparison.by, (chance,)))
        yield found


# --- fitting ---------------------------------------------------------------------------------------------------------


def fold_of(gold: str, folds: int) -> int:
    """The fold of an example, by its `gold`."""
    return int.from_bytes(blake2b(" ".join(gold.lower().split()).encode(), digest_size=8).digest()) % folds


class ReaderFit:
    """Fits rankers and calibration to examples.

    Attributes:
        models: Fitted to all examples.
        held_out: Answers of the cross-validation.
        in_sample: Answers of `models` on some of the examples.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        folds: int = 3,
        jobs: int = 1,
        seed: int = 0,
        recipes: tuple[Recipe, Recipe, Recipe] = (HOP, BARE, WHOLE),
    ) -> None:
        self.examples, self.folds = examples, folds
        self.fold = [fold_of(example.gold, folds) for example in examples]
        everything = range(-1, folds)  # -1 leaves nothing out
        # Processes read; training, which is matrix products, runs in threads that share the rows.
        with ProcessPoolExecutor(jobs) as pool, ThreadPoolExecutor(jobs) as threads:
            tasks = list(pool.map(hop_tasks, examples, chunksize=32))

            def fit_hop(left_out: int) -> Ranker:
                kept = [each for each, fold in zip(tasks, self.fold, strict=True) if fold != left_out]
                return train([task for each in kept for task in each], recipes[0], seed)

            hops = dict(zip(everything, threads.map(fit_hop, everything), strict=True))
            reads = [read for fold in range(folds) for read in self._read(pool, hops[fold], fold)]
            ranked = [read for read in reads if read.asked.answers[0].lower() not in YES_NO]

            def fit_wholes(left_out: int) -> tuple[Ranker, Ranker]:
                kept = [read.task for read in ranked if self.fold[read.example] != left_out]
                narrow = [task.narrowed(len(FEATURES)) for task in kept]
                return train(narrow, recipes[1], seed), train(kept, recipes[2], seed)

            wholes = dict(zip(everything, threads.map(fit_wholes, everything), strict=True))
            self.held_out = [self._answer(read, *wholes[self.fold[read.example]]) for read in reads]
            self.models = Models(hops[-1], *wholes[-1], calibrate(self.held_out))
            again = self._read(pool, self.models.hop, None)
            self.in_sample = [self._answer(read, *wholes[-1]) for read in again]

    def _read(self, pool: ProcessPoolExecutor, ranker: Ranker, fold: int | None) -> Iterator[ReadQuestion]:
        numbered = [(n, each) for n, each in enumerate(self.examples) if fold is None or self.fold[n] == fold]
        if fold is None:
            numbered = numbered[:: self.folds]  # as many as one fold has are enough
        parts = [numbered[n : n + 50] for n in range(0, len(numbered), 50)]
        for part in pool.map(partial(read_all, ranker), parts):
            yield from part

    def _answer(self, read: ReadQuestion, bare: Ranker, whole: Ranker) -> ScoredAnswer:
        answer, inputs, asked = read.answer, read.inputs, read.asked
        if inputs is None:
            table = span_table(parse_passages(read.passages))
            rows = read.task.features.astype(np.float32)
            hops = 1 if read.condition == STEP else len(self.examples[read.example].sub_questions)
            chances = answer_chances(bare, whole, asked.question, rows, table, hops)
            best, values = weighed(asked.question, table, chances)[0]
            answer, inputs = best.text, ("span", values)
        gold = (answer,) if asked.is_country and same(answer, asked.answers[0], as_country=True) else asked.answers
        source, fold = self.examples[read.example].source, self.fold[read.example]
        f1, exact = answer_scores(answer, gold).f1, exact_match(answer, gold)
        return ScoredAnswer(source, read.condition, fold, inputs, f1, exact)


def calibrate(answers: Iterable[ScoredAnswer]) -> dict[str, list[float]]:
    """For each way to find an answer, logistic regression of being correct on the log-odds of the inputs."""
    ways: dict[str, list[tuple[list[float], bool]]] = {}
    for answer in answers:
        way, inputs = answer.inputs
        ways.setdefault(way, []).append((list(map(log_odds, inputs)), answer.f1 >= CORRECT))
    found = {}
    for way, seen in sorted(ways.items()):
        x, y = np.array([row for row, _ in seen]), np.array([correct for _, correct in seen])
        if y.all() or not y.any():  # a rare way: the rule of succession
            found[way] = [0.0] * x.shape[1] + [log_odds((y.sum() + 1) / (len(y) + 2))]
        else:
            model = LogisticRegression().fit(x, y)
            found[way] = [*map(float, model.coef_[0]), float(model.intercept_[0])]
    return found


# --- the report ------------------------------------------------------------------------------------------------------


def report(fit: ReaderFit) -> dict[str, Any]:
    """Answer F1 and exact match by source and condition, in percent, and the quality of the probabilities."""
    answers = {}
    for source, condition in sorted({(answer.source, answer.condition) for answer in fit.held_out}):
        parts = (
            [answer for answer in some if (answer.source, answer.condition) == (source, condition)]
            for some in (fit.held_out, fit.in_sample)
        )
        held_out, in_sample = parts
        figures = {"questions": len(held_out), "cross-validated": _means(held_out), "in-sample": _means(in_sample)}
        answers[f"{source} {condition}"] = figures
    return {"answers": answers, "probabilities": _probabilities(fit)}


def _means(answers: Sequence[ScoredAnswer]) -> dict[str, float]:
    f1, exact = (np.mean([getattr(answer, name) for answer in answers]) for name in ("f1", "exact"))
    return {"f1": round(100 * float(f1), 1), "em": round(100 * float(exact), 1)}


def _probabilities(fit: ReaderFit) -> dict[str, float]:
    """Calibration error and area under the ROC curve, each fold calibrated on the others."""
    chances, correct = [], []
    for fold in range(fit.folds):
        calibration = calibrate(answer for answer in fit.held_out if answer.fold != fold)
        models = replace(fit.models, calibration=calibration)
        for answer in fit.held_out:
            if answer.fold == fold and answer.inputs[0] in calibration:
                chances.append(models.probability(*answer.inputs))
                correct.append(answer.f1 >= CORRECT)
    p, y = np.array(chances), np.array(correct, float)
    area = float(roc_auc_score(y, p)) if 0 < y.sum() < len(y) else 0.0
    return {"ece": round(calibration_error(p, y), 3), "auc": round(area, 3)}
