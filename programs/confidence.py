"""How sure an answer is: accuracy and credibility, weighed by complexity (PAR-RAG, arXiv 2504.16787).

    confidence = alpha(h) * accuracy + (1 - alpha(h)) * credibility
    alpha(h) = 1 / (1 + exp(slope * (h - midpoint)))

The more hops a question needs, the less a judge's feeling for accuracy is worth, and the more it counts that the cited
evidence carries the answer. The paper gives no formula for alpha; the logistic one and its constants are ours.
"""

from __future__ import annotations

import math
from typing import Literal

from .program import Program
from .trace import Trace, Weighed
from .tunables import choice, real

Attribution = Literal["attributable", "extrapolatory", "contradictory"]
"""AttrScore's classes: the citations say so; they neither say nor deny it; they deny it."""

CREDIBILITY: dict[str, float] = {"attributable": 1.0, "extrapolatory": 0.5, "contradictory": 0.001}


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
        return 1.0 / (1.0 + math.exp(self.slope.value * (hops - self.midpoint.value)))

    def forward(self, hops: float, accuracy: float, credibility: float, trace: Trace) -> Weighed:
        """Weigh the two, and record whether the answer passes."""
        alpha = self.alpha(hops)
        confidence = alpha * accuracy + (1 - alpha) * credibility
        weighed = Weighed(alpha, confidence, confidence >= self.threshold.value)
        trace.add(weighed)
        return weighed
