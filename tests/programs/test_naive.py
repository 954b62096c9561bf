"""The retrieve-then-read baseline."""

from __future__ import annotations

import asyncio

import dspy
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import Naive

from .scripted import answer, playing, scripted

PASSAGES = [
    Passage.of("Polonium", "Polonium is an element. It was discovered by Marie Curie.", id="po"),
    Passage.of("Radium", "Radium is an element.", id="ra"),
    Passage.of("Warsaw", "Warsaw is a city.", id="wa"),
]


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()])
@pytest.mark.parametrize("own", [True, False])
def test_one_search_one_call(adapter: dspy.Adapter, own: bool) -> None:
    program = Naive(None if own else PassagePool(PASSAGES), k=2)
    with playing(scripted(answerer=answer("Marie Curie")), adapter) as script:
        prediction = program(question="Who discovered the element polonium?", pool=PASSAGES if own else None)
    assert script.order == ["answerer"]
    assert script.requests[0].inputs == {
        "question": "Who discovered the element polonium?",
        "passages": "[1] Polonium\n1s1 Polonium is an element.\n1s2 It was discovered by Marie Curie.\n"
        "[2] Radium\n2s1 Radium is an element.",
    }
    assert prediction.answer == "Marie Curie"
    assert [item.fact for item in prediction.evidence] == [("po", None), ("ra", None)]
    assert [passage.id for passage in prediction.ranking] == ["po", "ra"]
    assert prediction.stop_reason == "single pass"
    assert (prediction.trace.lm_calls, prediction.trace.searches) == (1, 1)


def test_an_empty_pool_is_taken_as_such() -> None:
    """An empty pool finds nothing, and no agent is called."""
    with playing(scripted(answerer=answer("London", 0.9))) as script:
        prediction = Naive(PassagePool(PASSAGES))(question="Who?", pool=[])
    assert script.order == []
    assert prediction.stop_reason == "nothing found"
    assert (prediction.answer, prediction.evidence, prediction.ranking) == ("unknown", (), ())


def test_nothing_to_search() -> None:
    with playing(scripted()) as script, pytest.raises(PolyhopError, match="build the program with a retriever"):
        Naive()(question="Who?")
    assert script.requests == []


def test_it_can_be_awaited() -> None:
    with playing(scripted(answerer=answer("1903"))):
        prediction = asyncio.run(Naive().acall(question="When?", pool=[Passage.of("T", "In 1903.")]))
    assert prediction.answer == "1903"
