"""PAR-RAG's judges and its reviser: each reads the question again and compares the answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....data.text import title_key
from ....signatures import JudgeAccuracy, JudgeAttribution, ReviseAnswer
from ..hops import same
from ..prompt import ParsedPassage, ParsedPrompt
from ..registry import skill
from ..vocabulary import relation_terms
from .answer import NO_ANSWER, UNKNOWN, PassageAnswer, read_answer

MARGIN = 0.1  # least lead in confidence of a better answer
ATTRIBUTABLE = 0.4  # least confidence at which cited evidence supports an answer


@skill(JudgeAccuracy)
def judge_accuracy(prompt: ParsedPrompt) -> dict[str, Any]:
    """The confidence of a second reading if it agrees; else at most what it leaves."""
    sources, answer = prompt.passages("evidence"), prompt.text("answer")
    second = read_answer(prompt.question, sources)
    if same(second.answer, answer):
        return {"accuracy": second.confidence}
    own = _support(answer, prompt.question, sources)
    return {"accuracy": round(min(own.confidence, 1 - second.confidence), 2)}


@skill(JudgeAttribution)
def judge_attribution(prompt: ParsedPrompt) -> dict[str, Any]:
    """Whether a cited sentence has the answer and what is asked, or another answer that fits better."""
    question, passages, answer = prompt.question, prompt.passages("evidence"), prompt.text("answer")
    second = read_answer(question, passages)
    agrees = same(second.answer, answer)
    if (agrees and second.confidence >= ATTRIBUTABLE) or _states(answer, question, passages):
        return {"attribution": "attributable"}
    better = not agrees and second.confidence >= _support(answer, question, passages).confidence + MARGIN
    contradicts = better and _states(second.answer, question, passages)
    return {"attribution": "contradictory" if contradicts else "extrapolatory"}


@skill(ReviseAnswer)
def revise_answer(prompt: ParsedPrompt) -> dict[str, Any]:
    """Read all sources again, and revise the answer if another one is clearly more confident."""
    sources, draft = prompt.passages("sources"), prompt.text("draft")
    second = read_answer(prompt.question, sources)
    known = second.answer != UNKNOWN and not same(second.answer, draft)
    if known and second.confidence >= _support(draft, prompt.question, sources).confidence + MARGIN:
        numbers = list(dict.fromkeys(id.partition("s")[0] for id in second.cited))
        reason = f"{' '.join(f'[{number}]' for number in numbers)} tells {second.answer}."
        return {"decision": "revised", "answer": second.answer, "cited": numbers, "reason": reason}
    return {"decision": "unconfident", "answer": draft, "cited": [], "reason": "No source tells it better."}


def _states(answer: str, question: str, passages: Iterable[ParsedPassage]) -> bool:
    """Whether a sentence, with the title, has the answer and most of the question."""
    key, asked = f" {title_key(answer)} ", relation_terms(question)
    return any(
        key in f"{sentence.key} {title_key(passage.title)} "
        and 2 * len(asked & relation_terms(f"{passage.title} {sentence.text}")) > len(asked)
        for passage in passages
        for sentence in passage.sentences
    )


def _support(answer: str, question: str, passages: Sequence[ParsedPassage]) -> PassageAnswer:
    """The reading of the passages that mention an answer, if it gives that answer."""
    key = f" {title_key(answer)} "
    texts = [(each, [f" {title_key(each.title)} ", *(row.key for row in each.sentences)]) for each in passages]
    mentioning = [each for each, keys in texts if any(key in text for text in keys)]
    found = read_answer(question, mentioning) if key.strip() and mentioning else NO_ANSWER
    return found if same(found.answer, answer) else NO_ANSWER
