"""What each agent is asked: one signature class an agent, and the field types that they share. No logic."""

from .analysis import AnalyzeQuestion, PlanResearch
from .answers import AnswerDirectly, AnswerFromEvidence, AnswerFromPassages, AnswerWithCitations, VerifyAnswer
from .evidence import AddEvidence, CompleteEvidence, SelectEvidence
from .fields import NumberedPassage, NumberedPassages

__all__ = [
    "AddEvidence",
    "AnalyzeQuestion",
    "AnswerDirectly",
    "AnswerFromEvidence",
    "AnswerFromPassages",
    "AnswerWithCitations",
    "CompleteEvidence",
    "NumberedPassage",
    "NumberedPassages",
    "PlanResearch",
    "SelectEvidence",
    "VerifyAnswer",
]
