"""reStructuredText as HTML, by docutils. What only Sphinx knows, such as ``:func:`` and ``.. function::``, keeps its
text: a role becomes a link or code, a description a term with its definition, every other directive its content."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

_ROLE = re.compile(r":([A-Za-z][\w.:+-]*):`")
_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:\|[^|\n]+\| )?([A-Za-z][\w.:+-]*)::", re.MULTILINE)
_TARGET = re.compile(r"(?s)(.*?)\s*<([^<>]+)>")
_CODE = frozenset("code code-block sourcecode highlight parsed-literal productionlist doctest testcode prompt".split())
_SILENT = frozenset("date index highlight module currentmodule py:module py:currentmodule tabularcolumns".split())
_TREE = frozenset(("toctree", "autosummary"))
# Sphinx describes these: "function" and "py:function", with a signature in each line.
_DESCRIBED = frozenset(
    "function method classmethod staticmethod class exception data attribute property decorator describe object "
    "option cmdoption program envvar confval setting macro type member struct enum enumerator union var opcode".split()
)
_FACTS = ("type", "value", "default")  # options that tell of what is described, not how: 668 in Sphinx's manual
_LABELS = {
    "versionadded": "New in version ",
    "versionchanged": "Changed in version ",
    "deprecated": "Deprecated since ",
    "seealso": "See also ",
}


def rendered(source: str) -> str:
    """HTML, without a look at other files.

    Raises:
        ImportError: docutils is not installed.
    """
    from docutils import nodes
    from docutils.core import publish_parts
    from docutils.parsers.rst import Directive, directives, roles
    from docutils.parsers.rst.languages import en

    def role(name: str, raw: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = ()) -> Any:
        text = text.replace("\x00", "\\")
        named = _TARGET.fullmatch(text)
        shown, target = (named[1], named[2]) if named else (text.lstrip("!~"), text.lstrip("!~"))
        kind = name.rpartition(":")[2]
        if kind == "doc":
            return [nodes.reference(raw, shown, refuri=target)], []
        if kind in ("ref", "numref", "term", "any"):
            return [nodes.reference(raw, shown, refuri=f"#{nodes.make_id(target)}")], []
        return [nodes.literal(raw, shown)], []

    class Other(Directive):
        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True
        option_spec = defaultdict(lambda: directives.unchanged, {"class": directives.unchanged})  # noqa: RUF012

        def run(self) -> list[Any]:
            kind = self.name.rpartition(":")[2]
            argument = self.arguments[0] if self.arguments else ""
            if self.name in _SILENT:
                return []
            if kind in _CODE:
                text = "\n".join(self.content)
                return [nodes.literal_block(text, text)] if text else []
            if kind in _TREE:
                entries = nodes.bullet_list()
                for entry in filter(None, map(str.strip, self.content)):
                    named = _TARGET.fullmatch(entry)
                    shown, target = (named[1], named[2]) if named else (entry, entry)
                    link = nodes.reference(entry, shown, refuri=target)
                    entries += nodes.list_item("", nodes.paragraph("", "", link))
                return [entries] if len(entries) else []
            body = nodes.container()
            self.state.nested_parse(self.content, self.content_offset, body)
            if kind in _DESCRIBED and argument and not (kind == "class" and argument.islower()):  # docutils has it, too
                terms = [nodes.term("", line.strip()) for line in argument.splitlines()]
                options = "; ".join(f"{name}: {self.options[name]}" for name in _FACTS if self.options.get(name))
                facts, messages = self.state.inline_text(options, self.lineno)
                first = [nodes.paragraph("", "", *facts)] if facts else []
                definition = nodes.definition("", *first, *body)
                return [nodes.definition_list("", nodes.definition_list_item("", *terms, definition)), *messages]
            inline, messages = self.state.inline_text(argument, self.lineno)
            labelled = nodes.paragraph("", _LABELS.get(kind, ""), *inline)
            return [*([labelled] if labelled.astext() else ()), *messages, *body.children]

    source = re.sub(r" ?\|(?:version|release)\|", "", source)  # which the configuration of Sphinx tells
    for name in {*map(str.lower, _ROLE.findall(source))} - en.roles.keys():
        roles.register_local_role(name, role)
    for name in {*map(str.lower, _DIRECTIVE.findall(source))}:
        if name in _CODE | _DESCRIBED | _SILENT or name not in en.directives:  # the date would be that of today
            directives.register_directive(name, Other)
    settings = {
        "file_insertion_enabled": False,
        "raw_enabled": False,
        "_disable_config": True,
        "warning_stream": False,
        "report_level": 5,
        "halt_level": 6,
        "line_length_limit": 1 << 25,
        "syntax_highlight": "none",
        "math_output": "LaTeX",
        "initial_header_level": 2,
    }
    parts = publish_parts(source, writer="html5", settings_overrides=settings)
    return f"<h1>{parts['title']}</h1>{parts['body']}" if parts["title"] else str(parts["body"])
