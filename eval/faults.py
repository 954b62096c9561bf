"""The faults of one call of an agent, in words: what it saw, what it replied, and what the annotations ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import dspy

from ..data.passages import Passage
from ..programs.candidates import split_citations
from .gold_replies import GoldReplies, Sight
from .scoring import exact_match

_MOST_NAMED = 5  # sentences or texts listed in one sentence
_LONGEST_QUOTE = 200  # characters

CALIBRATION = frozenset({"confidence", "accuracy", "sufficiency"})
"""Fields whose faults are of degree."""

_EVIDENCE = frozenset({"keep", "add", "useful", "chosen", "cited", "citations"})
_PLANS = frozenset({"sub_questions", "roadmap", "requirements", "steps"})
_SEARCHES = frozenset({"required", "queries", "gaps"})


def faults(
    example: dspy.Example,
    passages: Iterable[Passage],
    signature: type[dspy.Signature],
    inputs: Mapping[str, Any],
    own: Mapping[str, Any],
) -> dict[str, str] | None:
    """What is wrong with a reply, by output field; empty if nothing is, None if the annotations do not tell.

    Args:
        passages: What the program saw, for a question without passages of its own.
        inputs: What the agent was given; passages as `NumberedPassages`.
        own: Its reply.
    """
    reply = GoldReplies(example, passages).reply(signature, inputs, own)
    if not reply.told:
        return None
    return {
        name: _fault(name, own.get(name), told, reply.sight)
        for name, told in reply.told.items()
        if own.get(name) != told
    }


def missing(example: dspy.Example, passages: Iterable[Passage], inputs: Mapping[str, Any]) -> str:
    """What the annotations need and the agent was not shown, in one sentence; empty if it was shown everything, or no
    passages at all."""
    sight = Sight(GoldReplies(example, passages), inputs, {})
    if not sight.numbered:
        return ""
    lacking = [page.title if page else id for id, page in sight.oracle.pages.items() if not sight.has(id)]
    return f"It was not shown all that the answer needs of {listed(lacking)}." if lacking else ""


def _fault(name: str, own: Any, told: Any, sight: Sight) -> str:
    if name in _EVIDENCE:
        return _chosen(name, own, told, sight)
    if name in CALIBRATION:
        return f"{name} {float(own):g} is too {'low' if told >= 0.5 else 'high'}: {_degree(name, told)}."
    if name in _PLANS:
        texts = [each["question"] if isinstance(each, dict) else each for each in told]
        return "These sub-questions lead to the answer: " + " ".join(f"#{n} {each}" for n, each in enumerate(texts, 1))
    if name in _SEARCHES:
        return f"{name} should ask for what is still open: {listed(told)}." if told else f"{name}: nothing is open."
    if name == "answers":
        pairs = [(n, a, b) for n, (a, b) in enumerate(zip(own or (), told, strict=False), 1) if _differ(a, b)]
        wrong = [f'#{n} is "{split_citations(b)[0]}", not "{split_citations(a)[0]}"' for n, a, b in pairs]
        return f"Of the sub-questions, {listed(wrong)}." if wrong else f"There are {len(told)} sub-questions."
    if name in ("answer", "correction"):
        verdict = f'The {name} "{own}" is wrong: expected "{told}".'
        shares = set(str(own).lower().split()) & set(str(told).lower().split())
        return verdict + " Give exactly the name, date or phrase that is asked for." * bool(shares)
    if name in ("spans", "new_facts"):
        return f"{name} should have: {listed(map(quote, told))}." if told else f"{name}: nothing here is of use."
    if isinstance(told, list):
        return f"{name} should be {listed(map(str, told)) or 'empty'}."
    return f'{name} should be "{told}", not "{own}".'


def _chosen(name: str, own: Any, told: list[str], sight: Sight) -> str:
    """What was left out and what was chosen in vain, with the sentences."""
    chosen = [str(id) for id in own or ()]
    pages = {id.partition("s")[0] for id in told}
    left_out = [id for id in told if id not in chosen and id.partition("s")[0] not in chosen]
    in_vain = [id for id in chosen if id not in told and (id.partition("s")[0] not in pages or "s" in id)]
    texts = [
        f"{name} left out {listed(_shown(id, sight) for id in left_out)}, which the answer needs." if left_out else "",
        f"{name} has what the answer does not need: {listed(_shown(id, sight) for id in in_vain)}." if in_vain else "",
    ]
    return " ".join(filter(None, texts)) or f"{name} should be {listed(told) or 'empty'}."


def _shown(id: str, sight: Sight) -> str:
    number, _, sentence = id.partition("s")
    page = next((page for page in sight.numbered if str(page.number) == number), None)
    if page is None:
        return f"[{id}]"
    text = page.sentences.get(int(sentence)) if sentence.isdigit() else None
    return f'[{id}] "{page.title}"' + (f" ({quote(text)})" if text else "")


def _degree(name: str, told: float) -> str:
    if name == "sufficiency":
        return f"{told:.0%} of the evidence is there"
    what = "answer" if name == "confidence" else "proposed answer"
    return f"the {what} is {'right' if told >= 0.5 else 'wrong'}"


def _differ(own: str, told: str) -> bool:
    return not exact_match(split_citations(own)[0], [split_citations(told)[0]])


def quote(text: str) -> str:
    """The beginning of a sentence."""
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE].rsplit(" ", 1)[0] + " ..."


def listed(names: Iterable[str]) -> str:
    """The first few of some texts."""
    given = list(dict.fromkeys(names))
    more = f" and {len(given) - _MOST_NAMED} more" if len(given) > _MOST_NAMED else ""
    return ", ".join(given[:_MOST_NAMED]) + more
