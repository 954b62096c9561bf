"""The answering agents, which read the likeliest answer from the passages of the prompt, and those that judge and
revise answers, which read the question again and compare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...data.text import title_key
from ...signatures import (
    AnswerDirectly,
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
from .chain import EvidenceChain
from .decompose import decompose
from .engine import skill
from .hops import Answer, same
from .prompt import ParsedPassage, ParsedPrompt
from .reader import is_supported, read
from .spans import relation_terms

UNKNOWN = "unknown"
LEAST = 0.02  # least probability of an answer
NEXT = "What is to be found out next: "  # opens the thought of this engine's decision maker
ATTRIBUTABLE = 0.4  # least confidence at which evidence supports an answer, or contradicts another one

_MUCH = r"(?: (?:so|very) much| a lot| again| everyone| all| there| for (?:your|the|all) \w+| for everything)*"
_SMALL_TALK = (
    (rf"(?:ok(?:ay)? |many )?thanks?(?: you)?{_MUCH}|i appreciate (?:it|that|your help)", "You are welcome."),
    (rf"(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day)){_MUCH}", "Hello!"),
    (r"(?:good ?)?bye|see you(?: later| soon)?|good night|farewell|have a (?:nice|good|great) \w+", "Goodbye!"),
    (r"how are you(?: doing| today)*|how do you do", "I am well, thank you."),
)


@skill(AnswerDirectly, "question -> answer")
def answer_directly(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer small talk; everything else is unknown."""
    if reply := small_talk(prompt.question):
        return {"reasoning": "Small talk needs no look-up.", "answer": reply, "confidence": 1.0}
    return {"reasoning": "There is nothing to read.", "answer": UNKNOWN, "confidence": 0.0}


def small_talk(text: str) -> str | None:
    """The reply to thanks, a greeting or a farewell; None for anything else."""
    said = " ".join(re.findall(r"[a-z]+", text.lower()))
    return next((reply for pattern, reply in _SMALL_TALK if re.fullmatch(pattern, said)), None)


@skill(AnswerFromPassages, AnswerFromContext, AnswerWithCitations)
def answer_question(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer from the passages in the prompt."""
    sub_questions, answers = _read_prompt(prompt)
    if not answers:
        return {"reasoning": "Nothing here tells of it.", "answer": UNKNOWN, "citations": [], "confidence": 0.0}
    best = answers[0]
    reasoning = " ".join(f"{text} {_stated(found)}" for text, found in zip(sub_questions, best.steps, strict=True))
    if best.probability < LEAST:
        return {"reasoning": reasoning, "answer": UNKNOWN, "citations": [], "confidence": 0.0}
    return {
        "reasoning": f"{reasoning} So it is {_stated(best)}",
        "answer": best.text,
        "citations": _cited(best),
        "confidence": _confidence(prompt.question, _passages(prompt), best),
    }


def _stated(answer: Answer) -> str:
    return f"{answer.text or UNKNOWN}{f' [{answer.sentence.id}]' if answer.sentence else ''}."


@skill(VerifyAnswer)
def verify_answer(prompt: ParsedPrompt) -> dict[str, Any]:
    """The probability of the proposed answer among those that the evidence gives, and the likeliest of them."""
    _, answers = _read_prompt(prompt)
    if not answers or not is_supported(prompt.question, _passages(prompt), answers[0]):
        return {"attribution": "extrapolatory", "accuracy": 0.0, "correction": UNKNOWN, "missing": ""}
    best, key = answers[0], title_key(prompt.text("proposed_answer"))
    accuracy = sum(answer.probability for answer in answers if title_key(answer.text) == key)
    verdict = "attributable" if title_key(best.text) == key else "contradictory" if accuracy else "extrapolatory"
    return {"attribution": verdict, "accuracy": round(accuracy, 2), "correction": best.text, "missing": ""}


def _read_prompt(prompt: ParsedPrompt) -> tuple[list[str], Sequence[Answer]]:
    """The sub-questions of a prompt, and the candidate answers in its passages.

    Selected evidence is read alone and together with other passages: alone it distracts less, together it lacks less.
    An answer's probability is the mean of both, the second counting twice.
    """
    sub_questions = prompt.listed("sub_questions") or decompose(prompt.question)
    passages = _passages(prompt)
    selected = tuple(passage for passage in passages if passage.selected)
    others = tuple(passage for passage in passages if not passage.selected)
    if not selected or not others:
        return sub_questions, read(prompt.question, sub_questions, passages)
    found: dict[str, Answer] = {}
    for evidence, share in ((selected + others, 2 / 3), (selected, 1 / 3)):
        for answer in read(prompt.question, sub_questions, evidence):
            known = found.get(key := title_key(answer.text), replace(answer, probability=0.0))
            found[key] = replace(known, probability=known.probability + share * answer.probability)
    return sub_questions, sorted(found.values(), key=lambda answer: -answer.probability)


def _confidence(question: str, passages: Sequence[ParsedPassage], best: Answer) -> float:
    """The probability of an answer; 0 if the passages do not tell what the question takes for granted."""
    return round(best.probability, 2) if is_supported(question, passages, best) else 0.0


def _passages(prompt: ParsedPrompt) -> tuple[ParsedPassage, ...]:
    return prompt.passages("evidence" if prompt.text("evidence") else "passages")


def _cited(best: Answer) -> list[str]:
    """The ids of the sentences that the answer and the steps were read from."""
    sentences = [best.sentence, *(step.sentence for step in best.steps)]
    return list(dict.fromkeys(sentence.id for sentence in sentences if sentence))


# --- PAR-RAG ---------------------------------------------------------------------------------------------------------

_STEP = re.compile(r"#(\d{1,9}) (.*) -> (.*)", re.DOTALL)


def read_trajectory(prompt: ParsedPrompt) -> list[tuple[int, str, str]]:
    """The steps in a prompt's trajectory, "#n question -> answer" each."""
    steps = filter(None, map(_STEP.fullmatch, prompt.listed("trajectory")))
    return [(int(step[1]), step[2], step[3]) for step in steps]


class PassageAnswer(NamedTuple):
    """The answer of some passages to a question, and the ids of the sentences and the passages that state it."""

    answer: str = UNKNOWN
    confidence: float = 0.0
    cited: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        return list(dict.fromkeys(id.partition("s")[0] for id in self.cited))


def read_answer(question: str, passages: Sequence[ParsedPassage]) -> PassageAnswer:
    """Read the answer to a question from passages.

    If a question without parts is answered and no cited passage has all of its words, it has parts that `decompose`
    does not find: then the chain that leads to the answer is cited, too.
    """
    parts = decompose(question)
    found = _likeliest(question, parts, passages)
    if found.answer == UNKNOWN or len(parts) > 1:
        return found
    texts = [" ".join([p.title, *(s.text for s in p.sentences)]) for p in passages if p.number in found.numbers]
    if any(relation_terms(question) <= relation_terms(text) for text in texts):
        return found
    chain = EvidenceChain(question, parts, passages)
    chosen = chain.extend([])
    return found._replace(cited=(*found.cited, *(sentence.id for sentence in chain.sentences(chosen, chosen))))


def _likeliest(question: str, sub_questions: Sequence[str], passages: Sequence[ParsedPassage]) -> PassageAnswer:
    best = next(iter(read(question, sub_questions, passages)), None)
    if best is None or best.probability < LEAST:
        return PassageAnswer()
    return PassageAnswer(best.text, _confidence(question, passages, best), tuple(_cited(best)))


@skill(AnswerStep)
def answer_step(prompt: ParsedPrompt) -> dict[str, Any]:
    """The answer to one step, with the sentences that state it."""
    found = read_answer(prompt.question, prompt.passages("sources"))
    return {"cited": found.numbers, "answer": found.answer if found.cited else UNKNOWN}


@skill(AnswerFromTrajectory)
def answer_from_trajectory(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer from a trajectory; from the passages alone if it is empty."""
    steps = read_trajectory(prompt)
    if not steps:
        return answer_question(prompt)
    found = _likeliest(prompt.question, [question for _, question, _ in steps], prompt.passages("evidence"))
    reasoning = " ".join(f"{question} {answer}." for _, question, answer in steps)
    return {"reasoning": reasoning, "answer": found.answer, "confidence": found.confidence}


@skill(JudgeAccuracy)
def judge_accuracy(prompt: ParsedPrompt) -> dict[str, Any]:
    """The confidence of a second reading; 0 if it reads another answer."""
    second = read_answer(prompt.question, prompt.passages("evidence"))
    return {"accuracy": second.confidence if same(second.answer, prompt.text("answer")) else 0.0}


@skill(JudgeAttribution)
def judge_attribution(prompt: ParsedPrompt) -> dict[str, Any]:
    """Whether a sentence has the answer and most of the question, or a second reading agrees; or reads another one."""
    question, passages, answer = prompt.question, prompt.passages("evidence"), prompt.text("answer")
    second = read_answer(question, passages)
    is_sure, agrees = second.confidence >= ATTRIBUTABLE, same(second.answer, answer)
    if (is_sure and agrees) or _states(answer, question, passages):
        return {"attribution": "attributable"}
    return {"attribution": "contradictory" if is_sure else "extrapolatory"}


@skill(ReviseAnswer)
def revise_answer(prompt: ParsedPrompt) -> dict[str, Any]:
    """Read all sources again, and revise the answer if they clearly tell another one."""
    sources, draft = prompt.passages("sources"), prompt.text("draft")
    second = read_answer(prompt.question, sources)
    if not same(second.answer, draft) and second.confidence >= ATTRIBUTABLE:
        reason = f"{' '.join(f'[{number}]' for number in second.numbers)} tells {second.answer}."
        return {"decision": "revised", "answer": second.answer, "cited": second.numbers, "reason": reason}
    return {"decision": "unconfident", "answer": draft, "cited": [], "reason": "No source tells it better."}


def _states(answer: str, question: str, passages: Sequence[ParsedPassage]) -> bool:
    """Whether a sentence, with the title, has the answer and most of the question."""
    key, asked = f" {title_key(answer)} ", relation_terms(question)
    return any(
        key in f"{sentence.key} {title_key(passage.title)} "
        and 2 * len(asked & relation_terms(f"{passage.title} {sentence.text}")) > len(asked)
        for passage in passages
        for sentence in passage.sentences
    )
