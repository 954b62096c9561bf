"""Rendering: what a passage says must reach the reader, and nothing else must happen."""

from __future__ import annotations

import io

import dspy
from rich.console import Console

from polyhop.data.passages import Evidence, Fact, Hit, Passage
from polyhop.programs.prediction import conclude
from polyhop.programs.trace import Added, Searched, Selected, Trace
from polyhop.scripts.view import address, evidence_table, plain, to_record, trace_tree

HOSTILE = Passage.of("[bold]Title[/bold]", sentences=["Fine.", "\x1b[31mred\x07 [link=x]y[/link]\nnext"], id="h")
REPLY = dspy.Prediction(answer="42", reasoning="First.\nSecond.", confidence=0.5)


def prediction() -> dspy.Prediction:
    trace = Trace()
    trace.add(Searched("a [b] query", tuple((f"p{n}", f"Title {n}", 20.0 - n) for n in range(12))))
    trace.add(Selected(1, (Fact("h", 1),), ("9:9",)))
    trace.add(Added(1, ()))
    return conclude(REPLY, trace, evidence=[Evidence(HOSTILE, 1)], seen=[Hit(HOSTILE, 1.0, 1)], stop="stable")


def render(what: object) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(what)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_control_characters_and_markup_are_text() -> None:
    text = render(evidence_table([Evidence(HOSTILE, 1)]))
    assert "[bold]Title[/bold]" in text
    assert "[link=x]y[/link]" in text
    assert not {"\x1b", "\x07"} & set(text)


def test_gold_is_ticked_by_sentence_and_by_whole_passage() -> None:
    gold = (Fact("h", 0),)
    assert "✓" in render(evidence_table([Evidence(HOSTILE, 0)], gold))
    assert "✓" not in render(evidence_table([Evidence(HOSTILE, 1)], gold))
    assert "✓" in render(evidence_table([Evidence(HOSTILE)], gold))


def test_the_tree_tells_what_happened() -> None:
    text = render(trace_tree(prediction()))
    assert "found 12 passages for “a [b] query”" in text
    assert "... and 2 more" in text
    assert "kept 1 in round 1" in text
    assert "ignored: 9:9" in text
    assert "added nothing in round 1" in text
    assert "answered 42 (0.50)" in text
    assert "Second." in text
    assert "stopped stable" in text


def test_the_record_says_what_the_prediction_says() -> None:
    record = to_record("q?", prediction(), 0.25)
    assert record["evidence"] == [
        {"passage_id": "h", "title": HOSTILE.title, "sentence": 1, "text": HOSTILE.sentences[1]}
    ]
    assert record["ranking"] == ["h"]
    assert (record["lm_calls"], record["searches"], record["seconds"]) == (3, 1, 0.25)


def test_addresses() -> None:
    assert address(Fact("x", 0)) == "x:0"
    assert address(Fact("x")) == "x"


def test_plain_text_is_one_line() -> None:
    assert plain("a\x00b\r\n  c\u2028d") == "a b c d"
