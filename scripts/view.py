"""Predictions in the terminal and as JSON, the same for all programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import dspy
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ..data.passages import Evidence, Fact, Hit, Passage
from ..data.text import count, plain, quoted
from ..engines.costs import Ledger
from ..programs import trace as steps
from ..programs.prediction import UNKNOWN
from ..programs.prediction import to_record as prediction_record
from ..programs.trace import Trace, TraceStep, describe
from .evaluation_view import costs_table
from .text import address, compact, dollars, short

IN_DOUBT = ("in doubt", "not supported", "contradicted", "no answer")
_STYLES = {"verified": "green", "contradicted": "red"}
MOST_HITS = 10  # of a search, in the tree; the JSON has them all


def print_answer(
    question: str,
    prediction: dspy.Prediction,
    seconds: float,
    ledger: Ledger,
    *,
    index: str | None = None,
    trace: bool = False,
    gold: dspy.Example | None = None,
) -> None:
    """Print the answer, its evidence, the stop reason, the costs, the index, and the gold answer if there is one."""
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
    footer = cost(prediction, seconds, ledger) + (f" · searched {plain(index)}" if index else "")
    parts.append(Padding(Text(footer, style="dim"), (1, 0, 1, 2)))
    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        console.print(Group(*parts))
        return
    with console.capture() as captured:
        console.print(Group(*parts))
    for line in captured.get().splitlines():  # Rich pads tables with blanks
        console.out(line.rstrip(), highlight=False)


def hit_lines(query: str, hits: Sequence[Hit]) -> list[Text]:
    """The hits of a search with their first words, best first: two lines for each."""
    titles, lines = {hit.passage.id: hit.passage.title for hit in hits}, list[Text]()
    for hit in hits:
        why = f"  {quoted(hit.reason.told(titles))}" if hit.reason else ""
        title = (quoted(hit.passage.title), "bold")
        lines.append(Text.assemble(f"{hit.rank:4} {hit.score:7.2f}  ", title, (why, "dim")))
        lines.append(Text(f"{'':14}{short(hit.passage.text)}  {quoted(hit.passage.id)}"))
    return lines or [Text(f"nothing found for “{plain(query)}”")]


def say(text: str) -> None:
    """Print a line between answers."""
    Console(highlight=False, markup=False, emoji=False).print(Text(text, style="dim"))


def print_json(
    question: str, prediction: dspy.Prediction, seconds: float, ledger: Ledger, index: str | None = None
) -> None:
    """Print one JSON object on one line."""
    record = to_record(question, prediction, seconds, ledger) | {"index": index}
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


def to_record(question: str, prediction: dspy.Prediction, seconds: float, ledger: Ledger) -> dict[str, Any]:
    """A prediction as a JSON object. Sentences are numbered from 0; null is the whole passage."""
    return {
        "question": question,
        **prediction_record(prediction),
        "seconds": round(seconds, 6),
        "costs": ledger.costs(),
        "costs_by_agent": ledger.by_agent(),
        "incidents": ledger.incidents,
    }


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
        title = "" if item.passage.id == previous else quoted(item.passage.title)
        text = Text.assemble(short(item.text), "  ", (address(item.fact), "dim"))
        table.add_row(Text(tick, style="green" if tick == "✓" else "dim"), Text(title), text)
        previous = item.passage.id
    return table


def _is_gold(item: Evidence, gold: Collection[Fact]) -> bool:
    if item.sentence is None:
        return item.passage.id in {fact.passage_id for fact in gold}
    return item.fact in gold


def _answer_line(prediction: dspy.Prediction, gold: dspy.Example | None) -> Text:
    guess = prediction.get("guess") or ""
    line = Text.assemble(
        "  ",
        (plain(prediction.answer), "bold yellow" if prediction.get("status") in IN_DOUBT else "bold green"),
        (f"  perhaps: {plain(guess)}" if guess else "", "yellow"),
    )
    if prediction.confidence is None:  # a program of the user's own, which does not tell
        return line
    line.append(f"  confidence {prediction.confidence:.2f}", "dim")
    if prediction.answer != UNKNOWN:
        line.append(f", {prediction.status}", style=_STYLES.get(prediction.status, "yellow"))
    if gold:
        from ..eval.scoring import exact_match

        right = exact_match(prediction.answer, gold.answers) == 1.0
        line.append(f"  {'right' if right else 'wrong'}: gold is {gold.answers[0]}", style="green" if right else "red")
    return line


# --- traces as trees -------------------------------------------------------------------------------------------------


def trace_tree(prediction: dspy.Prediction) -> Tree:
    """Every step of a run, with the texts that it was about."""
    passages = {passage.id: passage for passage in prediction.ranking}
    tree = Tree(Text(f"{sum(1 for _ in prediction.trace.flat())} steps"), guide_style="dim")
    _grow(tree, prediction.trace, passages)
    return tree


def _grow(tree: Tree, trace: Trace, passages: Mapping[str, Passage]) -> None:
    for step in trace.steps:
        if isinstance(step, steps.Parallel):
            branch = tree.add(Text.assemble(("side by side ", "cyan"), count(len(step.branches), "branch", "branches")))
            for number, each in enumerate(step.branches, 1):
                _grow(branch.add(Text(f"branch {number}", style="dim")), each, passages)
        else:
            _add_step(tree, step, passages)
            if invalid := getattr(step, "invalid", ()):
                tree.children[-1].add(Text("ignored: " + ", ".join(short(text) for text in invalid), style="yellow"))


def _add_step(tree: Tree, step: TraceStep, passages: Mapping[str, Passage]) -> None:
    line, details, facts = describe(step)
    verb, blank, text = plain(line).partition(" ")
    branch = tree.add(Text.assemble((verb + blank, "cyan"), text))
    for text in details:
        branch.add(Text(plain(text)))
    for fact in facts:
        item = Evidence(passages[fact.passage_id], fact.sentence)
        title = (quoted(item.passage.title), "bold")
        branch.add(Text.assemble(title, f"  {short(item.text)}  ", (address(fact), "dim")))
    if isinstance(step, steps.Searched):
        _add_hits(branch, step)


def _add_hits(branch: Tree, step: steps.Searched) -> None:
    titles = {id: title for id, title, _ in step.found}
    for (_, title, score), reason in zip_longest(step.found[:MOST_HITS], step.reasons[:MOST_HITS]):
        why = f"  {quoted(reason.told(titles))}" if reason else ""
        branch.add(Text.assemble(f"{score:6.2f}  {quoted(title)}", (why, "dim")))
    if len(step.found) > MOST_HITS:
        branch.add(Text(f"... and {len(step.found) - MOST_HITS} more", style="dim"))
