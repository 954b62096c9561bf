"""The agents that collect evidence: Selector, Adder, polyhop's gatherer, C-3PO's filter, and KAIR's agents.

KAIR's facts are written as "sub-question? answer." and its gaps as sub-questions, so that the next step can use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...data.references import references, replace_references
from ...data.text import content_terms, title_key
from ...signatures import (
    AddEvidence,
    AssessEvidence,
    CheckFacts,
    FilterForObjective,
    FilterPassages,
    FilterSpans,
    GatherEvidence,
    ProposeQueries,
    SelectEvidence,
    SelectSet,
    UpdateKnowledge,
)
from .answer import NEXT, UNKNOWN
from .chain import EvidenceChain, read_chain
from .decompose import decompose
from .engine import skill
from .hops import NONE, Answer, sub_goals
from .prompt import ParsedPrompt, Sentence, documents
from .question import mask

SUPPORTED = 0.6  # least share of a statement's words in one sentence with its title


@skill(SelectEvidence)
def select_evidence(prompt: ParsedPrompt) -> dict[str, Any]:
    """Start a new chain: what is selected competes with all candidates."""
    chain, _ = read_chain(prompt)
    kept = chain.extend([])
    return {"keep": [sentence.id for sentence in chain.sentences(kept, kept)]}


@skill(AddEvidence)
def add_evidence(prompt: ParsedPrompt) -> dict[str, Any]:
    """Extend the chain of the selected passages."""
    chain, selected = read_chain(prompt)
    added = chain.extend(selected)
    return {"add": [sentence.id for sentence in chain.sentences(added, selected + added)]}


@skill(SelectSet)
def select_set(prompt: ParsedPrompt) -> dict[str, Any]:
    """The passages of the chain, for the sub-questions as requirements."""
    steps = decompose(prompt.question)
    chosen = EvidenceChain(prompt.question, steps, prompt.passages("candidates")).extend([])
    return {"requirements": steps, "chosen": [passage.number for passage in chosen]}


@skill(GatherEvidence)
def gather_evidence(prompt: ParsedPrompt) -> dict[str, Any]:
    """Extend the chain of the kept passages, answer the sub-questions, and list the open ones."""
    steps, kept = prompt.listed("sub_questions") or [prompt.question], set(prompt.listed("kept"))
    passages = documents(prompt.passages("passages"))
    chain = EvidenceChain(prompt.question, steps, passages)
    rows = [row.id for passage in passages for row in passage.sentences if {row.id, row.id.partition("s")[0]} & kept]
    selected = [passage for passage in passages if any(row.id in rows for row in passage.sentences)]
    added = chain.extend(selected)
    goals, before = sub_goals(steps, selected + added), sub_goals(steps, selected)
    if selected and sum(goal.answer is NONE for goal in goals) >= sum(goal.answer is NONE for goal in before):
        added, goals = [], before  # what a follow-up search found answers nothing
    keep = list(dict.fromkeys([*rows, *(sentence.id for sentence in chain.sentences(added, selected + added))]))
    required = [goal.question for goal in goals if goal.answer is NONE and goal.is_ready]
    answers = [_cited(goal.answer, keep) for goal in goals]
    return {"answers": answers, "doubtful": [], "keep": keep, "required": required}


def _cited(answer: Answer, keep: Sequence[str]) -> str:
    """An answer with its sentence, or else with the first sentence that is kept of its passage."""
    if answer.sentence is None:
        return UNKNOWN
    id = answer.sentence.id
    there = [kept for kept in keep if kept.partition("s")[0] == id.partition("s")[0]]
    return f"{answer.text} [{id if id in there or not there else there[0]}]"


@skill(FilterPassages, FilterForObjective)
def filter_passages(prompt: ParsedPrompt) -> dict[str, Any]:
    """The passages of the chain; for one sub-goal the first of them, if the sub-goal names it."""
    goal, passages = prompt.text("objective").removeprefix(NEXT) or prompt.question, prompt.passages("passages")
    steps = decompose(goal)
    kept = EvidenceChain(goal, steps, passages).extend([])
    if goal != prompt.question and len(steps) == 1:
        key = f" {title_key(goal)} "
        kept = [passage for passage in kept[:1] if any(f" {name} " in key for name in passage.names)]
    numbers = [passage.number for passage in kept]
    thoughts = [f"{each.number}: {'is needed' if each.number in numbers else 'adds nothing'}." for each in passages]
    return {"thoughts": "\n".join(thoughts), "useful": numbers}


# --- KAIR ------------------------------------------------------------------------------------------------------------


@skill(ProposeQueries)
def propose_queries(prompt: ParsedPrompt) -> dict[str, Any]:
    """Each gap, the names in it, and these with the question; the focus decides which form comes first.

    Diversity is the share of the gaps that were asked already.
    """
    question, focus = prompt.question.strip(" ?"), prompt.text("focus")
    known = _known(decompose(prompt.question), prompt.listed("known"))
    required = [replace_references(gap, known.get) for gap in prompt.listed("required")]
    gaps = [gap for gap in required if not references(gap)] or required
    names = [" ".join(mask(gap).names) for gap in gaps]
    forms = [
        [replace_references(gap, lambda _: " ").strip(" ?") for gap in gaps],
        names,
        [f"{question} {each}".strip() for each in names],
    ]
    first = 1 if "entit" in focus else 2 if "constraint" in focus else 0
    found = [query for form in (*forms[first:], *forms[:first]) for query in form]
    earlier = [set(content_terms(query)) for query in prompt.listed("earlier")]
    fresh = [query for query in dict.fromkeys(found) if query and set(content_terms(query)) not in earlier]
    count = prompt.text("count")
    diversity = sum(set(content_terms(gap)) in earlier for gap in gaps) / max(len(gaps), 1)
    return {"queries": fresh[: int(count)] if count.isdecimal() else fresh, "diversity": round(diversity, 2)}


@skill(UpdateKnowledge)
def update_knowledge(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer the open sub-questions, and quote the chain's sentences."""
    sub_questions = decompose(prompt.question)
    known = _known(sub_questions, prompt.listed("known"))
    goals = sub_goals(sub_questions, prompt.passages("passages"), known=known)
    facts = [f"{goal.question} {goal.answer.text}. ({row.id})" for goal in goals if (row := goal.answer.sentence)]
    facts += [f"{row.text.removeprefix('… ')} ({row.id})" for row in _chain_sentences(prompt)]
    return {"new_facts": facts, "contradicted": [], "gaps": [g.question for g in goals if g.answer is NONE]}


@skill(FilterSpans)
def filter_spans(prompt: ParsedPrompt) -> dict[str, Any]:
    """The sentences of the chain. Supported: most words of a known fact are in the sentence."""
    spans = _chain_sentences(prompt)
    known = [frozenset(content_terms(fact)) for fact in prompt.listed("known")]
    title = {row.id: passage.title_terms for passage in prompt.passages("passages") for row in passage.sentences}
    supported = [row.id for row in spans if any(_share(terms, row, title[row.id]) >= SUPPORTED for terms in known)]
    return {"spans": [f"{row.id} {row.text.removeprefix('… ')}" for row in spans], "supported": supported}


def _share(terms: frozenset[str], sentence: Sentence, title: frozenset[str]) -> float:
    """The share of some terms in a sentence with its title."""
    return len(terms & (sentence.terms | title)) / max(len(terms), 1)


def _chain_sentences(prompt: ParsedPrompt) -> list[Sentence]:
    chain = EvidenceChain(prompt.question, decompose(prompt.question), prompt.passages("passages"))
    chosen = chain.extend([])
    return chain.sentences(chosen, chosen)


def _known(sub_questions: Sequence[str], facts: Sequence[str]) -> dict[int, str]:
    """The answers in facts of this engine's form, by the number of their sub-question."""
    known: dict[int, str] = {}
    for n, text in enumerate(sub_questions, 1):
        bound = replace_references(text, known.get)
        for fact in facts:
            if fact.startswith(f"{bound} "):
                known.setdefault(n, fact[len(bound) :].strip().removesuffix("."))
    return known


@skill(CheckFacts)
def check_facts(prompt: ParsedPrompt) -> dict[str, Any]:
    """Supported: most words of the statement are in one sentence. Relevant: it shares a word with a gap."""
    rows = [(row, passage.title_terms) for passage in prompt.passages("passages") for row in passage.sentences]
    required = frozenset(content_terms(" ".join(prompt.listed("required"))))
    supported, relevant = [], []
    for statement in prompt.listed("statements"):
        number, _, text = statement.partition(".")
        terms = frozenset(content_terms(text))
        if any(_share(terms, *row) >= SUPPORTED for row in rows):
            supported.append(number.strip())
        if terms & required:
            relevant.append(number.strip())
    return {"supported": supported, "relevant": relevant, "contradicted": []}


@skill(AssessEvidence)
def assess_evidence(prompt: ParsedPrompt) -> dict[str, Any]:
    """The share of the sub-questions that the evidence answers."""
    goals = sub_goals(decompose(prompt.question), prompt.passages("evidence"))
    return {"sufficiency": sum(goal.answer is not NONE for goal in goals) / len(goals)}
