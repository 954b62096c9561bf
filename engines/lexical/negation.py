"""Negation: whether a sentence denies what a question affirms, affirms what it denies, or states the opposite."""

from __future__ import annotations

import re
from functools import lru_cache

from .question import mask
from .spans import quoted, relation_term, relation_terms

DENIED = 0.2  # most probability of an answer from a sentence that denies something else than the question

_CUES = (
    r"not(?! only\b| to be confused)|never|cannot|no(?: longer)?|without|neither|nor|none of|except(?: for)?|other than"
    r"|apart from|besides|unable to"
)
_CUE = re.compile(rf"(?:n['’]t|\b(?=[a-z]|\w+ [a-z]|Besides|Except|Apart)(?i:{_CUES}))\b")
_CONDITION = re.compile(r"\b(?:if|when|whenever|where|unless|until|whether)\b[^,.;:()]*$", re.I)  # "if it is not set"
_ENDS = re.compile(r"[.?!](?: |$)|[;:()]|, |\b(?:but|while|whereas|although|though)\b")


@lru_cache(maxsize=2048)
def denied(text: str) -> frozenset[str]:
    """The terms that a text denies or excludes: the first behind each "not", "without" or "other than"."""
    found = set[str]()
    for cue in _CUE.finditer(text):
        if not _CONDITION.search(text[: cue.start()]):
            behind = re.findall(r"\w+", _ENDS.split(text[cue.end() :], maxsplit=1)[0])
            terms = [term for word in behind if not word.endswith("ly") and (term := relation_term(word))]
            found.update(terms[:1])
    return frozenset(found)


def denied_by(question: str) -> frozenset[str]:
    """The terms that a question denies outside of quotations."""
    for title in quoted(question):
        question = question.replace(title.text, " ")
    return denied(question)


_OPPOSITES = (("on", "off"), ("enabled", "disabled"), ("true", "false"), ("required", "optional"))
_SWITCH = re.compile(r"\b(on|off)\b(?=\W*$| by default| unless| if| when)", re.I)  # else a preposition
_FIGURE = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?!\w)")


def contradicts(question: str, sentence: str) -> bool:
    """Whether a sentence has the opposite of a state that a question asks about ("off", not "on"), or only other
    numbers."""
    asked, said = (set(re.findall(r"\w+", text.lower())) for text in (question, sentence))
    asked = asked - {"on", "off"} | {match[1].lower() for match in _SWITCH.finditer(question)}
    for pair in _OPPOSITES:
        for state, other in (pair, pair[::-1]):
            if state in asked and other not in asked and other in said and state not in said:
                return True
    figures, others = set(_FIGURE.findall(question)), set(_FIGURE.findall(sentence))
    return bool(figures and others) and figures.isdisjoint(others)


def differs(question: str, answer: str, sentence: str, above: str = "") -> bool:
    """Whether one of a question and the sentence with its answer denies what the other one affirms.

    ``above`` are the headings: what they deny, the sentences below deny, too. Of a sentence that is read for a question
    without a negation only the clause with the answer counts.
    """
    if terms := denied_by(question):
        is_said = not terms.isdisjoint(relation_terms(sentence))
        return terms.isdisjoint(denied(sentence) if is_said else denied(above))
    before, _, after = sentence.partition(answer)
    value = "" if _CUE.search(answer) else answer  # "no limit" denies nothing
    clause = f"{_ENDS.split(before)[-1]} {value} {_ENDS.split(after, maxsplit=1)[0]}"
    return not denied(clause).isdisjoint(relation_terms(f"{re.sub(r'@[0-9]+', ' ', mask(question).text)} {value}"))
