"""KAIR's agents: what is known and required is the sub-questions of the question, with and without an answer.

A fact is written as "sub-question? answer." and a gap as the sub-question, so that the next step can go on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....data.references import references, replace_references
from ....data.text import content_terms
from ....signatures import AssessEvidence, CheckFacts, FilterSpans, ProposeQueries, UpdateKnowledge
from ..chain import Chain
from ..decompose import decompose
from ..engine import skill
from ..gaps import is_told, missing
from ..prompt import Prompt
from ..question import mask
from ..reading import Line, Page, read_pages
from ..resolve import resolve

STATED = 0.6  # share of a statement's words that its line has, with the title


@skill(ProposeQueries)
def propose_queries(prompt: Prompt) -> dict[str, Any]:
    """Each gap as it is, the names in it, and these with the words of the question; a focus changes the order."""
    question = prompt.inputs.get("question", "")
    forms = [_as_it_is, _names, _in_context]
    focus = prompt.inputs.get("focus", "")
    turn = 1 if "entit" in focus else 2 if "constraint" in focus else 0
    known = _known(decompose(question), prompt.listed("known"))
    required = [_bound(gap, known) for gap in prompt.listed("required")]
    gaps = [gap for gap in required if not references(gap)] or required
    found = [form(gap, question) for form in (*forms[turn:], *forms[:turn]) for gap in gaps]
    earlier = {frozenset(content_terms(query)) for query in prompt.listed("earlier")}
    fresh = [query for query in dict.fromkeys(found) if query and frozenset(content_terms(query)) not in earlier]
    count = prompt.inputs.get("count", "")
    return {"queries": fresh[: int(count)] if count.isdecimal() else fresh}


def _as_it_is(gap: str, question: str) -> str:
    return replace_references(gap, lambda _: " ").strip(" ?")


def _names(gap: str, question: str) -> str:
    return " ".join(mask(gap).names)


def _in_context(gap: str, question: str) -> str:
    return f"{question.strip(' ?')} {_names(gap, question)}".strip()


@skill(UpdateKnowledge)
def update_knowledge(prompt: Prompt) -> dict[str, Any]:
    """Answer the sub-questions that have no answer yet, and state the lines of the chain as they stand."""
    sub_questions = decompose(prompt.inputs.get("question", ""))
    known = _known(sub_questions, prompt.listed("known"))
    open_, where = _open(sub_questions, known)
    pages = read_pages(prompt.inputs.get("passages", ""))
    facts = []
    for n, found in zip(where, resolve(open_, pages), strict=True):
        bound = _bound(sub_questions[n - 1], known)
        given = [known[m] for m in references(sub_questions[n - 1]) if m in known]
        if found.text and found.line and not references(bound) and is_told(bound, given, pages):
            known[n] = found.text
            facts.append(f"{bound} {found.text}. ({found.line.id})")
    facts += [f"{line.text} ({line.id})" for line in _chain_lines(prompt)]
    gaps = [_bound(text, known) for n, text in enumerate(sub_questions, 1) if n not in known]
    return {"new_facts": facts, "gaps": gaps}


@skill(FilterSpans)
def filter_spans(prompt: Prompt) -> dict[str, Any]:
    """The lines that carry the chain through the passages."""
    return {"spans": [f"{line.id} {line.text}" for line in _chain_lines(prompt)]}


def _chain_lines(prompt: Prompt) -> list[Line]:
    question, pages = prompt.inputs.get("question", ""), read_pages(prompt.inputs.get("passages", ""))
    chain = Chain(question, tuple(decompose(question)), pages)
    chosen = chain.extend([])
    return chain.lines(chosen, chosen)


def _known(sub_questions: Sequence[str], facts: Sequence[str]) -> dict[int, str]:
    """The answers in facts of this engine's form, by the number of their sub-question."""
    known: dict[int, str] = {}
    for n, text in enumerate(sub_questions, 1):
        bound = _bound(text, known)
        for fact in facts:
            if fact.startswith(f"{bound} "):
                known.setdefault(n, fact[len(bound) :].strip().removesuffix("."))
    return known


def _open(sub_questions: Sequence[str], known: dict[int, str]) -> tuple[list[str], list[int]]:
    """The sub-questions without an answer, with their references counted anew, and their numbers."""
    where = [n for n in range(1, len(sub_questions) + 1) if n not in known]
    number = {old: new for new, old in enumerate(where, 1)}

    def put(old: int) -> str:
        return known.get(old) or f"#{number.get(old, 0)}"

    return [replace_references(sub_questions[n - 1], put) for n in where], where


def _bound(text: str, known: dict[int, str]) -> str:
    return replace_references(text, known.get)


@skill(CheckFacts)
def check_facts(prompt: Prompt) -> dict[str, Any]:
    """Supported is a statement most of whose words stand in one line; relevant, one that shares a word with a gap."""
    pages = read_pages(prompt.inputs.get("passages", ""))
    asked = frozenset(content_terms(" ".join(prompt.listed("required"))))
    supported, relevant = [], []
    for statement in prompt.listed("statements"):
        number, _, text = statement.partition(".")
        terms = frozenset(content_terms(text))
        if terms and max((_stated(terms, line, page) for page in pages for line in page.lines), default=0.0) >= STATED:
            supported.append(number.strip())
        if terms & asked:
            relevant.append(number.strip())
    return {"supported": supported, "relevant": relevant}


def _stated(terms: frozenset[str], line: Line, page: Page) -> float:
    return len(terms & (line.terms | page.title_terms)) / len(terms)


@skill(AssessEvidence)
def assess_evidence(prompt: Prompt) -> dict[str, Any]:
    """The share of the sub-questions that the evidence answers."""
    sub_questions = decompose(prompt.inputs.get("question", ""))
    gaps = missing(prompt.inputs.get("question", ""), sub_questions, read_pages(prompt.inputs.get("evidence", "")))
    return {"sufficiency": 1 - len(gaps) / len(sub_questions)}
