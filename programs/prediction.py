"""What goes into a program and what comes out: the question, and how agents' replies become a prediction."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Literal

import dspy

from ..data.errors import PolyhopError
from ..data.passages import Evidence, Passage
from ..data.text import clean, has_phrase
from ..signatures.fields import is_nothing, read_probability, read_texts
from .candidates import cut_citations
from .run import current, record
from .trace import Answered, Decomposed, Revised, Stopped

Status = Literal[
    "verified", "supported", "in doubt", "not supported", "contradicted", "not checked", "model knowledge", "no answer"
]
"""How an answer was checked: a verifier found that the passages prove it, that a sentence states it, that it is hardly
what was asked for, that they do not state it, or that they say otherwise; no verifier read it; it does not come from
the passages; there is none."""

STOPS = {
    "stable": "a round changed nothing",
    "no gain": "a round added nothing new",
    "complete": "every part of the question has an answer",
    "rounds": "the limit of rounds",
    "steps": "the limit of steps",
    "sentences": "the limit of sentences",
    "documents": "the limit of passages",
    "sufficient": "an agent found the evidence sufficient",
    "enough": "an agent found the passages enough",
    "answered": "the reasoning names an answer",
    "agreed": "two readings gave the same answer",
    "sure": "the reader is sure of its answer",
    "finished": "the agent finished",
    "plan done": "each step of the plan is answered",
    "single pass": "one search and one answer, as the program does",
    "no retrieval": "answered without a search",
    "oracle": "the gold passages were given",
    "nothing found": "the searches found nothing",
    "nothing selected": "no passage was selected",
    "nothing new": "the next search would find nothing new",
    "no new query": "no agent has another query",
    "confident": "the judges accept the answer",
    "unconfident": "the judges accept no answer",
    "abstained": "the answer was not sure enough",
    "end": "the program ended",
}
"""Why a program stopped, in words."""

UNKNOWN = "unknown"
"""The answer of a program that has none."""

MAX_QUESTION = 5_000
"""Characters of a question; a longer text is a document."""

MAX_LINE = 400
"""Characters of an answer, a query or a thought; a longer one is a runaway generation."""

MAX_SUB_QUESTIONS = 10
"""Sub-questions or sub-goals of one plan."""

_NO_ANSWER = re.compile(
    r"None|null|"  # a JSON null
    r"(?i:\W*(?:unknown|(?:I|we) (?:don['’]t|do not) know|(?:not enough|insufficient) information|n/a|unanswerable|"
    r"(?:it )?cannot be (?:determined|told)|not (?:known|stated|mentioned|specified|given|found))"
    r"(?:\W*|(?:\s*[-–(:;,.]\s*|\s+(?:in|from|by|as|since|because)\s).*\b(?:evidence|sources?|passages?|context)\b.*))"
)
_SAID_UNKNOWN = re.compile(
    r"\W*(?:no answer|none|(?:there is )?(?:no|not enough) (?:answer|information)\b.*|it is unknown|"
    r"not specified in the text|I cannot answer(?: this question)?|"
    r"(?:none of )?(?:the |no )?(?:provided )?(?:evidence|passages?|sources?|text|context) "
    r"(?:do(?:es)? not|don['’]t|doesn['’]t) (?:say|tell|state|mention|specify|provide|contain|give)\b.*)\W*",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(
    r"(?:(?:so|thus|therefore),? )?(?:the (?:final |short )?answer is:?|(?:the )?(?:final |short )?answer:)\s+(?=\S)",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"(\*\*|__|`|\*)(\S(?:.*\S)?)\1(\.?)")
_ABBREVIATED = re.compile(
    r"(?:\s(?:Jr|Sr|Inc|Ltd|Co|Corp|Bros|St|Mt|Dr|Rev|Gen|Col|Capt|Lt|Sgt|Ave|Blvd|Rd|Esq|vs|etc|in|ft)|\b\w|\.\w+)\.\Z"
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "<": ">", "`": "`"}


class QuestionError(PolyhopError, ValueError):
    """The question is not a text, has no word, or is too long."""


def check_question(question: str) -> str:
    """The question without surrounding white space.

    Raises:
        QuestionError: it is not a string, has no letter or digit, or is longer than `MAX_QUESTION`.
    """
    if not isinstance(question, str) or not any(map(str.isalnum, question)):
        raise QuestionError(f"a question is a text with words, got {question!r}")
    if len(question) > MAX_QUESTION:
        raise QuestionError(
            f"a question of {len(question):,} characters; the limit is {MAX_QUESTION:,}. Index a text that is to be "
            "read, or pass it as pool=[...]"
        )
    return clean(question).strip()


# --- replies ----------------------------------------------------------------------------------------------------------


def decomposed(replied: Sequence[str]) -> list[str]:
    """Record and return the sub-questions of a reply, at most `MAX_SUB_QUESTIONS`."""
    texts = list(dict.fromkeys(read_texts(replied)))
    kept, surplus = texts[:MAX_SUB_QUESTIONS], texts[MAX_SUB_QUESTIONS:]
    record(Decomposed(tuple(kept), tuple(surplus)))
    return kept


def read_answer(reply: dspy.Prediction, invalid: tuple[str, ...] = ()) -> tuple[str, float]:
    """Record and return the answer and confidence of a reply; the confidence of ``"unknown"`` is 0."""
    answer, cut = tidy(reply.answer)
    confidence = 0.0 if answer == UNKNOWN else read_probability(reply.confidence)
    record(Answered(answer, str(reply.get("reasoning") or "").strip(), confidence, (*cut, *invalid)))
    return answer, confidence


def tidy(answer: object) -> tuple[str, tuple[str, ...]]:
    """An answer on one line of at most `MAX_LINE` characters, without citations, and the start of what was cut off.

    "The answer is", bold, quotes and a final stop are cut off. Any way to say that there is no answer becomes
    ``"unknown"``.
    """
    text, _ = cut_citations(" ".join(str(answer).split()))
    text = text[opening.end() :] if (opening := _INTRODUCED.match(text)) else text
    text = wrapped[2] if (wrapped := _WRAPPED.fullmatch(text)) and wrapped[1] not in wrapped[2] else text
    if not text.startswith("<"):
        text = _unquoted(text)
    if text.endswith(".") and not text.endswith("..") and not _ABBREVIATED.search(text):
        text = text[:-1]
    if not text or _NO_ANSWER.fullmatch(text) or _SAID_UNKNOWN.fullmatch(text):
        return UNKNOWN, ()
    return one_line(text)


def one_line(text: object) -> tuple[str, tuple[str, ...]]:
    """A text on one line of at most `MAX_LINE` characters, and the start of what was cut off."""
    line = " ".join(str(text or "").split())
    if len(line) <= MAX_LINE:
        return line, ()
    kept = line[:MAX_LINE].rpartition(" ")[0] or line[:MAX_LINE]
    return kept, (line[len(kept) :].strip()[:80],)


def read_query(text: object) -> tuple[str, tuple[str, ...]]:
    """A query without surrounding quotes, empty for "none", and the start of what was cut off."""
    query, invalid = one_line(cut_citations(str(text or ""))[0])
    query = _unquoted(query)
    return ("", ()) if is_nothing(query) else (query, invalid)


def _unquoted(text: str) -> str:
    """A text without the quotes around it, unless they also stand within."""
    is_quoted = len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and not {text[0], text[-1]} & set(text[1:-1])
    return text[1:-1].strip() if is_quoted else text


# --- predictions ------------------------------------------------------------------------------------------------------


class Prediction(dspy.Prediction):
    """What every program returns; see `conclude`. In a notebook it is shown with its evidence."""

    @property
    def told(self) -> str:
        """The answer as people read it: a withheld one as "unknown (perhaps: ...)"."""
        return withheld(self.answer, self.guess)

    def to_json(self) -> str:
        """One JSON object. Sentences are numbered from 0; null is the whole passage."""
        return json.dumps(to_record(self), ensure_ascii=False)

    def __repr__(self) -> str:
        return f"Prediction(answer={self.told!r}, confidence={self.confidence:.2f}, {len(self.evidence)} evidence)"

    def __str__(self) -> str:
        """The answer and its evidence, as an agent reads the result of a tool."""
        return "\n".join([self.told, *(f"- {item.passage.title}: {item.text}" for item in self.evidence)])

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{escape(item.passage.title)}</th><td>{escape(item.text)}</td></tr>" for item in self.evidence)
        return (
            f"<div><strong>{escape(self.told)}</strong> <small>confidence {self.confidence:.2f} · {self.status} · "
            f"{escape(self.stop_reason)}</small><table>{''.join(rows)}</table></div>"
        )


def withheld(answer: str, guess: str) -> str:
    """An answer, with what was withheld."""
    return f"{answer} (perhaps: {guess})" if guess else answer


def to_record(prediction: dspy.Prediction) -> dict[str, Any]:
    """A prediction as a JSON object; see `Prediction.to_json`."""
    trace = prediction.trace
    return {
        "answer": prediction.answer,
        "guess": prediction.get("guess", ""),
        "confidence": prediction.confidence,
        "status": prediction.status,
        "evidence": [
            {"passage_id": e.passage.id, "title": e.passage.title, "sentence": e.sentence, "text": e.text}
            for e in prediction.evidence
        ],
        "ranking": [passage.id for passage in prediction.ranking],
        "trace": trace.to_records(),
        "stop_reason": prediction.stop_reason,
        "lm_calls": trace.lm_calls,
        "lm_calls_critical_path": trace.lm_calls_critical_path,
        "searches": trace.searches,
        "dropped": trace.dropped,
    }


def nothing_found() -> dspy.Prediction:
    """The prediction of a run whose searches found no passage."""
    return conclude(UNKNOWN, 0.0, stop="nothing found")


def conclude(
    answer: str,
    confidence: float,
    *,
    evidence: Sequence[Evidence] = (),
    stop: str,
    status: Status = "not checked",
) -> Prediction:
    """The prediction of the current run. An answer below the program's ``abstain_below`` becomes "unknown" and is kept
    as the guess.

    Returns:
        A prediction with ``answer`` (short; ``"unknown"`` if there is none), ``guess`` (the answer that was withheld,
        else empty; ``confidence`` and ``evidence`` are its own), ``evidence`` (a tuple of `Evidence`, most useful
        first), ``ranking`` (a tuple of `Passage`, all that were seen: first those with evidence, then the others in
        retrieval order), ``confidence`` (the probability in [0, 1] that the answer is right), ``status`` (a `Status`),
        ``trace`` (a `Trace`) and ``stop_reason`` (one or two words).
    """
    run, guess = current(), ""
    if answer != UNKNOWN and confidence < run.abstain_below:
        record(Revised(UNKNOWN, f"{answer} is not sure enough"))
        guess, answer, stop = answer, UNKNOWN, "abstained"
    record(Stopped(stop))
    ranked: dict[str, Passage] = {item.passage.id: item.passage for item in evidence}
    ranked |= {id: passage for id, passage in run.passages.items() if id not in ranked}
    if answer == UNKNOWN:
        status = "no answer"
    elif status == "not checked" and not (evidence or any(has_phrase(seen.text, answer) for seen in ranked.values())):
        status = "model knowledge"
    return Prediction(
        answer=answer,
        guess=guess,
        evidence=tuple(evidence),
        ranking=tuple(ranked.values()),
        confidence=confidence,
        status=status,
        trace=run.trace,
        stop_reason=stop,
    )
