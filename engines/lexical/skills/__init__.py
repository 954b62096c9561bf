"""The skills: functions that turn a prompt into the values of a signature's output fields."""

from . import (
    add,
    analyze,
    answer,
    decide,
    filter,
    knowledge,
    known,
    plan,
    reason,
    review,
    route,
    select,
    trajectory,
    verify,
)

__all__ = [
    "add",
    "analyze",
    "answer",
    "decide",
    "filter",
    "knowledge",
    "known",
    "plan",
    "reason",
    "review",
    "route",
    "select",
    "trajectory",
    "verify",
]
