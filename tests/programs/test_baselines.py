"""The baselines: closed book, retrieve-then-read, all passages, a selected set, and the gold evidence."""

from __future__ import annotations

import dspy
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.passages import Evidence, Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import Direct, FullContext, Naive, Oracle, SetSelection
from polyhop.programs.trace import Required, Selected

from .scripted import ADAPTERS, answer, facts, playing, scripted, steps


@pytest.mark.parametrize("adapter", ADAPTERS)
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


@pytest.mark.parametrize("adapter", ADAPTERS)
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


# --- all passages ----------------------------------------------------------------------------------------------------

QUESTION = "Who discovered the element polonium?"
FOREIGN = [Passage.of("Snow", f"Snow {n}.", id=f"s{n}") for n in range(30)]  # has no word of the question


@pytest.mark.parametrize("kind", [list, PassagePool])
def test_every_passage_of_the_pool_is_read_in_its_order(kind: type) -> None:
    pool = kind([*FOREIGN, *PASSAGES, FOREIGN[0]])
    with playing(scripted(answerer=answer("Marie Curie"))) as script:
        prediction = FullContext(k=2)(question=QUESTION, pool=pool)
    assert script.order == ["answerer"]
    assert script.requests[0].inputs["passages"].count("] ") == 33
    assert [passage.id for passage in prediction.ranking] == [p.id for p in (*FOREIGN, *PASSAGES)]
    assert (prediction.trace.lm_calls, prediction.trace.searches) == (1, 0)


# --- a set -----------------------------------------------------------------------------------------------------------


def test_a_set_is_selected_in_one_call_and_read_alone() -> None:
    replies = {"requirements": ["What is it?", "Who found it?"], "chosen": [2, 1, 9]}
    with playing(scripted(set_selector=replies, answerer=answer("Marie Curie"))) as script:
        prediction = SetSelection(PassagePool(PASSAGES))(question=QUESTION)
    assert script.order == ["set_selector", "answerer"]
    assert script.requests[0].inputs["candidates"].count("] ") == 3
    assert facts(prediction) == [("ra", None), ("po", None)]
    assert set(script.requests[1].inputs) == {"question", "evidence"}
    assert script.requests[1].inputs["evidence"].count("] ") == 2
    assert [passage.id for passage in prediction.ranking] == ["ra", "po", "wa"]
    assert steps(prediction, Required) == [Required(("What is it?", "Who found it?"))]
    assert steps(prediction, Selected) == [Selected(1, (("ra", None), ("po", None)), ("9",))]  # type: ignore[arg-type]
    assert prediction.trace.lm_calls == 2


def test_without_a_set_there_is_no_answer_and_no_call() -> None:
    with playing(scripted(set_selector={"requirements": [], "chosen": []})) as script:
        prediction = SetSelection(PassagePool(PASSAGES))(question=QUESTION)
    assert script.order == ["set_selector"]
    assert (prediction.answer, prediction.confidence, prediction.stop_reason) == ("unknown", 0.0, "nothing selected")
    assert len(prediction.ranking) == 3


# --- the gold evidence -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "shown"), [("passage", "1s1 Polonium is an element.\n1s2 It"), ("sentence", "1s2 It")]
)
def test_the_oracle_reads_the_gold_evidence_and_nothing_else(unit: str, shown: str) -> None:
    program = Oracle()
    program.unit.value = unit
    gold = [Evidence(PASSAGES[0], 1)]
    with playing(scripted(answerer=answer("Marie Curie"))) as script:
        prediction = program(question=QUESTION, pool=PASSAGES, gold=gold)
    assert script.requests[0].inputs["evidence"] == f"[1] Polonium\n{shown} was discovered by Marie Curie."
    assert facts(prediction) == [("po", 1 if unit == "sentence" else None)]
    assert prediction.stop_reason == "oracle"


def test_the_oracle_refuses_to_answer_without_gold_evidence() -> None:
    with playing(scripted()) as script, pytest.raises(PolyhopError, match="polyhop evaluate --program oracle"):
        Oracle()(question=QUESTION, pool=PASSAGES)
    assert script.order == []
