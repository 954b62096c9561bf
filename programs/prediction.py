"""The contract that every program keeps: what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Hit, Passage
from ..data.text import clean
from ..signatures.replies import read_probability
from .trace import Answered, Stopped, Trace

UNKNOWN = "unknown"
"""The answer that says that there is none."""


_NO_ANSWER = ("", "None", "null")  # how a JSON null arrives


class QuestionError(PolyhopError, ValueError):
    """The question cannot be asked: it is empty or not a text."""


def check_question(question: str) -> str:
    """The question without surrounding white space.

    Raises:
        QuestionError: it is not a string, or has no letter or digit in it.
    """
    if not isinstance(question, str):
        raise QuestionError(f"a question is a string, got {type(question).__name__}")
    if not any(character.isalnum() for character in question):
        raise QuestionError(f"the question {question!r} has no word in it: ask something")
    return clean(question).strip()


def conclude(
    reply: dspy.Prediction, trace: Trace, *, evidence: Sequence[Evidence] = (), seen: Iterable[Hit] = (), stop: str
) -> dspy.Prediction:
    """Close a run: turn the answering agent's reply into the prediction that every program returns.

    Returns a prediction with
        answer: a short string, ``"unknown"`` if there is none;
        evidence: a tuple of `Evidence`, most useful first;
        ranking: a tuple of `Passage`, every passage seen, best first: those with evidence, then the others as found;
        confidence: the probability in [0, 1] that the answer is right, as the program sees it;
        trace: the `Trace` of typed steps;
        stop_reason: why the program stopped, one or two words.
    """
    answer = " ".join(str(reply.answer).split())
    if answer in _NO_ANSWER:
        answer = UNKNOWN
    confidence = read_probability(reply.confidence)
    trace.add(Answered(answer, str(reply.reasoning).strip(), confidence))
    trace.add(Stopped(stop))
    ranked: dict[str, Passage] = {item.passage.id: item.passage for item in evidence}
    for hit in seen:
        ranked.setdefault(hit.passage.id, hit.passage)
    return dspy.Prediction(
        answer=answer,
        evidence=tuple(evidence),
        ranking=tuple(ranked.values()),
        confidence=confidence,
        trace=trace,
        stop_reason=stop,
    )
