"""The text of Markdown, with the links of wikis, MyST and site generators, and of notebooks."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.footnote import footnote_plugin

from ..links import TEMPLATE, untemplated
from ..records import bounded_metadata
from ..text import clean, count
from .html import Text, Unreadable, of_html

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(?![ \t]*\n)(.{0,20000}?)\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_YAML_KEY = re.compile(r"""(?:#.*\n|[ \t]*\n)*["']?\w[^:\n]{0,100}:(?:\s|$)""")  # after comments
_YAML_LINE = re.compile(r"""\s*$|\s+\S|[-#}\]](?!#)|["']?\w[^:]{0,100}:(?:\s|$)""")  # of a mapping
_SCALAR = re.compile(r"""^([A-Za-z][\w -]{0,60}):[ \t]+(["']?)(.+?)\2[ \t]*$""", re.MULTILINE)
_OBJECT = re.compile(r"<[^<>\n]{1,100}>")  # what is printed of an object that has no text
_LONGEST_OUTPUT = 2_000  # characters that a cell has printed
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|\n]{1,200})(?:\|([^\[\]\n]{1,200}))?\]\](?![(\[])")
_ROLE = re.compile(r"\{([a-z][a-z:]{0,40})\}`[!~]?([^`<>]{1,200}?)(?:\s*<([^`<>\s]{1,200})>)?`")  # of MyST
# Levels of lists and quotes: markdown-it leaves out the text of deeper ones, and Python refuses fewer.
_DEEPEST = 10_000
_TEMPLATE_LINK = re.compile(rf"(\]\(|\]:[ \t]*)({TEMPLATE.pattern})")
# Not in code, in 22 of 1,135 pages of Redis, Argo CD and others: comments of MDX, shortcodes of Hugo but for its
# references, and lines with a tag of Jekyll or GitBook.
_UNSEEN = re.compile(
    r"(?s)(^[ \t>]*+(`{3,}|~{3,}).*?(?:^[ \t>]*+\2|\Z)|`[^`\n]*`)|\{/\*.{0,10000}?\*/\}"
    r"|\{\{[<%](?!\s*(?:rel)?ref\b)[^{}]{0,1000}?[>%]\}\}|^[ \t]*+\{%[^{}]{0,1000}?%\}[ \t]*+$",
    re.MULTILINE,
)
# Lines that include other files, in 17 of these pages, also in code: of MkDocs, VitePress, mdBook, markdown-include.
_INCLUDES = re.compile(
    r"""^[ \t>]*+(?:;?-+8<-+(?:[ \t]+["'\[].*|[ \t]*\n(?:.*\n){1,50}?[ \t]*-+8<-+[ \t]*)"""
    r"""|\{![^{}\n]+!\}|<<<[ \t]*[@./].*|\{\{[ \t]*#(?:\w*include|playground|title|template)\b[^{}\n]*\}\})[ \t]*$""",
    re.MULTILINE,
)
_ATTRIBUTES = re.compile(r"\s*\{:?\s*(?:[.#][\w.:-]+\s*)+\}\s*$")  # of a heading: "{#name}", "{: .class #name}"
_TAB = re.compile(r"""^([ \t]*+)===[!+]?(?=[ \t]+["'])""", re.MULTILINE)  # of MkDocs; indented, as an admonition
# Modules of MDX.
_MODULES = re.compile(
    r"""\A(?:\s*+(?:import\s++(?:[\w$*{},\s]{1,500}?\sfrom\s*+)?["'][^"'\n]+["'];?[ \t]*+(?=\n|\Z)"""
    r"""|export\s+(?:default|const|let|async|function|class|[{*])[^\n]*+(?:\n(?!import\b|export\b)[^\n]++)*+))+"""
)


def of_markdown(text: str) -> Text:
    """A page, without its front matter."""
    metadata, source = _front_matter(text.replace("\r\n", "\n"))
    page = of_html(_rendered(source), title=metadata.get("title", ""), first_heading=True)
    return page._replace(metadata=bounded_metadata(metadata))


def of_notebook(text: str) -> Text:
    """Markdown, and code with the text that it has printed."""
    damaged, blocks = 0, list[str]()
    try:
        cells = iter(json.loads(text)["cells"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable("not a notebook of Jupyter, version 4 or later") from None
    for cell in cells:
        try:
            blocks += _cell(cell)
        except (TypeError, AttributeError):
            damaged += 1
    lost = f"{count(damaged, 'cell')} of it damaged" if damaged else ""
    return of_html(_rendered("\n\n".join(blocks)), first_heading=True)._replace(lost=lost)


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = clean("".join(cell.get("source", "")))
    if cell.get("cell_type") != "code":
        yield source
        return
    printed, shown = list[str](), list[str]()
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        plain = "".join(output.get("text") or data.get("text/plain", ""))
        rich = "".join(data.get("text/markdown") or data.get("text/html", ""))
        if rich and (not plain or _OBJECT.fullmatch(plain)):
            shown.append(clean(rich)[:_LONGEST_OUTPUT])
        else:
            printed.append(clean(plain or output.get("evalue", "")))
    for text in (source, "".join(printed)[:_LONGEST_OUTPUT]):
        fence = "`" * (max(map(len, re.findall("`+", text)), default=2) + 3)
        yield f"{fence}\n{text}\n{fence}"
    yield from shown


def _front_matter(source: str) -> tuple[dict[str, str], str]:
    """What a page says of itself, in YAML or TOML, and the rest. What stands between rules, but is neither, is text."""
    front = _FRONT_MATTER.match(source)
    if front and front[1] == "+++":
        with suppress(tomllib.TOMLDecodeError):
            values = tomllib.loads(front[2]).items()
            shown = {name.casefold(): str(value) for name, value in values if not isinstance(value, dict | list)}
            return shown, source[front.end() :]
    elif front and _YAML_KEY.match(front[2]) and all(map(_YAML_LINE.match, front[2].splitlines())):
        scalars = {match[1].strip().casefold(): match[3] for match in _SCALAR.finditer(front[2])}
        return scalars, source[front.end() :]
    return {}, source


def _rendered(source: str) -> str:
    """HTML of CommonMark with tables, wiki links, and the roles of MyST as links and code, and with the ids of
    headings; without what only MDX and site generators understand."""

    def wiki_link(state: StateInline, silent: bool) -> bool:
        mark = _WIKI_LINK.match(state.src, state.pos)
        if mark and not silent:
            state.push("link_open", "a", 1).attrs = {"href": f"[[{mark[1]}]]"}
            state.push("text", "", 0).content = mark[2] or mark[1]
            state.push("link_close", "a", -1)
        state.pos = mark.end() if mark else state.pos
        return bool(mark)

    def role(state: StateInline, silent: bool) -> bool:
        mark = _ROLE.match(state.src, state.pos)
        if mark and not silent:
            if mark[1] == "doc":
                state.push("link_open", "a", 1).attrs = {"href": mark[3] or mark[2]}
                state.push("text", "", 0).content = mark[2]
                state.push("link_close", "a", -1)
            else:
                state.push("code_inline", "code", 0).content = mark[2]
        state.pos = mark.end() if mark else state.pos
        return bool(mark)

    def heading_attributes(state: StateCore) -> None:
        headings = (text for opening, text in pairwise(state.tokens) if opening.type == "heading_open")
        for parts in (heading.children or [] for heading in headings):
            if parts and parts[-1].type == "text" and (attributes := _ATTRIBUTES.search(parts[-1].content)):
                parts[-1].content = parts[-1].content[: attributes.start()]
                anchors = (f'<a id="{id}"></a>' for id in re.findall(r"#([\w.:-]+)", attributes[0]))
                parts += (Token("html_inline", "", 0, content=anchor) for anchor in anchors)

    source = _MODULES.sub(
        "", _UNSEEN.sub(lambda match: match[1] or "", _TAB.sub(r"\1!!! tab", _INCLUDES.sub("", source)))
    )
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"]).use(admon_plugin)
    parser.core.ruler.push("heading_attributes", heading_attributes)
    parser.use(anchors_plugin, max_level=6).use(footnote_plugin)
    parser.inline.ruler.before("link", "wiki_link", wiki_link)
    parser.inline.ruler.before("link", "role", role)
    return parser.render(_TEMPLATE_LINK.sub(lambda match: match[1] + untemplated(match[2]), source))
