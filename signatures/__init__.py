"""What each agent is asked: one signature class an agent, and the field types that they share. No logic."""

from .analysis import AnalyzeQuestion
from .answers import AnswerDirectly, AnswerFromEvidence, AnswerFromPassages
from .evidence import AddEvidence, SelectEvidence
from .fields import NumberedPassage, NumberedPassages
from .knowledge import (
    AnswerFromKnowledge,
    AssessEvidence,
    CheckFacts,
    FilterSpans,
    ProposeQueries,
    UpdateKnowledge,
)

__all__ = [
    "AddEvidence",
    "AnalyzeQuestion",
    "AnswerDirectly",
    "AnswerFromEvidence",
    "AnswerFromKnowledge",
    "AnswerFromPassages",
    "AssessEvidence",
    "CheckFacts",
    "FilterSpans",
    "NumberedPassage",
    "NumberedPassages",
    "ProposeQueries",
    "SelectEvidence",
    "UpdateKnowledge",
]
