"""Textual feedback for prompt optimizers that reflect, such as GEPA (`polyhop.optimizers.gepa.feedback_metric`).

GEPA asks for feedback on one call of an agent at a time. It is told how the reply differs from the one that the
annotations ask for (`polyhop.eval.gold_replies`), what the agent was not shown, and how the question ended. Where the
annotations tell nothing of an agent, it gets the feedback for the whole program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import dspy

from ..data.passages import Passage
from .gold_replies import GoldReplies, GoldReply, asked
from .metrics import Attempt
from .scoring import counted, exact_match

_MOST_NAMED = 5  # sentences or texts listed in one sentence
_LONGEST_QUOTE = 200  # characters

CALIBRATION = frozenset({"confidence", "accuracy", "sufficiency"})
"""Fields whose faults are of degree."""

Call = tuple[type[dspy.Signature], Mapping[str, Any], Mapping[str, Any]]
"""The signature, the inputs and the reply of one call of an agent."""


def explain(attempt: Attempt, call: Call | None = None) -> str:
    """What is right and what is missing, of the whole program or of one call of an agent."""
    if call is not None:
        reply = GoldReplies(attempt.example, attempt.output.ranking).reply(*call)
        if reply.told:
            texts = _faults(reply, call[2]).values() or ["This reply has no fault."]
            return " ".join(filter(None, [*texts, _not_shown(reply), _answer(attempt)]))
    return " ".join(filter(None, (_answer(attempt), _evidence(attempt))))


def _answer(attempt: Attempt) -> str:
    given, answers = attempt.output.answer, attempt.gold.answers
    if exact_match(given, answers):
        return f'The answer "{given}" is right.'
    verdict = f'The answer "{given}" is wrong: expected {_listed((f"{text!r}" for text in answers), " or ") or "none"}.'
    more = " It shares words with that: give exactly the name, date or phrase that is asked for."
    return verdict + (more if attempt.values["answer_f1"] else "")


def _evidence(attempt: Attempt) -> str:
    """The passages that were not found, not kept, and kept in vain."""
    wanted, output = attempt.gold.passages, attempt.output
    known = [*(attempt.example.get("pool") or ()), *output.passages]
    titles = {counted(wanted, passage): passage.title for passage in known}
    found = {counted(wanted, passage) for passage in output.passages}
    kept = dict.fromkeys(counted(wanted, item.passage) for item in output.evidence)

    def named(ids: Iterable[str]) -> str:
        return _listed(f'"{titles.get(id, id)}"' for id in ids)

    lost, unkept = [id for id in wanted if id not in found], [id for id in wanted if id in found and id not in kept]
    vain = [id for id in kept if id not in wanted]
    texts = [
        f"The search did not find {named(lost)}: ask for what these are about by name." if lost else "",
        f"The final evidence misses {named(unkept)}." if unkept else "",
        f"It contains what the answer does not need: {named(vain)}." if vain else "",
    ]
    return " ".join(filter(None, texts)) or (
        "The evidence is complete, and nothing in it is irrelevant." if wanted else ""
    )


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
    return _faults(reply, own) if reply.told else None


def _faults(reply: GoldReply, own: Mapping[str, Any]) -> dict[str, str]:
    different = {name: told for name, told in reply.told.items() if own.get(name) != told}
    return {name: _fault(name, own.get(name), told, reply) for name, told in different.items()}


def _fault(name: str, own: Any, told: Any, reply: GoldReply) -> str:
    if isinstance(told, float):
        return f"{name} {float(own):g} is too {'low' if told > float(own) else 'high'}: {told:.2g} would be right."
    if not isinstance(told, list):
        return f'{name} should be "{told}", not "{own}".'
    given = [asked(each) for each in (own if isinstance(own, list | tuple) else [own]) if each is not None]
    wanted = [asked(each) for each in told]
    whole = {id.partition("s")[0] for id in wanted if reply.page(id)}
    left_out = [id for id in wanted if id not in given and not (reply.page(id) and id.partition("s")[0] in given)]
    vain = [id for id in given if id not in wanted and id not in whole]
    texts = [
        f"{name} left out {_listed(_shown(id, reply) for id in left_out)}." if left_out else "",
        f"{name} has what is not needed: {_listed(_shown(id, reply) for id in vain)}." if vain else "",
    ]
    return " ".join(filter(None, texts)) or f"{name} should be {_listed(wanted)}."


def _not_shown(reply: GoldReply) -> str:
    lacking = [page.title if page else id for id, page in reply.oracle.pages.items() if not reply.has(id)]
    return f"It was not shown all that the answer needs of {_listed(lacking)}." if reply.numbered and lacking else ""


def _shown(text: str, reply: GoldReply) -> str:
    page = reply.page(text)
    return _quote(text) if page is None else f'[{text}] "{page.title}" ({_quote(reply.sentence(text))})'


def _quote(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE].rsplit(" ", 1)[0] + " ..."


def _listed(names: Iterable[str], between: str = ", ") -> str:
    given = list(dict.fromkeys(names))
    more = f" and {len(given) - _MOST_NAMED} more" if len(given) > _MOST_NAMED else ""
    return between.join(given[:_MOST_NAMED]) + more
