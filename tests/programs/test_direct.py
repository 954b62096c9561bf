"""The closed-book baseline."""

from __future__ import annotations

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.programs import Direct, QuestionError

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


def test_an_empty_question_costs_nothing() -> None:
    with playing(scripted()) as script, pytest.raises(QuestionError):
        Direct()(question=" ")
    assert script.requests == []
