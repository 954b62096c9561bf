"""The answering agents: they read the passages of the prompt and return the likeliest answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ....data.text import title_key
from ....signatures import (
    AnswerFromContext,
    AnswerFromPassages,
    AnswerFromTrajectory,
    AnswerStep,
    AnswerWithCitations,
    VerifyAnswer,
)
from ..chain import EvidenceChain
from ..decompose import decompose
from ..hops import Answer
from ..premise import is_supported
from ..prompt import ParsedPassage, ParsedPrompt
from ..reader import read
from ..registry import skill
from ..vocabulary import relation_terms

UNKNOWN = "unknown"
LEAST = 0.02  # least probability of an answer
NEXT = "What is to be found out next: "  # opens the thought of this engine's decision maker

_STEP = re.compile(r"#(\d{1,9}) (.*) -> (.*)", re.DOTALL)


@skill(
    AnswerFromPassages,
    AnswerFromContext,
    AnswerWithCitations,
)
def answer_question(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer from the passages in the prompt."""
    sub_questions, answers = _read_prompt(prompt)
    if not answers:
        return {"reasoning": "Nothing here tells of it.", "answer": UNKNOWN, "citations": [], "confidence": 0.0}
    best = answers[0]
    reasoning = " ".join(
        f"{text} {found.text or UNKNOWN}{f' [{found.sentence.id}]' if found.sentence else ''}."
        for text, found in zip(sub_questions, best.steps, strict=True)
    )
    if best.probability < LEAST:
        return {"reasoning": reasoning, "answer": UNKNOWN, "citations": [], "confidence": 0.0}
    return {
        "reasoning": f"{reasoning} So it is {best.text}{f' [{best.sentence.id}]' if best.sentence else ''}.",
        "answer": best.text,
        "citations": _cited(best),
        "confidence": _confidence(prompt.question, _passages(prompt), best),
    }


@skill(VerifyAnswer)
def verify_answer(prompt: ParsedPrompt) -> dict[str, Any]:
    """The probability of the proposed answer among those that the evidence gives, and the likeliest of them."""
    _, answers = _read_prompt(prompt)
    if not answers:
        return {"attribution": "extrapolatory", "accuracy": 0.0, "correction": UNKNOWN, "missing": ""}
    best, key = answers[0], title_key(prompt.text("proposed_answer"))
    accuracy = sum(answer.probability for answer in answers if title_key(answer.text) == key)
    if not is_supported(prompt.question, _passages(prompt), best):
        return {"attribution": "extrapolatory", "accuracy": 0.0, "correction": UNKNOWN, "missing": ""}
    verdict = "attributable" if title_key(best.text) == key else "contradictory" if accuracy else "extrapolatory"
    return {"attribution": verdict, "accuracy": round(accuracy, 2), "correction": best.text, "missing": ""}


def _read_prompt(prompt: ParsedPrompt) -> tuple[list[str], Sequence[Answer]]:
    """The sub-questions of a prompt, and the candidate answers in its passages.

    Selected evidence is read alone and together with other passages: alone it distracts less, together it lacks less.
    An answer's probability is the mean of both, the second counting twice.
    """
    sub_questions = prompt.listed("sub_questions") or decompose(prompt.question)
    passages = _passages(prompt)
    others = [passage for passage in passages if not passage.selected]
    if len(others) < len(passages):
        passages = tuple(passage for passage in passages if passage.selected)
    else:
        others = []  # nothing is marked
    alone = read(prompt.question, sub_questions, passages)
    if not others:
        return sub_questions, alone
    together = read(prompt.question, sub_questions, (*passages, *others))
    found: dict[str, Answer] = {}
    for answers, share in ((together, 2 / 3), (alone, 1 / 3)):
        for answer in answers:
            key = title_key(answer.text)
            known = found.get(key, replace(answer, probability=0.0))
            found[key] = replace(known, probability=known.probability + share * answer.probability)
    return sub_questions, sorted(found.values(), key=lambda answer: -answer.probability)


def _confidence(question: str, passages: Sequence[ParsedPassage], best: Answer) -> float:
    """The probability of an answer; 0 if the passages do not tell what the question takes for granted."""
    return round(best.probability, 2) if is_supported(question, passages, best) else 0.0


def _passages(prompt: ParsedPrompt) -> tuple[ParsedPassage, ...]:
    return prompt.passages("evidence" if prompt.text("evidence") else "passages")


def _cited(best: Answer) -> list[str]:
    """The ids of the sentences that the steps and the answer were read from."""
    sentences = [*(step.sentence for step in best.steps), best.sentence]
    return list(dict.fromkeys(sentence.id for sentence in sentences if sentence))


# --- PAR-RAG ---------------------------------------------------------------------------------------------------------


class TrajectoryStep(NamedTuple):
    """An answered step of a trajectory."""

    number: int
    question: str
    answer: str


def read_trajectory(prompt: ParsedPrompt) -> list[TrajectoryStep]:
    """The steps in a prompt's trajectory, "#n question -> answer" each."""
    steps = filter(None, map(_STEP.fullmatch, prompt.listed("trajectory")))
    return [TrajectoryStep(int(step[1]), step[2], step[3]) for step in steps]


@dataclass(frozen=True)
class PassageAnswer:
    """The answer of some passages to a question, and the ids of the sentences that state it."""

    answer: str
    confidence: float
    cited: tuple[str, ...] = ()


NO_ANSWER = PassageAnswer(UNKNOWN, 0.0)


def read_answer(question: str, passages: Sequence[ParsedPassage]) -> PassageAnswer:
    """Read the answer to a question from passages.

    If a question without parts is answered and no cited passage has all of its words, it has parts that `decompose`
    does not find: then the chain that leads to the answer is cited, too.
    """
    parts = decompose(question)
    found = _likeliest(question, parts, passages)
    if found.answer == UNKNOWN or len(parts) > 1:
        return found
    numbers = {id.partition("s")[0] for id in found.cited}
    texts = (" ".join([each.title, *(s.text for s in each.sentences)]) for each in passages if each.number in numbers)
    if any(relation_terms(question) <= relation_terms(text) for text in texts):
        return found
    chain = EvidenceChain(question, tuple(parts), passages)
    chosen = chain.extend([])
    ids = [*found.cited, *(sentence.id for sentence in chain.sentences(chosen, chosen))]
    return replace(found, cited=tuple(dict.fromkeys(ids)))


def _likeliest(question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> PassageAnswer:
    best = next(iter(read(question, sub_questions, passages)), None)
    if best is None or best.probability < LEAST:
        return NO_ANSWER
    return PassageAnswer(best.text, _confidence(question, passages, best), tuple(_cited(best)))


@skill(AnswerStep)
def answer_step(prompt: ParsedPrompt) -> dict[str, Any]:
    """The answer to one step, with the sentences that state it."""
    found = read_answer(prompt.question, prompt.passages("sources"))
    return {
        "cited": list(dict.fromkeys(id.partition("s")[0] for id in found.cited)),
        "answer": found.answer if found.cited else UNKNOWN,
    }


@skill(AnswerFromTrajectory)
def answer_from_trajectory(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer from a trajectory; from the passages alone if it is empty."""
    steps = read_trajectory(prompt)
    if not steps:
        return answer_question(prompt)
    found = _likeliest(prompt.question, [step.question for step in steps], prompt.passages("evidence"))
    reasoning = " ".join(f"{step.question} {step.answer}." for step in steps)
    return {"reasoning": reasoning, "answer": found.answer, "confidence": found.confidence}
