"""`polyhop diff`: what changed between two programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.text import plain
from .options import artifact_of, label, open_prompts, program_class
from .text import new_table, short

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rich.console import Console
    from rich.text import Text

    from ..optimizers.diff import AgentChange, Difference, Piece, Side

_MARKS = {"=": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}
_STYLES = {"=": "", "-": "red", "+": "green"}
_SCORES = ("answer_em", "answer_f1", "evidence_f1", "fact_f1", "joint_f1", "lm_calls")  # and the metric tuned for
_CONTEXT = 60  # unchanged characters shown before and after a change


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A program, or the folder of an artifact.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what changed from A to B: instructions, demos, exemplars, tunables, scores, versions.

    In instructions, text removed from A is marked [-so-] and text added in B {+so+}. --json includes all scores.
    """
    from ..optimizers.diff import compare

    first, second = _sides(before, after)
    found = compare(first, second)
    if as_json:
        typer.echo(json.dumps({"a": before, "b": after, "same": found.same, **asdict(found)}, ensure_ascii=False))
        return
    tuned = {side.manifest.metric for side in (first, second) if side.manifest}
    _print(found, before, after, {*_SCORES, *tuned})


def _sides(before: str, after: str) -> tuple[Side, Side]:
    """Both sides; an untuned program is built with the kind of retriever that the other was tuned with."""
    from ..optimizers.diff import Side

    artifacts = {name: found for name in (before, after) if (found := artifact_of(name))}
    chained = any(name.startswith("search.chain[") for each in artifacts.values() for name in each.state.tunables)

    def side(name: str) -> Side:
        if name in artifacts:
            return Side.of_artifact(name, artifacts[name])
        if artifacts and not chained and (kind := program_class(name)):
            return Side.of(name, kind.over())
        return Side.of(name, open_prompts(name)[0])

    return side(before), side(after)


def _print(found: Difference, before: str, after: str, metrics: Collection[str | None]) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    names = (plain(label(before)), plain(label(after)))
    if found.same:
        console.print("The same instructions, demos, exemplars and tunables.")
    for missing, where in ((found.only_before, before), (found.only_after, after)):
        if missing:
            console.print(f"Only in {plain(where)}: {plain(', '.join(missing))}\n", markup=False)
    if found.others:
        console.print(f"Changed: {plain(', '.join(found.others))}\n", markup=False)
    for name, change in found.agents.items():
        _print_agent(console, name, change)
    exemplars = [
        (plain(name), _hops(change.before), _hops(change.after), f"-{change.removed} +{change.added}")
        for name, change in found.exemplars.items()
    ]
    tunables = [
        (plain(name), _tuned(old), _tuned(new), plain(range_)) for name, (old, new, range_) in found.tunables.items()
    ]
    scores = {name: pair for name, pair in found.scores.items() if name.partition(" ")[2] in metrics}
    shown = [_scored(name, *pair) for name, pair in scores.items()]
    if more := len(found.scores) - len(scores):
        shown.append((f"and {more} more: --json", "", ""))
    about = [(plain(name), _value(old), _value(new)) for name, (old, new) in _joined(found.about)]
    _print_table(console, "Exemplars, by hops", ("", *names, "exemplars"), exemplars)
    _print_table(console, "Tunables", ("", *names, "range"), tunables)
    _print_table(console, "Scores, with intervals", ("", *names), shown)
    _print_table(console, "Provenance", ("", *names), about)


def _print_agent(console: Console, name: str, change: AgentChange) -> None:
    from rich.text import Text

    console.print(Text(plain(name), "bold"))
    if change.fields:
        console.print(Text(f"  other fields: {plain(', '.join(change.fields))}"))
    if change.instructions:
        console.print(_instructions(change.instructions))
    for mark, demos in (("-", change.removed), ("+", change.added)):
        for demo in demos:
            text = short(json.dumps(demo, ensure_ascii=False))
            console.print(Text(f"  {mark} demo {text}", _STYLES[mark]))
    console.print()


def _instructions(pieces: Iterable[Piece]) -> Text:
    """The changed words with some context."""
    from rich.text import Text

    text = Text("  ")
    pieces = list(pieces)
    for n, (kind, words) in enumerate(pieces):
        words = plain(words) if kind != "=" else _context(words, n == 0, n == len(pieces) - 1)
        if words.strip():
            opening, closing = _MARKS[kind]
            text.append(f"{opening}{words}{closing} ", _STYLES[kind])
    return text


def _context(words: str, first: bool, last: bool) -> str:
    """The ends of an unchanged stretch."""
    words = plain(words)
    if len(words) <= 2 * _CONTEXT:
        return words
    start = "" if first else words[:_CONTEXT].rsplit(" ", 1)[0]
    end = "" if last else words[-_CONTEXT:].split(" ", 1)[-1]
    return f"{start} … {end}".strip()


def _print_table(console: Console, title: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.text import Text

    if not rows:
        return
    shown = new_table(title, *headings)
    for row in rows:
        shown.add_row(*map(Text, row))
    console.print(shown, "")


def _hops(counts: dict[int, int]) -> str:
    return f"{sum(counts.values())} ({', '.join(f'{count} of {hops}' for hops, count in counts.items())})"


def _scored(name: str, before: dict[str, float] | None, after: dict[str, float] | None) -> tuple[str, str, str]:
    from ..eval.metrics import quantity

    split, _, metric = name.partition(" ")
    shown = quantity(metric)

    def text(score: dict[str, float] | None) -> str:
        if score is None:
            return ""
        mean, low, high = (shown.text(score[each]) for each in ("mean", "low", "high"))
        return f"{mean} ({low} to {high})"

    return plain(f"{split} {shown.heading}"), text(before), text(after)


def _joined(about: dict[str, tuple[Any, Any]]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Changes in the manifest; agents with the same models share a line."""
    of, models = "model of ", [(name, pair) for name, pair in about.items() if name.startswith("model of ")]
    seen: list[tuple[Any, Any]] = []
    for name, pair in about.items():
        if not name.startswith(of):
            yield name, pair
        elif pair not in seen:
            seen.append(pair)
            yield of + ", ".join(each.removeprefix(of) for each, theirs in models if theirs == pair), pair


def _tuned(value: Any) -> str:
    """A tunable's value, a real one with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value)


def _value(value: Any) -> str:
    return "" if value is None else plain(value if isinstance(value, str) else _tuned(value))
