"""Single stages of an optimization."""

from __future__ import annotations

from pathlib import Path

import dspy
import pytest

from polyhop.data.sample import SubQuestion
from polyhop.eval.metrics import METRICS
from polyhop.optimizers.settings import OptimizationSettings
from polyhop.optimizers.stages import StageInput, tune_exemplars
from polyhop.programs.complexity import Complexity
from polyhop.programs.exemplars import Exemplars
from polyhop.programs.prediction import conclude
from polyhop.programs.program import Program

RIGHT = {1: 2, 2: 0}  # by hops, the number of exemplars that answers a question


class Hinted(Program):
    def __init__(self) -> None:
        super().__init__()
        self.exemplars = Exemplars()

    def estimator(self, question: str) -> Complexity:
        return Complexity.of(1 + question.startswith("Hard"))

    def forward(self, question: str) -> dspy.Prediction:
        complexity = self.estimator(question)
        right = len(self.exemplars(question, complexity)) == RIGHT[complexity.hops]
        return conclude("yes" if right else "no", 1.0, stop="answered")


def example(n: int) -> dspy.Example:
    return dspy.Example(
        id=str(n),
        question=f"{'Hard' if n % 2 else 'Easy'} question {n}?",
        answers=["yes"],
        hops=1 + n % 2,
        sub_questions=(SubQuestion(f"What is {n}?", "yes", None),) * (1 + n % 2),
    ).with_inputs("question")


@pytest.mark.parametrize("freeze", [(), ("exemplars.mode",), ("exemplars.count",)])
def test_each_number_of_hops_has_its_number_of_exemplars(tmp_path: Path, freeze: tuple[str, ...]) -> None:
    settings = OptimizationSettings(metric="answer_em", stages=("exemplars",), freeze=freeze)
    train = [example(n) for n in range(12)]
    stage = StageInput(Hinted(), train, METRICS["answer_em"], settings, 0, tmp_path, None, lambda each: None)
    proposal = tune_exemplars(stage)
    assert proposal.program is not None
    assert proposal.program.exemplars.memory.most == ({} if "exemplars.count" in freeze else RIGHT)
    assert ("exemplars by hops: 1: 2, 2: 0" in proposal.note) == ("exemplars.count" not in freeze)
