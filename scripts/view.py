"""Answers and hits in the terminal and as JSON, the same for all programs; and what a program does meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from time import perf_counter
from typing import Any

import dspy
from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ..data.languages import is_english
from ..data.passages import Evidence, Fact, Hit, Passage, Reason
from ..data.text import count, plain, terms, title_key
from ..engines.costs import Ledger
from ..engines.replies import model_errors
from ..eval.metrics import COSTS
from ..eval.scoring import exact_match
from ..programs import trace as steps
from ..programs.prediction import STOPS, UNKNOWN, to_record
from ..programs.program import ask, completed
from ..programs.trace import Event, Trace, describe, following
from .results import costs_table
from .terminal import MOST_TEXT, new_console, short, warn

IN_DOUBT = ("in doubt", "not supported", "contradicted", "no answer")
_STYLES = {"verified": "green", "contradicted": "red"}
_MOST_HITS = 10  # of a search, in the tree; the JSON has them all
_STEPS = 8  # lines of progress
_LEAST_GUESS = 0.2  # probability of a guess without a model: what is less likely says nothing


@dataclass(frozen=True)
class Answered:
    """What a program predicted for a question, and what that took."""

    question: str
    prediction: dspy.Prediction
    seconds: float
    ledger: Ledger

    def to_record(self) -> dict[str, Any]:
        """As a JSON object. Sentences are numbered from 0; null is the whole passage."""
        return {
            "question": self.question,
            **to_record(self.prediction),
            "seconds": round(self.seconds, 6),
            "costs": self.ledger.costs(),
            "costs_by_agent": self.ledger.by_agent(),
            "incidents": self.ledger.incidents,
        }

    @property
    def cost(self) -> str:
        """Stop reason, costs and incidents."""
        stop, trace, paid = self.prediction.stop_reason, self.prediction.trace, self.ledger.costs()
        calls, sequential = trace.lm_calls, trace.lm_calls_critical_path
        parts = [
            f"stopped: {STOPS.get(stop, stop)}",
            count(calls, "LM call") + (f" ({sequential} sequential)" if sequential != calls else ""),
            count(trace.searches, "search", "searches"),
            *([f"{paid['tokens']:,} tokens"] if paid["tokens"] else []),
            *([COSTS["cost_usd"].text(paid["cost_usd"])] if paid.get("cost_usd") else []),
            f"{self.seconds:.2f} s",
            *(f"{incident} {number}x" for incident, number in self.ledger.incidents.items()),
            *([f"{trace.dropped} dropped from replies"] if trace.dropped else []),
        ]
        return " · ".join(parts)


def answered(program: dspy.Module, example: dspy.Example) -> Answered:
    """Ask a question; incidents, such as requests that are repeated, are told as they happen."""
    start, ledger = perf_counter(), Ledger(on_incident=lambda incident: warn(f"{incident} ..."))
    with model_errors(), dspy.context(usage_tracker=ledger):
        prediction = completed(ask(program, example))
    return Answered(example.question, prediction, perf_counter() - start, ledger)


def print_answer(
    done: Answered, *, index: str | None = None, trace: bool = False, gold: dspy.Example | None = None
) -> None:
    """Print the answer, its evidence, the stop reason, the costs, the index, and the gold answer if there is one. The
    evidence that states the answer comes first; without an answer and a guess, what was kept supports nothing.
    """
    prediction, by_agent = done.prediction, done.ledger.by_agent()
    answer = prediction.get("guess") or ("" if prediction.answer == UNKNOWN else prediction.answer)
    parts: list[RenderableType] = [_answer_line(prediction, gold)]
    if trace:
        parts.append(_indented(trace_tree(prediction)))
    if answer and prediction.evidence:
        evidence = sorted(prediction.evidence, key=lambda item: not _states(item, answer))
        parts.append(_indented(evidence_table(evidence, gold.gold_facts if gold else ())))
    else:
        parts.append(Text("  no evidence", style="dim"))
    if trace and by_agent:
        parts.append(_indented(costs_table(by_agent, "")))
    _print(done, [*parts, Text()], done.cost, index)


def print_chain(
    done: Answered, *, index: str | None = None, trace: bool = False, gold: dspy.Example | None = None
) -> None:
    """Print what is known without a language model: the chain of evidence, why each passage is in it, and the best
    guess with what it rests on."""
    prediction = done.prediction
    guess = prediction.get("guess") or (prediction.answer if prediction.answer != UNKNOWN else "")
    parts: list[RenderableType] = [_indented(trace_tree(prediction))] if trace else []
    parts += [_indented(chain_table(prediction, gold.gold_facts if gold else ())), Text()]
    if guess and (prediction.confidence or 0.0) >= _LEAST_GUESS:
        stating = next((item for item in prediction.evidence if _states(item, guess)), None)
        rests_on = f", as {_address(stating.fact)} says" if stating else ""
        likely = "best guess" if prediction.answer != UNKNOWN else "perhaps"
        line = Text.assemble(
            f"  {likely}: ", (plain(guess), "bold yellow"), f" ({prediction.confidence:.0%})", rests_on
        )
        parts.append(line.append(_verdict(guess, gold)) if gold else line)
    else:
        why = "" if is_english(done.question) else ": without a language model, for English questions only"
        parts.append(Text(f"  no guess{why}"))
    footer = f"{count(prediction.trace.searches, 'search', 'searches')} · {done.seconds:.2f} s"
    _print(done, parts, footer, index)


def _print(done: Answered, parts: Sequence[RenderableType], footer: str, index: str | None) -> None:
    footer += f" · searched {plain(index)}" if index else ""
    last = Padding(Text(footer, style="dim"), (0, 0, 1, 2), expand=False)
    new_console().print(Group(Text(plain(done.question), style="bold"), *parts, last))


def _indented(shown: RenderableType) -> Padding:
    return Padding(shown, (1, 0, 0, 2), expand=False)


def _states(item: Evidence, answer: str) -> bool:
    return f" {title_key(answer)} " in f" {title_key(item.text)} "


def chain_table(prediction: dspy.Prediction, gold: Collection[Fact]) -> Table:
    """The passages with evidence as they were found, each with the reason, if that is about those that are shown, and
    their sentences."""
    titles, reasons = dict[str, str](), dict[str, Reason]()
    for step in prediction.trace.flat():
        if isinstance(step, steps.Searched):
            titles |= {id: title for id, title, _ in step.found if id not in titles}
            for (id, *_), reason in zip(step.found, step.reasons, strict=False):
                reasons.setdefault(id, reason)
    order = {id: place for place, id in enumerate(titles)}
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(overflow="fold")
    passages = {item.passage.id: item.passage for item in prediction.evidence}
    for id in sorted(passages, key=lambda id: order.get(id, len(order))):
        why = ""
        if id in reasons and (reasons[id].source is None or reasons[id].source in passages):
            why = f"  {replace(reasons[id], words=()).told(titles)}"
        table.add_row("", Text.assemble((plain(passages[id].title), "bold"), (why, "dim")))
        items = [item for item in prediction.evidence if item.passage.id == id]
        for item in sorted(items, key=lambda item: item.sentence or 0):
            table.add_row(_mark(item, gold), Text.assemble(short(item.text), "  ", (_address(item.fact), "dim")))
    return table


def _verdict(answer: str, gold: dspy.Example) -> Text:
    right = exact_match(answer, gold.answers) == 1.0
    return Text(f"  {'right' if right else 'wrong'}: gold is {gold.answers[0]}", "green" if right else "red")


def _mark(item: Evidence, gold: Collection[Fact]) -> Text:
    is_gold = any(fact == item.fact or (item.sentence is None and fact.passage_id == item.passage.id) for fact in gold)
    return Text("✓", "green") if is_gold else Text("·", "dim")


def hit_lines(query: str, hits: Sequence[Hit]) -> list[Text]:
    """The hits of a search, best first, with the words around what matches: two lines for each."""
    titles, lines = {hit.passage.id: hit.passage.title for hit in hits}, list[Text]()
    for hit in hits:
        why = f"  {plain(hit.reason.told(titles))}" if hit.reason else ""
        title = (plain(hit.passage.title), "bold")
        lines.append(Text.assemble(f"{hit.rank:4} {hit.score:7.2f}  ", title, (why, "dim")))
        lines.append(Text(f"{'':14}{excerpt(query, hit)}  {plain(hit.passage.id)}"))
    return lines or [Text(f"nothing found for “{plain(query)}”")]


def excerpt(query: str, hit: Hit) -> str:
    """A hit around the first sentence with most words of the query and of the reason."""
    wanted = set(terms(" ".join([query, *((hit.reason.name, *hit.reason.words) if hit.reason else ())])))
    sentences, text = hit.passage.sentences, hit.passage.text
    if len(text) <= MOST_TEXT:
        return short(text)
    best = max(range(len(sentences)), key=lambda n: len(wanted & set(terms(sentences[n]))))
    size, start = len(sentences[best]), best
    while start and size + len(sentences[start - 1]) < MOST_TEXT // 2:
        start -= 1
        size += len(sentences[start])
    return ("… " if start else "") + short(" ".join(text.strip() for text in sentences[start:]))


def evidence_table(evidence: Iterable[Evidence], gold: Collection[Fact] = ()) -> Table:
    """Title, text and address of the evidence, best first; gold evidence has a tick, if it is known."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(style="bold", max_width=26)
    table.add_column(overflow="fold")  # an address is to be copied
    previous = ""
    for item in evidence:
        title = "" if item.passage.id == previous else plain(item.passage.title)
        text = Text.assemble(short(item.text), "  ", (_address(item.fact), "dim"))
        table.add_row(_mark(item, gold), Text(title), text)
        previous = item.passage.id
    return table


def _address(fact: Fact) -> str:
    """``passage-id:3`` for a sentence (numbered from 0), ``passage-id`` for a whole passage."""
    return plain(fact.passage_id) + ("" if fact.sentence is None else f":{fact.sentence}")


def _answer_line(prediction: dspy.Prediction, gold: dspy.Example | None) -> Text:
    guess, status = prediction.get("guess") or "", prediction.get("status")
    answer = (plain(prediction.answer), "bold yellow" if status in IN_DOUBT else "bold green")
    line = Text.assemble("  ", answer, (f"  perhaps: {plain(guess)}" if guess else "", "yellow"))
    if prediction.confidence:  # a program of the user's own may not tell it, and "unknown" has that of its guess
        line.append(f"  confidence {prediction.confidence:.2f}", "dim")
    if prediction.confidence is not None and prediction.answer != UNKNOWN:
        line.append(f", {status}", style=_STYLES.get(str(status), "yellow"))
    if gold:
        line.append(_verdict(prediction.answer, gold))
    return line


# --- traces as trees -------------------------------------------------------------------------------------------------


def trace_tree(prediction: dspy.Prediction) -> Tree:
    """Every step of a run, with the texts that it was about."""
    passages = {passage.id: passage for passage in prediction.ranking}
    tree = Tree(Text(f"{sum(1 for _ in prediction.trace.flat())} steps"), guide_style="dim")
    _grow(tree, prediction.trace, passages)
    return tree


def _grow(tree: Tree, trace: Trace, passages: Mapping[str, Passage]) -> None:
    before: dict[type, tuple[list[str], list[Fact]]] = {}
    for step in trace.steps:
        if isinstance(step, steps.Parallel):
            branch = tree.add(Text.assemble(("side by side ", "cyan"), count(len(step.branches), "branch", "branches")))
            for number, inner in enumerate(step.branches, 1):
                _grow(branch.add(Text(f"branch {number}", style="dim")), inner, passages)
            continue
        line, details, facts = describe(step)
        verb, blank, text = plain(line).partition(" ")
        branch = tree.add(Text.assemble((verb + blank, "cyan"), text))
        if before.get(type(step)) == (details, facts) and (details or facts):  # a round that changed nothing
            branch.add(Text("as before", style="dim"))
            continue
        before[type(step)] = details, facts
        for text in details:
            branch.add(Text(plain(text)))
        for fact in facts:
            item = Evidence(passages[fact.passage_id], fact.sentence)
            heading = (plain(item.passage.title), "bold")
            branch.add(Text.assemble(heading, f"  {short(item.text)}  ", (_address(fact), "dim")))
        if isinstance(step, steps.Searched):
            titles = {id: title for id, title, _ in step.found}
            for (_, title, score), reason in zip_longest(step.found[:_MOST_HITS], step.reasons[:_MOST_HITS]):
                why = f"  {plain(reason.told(titles))}" if reason else ""
                branch.add(Text.assemble(f"{score:6.2f}  {plain(title)}", (why, "dim")))
            if len(step.found) > _MOST_HITS:
                branch.add(Text(f"... and {len(step.found) - _MOST_HITS} more", style="dim"))
        if invalid := getattr(step, "invalid", ()):
            branch.add(Text("ignored: " + ", ".join(short(text) for text in invalid), style="yellow"))


# --- while a command waits -------------------------------------------------------------------------------------------


@contextmanager
def showing_progress() -> Iterator[None]:
    """Inside, the latest steps and the agents that are asked are shown on stderr, if that is a terminal, and then
    removed."""
    console = new_console(err=True)
    if not console.is_terminal:
        yield
        return
    lines = deque[Text](maxlen=_STEPS)

    def tell(event: Event) -> None:
        text = "".join(f"{n}. " for n in event.branch) + short(event.text) + (" ..." if event.step is None else "")
        lines.append(Text(f"  {text}", style="dim", no_wrap=True, overflow="ellipsis"))
        live.update(Group(*lines))

    with Live(console=console, transient=True) as live, following(tell):
        yield
