"""The baselines: closed book, and retrieve-then-read."""

from __future__ import annotations

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import Direct, Naive

from .scripted import answer, playing, scripted


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_one_call_no_search(adapter: dspy.Adapter) -> None:
    with playing(scripted(answerer=answer(" Marie  Curie\n", 0.75)), adapter) as script:
        prediction = Direct()(question="  Who discovered polonium? ", pool=[Passage.of("T", "Never read.")])
    assert script.order == ["answerer"]
    assert script.requests[0].as_json == isinstance(adapter, dspy.JSONAdapter)
    assert script.requests[0].inputs == {"question": "Who discovered polonium?"}
    assert "Never read" not in str(script.requests)
    assert prediction.answer == "Marie Curie"
    assert prediction.confidence == 0.75
    assert prediction.evidence == prediction.ranking == ()
    assert prediction.stop_reason == prediction.trace.steps[-1].reason == "no retrieval"
    assert (prediction.trace.lm_calls, prediction.trace.searches) == (1, 0)


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
