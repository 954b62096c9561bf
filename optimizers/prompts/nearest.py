"""Demos from the train questions that are most like the one that is asked (`dspy.KNNFewShot`)."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dspy

from ...data.form import masked
from ..measure import Metric
from .costs import Estimate
from .optimizer import PromptOptimizer, Size, Task, in_presets
from .quiet import quiet
from .student import prepared, with_steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Knn(PromptOptimizer):
    """`dspy.KNNFewShot`: for every question the nearest train questions are asked first, and what goes well of them is
    shown.

    So compiling costs nothing, and every question costs ``demos`` + 1 times the calls. Without a cache they are paid
    again and again; and such a program cannot be saved, for its demos are those of a question.
    """

    name = "knn"
    about = "for each question demos from the train questions most like it, asked anew every time"
    changes = "demos"
    presets = in_presets(train=(50, 200, 1000), val=(0, 0, 0), demos=(1, 2, 3))

    def estimate(self, size: Size) -> Estimate:
        return Estimate(later=size.probe.question.lm_calls * (min(size.numbers["demos"], size.train) + 1))

    def compile(self, task: Task) -> dspy.Module:
        return Nearest(task.student, task.trainset, task.metric, task.numbers["demos"])

    def result(self, program: dspy.Module, compiled: dspy.Module) -> dspy.Module:
        compiled.program = program.deepcopy()
        for own, predictor in zip(program.predictors(), compiled.program.predictors(), strict=True):
            predictor.lm = own.lm
        return compiled


class Nearest(dspy.Module):
    """A program that is shown its own success on like questions, if any, before each question.

    Args:
        program: Its tunables and instructions may be changed later.
        trainset: Where like questions come from. The question itself is not one.
        metric: What a success is.
        k: Like questions to ask.
    """

    def __init__(self, program: dspy.Module, trainset: Sequence[dspy.Example], metric: Metric, k: int) -> None:
        super().__init__()
        self.program = program
        self.metric = metric
        self.teleprompter = _KNNFewShot(
            k=k,
            trainset=list(trainset),
            vectorizer=_Forms([_asked(example.inputs()) for example in trainset]),
            max_bootstrapped_demos=k,
            max_labeled_demos=0,
        )

    def forward(self, **inputs: Any) -> Any:
        """The program's prediction, with a trace of all that it took."""
        shown: list[dspy.Prediction] = []

        def judged(example: dspy.Example, prediction: dspy.Prediction, trace: Any) -> Any:
            shown.append(prediction)
            return self.metric(example, prediction, trace)

        teleprompter = copy.copy(self.teleprompter)
        teleprompter.few_shot_bootstrap_args = {**teleprompter.few_shot_bootstrap_args, "metric": judged}
        with quiet():
            prediction = teleprompter.compile(prepared(self.program, brief=True))(**inputs)
        return with_steps(prediction, [*shown, prediction])


class _KNNFewShot(dspy.KNNFewShot):
    """DSPy's, whose copies share the train questions."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _KNNFewShot:
        return self


class _Forms:
    """Vectors of questions by their form: TF-IDF over words and pairs of words, with names masked.

    Called by `dspy.predict.KNN` with inputs as ``"question: Who ...? | pool: ..."``.
    """

    def __init__(self, questions: Sequence[str]) -> None:
        found = Counter(term for question in questions for term in set(_terms(question)))
        self._column = {term: n for n, term in enumerate(sorted(found))}
        self._weight = {term: 1 + math.log(len(questions) / count) for term, count in found.items()}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        vectors = np.zeros((len(texts), len(self._column)), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for term, count in Counter(_terms(text.removeprefix("question: ").partition(" | pool: ")[0])).items():
                if term in self._column:
                    row[self._column[term]] = count * self._weight[term]
            row /= np.linalg.norm(row) or 1.0
        return vectors


def _terms(question: str) -> list[str]:
    words = masked(question).split()
    return [*words, *(f"{left} {right}" for left, right in pairwise(["^", *words, "$"]))]


def _asked(inputs: dspy.Example) -> str:
    return str(inputs["question"]) if "question" in inputs else " | ".join(f"{k}: {v}" for k, v in inputs.items())
