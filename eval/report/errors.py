"""What became of the questions, and the frame of the browser in which each can be opened."""

from __future__ import annotations

from collections import Counter

from .figures import stacked
from .html import Html, details, join, table, tag
from .marks import Series, run_name
from .numbers import share
from .outcomes import Outcome
from .runs import Group


def outcomes(group: Group, series: Series) -> Html:
    """How many questions of every run came to what."""
    counts = {run.name: Counter(run.outcomes) for run in group.runs}
    kinds = [kind for kind in Outcome if any(found[kind] for found in counts.values())]
    rows = [
        [
            run_name(run, series),
            tag(
                "td",
                stacked([(f"o-{kind.name}", kind.value, counts[run.name][kind]) for kind in kinds], run.done),
                class_="wide",
            ),
            *(_cell(counts[run.name][kind], run.done, place, kind) for kind in kinds),
        ]
        for place, run in enumerate(group.runs)
    ]
    bar = tag("th", "as a bar", class_="words", scope="col")
    head = ["Run", bar, *map(outcome_name, kinds)]
    return table("What became of the questions", head, rows, class_="numbers full")


def outcome_name(kind: Outcome) -> Html:
    return tag("span", tag("i", class_=f"swatch o-{kind.name}", aria_hidden="true"), kind.value, class_="outcome")


def _cell(count: int, questions: int, run: int, kind: Outcome) -> Html:
    """A number that leads to its questions."""
    if not count:
        return tag("td", "–", class_="quiet")
    told = f"Show the questions: {kind.value}"
    which = tag("button", f"{count:,}", type="button", class_="link", title=told, data_run=run, data_outcome=kind.name)
    return tag("td", which, " ", tag("small", share(count / questions), class_="quiet"))


def browser() -> Html:
    """The frame; what it shows is made in the page, from the index and the chunks."""
    search = tag("input", type="search", id="find", placeholder="Words of question, answer or id", autocomplete="off")
    filters = tag(
        "form",
        _field("Search", search, "grow"),
        _select("Run", "run"),
        _select("Hops", "hops"),
        _select("Type", "kind"),
        _select("Stopped", "stop"),
        _select("Sort by", "sort"),
        tag("span", _select("Compared with", "other"), _select("where", "relation"), id="versus", class_="versus"),
        tag("fieldset", tag("legend", "Outcome"), id="outcomes", class_="chips"),
        class_="filters",
        role="search",
        id="filters",
        aria_label="Filter the questions",
    )
    panes = tag(
        "div",
        tag(
            "div",
            tag("div", id="rows", role="presentation"),
            id="list",
            class_="list",
            role="listbox",
            tabindex="0",
            aria_label="Questions",
        ),
        tag(
            "article",
            tag("p", "Choose a question: click one, or press j and Enter.", class_="quiet empty"),
            id="question",
            class_="question",
            tabindex="-1",
            aria_label="The question that is open",
        ),
        class_="panes",
        id="panes",
    )
    unscripted = tag("p", "The questions themselves need JavaScript; everything above does not.", class_="notice")
    count = tag("p", id="count", class_="count", role="status")
    return join([tag("noscript", unscripted), tag("div", filters, count, panes, id="browser", hidden=True)])


def _field(name: str, control: Html, class_: str | None = None) -> Html:
    return tag("label", tag("span", name), control, class_=class_)


def _select(name: str, id: str) -> Html:
    return _field(name, tag("select", id=id))


def definitions() -> Html:
    """What the outcomes mean, in one line each."""
    items = (join([tag("dt", outcome_name(kind)), tag("dd", kind.meaning)]) for kind in Outcome)
    return details("What these mean", tag("dl", *items, class_="terms"))
