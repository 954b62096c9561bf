"""The agents that collect evidence: Selector, Adder, polyhop's gatherer, C-3PO's filter, and KAIR's agents.

KAIR's facts are written as "sub-question? answer." and its gaps as sub-questions, so that the next step can use them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ....data.references import references, replace_references
from ....data.text import content_terms, title_key
from ....signatures import (
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
from ..chain import EvidenceChain, read_chain
from ..decompose import decompose
from ..hops import Answer, find_gaps, is_covered, resolve, same
from ..prompt import ParsedPassage, ParsedPrompt, Sentence, documents
from ..question import mask
from ..registry import skill
from .answer import NEXT, UNKNOWN

SUPPORTED = 0.6  # least share of a statement's words in one sentence with its title
QUOTED = 400  # most characters of a quoted sentence
CONTRADICTED = 0.9  # least probability of another answer with which the passages contradict a known one


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
    chosen = EvidenceChain(prompt.question, tuple(steps), prompt.passages("candidates")).extend([])
    return {"requirements": steps, "chosen": [passage.number for passage in chosen]}


@skill(GatherEvidence)
def gather_evidence(prompt: ParsedPrompt) -> dict[str, Any]:
    """Extend the chain of the marked passages, answer the sub-questions, and list the open ones."""
    steps, passages = prompt.listed("sub_questions") or [prompt.question], documents(prompt.passages("passages"))
    chain = EvidenceChain(prompt.question, tuple(steps), passages)
    selected = [passage for passage in passages if passage.selected]
    added = chain.extend(selected)
    gaps = find_gaps(prompt.question, steps, selected + added)
    if selected and added and len(gaps) >= len(before := find_gaps(prompt.question, steps, selected)):
        added, gaps = [], before  # what a follow-up search found answers nothing
    chosen = selected + added
    keep = [sentence.id for sentence in chain.sentences(added, chosen)]
    marked = [sentence.id for passage in selected for sentence in passage.sentences if sentence.selected]
    keep = list(dict.fromkeys([*marked, *keep]))
    answers = [_cited(answer, keep) for answer in resolve(steps, chosen)]
    for gap in gaps:
        answers[gap.number] = UNKNOWN
    required = [gap.question for gap in gaps if gap.is_ready]
    return {"answers": answers, "doubtful": [], "keep": keep, "required": required}


def _cited(answer: Answer, keep: Sequence[str]) -> str:
    """An answer with its sentence, or else with the first sentence that is kept of its passage."""
    if answer.sentence is None:
        return UNKNOWN
    number = answer.sentence.id.partition("s")[0]
    there = [id for id in keep if id.partition("s")[0] == number]
    return f"{answer.text} [{answer.sentence.id if answer.sentence.id in there or not there else there[0]}]"


@skill(FilterPassages, FilterForObjective)
def filter_passages(prompt: ParsedPrompt) -> dict[str, Any]:
    """The passages of the chain; for one sub-goal the first of them, if the sub-goal names it."""
    objective, passages = prompt.text("objective").removeprefix(NEXT), prompt.passages("passages")
    goal = objective or prompt.question
    steps = decompose(goal)
    kept = EvidenceChain(goal, tuple(steps), passages).extend([])
    if goal != prompt.question and len(steps) == 1:
        key = f" {title_key(goal)} "
        kept = [passage for passage in kept[:1] if any(f" {name} " in key for name in passage.names)]
    numbers = [passage.number for passage in kept]
    thoughts = [f"{each.number}: {'is needed' if each.number in numbers else 'adds nothing'}." for each in passages]
    return {"thoughts": "\n".join(thoughts), "useful": numbers}


# --- KAIR ------------------------------------------------------------------------------------------------------------


_FACT = re.compile(r"(.+?\?) (.+)\.")  # of this engine's form


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
    earlier = {frozenset(content_terms(query)) for query in prompt.listed("earlier")}
    fresh = [query for query in dict.fromkeys(found) if query and frozenset(content_terms(query)) not in earlier]
    count = prompt.text("count")
    asked = sum(frozenset(content_terms(gap)) in earlier for gap in gaps)
    diversity = round(asked / len(gaps), 2) if gaps else 0.0
    return {"queries": fresh[: int(count)] if count.isdecimal() else fresh, "diversity": diversity}


@skill(UpdateKnowledge)
def update_knowledge(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer the open sub-questions, and those whose known answer is contradicted, and quote the chain's sentences."""
    sub_questions = decompose(prompt.question)
    known = _known(sub_questions, prompt.listed("known"))
    passages = prompt.passages("passages")
    contradicted = []
    for n, text in enumerate(sub_questions, 1):
        if any(m in references(text) for m in range(1, n) if m not in known):
            known.pop(n, None)  # what it was asked about is open again
        elif n in known and _is_contradicted(bound := replace_references(text, known.get), known[n], passages):
            contradicted.append(f"{bound} {known.pop(n)}.")
    facts = []
    for n, found in enumerate(resolve([replace_references(text, known.get) for text in sub_questions], passages), 1):
        text = sub_questions[n - 1]
        bound = replace_references(text, known.get)
        given = [known[m] for m in references(text) if m in known]
        is_open = n not in known and not references(bound)
        if is_open and found.text and found.sentence and is_covered(bound, given, passages):
            known[n] = found.text
            facts.append(f"{bound} {found.text}. ({found.sentence.id})")
    facts += [f"{_quoted(sentence)} ({sentence.id})" for sentence in _chain_sentences(prompt)]
    gaps = [replace_references(text, known.get) for n, text in enumerate(sub_questions, 1) if n not in known]
    return {"new_facts": facts, "contradicted": contradicted, "gaps": gaps}


def _is_contradicted(question: str, answer: str, passages: Sequence[ParsedPassage]) -> bool:
    """Whether the passages give another answer with near certainty, and cover the question."""
    found = resolve([question], passages)[0]
    differs = bool(found.text) and found.probability >= CONTRADICTED and not same(found.text, answer)
    return differs and is_covered(question, [], passages)


@skill(FilterSpans)
def filter_spans(prompt: ParsedPrompt) -> dict[str, Any]:
    """The sentences of the chain. Supported: most words of a known fact are in the sentence."""
    spans = _chain_sentences(prompt)
    known = [frozenset(content_terms(fact)) for fact in prompt.listed("known")]
    titles = {each.id: passage.title_terms for passage in prompt.passages("passages") for each in passage.sentences}
    supported = [
        each.id
        for each in spans
        if any(terms and len(terms & (each.terms | titles[each.id])) >= SUPPORTED * len(terms) for terms in known)
    ]
    return {"spans": [f"{each.id} {_quoted(each)}" for each in spans], "supported": supported}


def _chain_sentences(prompt: ParsedPrompt) -> list[Sentence]:
    chain = EvidenceChain(prompt.question, tuple(decompose(prompt.question)), prompt.passages("passages"))
    chosen = chain.extend([])
    return chain.sentences(chosen, chosen)


def _quoted(sentence: Sentence) -> str:
    """A sentence; the first words of one without an end."""
    text = sentence.text.removeprefix("… ")
    return text if len(text) <= QUOTED else text[:QUOTED].rpartition(" ")[0] or text[:QUOTED]


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
    """Supported: most words of the statement are in one sentence. Relevant: it shares a word with a gap.

    Contradicted: it answers a question that the passages answer otherwise.
    """
    passages = prompt.passages("passages")
    required = frozenset(content_terms(" ".join(prompt.listed("required"))))
    supported, relevant, contradicted = [], [], []
    for statement in prompt.listed("statements"):
        number, _, text = statement.partition(".")
        terms = frozenset(content_terms(text))
        if terms and max((_share(terms, each) for each in passages), default=0.0) >= SUPPORTED:
            supported.append(number.strip())
        if terms & required:
            relevant.append(number.strip())
        if (fact := _FACT.fullmatch(text.strip())) and _is_contradicted(fact[1], fact[2], passages):
            contradicted.append(number.strip())
    return {"supported": supported, "relevant": relevant, "contradicted": contradicted}


def _share(terms: frozenset[str], passage: ParsedPassage) -> float:
    """The largest share of the terms in one sentence of a passage, with its title."""
    shared = (len(terms & (sentence.terms | passage.title_terms)) for sentence in passage.sentences)
    return max(shared, default=0) / len(terms)


@skill(AssessEvidence)
def assess_evidence(prompt: ParsedPrompt) -> dict[str, Any]:
    """The share of the sub-questions that the evidence answers."""
    sub_questions = decompose(prompt.question)
    gaps = find_gaps(prompt.question, sub_questions, prompt.passages("evidence"))
    return {"sufficiency": 1 - len(gaps) / len(sub_questions)}
