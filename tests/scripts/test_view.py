"""Rendering: what a passage says must reach the reader, and nothing else must happen."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import dspy
import pytest
from rich.console import Console

from polyhop.data.passages import Evidence, Fact, Hit, Passage, Reason
from polyhop.engines.costs import Ledger
from polyhop.programs import trace as steps
from polyhop.programs.prediction import conclude, read_answer
from polyhop.programs.run import Run, running
from polyhop.programs.trace import Trace
from polyhop.scripts.view import Answered, evidence_table, excerpt, hit_lines, print_answer, trace_tree

HOSTILE = Passage.of("[bold]Title[/bold]", sentences=["Fine.", "\x1b[31mred\x07 [link=x]y[/link]\nnext"], id="h")


def close(trace: Trace, seen: Sequence[Hit] = (), **rest: Any) -> dspy.Prediction:
    reply = dspy.Prediction(answer="42", reasoning="First.\nSecond.", confidence=0.5)
    with running(Run(trace=trace, seen=list(seen))):
        return conclude(*read_answer(reply), stop="stable", **rest)


def concluded(trace: Trace, *args: Any, **rest: Any) -> dspy.Prediction:
    with running(Run(trace=trace)):
        return conclude(*args, **rest)


def render(what: object) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(what)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_control_characters_and_markup_are_text() -> None:
    text = render(evidence_table([Evidence(HOSTILE, 1)]))
    assert "[bold]Title[/bold]" in text
    assert "[link=x]y[/link]" in text
    assert not {"\x1b", "\x07"} & set(text)
    code = Passage.of("app/[slug]/page.tsx", "It returns a Promise<void> [2](x), see [a]: b.", id="app/[slug]/page.tsx")
    for parts in ([evidence_table([Evidence(code)])], hit_lines("promise", [Hit(code, 1.0, 1)])):
        shown = "".join(map(render, parts))
        assert ("Promise<void> [2](x), see [a]: b" in shown, shown.count(code.title)) == (True, 2)
    deep = Passage.of("Deep", "It is deep.", id=f"{'a/' * 70}deep.html")  # an address is to be copied
    assert deep.id in render(evidence_table([Evidence(deep)])).replace("\n", "").replace(" ", "")
    assert render(hit_lines("[x]", [])[0]) == "nothing found for “[x]”\n"


def test_a_withheld_answer_is_shown_with_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    with running(Run(trace=Trace(), abstain_below=0.6)):
        made = conclude("4\x1b[2J2", 0.5, evidence=[Evidence(HOSTILE, 0)], stop="stable")
    print_answer(Answered("q?", made, 0.1, Ledger()))
    shown = capsys.readouterr().out
    assert "unknown  perhaps: 4 [2J2  confidence 0.50\n" in shown
    assert "stopped: the answer was not sure enough" in shown
    assert "Fine." in shown
    assert Answered("q?", made, 0.1, Ledger()).to_record()["guess"] == made.guess


def test_steps_are_shown_with_what_they_are_about() -> None:
    branches = Trace([steps.Recalled(("Who wrote it?",))]), Trace([steps.Revised("Oslo", "it says so")])
    trace = Trace(
        [
            steps.Decomposed(("Who?", "Where was #1 born?"), ("[b]??",), "plan"),
            steps.Searched("a [b] query", tuple((f"p{n}", f"Title {n}", 20.0 - n) for n in range(12)), offset=10),
            steps.Selected(1, (Fact("h", 1),), ("9s9",)),
            steps.Added(2, ()),
            steps.StepAnswered(2, "Where was B born?", "Par\x1b[31mis", (Fact("h", 0),)),
            steps.Answered("Paris", "Because.", 0.5),
            steps.Parallel(branches),
            steps.Stopped("stable"),
        ]
    )
    tree = render(trace_tree(concluded(trace, "Paris", 0.5, evidence=[Evidence(HOSTILE, 1)], stop="stable")))
    for text in (
        "asked 2 sub-questions", "Where was #1 born?", "ignored: [b]??", "found 12 passages for “a [b] query”",
        "... and 2 more", "kept 1", "in round 1", "ignored: 9s9", "Fine.", "answered #2 Par [31mis ← Where was B born?",
        "Because.", "side by side 2 branches", "branch 2", "Who wrote it?", "revised Oslo", "stopped stable",
    ):  # fmt: skip
        assert text in tree, text


def test_a_hit_is_shown_around_the_sentence_that_matches() -> None:
    sentences = [*(f"Sentence {n} is about something else." for n in range(30)), "Ada Berg owns the mill.", "The end."]
    passage = Passage.of("Kestrel", sentences=sentences)
    for query, reason in (("who owns the mill", None), ("what of it", Reason("link", "ada berg", "x", ()))):
        shown = excerpt(query, Hit(passage, 1.0, 1, reason))
        assert shown.startswith("… Sentence ")
        assert shown.endswith("Ada Berg owns the mill. The end.")
        assert len(shown) < 330
    assert excerpt("else", Hit(passage, 1.0, 1)).startswith("Sentence 0 is")
    few = Passage.of("Kestrel", sentences=sentences[-7:])
    assert excerpt("who owns the mill", Hit(few, 1.0, 1)) == few.text  # a short one is shown whole
