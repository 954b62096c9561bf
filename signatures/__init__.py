"""What each agent is asked: one signature class an agent, and the field types that they share. No logic."""

from .analysis import AnalyzeQuestion
from .answers import AnswerDirectly, AnswerFromCollection, AnswerFromEvidence, AnswerFromPassages
from .evidence import AddEvidence, SelectEvidence
from .fields import NumberedPassage, NumberedPassages
from .reasoning import ReasonOn
from .routing import DecideNext, DrawRoadmap, FilterForObjective, FilterPassages, RouteQuestion

__all__ = [
    "AddEvidence",
    "AnalyzeQuestion",
    "AnswerDirectly",
    "AnswerFromCollection",
    "AnswerFromEvidence",
    "AnswerFromPassages",
    "DecideNext",
    "DrawRoadmap",
    "FilterForObjective",
    "FilterPassages",
    "NumberedPassage",
    "NumberedPassages",
    "ReasonOn",
    "RouteQuestion",
    "SelectEvidence",
]
