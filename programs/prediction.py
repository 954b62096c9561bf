"""The contract that every program keeps: what goes in and what comes out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Hit, Passage
from ..data.text import clean
from ..signatures.replies import read_probability
from .citations import cut_citations
from .trace import Answered, Decomposed, Stopped, Trace

UNKNOWN = "unknown"
"""The answer that says that there is none."""

LONGEST_QUESTION = 5_000
"""Characters; every agent is shown the question, and what is longer is a document."""

LONGEST_ANSWER = 400
"""Characters; a longer one is a model that runs away."""

MOST_SUB_QUESTIONS = 10
"""A longer list is a model that runs away, too."""

_NO_ANSWER = re.compile(
    r"None|null|"  # how a JSON null arrives
    r"(?i:\W*(?:unknown|(?:I|we) (?:don['’]t|do not) know|(?:not enough|insufficient) information|n/a|unanswerable|"
    r"(?:it )?cannot be (?:determined|told)|not (?:known|stated|mentioned|specified|given|found))"
    r"(?:\W*|(?:\s*[-–(:;,.]\s*|\s+(?:in|from|by|as|since|because)\s).*\b(?:evidence|sources?|passages?|context)\b.*))"
)


class QuestionError(PolyhopError, ValueError):
    """The question cannot be asked: it is empty or not a text."""


def check_question(question: str) -> str:
    """The question without surrounding white space.

    Raises:
        QuestionError: it is not a string, has no letter or digit in it, or is longer than `LONGEST_QUESTION`.
    """
    if not isinstance(question, str):
        raise QuestionError(f"a question is a string, got {type(question).__name__}")
    if not any(character.isalnum() for character in question):
        raise QuestionError(f"the question {question!r} has no word in it: ask something")
    if len(question) > LONGEST_QUESTION:
        raise QuestionError(
            f"a question of {len(question):,} characters: ask in {LONGEST_QUESTION:,} at the most; "
            "a text to be read is indexed, or passed as pool=[...]"
        )
    return clean(question).strip()


def decomposed(replied: Sequence[str], trace: Trace, route: str = "") -> list[str]:
    """The sub-questions of an analyzer's reply, recorded; too many of them are cut off."""
    asked = [" ".join(text.split()) for text in replied if text.strip()]
    asked, surplus = asked[:MOST_SUB_QUESTIONS], asked[MOST_SUB_QUESTIONS:]
    trace.add(Decomposed(tuple(asked), tuple(surplus), route=route))
    return asked


def read_answer(reply: dspy.Prediction, trace: Trace, invalid: tuple[str, ...] = ()) -> tuple[str, float]:
    """The answer and the confidence in an answering agent's reply (answer, reasoning, confidence); recorded, together
    with what else of the reply could not be used.

    An answer is one line of at most `LONGEST_ANSWER` characters; what says that there is none is ``"unknown"``, with
    confidence 0.
    """
    answer, cut = tidy(reply.answer)
    confidence = 0.0 if answer == UNKNOWN else read_probability(reply.confidence)
    trace.add(Answered(answer, str(reply.get("reasoning") or "").strip(), confidence, (*cut, *invalid)))
    return answer, confidence


def tidy(answer: object) -> tuple[str, tuple[str, ...]]:
    """An answer on one line, and what had to be cut off it. Whatever says that there is none becomes ``"unknown"``."""
    text, _ = cut_citations(" ".join(str(answer).split()))
    if not text or _NO_ANSWER.fullmatch(text):
        return UNKNOWN, ()
    if len(text) <= LONGEST_ANSWER:
        return text, ()
    return text[:LONGEST_ANSWER].rsplit(" ", 1)[0], (f"an answer of {len(text):,} characters, cut",)


def nothing_found(trace: Trace) -> dspy.Prediction:
    """The end of a run whose searches found no passage: nobody is asked to read nothing."""
    return conclude(UNKNOWN, 0.0, trace, stop="nothing found")


def conclude(
    answer: str,
    confidence: float,
    trace: Trace,
    *,
    evidence: Sequence[Evidence] = (),
    seen: Iterable[Hit] = (),
    stop: str,
) -> dspy.Prediction:
    """Close a run: the prediction that every program returns.

    Returns a prediction with
        answer: a short string, ``"unknown"`` if there is none;
        evidence: a tuple of `Evidence`, most useful first;
        ranking: a tuple of `Passage`, every passage seen, best first: those with evidence, then the others as found;
        confidence: the probability in [0, 1] that the answer is right, as the program sees it;
        trace: the `Trace` of typed steps;
        stop_reason: why the program stopped, one or two words.
    """
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
