"""What each agent is asked: one signature class an agent, and the field types that they share. No logic."""

from .analysis import AnalyzeQuestion
from .answers import AnswerDirectly, AnswerFromEvidence, AnswerFromPassages, AnswerFromTrajectory, AnswerStep
from .evidence import AddEvidence, SelectEvidence
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
    "JudgeAccuracy",
    "JudgeAttribution",
    "NumberedPassage",
    "NumberedPassages",
    "PlanSteps",
    "RefineQuestion",
    "ReviseAnswer",
    "SelectEvidence",
]
