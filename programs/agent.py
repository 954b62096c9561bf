"""An agent of a program: a DSPy predictor that nothing it is shown can talk into another prompt, and that asks for less
where a prompt is too long for its model."""

from __future__ import annotations

from typing import Any

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from ..engines.costs import acting_as, current_attempt, record_incident
from ..signatures.fields import NumberedPassages, fenced


class Agent(dspy.Predict):
    """A `dspy.Predict` that breaks up field markers in its inputs and demos, whichever adapter writes them.

    Questions come from outside, and what other agents replied may quote a passage: text like ``[[ ## answer ## ]]`` in
    them would be a field of the prompt, and one of the reply that repeats it. Other text is sent as it is.

    Where a model says that the prompt is longer than its context, the agent asks again with half of the passages, those
    that stand first; without demos once there is but one sentence left; then the error is raised.

    Attributes:
        role: What the agent is called in its program; costs are booked under it.
    """

    role = ""

    def forward(self, **kwargs: Any) -> Any:
        with acting_as(self.role or self.signature.__name__):
            while True:
                try:
                    return super().forward(**kwargs)
                except ContextWindowExceededError:
                    shorter = self._shortened(kwargs)
                    if shorter is None:
                        raise
                    record_incident("prompt shortened")
                    kwargs = shorter

    def _shortened(self, kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """With half of the longest list of passages that has two sentences; None if nothing is left to leave out."""
        lists = {name: value for name, value in kwargs.items() if isinstance(value, NumberedPassages)}
        halves = {name: half for name, value in lists.items() if (half := value.first_half()) is not None}
        if halves:
            longest = max(halves, key=lambda name: lists[name].length)
            return {**kwargs, longest: halves[longest]}
        return {**kwargs, "demos": []} if kwargs.get("demos", self.demos) else None

    def _forward_preprocess(self, **kwargs: Any) -> Any:
        lm, config, signature, demos, inputs = super()._forward_preprocess(**kwargs)
        if (asked := current_attempt()) > 1:  # DSPy's cache keeps bad replies, too: what failed would fail again
            config = {**config, "rollout_id": asked}
        return lm, config, signature, fenced(demos), fenced(inputs)
