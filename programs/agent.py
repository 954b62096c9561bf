"""An agent of a program: a DSPy predictor that nothing it is shown can talk into another prompt."""

from __future__ import annotations

from typing import Any

import dspy

from ..signatures.fields import fenced


class Agent(dspy.Predict):
    """A `dspy.Predict` that breaks up field markers in its inputs and demos, whichever adapter writes them.

    Questions come from outside, and what other agents replied may quote a passage: text like ``[[ ## answer ## ]]`` in
    them would be a field of the prompt, and one of the reply that repeats it. Other text is sent as it is.
    """

    def _forward_preprocess(self, **kwargs: Any) -> Any:
        lm, config, signature, demos, inputs = super()._forward_preprocess(**kwargs)
        return lm, config, signature, fenced(demos), fenced(inputs)
