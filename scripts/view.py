"""How a prediction looks: in the terminal, as a tree of its steps, as JSON. The same for every program."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping
from itertools import zip_longest
from textwrap import shorten
from typing import Any

import dspy
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ..data.passages import Evidence, Fact, Passage, Reason
from ..programs.trace import Added, Answered, Decomposed, Searched, Selected, Step, Stopped

MOST_HITS = 10  # of a search, in the tree; the JSON has them all
MOST_TEXT = 320  # characters of a whole passage in a table


def print_answer(
    question: str, prediction: dspy.Prediction, seconds: float, *, trace: bool = False, gold: dspy.Example | None = None
) -> None:
    """The answer, its evidence, why the program stopped and what it cost; beside the gold answer where one is given."""
    console = Console(highlight=False)
    console.print(Text(plain(question), style="bold"))
    console.print(_answer_line(prediction, gold))
    if trace:
        console.print(Padding(trace_tree(prediction), (1, 0, 0, 2)))
    if prediction.evidence:
        console.print(Padding(evidence_table(prediction.evidence, gold.gold_facts if gold else None), (1, 0, 0, 2)))
    else:
        console.print(Text("  no evidence", style="dim"))
    console.print(Padding(Text(cost(prediction, seconds), style="dim"), (1, 0, 1, 2)))


def say(text: str) -> None:
    """A line between answers."""
    Console(highlight=False).print(Text(text, style="dim"))


def print_json(question: str, prediction: dspy.Prediction, seconds: float) -> None:
    """One JSON object on one line of stdout."""
    sys.stdout.write(json.dumps(to_record(question, prediction, seconds), ensure_ascii=False) + "\n")


def to_record(question: str, prediction: dspy.Prediction, seconds: float) -> dict[str, Any]:
    """A prediction as a JSON object. Sentences count from 0; null is the whole passage."""
    return {
        "question": question,
        "answer": prediction.answer,
        "confidence": prediction.confidence,
        "evidence": [
            {"passage_id": e.passage.id, "title": e.passage.title, "sentence": e.sentence, "text": e.text}
            for e in prediction.evidence
        ],
        "ranking": [passage.id for passage in prediction.ranking],
        "trace": prediction.trace.to_records(),
        "stop_reason": prediction.stop_reason,
        "lm_calls": prediction.trace.lm_calls,
        "searches": prediction.trace.searches,
        "seconds": round(seconds, 6),
    }


def cost(prediction: dspy.Prediction, seconds: float) -> str:
    """Why the program stopped, and what it took."""
    calls, searches = prediction.trace.lm_calls, prediction.trace.searches
    return (
        f"stopped: {prediction.stop_reason} · {_count(calls, 'LM call')} · {_count(searches, 'search', 'searches')} · "
        f"{seconds:.2f} s"
    )


def evidence_table(evidence: Iterable[Evidence], gold: Collection[Fact] | None = None) -> Table:
    """Title, text and address of each piece of evidence, best first; what is gold, where that is known, has a tick."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(style="bold", max_width=26)
    table.add_column()
    previous = ""
    for item in evidence:
        tick = "✓" if gold is not None and _is_gold(item, gold) else "·"
        title = "" if item.passage.id == previous else plain(item.passage.title)
        text = Text.assemble(_shorten(item.text), "  ", (address(item.fact), "dim"))
        table.add_row(Text(tick, style="green" if tick == "✓" else "dim"), Text(title), text)
        previous = item.passage.id
    return table


def _is_gold(item: Evidence, gold: Collection[Fact]) -> bool:
    if item.sentence is None:
        return item.passage.id in {fact.passage_id for fact in gold}
    return item.fact in gold


def trace_tree(prediction: dspy.Prediction) -> Tree:
    """Every step of a run, with the texts that it was about."""
    passages = {passage.id: passage for passage in prediction.ranking}
    tree = Tree(Text(f"{len(prediction.trace.steps)} steps"), guide_style="dim")
    for step in prediction.trace.steps:
        _add_step(tree, step, passages)
    return tree


def _add_step(tree: Tree, step: Step, passages: Mapping[str, Passage]) -> None:
    match step:
        case Decomposed(sub_questions, invalid):
            branch = _branch(tree, "asked", _count(len(sub_questions), "sub-question"))
            for number, text in enumerate(sub_questions, 1):
                branch.add(Text(f"#{number} {plain(text)}"))
            _add_invalid(branch, invalid)
        case Searched(query, found, reasons):
            branch = _branch(tree, "found", f"{_count(len(found), 'passage')} for “{plain(query)}”")
            titles = {id: title for id, title, _ in found}
            for (_, title, score), reason in zip_longest(found[:MOST_HITS], reasons[:MOST_HITS]):
                why = f"  {_why(reason, titles)}" if reason else ""
                branch.add(Text.assemble(f"{score:6.2f}  {plain(title)}", (why, "dim")))
            if len(found) > MOST_HITS:
                branch.add(Text(f"... and {len(found) - MOST_HITS} more", style="dim"))
        case Selected(number, facts, invalid) | Added(number, facts, invalid):
            verb = "kept" if isinstance(step, Selected) else "added"
            branch = _branch(tree, verb, f"{len(facts) or 'nothing'} in round {number}")
            for fact in facts:
                branch.add(_fact_line(fact, passages))
            _add_invalid(branch, invalid)
        case Answered(answer, reasoning, confidence):
            branch = _branch(tree, "answered", f"{plain(answer)} ({confidence:.2f})")
            for line in reasoning.splitlines():
                branch.add(Text(plain(line)))
        case Stopped(reason):
            _branch(tree, "stopped", reason)


def _why(reason: Reason, titles: Mapping[str, str]) -> str:
    """Why a passage belongs to the chain, in words."""
    source = plain(titles.get(reason.source or "") or reason.source or "")
    words = f" ({plain(', '.join(reason.words))})" if reason.words else ""
    match reason.via:
        case "named":
            return f"the question names it: {reason.name}{words}"
        case "link":
            return f"{source} mentions it: {reason.name}{words}"
        case "back":
            return f"mentions {source}{words}"
        case "shared":
            return f"mentions {reason.name}, as {source} does{words}"
        case _:
            return f"has words of the question{words}"


def _branch(tree: Tree, verb: str, rest: str) -> Tree:
    return tree.add(Text.assemble((f"{verb} ", "cyan"), rest))


def _fact_line(fact: Fact, passages: Mapping[str, Passage]) -> Text:
    item = Evidence(passages[fact.passage_id], fact.sentence)
    text = _shorten(item.text)
    return Text.assemble((plain(item.passage.title), "bold"), f"  {text}  ", (address(fact), "dim"))


def _add_invalid(branch: Tree, invalid: Collection[str]) -> None:
    if invalid:
        branch.add(Text("ignored: " + ", ".join(plain(text) for text in invalid), style="yellow"))


def _answer_line(prediction: dspy.Prediction, gold: dspy.Example | None) -> Text:
    line = Text.assemble(
        "  ", (plain(prediction.answer), "bold green"), (f"  confidence {prediction.confidence:.2f}", "dim")
    )
    if gold:
        from ..eval.metrics import exact_match

        right = exact_match(prediction.answer, gold.answers) == 1.0
        line.append(f"  {'right' if right else 'wrong'}: gold is {gold.answers[0]}", style="green" if right else "red")
    return line


def address(fact: Fact) -> str:
    """``passage-id:3`` for a sentence (counted from 0), ``passage-id`` for a whole passage."""
    id = plain(fact.passage_id)
    return id if fact.sentence is None else f"{id}:{fact.sentence}"


def plain(text: str) -> str:
    """On one line, without control characters: a passage must not be able to drive the terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _shorten(text: str) -> str:
    return shorten(plain(text), MOST_TEXT, placeholder=" …")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
