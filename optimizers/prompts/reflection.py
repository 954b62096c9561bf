"""How GEPA reflects: on the agent with the most faults, and on the passages that matter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer

from ...eval.faults import CALIBRATION, faults
from .student import shortened


class MostFaults:
    """Chooses the agent to reflect on: the one with the most faulty replies in the minibatch, weighted by the points
    that the questions lost. If no fault is known, the agents take turns.

    It is a `ReflectionComponentSelector` of GEPA, whose default is turns: an agent without a fault costs a reflection.
    """

    def __init__(self, program: dspy.Module) -> None:
        self._agents = {_fields(predictor): name for name, predictor in program.named_predictors()}

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
            for predictor, inputs, reply in trajectory["trace"]:
                name = self._agents.get(_fields(predictor), "")
                if name not in candidate or not isinstance(reply, dspy.Prediction):
                    continue
                found = faults(example, seen, predictor.signature, inputs, reply) or {}
                if found.keys() - CALIBRATION:
                    lost[name] += points
        if any(lost.values()):
            return [max(lost, key=lambda name: lost[name])]
        turns = state.named_predictor_id_to_update_next_for_program_candidate
        names = state.list_of_named_predictors
        turns[candidate_idx] = (turns[candidate_idx] + 1) % len(names)
        return [names[turns[candidate_idx] - 1]]


def _fields(predictor: dspy.Predict) -> frozenset[str]:
    return frozenset(predictor.signature.fields)


class BriefProposer(InstructionProposer):
    """GEPA's own proposer, shown only the passages that a reply or its feedback names, and a few others."""

    def __call__(
        self,
        candidate: dict[str, str],
        reflective_dataset: dict[str, list[dict[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        brief = {name: [_brief(record) for record in records] for name, records in reflective_dataset.items()}
        proposed: dict[str, str] = super().__call__(candidate, brief, components_to_update)
        return proposed


def _brief(record: Mapping[str, Any]) -> dict[str, Any]:
    outputs = record["Generated Outputs"]
    named = {**(outputs if isinstance(outputs, Mapping) else {"": outputs}), "feedback": record["Feedback"]}
    return {**record, "Inputs": shortened(record["Inputs"], named)}
