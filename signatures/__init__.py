"""The prompts: one signature class per agent, and the field types that they share. No logic."""

# mypy: implicit-reexport
# ruff: noqa: F401

from .answers import (
    AnswerDirectly,
    AnswerFromCollection,
    AnswerFromContext,
    AnswerFromPassages,
    AnswerFromTrajectory,
    AnswerStep,
    AnswerWithCitations,
    JudgeAccuracy,
    JudgeAttribution,
    ReviseAnswer,
    VerifyAnswer,
)
from .drafting import WriteQuestion
from .evidence import (
    AddEvidence,
    AssessEvidence,
    CheckFacts,
    FilterForObjective,
    FilterPassages,
    FilterSpans,
    ProposeQueries,
    SelectAnswers,
    SelectEvidence,
    SelectSet,
    UpdateKnowledge,
)
from .fields import NumberedPassage, NumberedPassages
from .planning import (
    AnalyzeQuestion,
    DecideNext,
    DrawRoadmap,
    PlanSteps,
    ReasonOn,
    RefineQuestion,
    RouteQuestion,
)
