"""The trace: typed steps, counted and written down."""

from __future__ import annotations

import json

from polyhop.data.passages import Fact, Reason
from polyhop.programs import Trace
from polyhop.programs.trace import Added, Answered, Decomposed, Parallel, Searched, Selected, Stopped


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


def test_records_are_json_with_their_kind() -> None:
    records = json.loads(json.dumps(full().to_records()))
    assert [record["step"] for record in records] == [
        "decomposed", "searched", "searched", "selected", "added", "answered", "stopped",
    ]  # fmt: skip
    assert records[0] == {
        "step": "decomposed",
        "sub_questions": ["Who?"],
        "invalid": ["?"],
        "thoughts": [],
        "route": "",
    }
    assert records[1] == {
        "step": "searched",
        "query": "Who?",
        "found": [["p", "Title", 1.5]],
        "reasons": [{"via": "named", "name": "title", "source": None, "words": ["Who"]}],
        "offset": 0,
    }
    assert records[3] == {"step": "selected", "round": 1, "kept": [["p", 0], ["p", None]], "invalid": [], "flagged": []}
    assert records[4]["invalid"] == ["9s9"]
    assert records[5] == {
        "step": "answered",
        "answer": "Paris",
        "reasoning": "Because.",
        "confidence": 0.5,
        "invalid": [],
    }


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
