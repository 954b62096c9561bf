"""What a search draws can change something, and what a condition switches off changes nothing.

Agents reply at random, but the same to the same inputs, so that runs reach every branch of a program and differ only
where a tunable made them differ.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations
from random import Random
from typing import Any, get_origin

import dspy
import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Evidence, Link, Passage, Place
from polyhop.data.pool import PassagePool
from polyhop.optimizers.replay import Call, Replay
from polyhop.optimizers.tunables import Values, search_space, with_values
from polyhop.programs import PROGRAMS, Oracle, new_program, tunables
from polyhop.programs.tunable import conditions_of
from polyhop.signatures.fields import NumberedPassages

RUNS, OFF_RUNS = 200, 2
TELLING = {  # a run that is tried first, of what shows in few
    "review.confidence.least_credibility": 44,
    "confidence.least_credibility": 7,
    "search.chain['again']": 10,
}
IDS = {"keep", "add", "useful", "chosen", "cited", "citations"}
WORDS = "old new red tower river poet king city novel bridge song war".split()
TITLES = [" ".join(words).title() for words in (*permutations(WORDS[:9], 2), *zip(WORDS[:9]))]


def _pool() -> PassagePool:
    dice = Random(0)
    texts = [
        [f"The {' '.join(dice.sample(WORDS, dice.randint(1, 6)))} of {dice.choice(TITLES)}." for _ in range(1 + n % 4)]
        for n in range(len(TITLES))
    ]
    opening = [Passage.of(title, sentences=text) for title, text in zip(TITLES, texts, strict=True)]
    later = [
        Passage(f"{each.id}-2", each.title, " ".join(text), place=Place(each.id, sentence=4))
        for each, text in zip(opening[::2], reversed(texts), strict=False)
    ]
    linking = [
        replace(each, links=(Link(other.id, " ".join(each.text.split()[: 2 + n % 9]), 0, "text"),))
        for n, (each, other) in enumerate(zip(opening, [*opening[3:], *opening[:3]], strict=True))
    ]
    return PassagePool([*linking, *later])


POOL = _pool()
RETRIEVER = ChainRetriever(POOL)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_tunable_that_is_drawn_can_change_something(name: str) -> None:
    program = new_program(name, RETRIEVER)
    if tunables(program):
        space = search_space(program, ranges={"search.chain*": ()} if name == "naive" else None)
        asked = [each for each in space if name == "naive" or not each.startswith("search.")]
        # Needs vectors; and has a test of its own, since a chain spreads its hits anyway.
        other = {"search.chain['similarity']", "search.by_document", "review.search.by_document"}
        dead = [each for each in asked if each not in other and not is_alive(program, each)]
        assert not dead, f"nothing changes with {', '.join(dead)}"


@pytest.mark.parametrize("name", [name for name in PROGRAMS if conditions_of(new_program(name, RETRIEVER))])
def test_what_is_switched_off_changes_nothing(name: str) -> None:
    program = new_program(name, RETRIEVER)
    switches: dict[tuple[str, tuple[Any, ...]], list[str]] = {}
    for each, condition in conditions_of(program).items():
        switches.setdefault(condition, []).append(each)
    for (other, values), names in switches.items():
        before = with_values(program, {other: next(value for value in usual(program, other) if value not in values)})
        known = [outcome(before, n) for n in range(OFF_RUNS)]
        for each in names:
            after = with_values(
                before, {each: next(v for v in usual(program, each) if v != tunables(program)[each].value)}
            )
            assert [outcome(after, n) for n in range(OFF_RUNS)] == known, each


def is_alive(program: dspy.Module, name: str) -> bool:
    before = with_values(program, switched_on(name, conditions_of(program)))
    others = [with_values(before, {name: value}) for value in usual(program, name)]
    runs = [TELLING.get(name, 0), *range(RUNS)]
    return any(known(before, n) != outcome(after, n) for n in runs for after in others)


_KNOWN: dict[tuple[object, ...], tuple[object, ...]] = {}


def known(program: dspy.Module, n: int) -> tuple[object, ...]:
    """The outcome with settings that most tunables of a program are compared with."""
    key = (type(program), str({name: each.value for name, each in tunables(program).items()}), n)
    if key not in _KNOWN:
        _KNOWN[key] = outcome(program, n)
    return _KNOWN[key]


def switched_on(name: str, conditions: dict[str, tuple[str, tuple[Any, ...]]]) -> Values:
    """The values for which a tunable matters."""
    if name not in conditions:
        return {}
    other, values = conditions[name]
    return {other: values[-1]} | switched_on(other, conditions)


def usual(program: dspy.Module, name: str) -> tuple[Any, ...]:
    tunable = tunables(program)[name]
    found = tunable.choices or tunable.usual
    return found if found and len({*found}) > 1 else (tunable.low, tunable.high)  # also of one that is not searched


def outcome(program: dspy.Module, n: int) -> tuple[object, ...]:
    """All calls of a run in any order, and its prediction."""
    inputs = ["question", "gold"] if isinstance(program, Oracle) else ["question"]
    run = Replay(program).run(example(n).with_inputs(*inputs), instead=babble)
    assert run.prediction is not None, run.error
    calls = sorted(
        (call.key, call.signature.__name__, call.signature.instructions, str(call.demos)) for call in run.calls
    )
    said = run.prediction
    return calls, said.answer, said.confidence, said.status, [item.fact for item in said.evidence]


@cache
def example(n: int) -> dspy.Example:
    dice = Random(n)
    named = " ".join(dice.sample(WORDS[:9], 3)).title()
    asked = f"Where is the {' '.join(dice.sample(WORDS, dice.randint(1, 4)))} of {named}?"
    gold = [Evidence(POOL.passages[n % len(POOL)], 0), Evidence(POOL.passages[0], 0)]
    return dspy.Example(question=asked, gold=gold)


def choices(signature: type[dspy.Signature]) -> dict[str, tuple[str, ...]]:
    """The output fields of a signature that are one of a few words, with these words."""
    found: dict[str, tuple[str, ...]] = {}
    for name, info in signature.output_fields.items():
        words = getattr(info.annotation, "words", None) or getattr(info.annotation, "__args__", ())
        if words and all(isinstance(word, str) for word in words):
            found[name] = tuple(words)
    return found


def babble(call: Call) -> dspy.Prediction:
    """A reply of the right form, drawn by the inputs."""
    dice = Random(f"{call.key.agent} {call.key.inputs}")
    words = choices(call.signature)
    pages = [page for value in call.inputs.values() if isinstance(value, NumberedPassages) for page in value.passages]
    ids = [f"{page.number}s{n}" for page in pages for n in page.sentences] or ["1s1"]
    names = [page.title for page in pages] or ["unknown", "Nobody"]
    said = [text for page in pages for text in page.sentences.values()] or ["Nobody knows."]

    def text() -> str:
        return dice.choice([f"What is the {dice.choice(WORDS)} of {dice.choice([*names, '#1'])}?", dice.choice(said)])

    def value(name: str, kind: Any) -> Any:
        kind = get_origin(kind) or kind
        if name in words:
            return dice.choice(words[name])
        if name in IDS:
            return dice.sample(ids, dice.randint(0, min(8, len(ids))))
        if name == "steps":
            return [{"thought": "", "question": text().replace("#1", "it")} for _ in range(dice.randint(1, 3))]
        if name in ("spans", "new_facts"):
            cited = dice.sample(ids, min(3, len(ids)))
            return [f"{id} {dice.choice(said)}" if name == "spans" else f"{dice.choice(said)} ({id})" for id in cited]
        if name in ("supported", "relevant", "contradicted"):
            return [str(n) for n in (1, 2, 3) if dice.random() < 0.6]
        if name == "doubtful":
            return [n for n in (1, 2, 3) if dice.random() < 0.3]
        if name in ("answer", "correction"):
            return dice.choice([*names, "unknown", "yes", *said])
        if isinstance(kind, type) and issubclass(kind, list):
            return [text() for _ in range(dice.randint(0, 3))]
        return dice.random() if isinstance(kind, type) and issubclass(kind, int | float) else text()

    return dspy.Prediction(
        **{name: value(name, each.annotation) for name, each in call.signature.output_fields.items()}
    )
