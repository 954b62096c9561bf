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
from polyhop.programs.prediction import Status, conclude, read_answer
from polyhop.programs.run import Run, running
from polyhop.programs.trace import Searched, Trace
from polyhop.scripts.view import cost, evidence_table, print_answer, to_record, trace_tree

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
    assert "[ bold]Title[/bold]" in text
    assert "[ link=x]y[/link]" in text
    assert not {"\x1b", "\x07"} & set(text)


def test_gold_is_ticked_by_sentence_and_by_whole_passage() -> None:
    gold = (Fact("h", 0),)
    assert "✓" in render(evidence_table([Evidence(HOSTILE, 0)], gold))
    assert "✓" not in render(evidence_table([Evidence(HOSTILE, 1)], gold))
    assert "✓" in render(evidence_table([Evidence(HOSTILE)], gold))


@pytest.mark.parametrize(
    "status", ["verified", "in doubt", "not supported", "contradicted", "not checked", "model knowledge"]
)
def test_every_answer_says_how_it_was_checked(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    made = conclude("42", 0.5, evidence=[Evidence(HOSTILE)], stop="stable", status=status)
    print_answer("q?", made, 0.1, Ledger())
    assert f"42  confidence 0.50, {status}\n" in capsys.readouterr().out
    assert to_record("q?", made, 0.1, Ledger())["status"] == status


def test_a_withheld_answer_is_shown_with_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    with running(Run(trace=Trace(), abstain_below=0.6)):
        made = conclude("4\x1b[2J2", 0.5, evidence=[Evidence(HOSTILE, 0)], stop="stable")
    print_answer("q?", made, 0.1, Ledger())
    shown = capsys.readouterr().out
    assert "unknown  perhaps: 4 [2J2  confidence 0.50\n" in shown
    assert "Fine." in shown
    assert to_record("q?", made, 0.1, Ledger())["guess"] == made.guess


FOUND = (("f", "Solaris", 2.0), ("d", "Andrei Tarkovsky", 1.0), ("t", "Zavr\x1b[31mazhye", 0.5))


def tree(*reasons: Reason, found: tuple[tuple[str, str, float], ...] = FOUND) -> list[str]:
    trace = Trace()
    trace.add(Searched("q", found, reasons))
    lines = render(trace_tree(close(trace))).splitlines()
    return [line for line in lines if any(f"{score:.2f}  " in line for _, _, score in found)]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (Reason("words", "", None, ("ocean", "film")), "has words of the question (ocean, film)"),
        (Reason("words", "", None, ()), "has words of the question"),
        (Reason("named", "solaris", None, ("Solaris",)), "the question names it: solaris (Solaris)"),
        (Reason("link", "zavrazhye", "d", ("born",)), "Andrei Tarkovsky mentions it: zavrazhye (born)"),
        (Reason("back", "solaris", "f", ("ocean",)), "mentions Solaris (ocean)"),
        (Reason("shared", "lena quist", "f", ()), "mentions lena quist, as Solaris does"),
        (Reason("hyperlink", "mirror", "f", ("film",)), "Solaris links to it as “mirror” (film)"),
        (Reason("linked", "the novel", "f", ()), "links to Solaris as “the novel”"),
        (Reason("linked", "", "elsewhere", ()), "links to elsewhere"),
        (Reason("link", "x", "t", ("\x1b[31mred",)), "Zavr [ 31mazhye mentions it: x ( [ 31mred)"),
    ],
)
def test_why_a_passage_was_found_is_told(reason: Reason, told: str) -> None:
    first, second, third = tree(Reason("named", "x", None, ()), reason, Reason("words", "", None, ()))
    assert second.partition("Andrei Tarkovsky  ")[2] == told
    assert first.endswith("Solaris  the question names it: x")
    assert "\x1b" not in third


EVERY_STEP: list[steps.TraceStep] = [
    steps.Estimated((0.1, 0.6, 0.2, 0.1)),
    steps.Recalled(("Who wrote it?",)),
    steps.Routed("single", "Solaris director"),
    steps.Decomposed(("Who?", "Where was #1 born?"), ("??",), ("first", "then"), "plan"),
    steps.Searched("q", (("p", "Title", 1.0),), offset=10),
    steps.Selected(1, (Fact("h", 1),), ("9s9",)),
    steps.Added(2, ()),
    steps.Proposed((("first query", 0.9), ("other query", 0.2))),
    steps.Learned(("A is B.",), ("What is C?",)),
    steps.Required(("What is D?",)),
    steps.Required(()),
    steps.Checked(("A is B.",), ("B is C.",)),
    steps.Decided("retrieve", "birthplace of B", "B is known now"),
    steps.Thought("So it is B."),
    steps.StepAnswered(2, "Where was B born?", "Paris", (Fact("h", 1),)),
    steps.Judged("accuracy", 0.8, "attributable"),
    steps.Scored(0.8),
    steps.Weighed(0.62, 0.71, False),
    steps.Revised("London", "it says so", True),
    steps.Replaced("Rome", "surer"),
    steps.Refined(2, "Where did B live?"),
    steps.Answered("Paris", "Because.", 0.5),
    steps.Shortened("answerer", 12_000, 6_000),
    steps.Replied("scout", (("query", "the mill"),)),
    steps.Stopped("stable"),
    steps.Parallel((Trace([steps.Thought("left")]), Trace([steps.Thought("right")]))),
]
"""Every kind of step with what must be readable of it."""


def test_every_kind_of_step_is_shown() -> None:
    assert {type(step) for step in EVERY_STEP} == set(steps.TraceStep.__subclasses__())
    trace = Trace(list(EVERY_STEP))
    tree = render(trace_tree(concluded(trace, "Paris", 0.5, evidence=[Evidence(HOSTILE, 1)], stop="stable")))
    for text in (
        "estimated hops: 1 10%, 2 60%", "Who wrote it?", "routed single: “Solaris director”",
        "asked plan, 2 sub-questions", "#2 Where was #1 born? (then)", "ignored: ??", "for “q”, from rank 11",
        "kept 1 in round 1", "added nothing in round 2", "0.90 first query", "known: A is B.",
        "required: What is C?", "What is D?", "required nothing more", "not supported: B is C.",
        "decided retrieve: “birthplace of B”", "B is known now", "thought So it is B.",
        "answered #2 Paris ← Where was B born?", "judged accuracy 0.80, attributable",
        "weighed 0.71 (alpha 0.62): did not pass", "revised London", "replaced by Rome: surer",
        "refined #2 Where did B live?", "answered Paris (0.50)", "stopped stable", "side by side 2 branches",
        "branch 2", "thought right", "the mill",
    ):  # fmt: skip
        assert text in tree, text


def test_the_cost_tells_calls_waits_and_what_was_dropped() -> None:
    side_by_side = steps.Parallel((Trace([steps.Thought("a")], 1), Trace([steps.Thought("b")], 1)))
    prediction = close(Trace([side_by_side, steps.Selected(1, (), ("9s9", "x"))], 2))
    line = cost(prediction, 1.0, Ledger())
    assert "4 LM calls (3 sequential)" in line
    assert "2 dropped from replies" in line
    record = to_record("q?", prediction, 1.0, Ledger())
    assert (record["lm_calls"], record["lm_calls_critical_path"], record["dropped"]) == (4, 3, 2)
