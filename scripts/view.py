"""Predictions in the terminal and as JSON, the same for all programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable
from typing import Any

import dspy
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..data.passages import Evidence, Fact
from ..engines.costs import Ledger
from ..programs.prediction import UNKNOWN
from ..programs.trace import Replaced, Revised, Trace, Weighed
from .evaluation_view import costs_table
from .text import address, compact, count, dollars, plain, short
from .tree import trace_tree


def print_answer(
    question: str,
    prediction: dspy.Prediction,
    seconds: float,
    ledger: Ledger,
    *,
    trace: bool = False,
    gold: dspy.Example | None = None,
) -> None:
    """Print the answer, its evidence, the stop reason and the costs; and the gold answer, if there is one."""
    parts: list[RenderableType] = [Text(plain(question), style="bold"), _answer_line(prediction, gold)]
    if trace:
        parts.append(Padding(trace_tree(prediction), (1, 0, 0, 2)))
    if prediction.evidence:
        table = evidence_table(prediction.evidence, gold.gold_facts if gold else None)
        parts.append(Padding(table, (1, 0, 0, 2)))
    else:
        parts.append(Text("  no evidence", style="dim"))
    if trace and ledger.by_agent():
        parts.append(Padding(costs_table(ledger.by_agent(), ""), (1, 0, 0, 2)))
    parts.append(Padding(Text(cost(prediction, seconds, ledger), style="dim"), (1, 0, 1, 2)))
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(Group(*parts))
        return
    with console.capture() as captured:
        console.print(Group(*parts))
    for line in captured.get().splitlines():  # Rich pads tables with blanks
        console.out(line.rstrip(), highlight=False)


def say(text: str) -> None:
    """Print a line between answers."""
    Console(highlight=False).print(Text(text, style="dim"))


def print_json(question: str, prediction: dspy.Prediction, seconds: float, ledger: Ledger) -> None:
    """Print one JSON object on one line."""
    sys.stdout.write(json.dumps(to_record(question, prediction, seconds, ledger), ensure_ascii=False) + "\n")


def to_record(question: str, prediction: dspy.Prediction, seconds: float, ledger: Ledger) -> dict[str, Any]:
    """A prediction as a JSON object. Sentences are numbered from 0; null is the whole passage."""
    return {
        "question": question,
        "answer": prediction.answer,
        "confidence": prediction.confidence,
        "verified": verified(prediction.trace),
        "evidence": [
            {"passage_id": e.passage.id, "title": e.passage.title, "sentence": e.sentence, "text": e.text}
            for e in prediction.evidence
        ],
        "ranking": [passage.id for passage in prediction.ranking],
        "trace": prediction.trace.to_records(),
        "stop_reason": prediction.stop_reason,
        "lm_calls": prediction.trace.lm_calls,
        "lm_calls_critical_path": prediction.trace.lm_calls_critical_path,
        "searches": prediction.trace.searches,
        "dropped": prediction.trace.dropped,
        "seconds": round(seconds, 6),
        "costs": ledger.costs(),
        "costs_by_agent": ledger.by_agent(),
        "incidents": ledger.incidents,
    }


def verified(trace: Trace) -> bool | None:
    """Whether the answer passed the program's verification; None if there was none.

    An answer that replaces a verified one was not verified itself.
    """
    passed: bool | None = None
    for step in trace.flat():
        if isinstance(step, Weighed):
            passed = step.passed
        elif passed and (isinstance(step, Replaced) or (isinstance(step, Revised) and step.accepted)):
            passed = False
    return passed


def cost(prediction: dspy.Prediction, seconds: float, ledger: Ledger) -> str:
    """Stop reason, costs and incidents."""
    trace, paid = prediction.trace, ledger.costs()
    calls, sequential = trace.lm_calls, trace.lm_calls_critical_path
    parts = [
        f"stopped: {prediction.stop_reason}",
        count(calls, "LM call") + (f" ({sequential} sequential)" if sequential != calls else ""),
        count(trace.searches, "search", "searches"),
        *([f"{compact(paid['tokens'])} tokens"] if paid["tokens"] else []),
        *([f"${dollars(paid['cost_usd'])}"] if paid.get("cost_usd") else []),
        f"{seconds:.2f} s",
        *(f"{incident} {number}x" for incident, number in ledger.incidents.items()),
    ]
    return " · ".join([*parts, *([f"{trace.dropped} dropped from replies"] if trace.dropped else [])])


def evidence_table(evidence: Iterable[Evidence], gold: Collection[Fact] | None = None) -> Table:
    """Title, text and address of the evidence, best first; gold evidence has a tick, if it is known."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(style="bold", max_width=26)
    table.add_column()
    previous = ""
    for item in evidence:
        tick = "✓" if gold is not None and _is_gold(item, gold) else "·"
        title = "" if item.passage.id == previous else plain(item.passage.title)
        text = Text.assemble(short(item.text), "  ", (address(item.fact), "dim"))
        table.add_row(Text(tick, style="green" if tick == "✓" else "dim"), Text(title), text)
        previous = item.passage.id
    return table


def _is_gold(item: Evidence, gold: Collection[Fact]) -> bool:
    if item.sentence is None:
        return item.passage.id in {fact.passage_id for fact in gold}
    return item.fact in gold


def _answer_line(prediction: dspy.Prediction, gold: dspy.Example | None) -> Text:
    line = Text.assemble(
        "  ", (plain(prediction.answer), "bold green"), (f"  confidence {prediction.confidence:.2f}", "dim")
    )
    if verified(prediction.trace) is False and prediction.answer != UNKNOWN:
        line.append(", not verified", style="yellow")
    if gold:
        from ..eval.scoring import exact_match

        right = exact_match(prediction.answer, gold.answers) == 1.0
        line.append(f"  {'right' if right else 'wrong'}: gold is {gold.answers[0]}", style="green" if right else "red")
    return line
