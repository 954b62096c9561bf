"""Demos from what a dataset knows about its questions."""

from __future__ import annotations

from collections.abc import Sequence

import dspy


def gold_demos(program: dspy.Module, questions: Sequence[dspy.Example]) -> dict[str, list[dspy.Example]]:
    """Demos by the name of the agent that they are for; none for an agent about whose work nothing is known."""
    return {name: [] for name, _ in program.named_predictors()}
