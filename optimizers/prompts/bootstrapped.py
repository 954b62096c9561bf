"""Optimizers that make demos from the program's own successes."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dspy
import optuna
from dspy.teleprompt import BootstrapFewShotWithOptuna

from ...data.form import masked
from ...eval.scoring import normalize_answer
from ..measure import Metric
from .registry import CompileJob, Numbers, by_preset, register
from .student import prepared, transplanted, with_steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEARCH = {"train": (20, 50, 100), "val": (20, 40, 80), "demos": (2, 3, 4), "candidates": (3, 6, 12)}
"""The settings of a random search by preset."""


def search_runs(n: Numbers) -> float:
    """At most so many runs of a random search: each candidate but the first bootstraps, and all are evaluated."""
    return float((n["candidates"] + 1) * n["train"] + (n["candidates"] + 2) * n["val"])


@register(
    "bootstrap",
    "the program's own successes as demos",
    "demos",
    by_preset(train=(20, 50, 100), val=(0, 0, 0), demos=(2, 3, 4)),
    runs=lambda n: n["train"],
)
def bootstrap(job: CompileJob) -> dspy.Module:
    """`dspy.BootstrapFewShot`: stops at enough successes."""
    return bootstrapper(job, job.numbers["demos"]).compile(job.student, trainset=job.trainset)


def bootstrapper(job: CompileJob, demos: int) -> dspy.BootstrapFewShot:
    """DSPy's bootstrap without labeled demos, which would be the questions themselves."""
    return dspy.BootstrapFewShot(metric=job.metric, max_bootstrapped_demos=demos, max_labeled_demos=0)


@register("random_search", "the best of several sets of successes", "demos", by_preset(**SEARCH), runs=search_runs)
def random_search(job: CompileJob) -> dspy.Module:
    """`dspy.BootstrapFewShotWithRandomSearch`: no demos, the first successes, and ``candidates`` random sets."""
    return searcher(job).compile(job.student, trainset=job.trainset, valset=job.valset, restrict=candidate_seeds(job))


def searcher(job: CompileJob) -> dspy.BootstrapFewShotWithRandomSearch:
    return dspy.BootstrapFewShotWithRandomSearch(
        metric=job.metric,
        max_bootstrapped_demos=job.numbers["demos"],
        max_labeled_demos=0,
        num_candidate_programs=job.numbers["candidates"],
        num_threads=job.threads,
    )


def candidate_seeds(job: CompileJob) -> list[int]:
    """All of DSPy's but -2, which has labeled demos only: there are none, as in -3."""
    return [-3, -1, *range(job.numbers["candidates"])]


@register(
    "bootstrap_optuna",
    "one success for each agent, chosen by TPE",
    "demos",
    by_preset(train=(20, 50, 100), val=(20, 40, 80), pool=(4, 8, 12), trials=(5, 10, 20)),
    runs=lambda n: n["train"] + n["trials"] * n["val"],
)
def bootstrap_optuna(job: CompileJob) -> dspy.Module:
    """`dspy.BootstrapFewShotWithOptuna`: one demo for each agent, from a pool of successes."""
    teleprompter = _SeededOptuna(
        metric=job.metric,
        max_bootstrapped_demos=1,
        max_labeled_demos=0,
        num_candidate_programs=job.numbers["trials"],
        num_threads=job.threads,
    )
    teleprompter.seed = job.seed
    return teleprompter.compile(job.student, max_demos=job.numbers["pool"], trainset=job.trainset, valset=job.valset)


class _SeededOptuna(BootstrapFewShotWithOptuna):
    """DSPy's takes no seed, and fails for an agent without demos."""

    seed: int

    def compile(self, student: Any, *, teacher: Any = None, max_demos: int, trainset: Any, valset: Any = None) -> Any:
        self.trainset, self.valset, self.student = trainset, valset or trainset, student.reset_copy()
        teleprompter = dspy.BootstrapFewShot(self.metric, max_bootstrapped_demos=max_demos, max_labeled_demos=0)
        self.compiled_teleprompter = teleprompter.compile(self.student, teacher=teacher, trainset=trainset)
        for predictor in self.compiled_teleprompter.predictors():
            predictor.demos = predictor.demos or [{}]  # an empty demo is not shown
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=self.seed))
        study.optimize(self.objective, n_trials=self.num_candidate_sets)
        return study.best_trial.user_attrs["program"]


# --- several programs or runs for a question -------------------------------------------------------------------------


def _without_models(program: dspy.Module, compiled: Any) -> Any:
    """The compiled `Nearest`, around a copy of the program."""
    compiled.program = program.deepcopy()
    for own, predictor in zip(program.predictors(), compiled.program.predictors(), strict=True):
        predictor.lm = own.lm
    return compiled


@register(
    "knn",
    "for each question, successes on similar questions, run again every time",
    "demos",
    by_preset(train=(50, 200, 1000), val=(0, 0, 0), demos=(1, 2, 3)),
    runs=lambda n: 0,
    later=lambda n: n["demos"] + 1,
    finish=_without_models,
)
def knn(job: CompileJob) -> dspy.Module:
    """`dspy.KNNFewShot`. Compiling is free, but each question costs ``demos`` + 1 times the calls, unless replies are
    cached. The result cannot be saved, since its demos depend on the question."""
    return Nearest(job.student, job.trainset, job.metric, job.numbers["demos"])


class Nearest(dspy.Module):
    """A program that is shown its own successes, as the metric decides, on the ``k`` most similar train questions
    before each question. Its tunables and instructions may be changed later.
    """

    def __init__(self, program: dspy.Module, trainset: Sequence[dspy.Example], metric: Metric, k: int) -> None:
        super().__init__()
        self.program = program
        self.metric = metric
        self.teleprompter = _SharedKNN(
            k=k,
            trainset=list(trainset),
            vectorizer=_FormVectorizer(trainset),
            max_bootstrapped_demos=k,
            max_labeled_demos=0,
        )

    def forward(self, **inputs: Any) -> Any:
        """The program's prediction, with a trace of all runs that it needed."""
        shown: list[dspy.Prediction] = []

        def judged(example: dspy.Example, prediction: dspy.Prediction, trace: Any) -> Any:
            shown.append(prediction)
            return self.metric(example, prediction, trace)

        teleprompter = copy.copy(self.teleprompter)
        teleprompter.few_shot_bootstrap_args = {**teleprompter.few_shot_bootstrap_args, "metric": judged}
        prediction = teleprompter.compile(prepared(self.program, brief=True))(**inputs)
        return with_steps(prediction, [*shown, prediction])


class _SharedKNN(dspy.KNNFewShot):
    """DSPy's, with train questions that copies share."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _SharedKNN:
        return self


class _FormVectorizer:
    """TF-IDF vectors of questions by their form: words and pairs of words, with names masked.

    `dspy.predict.KNN` calls it with texts such as ``"question: Who ...? | pool: ..."``.
    """

    def __init__(self, trainset: Sequence[dspy.Example]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._tfidf = TfidfVectorizer(
            preprocessor=lambda text: f"^ {masked(text)} $", token_pattern=r"\S+", ngram_range=(1, 2)
        )
        inputs = [example.inputs() for example in trainset]
        self._tfidf.fit([str(each.get("question") or " | ".join(map(str, each.values()))) for each in inputs])

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        questions = [text.removeprefix("question: ").partition(" | pool: ")[0] for text in texts]
        vectors: NDArray[np.float32] = self._tfidf.transform(questions).toarray().astype("float32")
        return vectors


def _transplanted_members(program: dspy.Module, compiled: Any) -> Any:
    compiled.programs = [transplanted(program, member) for member in compiled.programs]
    return compiled


@register(
    "ensemble",
    "a vote of the best programs of a random search",
    "demos",
    by_preset(**SEARCH, members=(3, 3, 5)),
    runs=search_runs,
    later=lambda n: min(n["members"], n["candidates"] + 2),
    finish=_transplanted_members,
)
def ensemble(job: CompileJob) -> dspy.Module:
    """`dspy.Ensemble` with `vote`. Each question costs ``members`` times the calls."""
    best = random_search(job).candidate_programs[: job.numbers["members"]]
    return dspy.Ensemble(reduce_fn=vote).compile([candidate["program"] for candidate in best])


def vote(predictions: Sequence[Any]) -> Any:
    """The prediction whose answer has the largest sum of confidences; the first of equals.

    Answers are compared as exact match does; a prediction without a confidence counts 1. Its trace holds the steps of
    all programs, so that it shows the cost of the question.
    """
    weights: defaultdict[str, float] = defaultdict(float)
    for prediction in predictions:
        weights[_key(prediction)] += prediction.get("confidence", 1.0)
    best = max(predictions, key=lambda each: (weights[_key(each)], each.get("confidence", 1.0)))
    return with_steps(best, predictions)


def _key(prediction: dspy.Prediction) -> str:
    return normalize_answer(str(prediction.get("answer", list(prediction.values())[-1])))
