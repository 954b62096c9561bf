"""The confidence in an answer: accuracy and credibility, weighted by complexity (PAR-RAG, arXiv 2504.16787).

    confidence = alpha(h) * accuracy + (1 - alpha(h)) * credibility
    alpha(h) = 1 / (1 + exp(slope * (h - midpoint)))

The more hops a question needs, the less the judged accuracy counts and the more the cited evidence. Alpha is the
paper's adaptive logistic function; its constants, which no source gives, are ours. A fixed alpha of 0.5 is the paper's
ablation; the public code has it too, in a geometric mean.

The weighed confidence alone would pass an attributable answer of accuracy 0 at four hops, and a contradicted one of
accuracy 1 at one hop. So both parts can have a minimum, which the paper does not have: `polyhop.programs.PolyHop` does.
"""

from __future__ import annotations

import math
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from ..engines.costs import record_incident
from .agent import Agent, Part
from .prediction import Status
from .run import record
from .trace import Judged, Weighed
from .tunable import real, switch

CREDIBILITY = {"attributable": 1.0, "extrapolatory": 0.5, "contradictory": 0.001}
"""By AttrScore's class: the citations support the answer, neither support nor deny it, or deny it."""


def checked(weighed: Weighed) -> Status:
    """How an answer was checked, by the class of the nearest credibility. What the evidence states is in doubt if the
    answer does not pass, since it may not be what was asked for."""
    nearest = min(CREDIBILITY, key=lambda name: abs(CREDIBILITY[name] - weighed.credibility))
    if nearest == "attributable":
        return "verified" if weighed.passed else "in doubt"
    return "not supported" if nearest == "extrapolatory" else "contradicted"


def verdict(judge: Agent, aspect: str, **asked: Any) -> dspy.Prediction | None:
    """A judge's reply; None if it cannot be read: the trace has a score of 0. Errors of the model are not a verdict."""
    try:
        reply: dspy.Prediction = judge(**asked)
        return reply
    except AdapterParseError as error:
        record_incident("verdict unreadable")
        record(Judged(aspect, 0.0, invalid=(" ".join(str(error.lm_response).split())[:80],)))
        return None


class Confidence(Part):
    """Combines the accuracy and the credibility of an answer, both in [0, 1], into a confidence in [0, 1].

    An answer passes from ``threshold`` on; it also needs ``least_accuracy`` and ``least_credibility``. ``adaptive``
    says whether alpha depends on the complexity; otherwise it is ``fixed_alpha``.
    """

    def __init__(self, least_accuracy: float = 0.05, least_credibility: float = 0.1) -> None:
        super().__init__()
        self.threshold = real(0.75, 0.0, 1.0)
        self.least_accuracy = real(least_accuracy, 0.0, 1.0)
        self.least_credibility = real(least_credibility, 0.0, 1.0)
        self.adaptive = switch(True)
        self.fixed_alpha = real(0.5, 0.0, 1.0, needs=("adaptive", (False,)))
        self.midpoint = real(2.5, 1.0, 4.0, needs=("adaptive", (True,)))
        self.slope = real(1.0, 0.0, 4.0, needs=("adaptive", (True,)))

    def alpha(self, hops: float) -> float:
        """The weight of accuracy for an expected number of hops."""
        if not self.adaptive.value:
            return self.fixed_alpha.value
        return 1.0 / (1.0 + math.exp(self.slope.value * (hops - self.midpoint.value)))

    def forward(self, hops: float, accuracy: float, credibility: float, answer: str = "") -> Weighed:
        """Record and return the confidence in an answer, and whether it passes. A judge of accuracy who gives less than
        ``least_accuracy`` decides alone."""
        alpha = self.alpha(hops)
        confidence = alpha * accuracy + (1 - alpha) * credibility
        if accuracy < self.least_accuracy.value:
            confidence = min(confidence, accuracy)
        enough = accuracy >= self.least_accuracy.value and credibility >= self.least_credibility.value
        passed = enough and confidence >= self.threshold.value
        weighed = Weighed(alpha, confidence, passed, hops, accuracy, credibility, answer)
        record(weighed)
        return weighed
