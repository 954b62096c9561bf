"""What each agent is asked: one signature class an agent, and the field types that they share. No logic."""

from .analysis import AnalyzeQuestion, PlanResearch
from .answers import (
    AnswerDirectly,
    AnswerFromCollection,
    AnswerFromEvidence,
    AnswerFromPassages,
    AnswerWithCitations,
    VerifyAnswer,
)
from .evidence import AddEvidence, CompleteEvidence, SelectEvidence
from .fields import NumberedPassage, NumberedPassages
from .knowledge import AnswerFromKnowledge, AssessEvidence, CheckFacts, FilterSpans, ProposeQueries, UpdateKnowledge
from .reasoning import ReasonOn
from .routing import DecideNext, DrawRoadmap, FilterForObjective, FilterPassages, RouteQuestion

__all__ = [
    "AddEvidence",
    "AnalyzeQuestion",
    "AnswerDirectly",
    "AnswerFromCollection",
    "AnswerFromEvidence",
    "AnswerFromKnowledge",
    "AnswerFromPassages",
    "AnswerWithCitations",
    "AssessEvidence",
    "CheckFacts",
    "CompleteEvidence",
    "DecideNext",
    "DrawRoadmap",
    "FilterForObjective",
    "FilterPassages",
    "FilterSpans",
    "NumberedPassage",
    "NumberedPassages",
    "PlanResearch",
    "ProposeQueries",
    "ReasonOn",
    "RouteQuestion",
    "SelectEvidence",
    "UpdateKnowledge",
    "VerifyAnswer",
]
