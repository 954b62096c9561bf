"""Credit for single agents: what a call of an agent is worth, and which agent costs the points.

    found = diagnose(program, questions, [metrics.answer_f1, metrics.evidence_f1])
    print(found.costs("selector", "evidence_f1"))

A program is run once and its calls are recorded. A `Replay` runs it again with another reply to some of them: the calls
before get their recorded replies, and so does every later call with an input that was seen, so only what the change
reaches is asked for. Two questions are answered with it:

- `diagnose`: how would the scores change if one agent always gave the reply that the annotations ask for?
- `credit`: of one call, how good is the reply against others at the same place? The value of a reply is the mean score
  of the runs that it leads to (Monte Carlo, as in C-3PO, arXiv 2502.06205).

Any DSPy program can be credited.
"""

from .actions import REFERENCES, Action, CallCredit, credit
from .costs import RETRIEVAL, Diagnosis, QuestionCosts, diagnose, roles_of
from .replay import Call, Key, Replay, Rollout

__all__ = [
    "REFERENCES",
    "RETRIEVAL",
    "Action",
    "Call",
    "CallCredit",
    "Diagnosis",
    "Key",
    "QuestionCosts",
    "Replay",
    "Rollout",
    "credit",
    "diagnose",
    "roles_of",
]
