"""The page of a report: one HTML file that loads nothing, from sections and the data of the question browser.

Tables and charts are plain HTML and SVG; a script shows the questions. A content security policy allows only this
script and no requests, and templates escape every text, so no question, passage or reply can run or load anything.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ...data.text import count
from ..folder import replacing
from . import between, lower, name, number, p_value
from .charts import mark
from .runs import CHUNK, Group, Outcome

GENERATOR = '<!doctype html>\n<meta name="generator" content="polyhop report">'
"""The first bytes of every report."""

_HERE = Path(__file__).parent
_SCRIPTS = ("page.js", "trace.js", "question.js", "list.js")


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading.

    Attributes:
        body: From `render`.
    """

    name: str  # its anchor: lower-case letters, digits and hyphens
    title: str
    body: Markup
    of: str = ""  # the run that it is about, if the run has several sections


def render(template: str, folder: Path | None = None, **context: Any) -> Markup:
    """Render a template; all texts are escaped.

    Args:
        folder: Where templates are looked up besides those of this package.
    """
    return Markup(_environment(folder).get_template(template).render(**context))


@cache
def _environment(folder: Path | None = None) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([*([folder] if folder else []), _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "between": between,
        "counted": count,
        "lower_name": lower,
        "metric_name": name,
        "number": number,
        "p_value": p_value,
        "share": "{:.1%}".format,
        "thousands": "{:,}".format,
    }
    environment.globals["mark"] = mark
    return environment


def write_page(
    path: Path, title: str, lead: str, sections: Iterable[Section], groups: Sequence[Group], chunks: Sequence[str]
) -> None:
    """Write a report.

    Args:
        lead: One sentence on what the report is about.
        groups: The sets of questions that the page shows one at a time.
        chunks: Their packed details.
    """
    distinct = _distinct(sections)
    script = "(() => {\n" + "\n".join(map(_asset, _SCRIPTS)) + "})();\n"
    outcomes = [{"key": kind.name, "name": kind.value} for kind in Outcome]
    index = {"size": CHUNK, "outcomes": outcomes, "groups": [group.index() for group in groups]}
    found = (
        _environment()
        .get_template("page.html.j2")
        .generate(
            title=title,
            lead=lead,
            sections=distinct,
            by_run=[(of, list(members)) for of, members in groupby(distinct, lambda section: section.of)],
            groups=[group.title for group in groups],
            index=Markup(json.dumps(index, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")),
            style=Markup(_asset("colors.css") + _asset("page.css")),
            script=Markup(script),
            hash=b64encode(sha256(script.encode()).digest()).decode(),
            chunks=chunks,
        )
    )
    with replacing(path) as file:
        file.write(GENERATOR + "\n")
        for text in found:  # no character that UTF-8 or HTML cannot hold
            file.write(text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}"))


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def _distinct(sections: Iterable[Section]) -> list[Section]:
    """Sections with distinct names; the run of a section is shown only if there are several runs."""
    found = list(sections)
    several = len({section.of for section in found if section.of}) > 1
    taken: Counter[str] = Counter()
    for n, section in enumerate(found):
        taken[section.name] += 1
        again = f"-{taken[section.name]}" if taken[section.name] > 1 else ""
        found[n] = replace(section, name=section.name + again, of=section.of if several else "")
    return found
