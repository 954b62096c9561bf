"""What each agent is asked: one signature class an agent, and the field types that they share. No logic."""

from .analysis import AnalyzeQuestion
from .answers import AnswerDirectly, AnswerFromEvidence, AnswerFromPassages
from .evidence import AddEvidence, SelectEvidence
from .fields import NumberedPassage, NumberedPassages

__all__ = [
    "AddEvidence",
    "AnalyzeQuestion",
    "AnswerDirectly",
    "AnswerFromEvidence",
    "AnswerFromPassages",
    "NumberedPassage",
    "NumberedPassages",
    "SelectEvidence",
]
