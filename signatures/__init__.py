"""What each agent is asked: one signature class an agent, and the field types that they share. No logic."""

from .analysis import AnalyzeQuestion, PlanResearch
from .answers import (
    AnswerDirectly,
    AnswerFromCollection,
    AnswerFromEvidence,
    AnswerFromPassages,
    AnswerFromTrajectory,
    AnswerStep,
    AnswerWithCitations,
    VerifyAnswer,
)
from .evidence import AddEvidence, CompleteEvidence, SelectEvidence, SelectWithoutBridging
from .fields import NumberedPassage, NumberedPassages
from .knowledge import AnswerFromKnowledge, AssessEvidence, CheckFacts, FilterSpans, ProposeQueries, UpdateKnowledge
from .planning import PlanSteps, RefineQuestion
from .reasoning import ReasonOn
from .review import JudgeAccuracy, JudgeAttribution, ReviseAnswer
from .routing import DecideNext, DrawRoadmap, FilterForObjective, FilterPassages, RouteQuestion

__all__ = [
    "AddEvidence",
    "AnalyzeQuestion",
    "AnswerDirectly",
    "AnswerFromCollection",
    "AnswerFromEvidence",
    "AnswerFromKnowledge",
    "AnswerFromPassages",
    "AnswerFromTrajectory",
    "AnswerStep",
    "AnswerWithCitations",
    "AssessEvidence",
    "CheckFacts",
    "CompleteEvidence",
    "DecideNext",
    "DrawRoadmap",
    "FilterForObjective",
    "FilterPassages",
    "FilterSpans",
    "JudgeAccuracy",
    "JudgeAttribution",
    "NumberedPassage",
    "NumberedPassages",
    "PlanResearch",
    "PlanSteps",
    "ProposeQueries",
    "ReasonOn",
    "RefineQuestion",
    "ReviseAnswer",
    "RouteQuestion",
    "SelectEvidence",
    "SelectWithoutBridging",
    "UpdateKnowledge",
    "VerifyAnswer",
]
