"""How sure an answer is: accuracy and credibility, weighed by complexity (PAR-RAG, arXiv 2504.16787).

    confidence = alpha(h) * accuracy + (1 - alpha(h)) * credibility
    alpha(h) = 1 / (1 + exp(slope * (h - midpoint)))

The more hops a question needs, the less a judge's feeling for accuracy is worth, and the more it counts that the cited
evidence carries the answer. The paper gives no formula for alpha; the logistic one and its constants are ours.
"""

from __future__ import annotations

import math

from .program import Program
from .trace import Trace, Weighed
from .tunables import choice, real

CREDIBILITY = {"attributable": 1.0, "extrapolatory": 0.5, "contradictory": 0.001}
"""Of AttrScore's classes: the citations say so; they neither say nor deny it; they deny it."""


class Confidence(Program):
    """Joins a judge's accuracy and the credibility of an answer, both in [0, 1], to one confidence in [0, 1].

    Args:
        threshold: The least confidence with which an answer passes.
        adaptive: Whether alpha follows the complexity; 0.5 for all questions if not (the paper's ablation).
    """

    def __init__(self, threshold: float = 0.75, adaptive: bool = True) -> None:
        super().__init__()
        self.threshold = real(threshold, 0.0, 1.0)
        self.adaptive = choice(adaptive, (True, False))
        self.midpoint = real(2.5, 1.0, 4.0)
        self.slope = real(1.0, 0.0, 4.0)

    def alpha(self, hops: float) -> float:
        """The weight of accuracy for a question of so many (expected) hops."""
        if not self.adaptive.value:
            return 0.5
        return sigmoid(self.slope.value * (self.midpoint.value - hops))

    def forward(self, hops: float, accuracy: float, credibility: float, trace: Trace) -> Weighed:
        """Weigh the two, and record whether the answer passes."""
        alpha = self.alpha(hops)
        confidence = alpha * accuracy + (1 - alpha) * credibility
        weighed = Weighed(alpha, confidence, confidence >= self.threshold.value)
        trace.add(weighed)
        return weighed


class Calibration(Program):
    """Turns a stated confidence into the share of right answers that such a confidence has had (Platt scaling).

    calibrated = sigmoid(slope * logit(confidence) + offset); 1 and 0 leave it as it is. Fitted to a finished run by
    ``python -m polyhop.scripts.training.calibration RUN``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.slope = real(1.0, 0.0, 10.0)
        self.offset = real(0.0, -10.0, 10.0)

    def forward(self, confidence: float) -> float:
        if self.slope.value == 1.0 and self.offset.value == 0.0:
            return confidence
        return sigmoid(self.slope.value * logit(confidence) + self.offset.value)


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def logit(probability: float) -> float:
    """The inverse of `sigmoid`, finite for 0 and 1 too."""
    p = min(max(probability, 1e-3), 1.0 - 1e-3)
    return math.log(p / (1.0 - p))
