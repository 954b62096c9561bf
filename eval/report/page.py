"""The page: one file that needs nothing else, and that may ask nobody for anything.

Everything that can be read at once is plain HTML. The questions are an index (a few columns a run, as JSON) and packed
details (`chunks`), which scripts of a few screens show. A content security policy lets only these scripts run and lets
nothing be loaded, so that no text of a question, passage or model can do either.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from ..official.files import replacing
from .about import about, terms
from .against import Versus
from .chunks import Chunks
from .columns import index_of
from .confidence import confidence
from .errors import browser, definitions, outcomes
from .figures import SERIES
from .growth import growth
from .heading import summary, title
from .html import Html, join, table, tag
from .marks import Series, run_name
from .numbers import number
from .overview import overview
from .parts import parts
from .runs import Group, Run
from .section import Section
from .tradeoff import tradeoff

GENERATOR = '<!doctype html>\n<meta name="generator" content="polyhop report">'
"""How every report begins."""

_STYLES = ("page.css", "question.css", "narrow.css")
_SCRIPTS = ("page.js", "index.js", "list.js", "trace.js", "question.js")


def write_page(
    path: Path,
    groups: Sequence[Group],
    versus: Sequence[Sequence[Versus]],
    chunks: Chunks,
    further: Sequence[Section] = (),
) -> None:
    """Write a report.

    Args:
        versus: The comparisons of each group.
        further: Sections of other kinds of runs, after those of evaluation runs.

    Raises:
        OSError: the file cannot be written; what was there before is there still.
    """
    sections = _distinct(_sections(groups, versus, further))
    head, scripts = _asset("theme.js"), "(() => {\n" + "\n".join(map(_asset, _SCRIPTS)) + "})();\n"
    with replacing(path) as file:
        file.write(GENERATOR)
        file.write(_head(title(groups, further), head, scripts))
        file.write(tag("body", *_body(groups, further, sections)).removesuffix("</body>"))
        if groups:
            file.write('\n<script type="application/json" id="index">')
            index = json.dumps(index_of(groups), separators=(",", ":"), allow_nan=False)
            file.write(index.replace("<", "\\u003c") + "</script>")  # no text may end the element that it stands in
        file.write(f"\n<script>{scripts}</script>\n")
        for n, chunk in enumerate(chunks):
            file.write(f'<script type="text/plain" id="chunk-{n}">{chunk}</script>\n')
        file.write("</body></html>\n")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _head(title: str, *scripts: str) -> Html:
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    parts = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=Html(policy)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Html("\n".join(map(_asset, _STYLES)))),
        tag("script", Html(scripts[0])),
    ]
    return Html(f'\n<html lang="en"><head>{join(parts)}</head>\n')


def _body(groups: Sequence[Group], further: Sequence[Section], sections: Sequence[Section]) -> Iterable[Html]:
    yield tag("a", "Skip to the content", href="#main", class_="skip")
    yield tag(
        "header",
        tag("p", "polyhop · report", class_="brand"),
        tag("h1", title(groups, further)),
        tag("p", summary(groups, further), class_="lead"),
        class_="top",
    )
    yield tag(
        "div",
        _links(sections),
        *_picker(groups),
        tag("button", "Keys", type="button", id="help", aria_haspopup="dialog", title="Keys (?)"),
        tag("button", "Dark", type="button", id="theme", title="Light or dark (t)"),
        class_="bar-top",
    )
    yield tag("main", *map(_section, sections), id="main", tabindex="-1")
    yield _keys(bool(groups))


def _links(sections: Sequence[Section]) -> Html:
    """A row of links, those to the sections of one run together; a list that opens where there is no room for a row."""
    parts = []
    for run, members in groupby(sections, lambda section: section.of):
        links = [tag("a", section.title, href=f"#{section.name}") for section in members]
        parts += [tag("div", tag("b", run), *links, class_="of")] if run else links
    menu = tag("button", type="button", id="menu", aria_expanded="false", aria_controls="links", hidden=True)
    return tag("nav", menu, tag("div", *parts, id="links"), aria_label="Sections")


def _picker(groups: Sequence[Group]) -> Iterable[Html]:
    if len(groups) > 1:
        options = (tag("option", group.title, value=n) for n, group in enumerate(groups))
        yield tag(
            "label",
            tag("span", "Questions"),
            tag("select", *options, id="group", aria_label="Questions"),
            class_="picker",
        )


def _section(section: Section) -> Html:
    return tag(
        "section",
        tag("h2", f"{section.title} · {section.of}" if section.of else section.title, id=f"{section.name}-title"),
        Html(section.body),
        id=section.name,
        aria_labelledby=f"{section.name}-title",
    )


def _keys(questions: bool) -> Html:
    of_questions = {
        "/": "search the questions",
        "j, k or arrows": "next and previous question",
        "Enter": "open it",
        "Esc": "close it; leave the search",
        "[ and ]": "the same question in the previous and next run",
    }
    keys = {**(of_questions if questions else {}), "t": "light or dark", "?": "these keys"}
    items = (join([tag("dt", tag("kbd", key)), tag("dd", does)]) for key, does in keys.items())
    close = tag("form", tag("button", "Close", autofocus=True), method="dialog")
    return tag(
        "dialog", tag("h2", "Keys", id="keys-title"), tag("dl", *items), close, id="keys", aria_labelledby="keys-title"
    )


# --- sections --------------------------------------------------------------------------------------------------------


def _sections(
    groups: Sequence[Group], versus: Sequence[Sequence[Versus]], further: Sequence[Section]
) -> Iterable[Section]:
    if not groups:
        yield from further
        return
    series: Series = {}
    for run in (run for group in groups for run in group.runs):
        series.setdefault(run.name, len(series) % SERIES)

    def each(make: Callable[[Group], Html]) -> Html:
        return join(_of(n, group, make(group), len(groups)) for n, group in enumerate(groups))

    compared = {group.title: found for group, found in zip(groups, versus, strict=True)}
    first = each(lambda group: overview(group, series, compared[group.title]))
    yield Section("overview", "Overview", join([*_matrix(groups, series), first]))
    yield Section("outcomes-section", "Outcomes", join([each(lambda group: outcomes(group, series)), definitions()]))
    yield Section("parts", "Hops and types", each(lambda group: parts(group, series)))
    yield Section("cost", "Cost and quality", each(lambda group: tradeoff(group, series)))
    yield Section("convergence", "Convergence", each(lambda group: growth(group, series)))
    yield Section("calibration", "Calibration", each(lambda group: confidence(group, series)))
    yield Section("questions", "Questions", browser())
    yield from further
    yield Section("about", "About", join([each(about), terms()]))


def _of(n: int, group: Group, body: Html, groups: int) -> Html:
    """A group's part of a section; which one is shown is chosen in the page, and without scripts all are."""
    name = tag("p", group.title, class_="which") if groups > 1 else ""
    return tag("div", name, body, data_group=n)


def _matrix(groups: Sequence[Group], series: Series) -> Iterable[Html]:
    """Every run on every set of questions."""
    if len(groups) < 2:
        return
    names = list(dict.fromkeys(run.name for group in groups for run in group.runs))
    for metric, heading in (("answer_f1", "Answer F1 everywhere"), ("evidence_f1", "Evidence F1 everywhere")):
        rows = []
        for n, group in enumerate(groups):
            known = {run.name: run for run in group.runs}
            best = max((run.mean(metric) or 0.0 for run in group.runs), default=0.0)
            cells = [_score(known.get(name), metric, best) for name in names]
            rows.append([tag("button", group.title, type="button", class_="link", data_choose=n), *cells])
        runs = {run.name: run for group in groups for run in group.runs}
        yield tag("h3", heading)
        yield table(
            heading, ["Questions", *(run_name(runs[name], series) for name in names)], rows, class_="numbers compact"
        )
    yield tag("p", "The rest of the page is about the questions that are chosen here or in the bar.", class_="small")


def _score(run: Run | None, metric: str, best: float) -> Html:
    mean = run.mean(metric) if run else None
    return tag("td", tag("b" if mean is not None and mean == best else "span", number(metric, mean)))


def _distinct(sections: Iterable[Section]) -> list[Section]:
    """Sections whose names do not collide, the second of a name is called so; a run is named if it is not alone."""
    found = list(sections)
    several = len({section.of for section in found if section.of}) > 1
    taken: Counter[str] = Counter()
    for n, section in enumerate(found):
        taken[section.name] += 1
        again = f"-{taken[section.name]}" if taken[section.name] > 1 else ""
        found[n] = replace(section, name=section.name + again, of=section.of if several else "")
    return found
