"""Markup that cannot be forged: every text is escaped on its way into it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from markupsafe import Markup

_VOID = frozenset({"meta", "br", "input", "hr"})


class Html(Markup):
    """Markup of our own making, which `tag` takes as it is."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as text: what looks like markup is shown, and what cannot be encoded is replaced."""
    if isinstance(value, Html):
        return value
    return Html(escape(str(value).encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")))


def join(parts: Iterable[object], separator: str = "") -> Html:
    return Html(separator.join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. ``class_`` and ``stroke_width`` are the attributes class and stroke-width; None leaves one out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def table(caption: str, head: Sequence[object], rows: Iterable[Sequence[object]], *, class_: str = "numbers") -> Html:
    """A table whose first column names the rows; it scrolls sideways where there is no room.

    Cells are texts, or whole ``td`` elements.
    """
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(cell if _is_cell(cell) else tag("td", cell) for cell in row[1:]))
        for row in rows
    ]
    names = [name if _is_cell(name) else tag("th", name, scope="col") for name in head]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption, class_="quiet"),
            tag("thead", tag("tr", *names)),
            tag("tbody", *body),
            class_=class_,
        ),
        class_="scroll",
        role="group",
        aria_label=caption,
    )


def _is_cell(value: object) -> bool:
    return isinstance(value, Html) and value.startswith(("<td", "<th"))


def details(summary: object, *children: object, open: bool = False) -> Html:
    return tag("details", tag("summary", summary), *children, open=open)
