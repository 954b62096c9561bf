"""The trace: typed steps, counted and written down."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from threading import Barrier
from typing import Any

import dspy
import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Fact, Passage, Reason
from polyhop.data.pool import PassagePool
from polyhop.data.sample import sample_passages
from polyhop.engines.models import language_model
from polyhop.programs import PROGRAMS, PolyHop, Trace, new_program
from polyhop.programs.baselines import ReAct
from polyhop.programs.program import ask
from polyhop.programs.run import Run, record, running, together
from polyhop.programs.trace import (
    Added,
    Answered,
    Decomposed,
    Event,
    Parallel,
    Replied,
    Searched,
    Selected,
    Stopped,
    following,
)


def full() -> Trace:
    trace = Trace(calls=4)
    trace.add(Decomposed(("Who?",), ("?",)))
    trace.add(Searched("Who?", (("p", "Title", 1.5),), (Reason("named", "title", None, ("Who",)),)))
    trace.add(Searched("Where?", ()))
    trace.add(Selected(1, (Fact("p", 0), Fact("p"))))
    trace.add(Added(1, (), ("9s9",)))
    trace.add(Answered("Paris", "Because.", 0.5))
    trace.add(Stopped("stable"))
    return trace


def test_parallel_branches_cost_all_calls_and_wait_for_the_longest() -> None:
    branches = full(), Trace([Answered("x", "", 1.0)], calls=1)
    trace = Trace([Decomposed(("Who?",)), Parallel(branches), Stopped("x")], calls=1)
    assert (trace.lm_calls, trace.lm_calls_critical_path) == (1 + 4 + 1, 1 + 4)
    assert trace.searches == 2
    assert trace.dropped == 2
    assert [type(step).__name__ for step in trace.flat()][1:3] == ["Decomposed", "Searched"]
    record = json.loads(json.dumps(trace.to_records()))[1]
    assert record["step"] == "parallel"
    assert record["branches"][1] == [Trace([Answered("x", "", 1.0)]).to_records()[0] | {"invalid": []}]


QUESTION = "Where was the director of Stalker born?"


@pytest.fixture(autouse=True)
def embedded() -> Iterator[None]:
    with dspy.context(lm=language_model("lexical")):
        yield


@pytest.fixture(scope="module")
def pool() -> PassagePool:
    return PassagePool(sample_passages())


@pytest.fixture(scope="module")
def retriever(pool: PassagePool) -> ChainRetriever:
    return ChainRetriever(pool)


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"oracle", "full_context"}))
def test_each_step_is_told_once_when_it_is_recorded(name: str, retriever: ChainRetriever, pool: PassagePool) -> None:
    told: list[Event] = []
    with following(told.append):
        prediction = new_program(name, retriever)(question=QUESTION)
    steps = [event.step for event in told if event.step]
    assert sorted(map(str, steps)) == sorted(map(str, prediction.trace.flat()))
    assert isinstance(steps[-1], Stopped)
    asked = [event for event in told if event.agent]
    assert len(asked) >= prediction.trace.lm_calls > 0
    assert all(event.text for event in told)
    assert told.index(asked[0]) < len(told) - 2  # before its reply
    new_program(name, retriever)(question=QUESTION)
    assert len([event for event in told if event.step]) == len(steps)  # only inside


def test_steps_of_parallel_branches_are_told_with_their_branch() -> None:
    told: list[Event] = []
    both = Barrier(2)

    def search(n: int) -> None:
        both.wait(60)  # in two threads
        record(Searched(f"query {n}", ()))

    with running(Run()), following(told.append):
        together([partial(search, n) for n in (1, 2)])
    assert sorted((getattr(event.step, "query", ""), event.branch) for event in told) == [
        ("query 1", (1,)),
        ("query 2", (2,)),
    ]


def test_an_exception_of_the_listener_stops_the_program(retriever: ChainRetriever) -> None:
    class Left(BaseException):
        pass

    def leave(event: Event) -> None:
        if event.step:
            raise Left

    with following(leave), pytest.raises(Left):
        PolyHop(retriever)(question=QUESTION)


def test_a_retriever_is_a_tool(retriever: ChainRetriever) -> None:
    for each in (retriever, retriever.with_bm25(1.2), deepcopy(retriever), retriever.source):
        tool = dspy.Tool(each)
        assert tool.name == "search"
        assert tool.desc.startswith('Search the documents; returns the k best passages, each as "title | text".')
        assert tool.args == {
            "query": {"type": "string"},
            "k": {"type": "integer", "default": 5},
            "offset": {"type": "integer", "default": 0},
        }
        found = tool(query="Stalker film director", k=3)
        assert len(found) == 3
        assert tool(query="Stalker film director", k=2, offset=1) == found[1:]
        with dspy.context(rm=each):
            assert dspy.Retrieve(k=3)("Stalker film director").passages == found
        assert found[0].startswith("Stalker (1979 film) | ")
    assert type(retriever).__name__ == "ChainRetriever"
    long = PassagePool([Passage.of("Long", "word " * 10_000)])
    assert len(dspy.Tool(long)(query="word")[0]) < 3_000


def test_a_program_is_a_tool(retriever: ChainRetriever) -> None:
    for program in (PolyHop(retriever), deepcopy(PolyHop(retriever)), pickle.loads(pickle.dumps(PolyHop(retriever)))):
        tool = dspy.Tool(program.answer)
        assert tool.name == "answer"
        assert tool.desc.startswith("Answer a question whose evidence is spread over several documents")
        assert tool.args == {"question": {"type": "string"}}
        found = program(QUESTION)
        assert str(tool(question=QUESTION)).splitlines()[0] == f"{found.answer} (perhaps: {found.guess})"


def test_the_react_baseline_searches_browses_and_reads(retriever: ChainRetriever) -> None:
    script: list[dict[str, Any]] = [
        {"next_thought": "-", "next_tool_name": "find", "next_tool_args": {"query": "Stalker film"}},
        {"next_thought": "-", "next_tool_name": "find", "next_tool_args": {"query": "Stalker film", "offset": 2}},
        {"next_thought": "-", "next_tool_name": "find", "next_tool_args": {"query": "Stalker film", "offset": 1000}},
        {"next_thought": "-", "next_tool_name": "read", "next_tool_args": {"id": "[stalker-1979-film]"}},
        {"next_thought": "-", "next_tool_name": "read", "next_tool_args": {"id": "nowhere"}},
        {"reasoning": "-", "answer": "Zavrazhye.", "citations": ["stalker-1979-film", "nowhere"]},
    ]
    program = deepcopy(ReAct(PassagePool(sample_passages()), k=2))
    program.steps.value = 5
    lm = dspy.utils.DummyLM([{name: str(value) for name, value in reply.items()} for reply in script])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        found = ask(program, dspy.Example(question=QUESTION).with_inputs("question"))
    first, second, third, whole, wrong = (found.trajectory[f"observation_{n}"] for n in range(5))
    ids = [line.partition("]")[0] for line in (*first.splitlines(), *second.splitlines())]
    assert len(set(ids)) == 4
    assert ids[0] == "[stalker-1979-film"
    assert "write another query" in third
    assert whole.startswith("Stalker (1979 film)\n")
    assert "copy an id" in wrong
    assert [item.passage.id for item in found.evidence] == ["stalker-1979-film"]
    assert [passage.id for passage in found.ranking[1:]] == [id.strip("[") for id in ids[1:]]
    assert (found.stop_reason, found.trace.lm_calls, found.trace.searches) == ("steps", 6, 2)
    assert [step.agent for step in found.trace.steps if isinstance(step, Replied)] == ["react"] * 5 + ["extract"]


def test_a_prediction_is_json_and_html() -> None:
    hostile = Passage.of("<script>alert(1)</script>", "Solaris was directed by <b>Andrei Tarkovsky</b>.")
    prediction = PolyHop()(question="Who directed Solaris?", pool=[hostile])
    record = json.loads(prediction.to_json())
    assert record["answer"] == prediction.answer
    assert record["trace"][-1]["step"] == "stopped"
    assert record["evidence"][0]["title"] == hostile.title
    html = prediction._repr_html_()
    assert "<script>" not in html
    assert "<b>Andrei" not in html
    assert "&lt;script&gt;" in html
    assert len(repr(prediction)) < 200
