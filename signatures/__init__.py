"""What each agent is asked: one signature class an agent, and the field types that they share. No logic."""

from .analysis import AnalyzeQuestion, PlanResearch
from .answers import (
    AnswerDirectly,
    AnswerFromEvidence,
    AnswerFromPassages,
    AnswerFromTrajectory,
    AnswerStep,
    AnswerWithCitations,
    VerifyAnswer,
)
from .evidence import AddEvidence, CompleteEvidence, SelectEvidence
from .fields import NumberedPassage, NumberedPassages
from .planning import PlanSteps, RefineQuestion
from .review import JudgeAccuracy, JudgeAttribution, ReviseAnswer

__all__ = [
    "AddEvidence",
    "AnalyzeQuestion",
    "AnswerDirectly",
    "AnswerFromEvidence",
    "AnswerFromPassages",
    "AnswerFromTrajectory",
    "AnswerStep",
    "AnswerWithCitations",
    "CompleteEvidence",
    "JudgeAccuracy",
    "JudgeAttribution",
    "NumberedPassage",
    "NumberedPassages",
    "PlanResearch",
    "PlanSteps",
    "RefineQuestion",
    "ReviseAnswer",
    "SelectEvidence",
    "VerifyAnswer",
]
