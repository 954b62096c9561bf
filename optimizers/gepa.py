"""Parts for `dspy.GEPA`, by its public protocols, for any DSPy program.

dspy.GEPA(
    metric=feedback_metric(my_metric),          # any metric of DSPy or of polyhop, with feedback in words
    component_selector=MostFaults(program),     # instead of "round_robin"
    instruction_proposer=BriefProposer(),
    reflection_minibatch_size=8,
    ...
)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from itertools import cycle
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer

from ..eval.metrics import Metric as PolyhopMetric
from ..eval.metrics import attempt_of, takes
from ..eval.oracle import CALIBRATION, GoldReplies, explain, faults
from .replay import Metric, shortened


def feedback_metric(metric: Metric) -> Metric:
    """A metric as GEPA calls it; one of polyhop returns ``dspy.Prediction(score, feedback)``.

    While exemplars are collected (a trace without the name of an agent) that is a bool, as of every `Metric`.
    """
    original = metric.wrapped or metric if isinstance(metric, PolyhopMetric) else metric
    if takes(original, 5):
        return original

    def explained(
        gold: dspy.Example,
        pred: dspy.Prediction,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> Any:
        if not isinstance(metric, PolyhopMetric):
            return metric(gold, pred)
        attempt = attempt_of(gold, pred)
        score = metric.function(attempt)
        if trace is not None and pred_name is None:
            return metric.reached(score)
        if not pred_trace:
            return dspy.Prediction(score=score, feedback=explain(attempt))
        agent, inputs, reply = pred_trace[0]
        annotated = GoldReplies(gold, attempt.output.ranking).reply(agent.signature, inputs, reply)
        return dspy.Prediction(score=score, feedback=explain(attempt, annotated))

    return explained


class MostFaults:
    """GEPA's component selector: reflects on the agent with the most faulty replies in the minibatch, weighted by the
    points that the questions lost, and divided by how often it was chosen for the same candidate: where its instruction
    was not what is wrong, the next one's turn comes. If no fault is known, the agents take turns."""

    def __init__(self, program: dspy.Module) -> None:
        self._agents: defaultdict[frozenset[str], list[str]] = defaultdict(list)  # by the fields of their signatures
        for name, predictor in program.named_predictors():
            self._agents[frozenset(predictor.signature.fields)].append(name)
        self._turns = cycle([name for name, _ in program.named_predictors()])
        self._chosen = Counter[tuple[int, str]]()

    def __call__(
        self,
        state: Any,
        trajectories: Sequence[Mapping[str, Any]],
        subsample_scores: Sequence[float],
        candidate_idx: int,
        candidate: Mapping[str, str],
    ) -> list[str]:
        lost: defaultdict[str, float] = defaultdict(float)
        for trajectory in trajectories:
            example, prediction, score = (trajectory[name] for name in ("example", "prediction", "score"))
            points = 1 - float(getattr(score, "score", score) or 0.0)
            seen = prediction.get("ranking") or () if isinstance(prediction, dspy.Prediction) else ()
            oracle = GoldReplies(example, seen)
            for predictor, inputs, reply in trajectory["trace"]:
                alike = [name for name in self._agents[frozenset(predictor.signature.fields)] if name in candidate]
                same = [name for name in alike if cleandoc(candidate[name]) == predictor.signature.instructions]
                if alike and isinstance(reply, dspy.Prediction):
                    name = (same or alike)[0]
                    mistakes = faults(oracle.reply(predictor.signature, inputs, reply))
                    lost[name] += points if mistakes.keys() - CALIBRATION else 0.0
        if any(lost.values()):
            most = max(lost, key=lambda name: lost[name] / (1 + self._chosen[candidate_idx, name]))
            self._chosen[candidate_idx, most] += 1
            return [most]
        return [next(self._turns)]


class BriefProposer(InstructionProposer):
    """GEPA's own proposer, shown only the passages that a reply or its feedback names, and a few others."""

    def __call__(
        self,
        candidate: dict[str, str],
        reflective_dataset: dict[str, list[dict[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        def brief(record: Mapping[str, Any]) -> dict[str, Any]:
            outputs = record["Generated Outputs"]
            named = {**(outputs if isinstance(outputs, Mapping) else {"": outputs}), "feedback": record["Feedback"]}
            return {**record, "Inputs": shortened(record["Inputs"], named)}

        shown = {name: [brief(record) for record in records] for name, records in reflective_dataset.items()}
        proposed: dict[str, str] = super().__call__(candidate, shown, components_to_update)
        return proposed
