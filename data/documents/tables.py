"""Tables of HTML as text: in the tree, each row becomes a line with the names of its columns."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any

from lxml import etree

LONGEST_CELL = 300  # characters of a cell that belongs into a sentence of its row
_MOST_SPANNED, _MOST_COLUMNS = 100, 1000  # columns or rows of a cell; columns of a table

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark meter output q ruby rt rp s "
    "samp small span strike strong sub sup time tt u var wbr".split()
)
_PERMALINK = re.compile(r"\s*[¶#§🔗]+\s*$")


def folded(text: str) -> str:
    """The text with single spaces, without the mark of a permanent link at its end."""
    return _PERMALINK.sub("", " ".join(text.split()))


def _is_layout(table: Any) -> bool:
    """Whether a table only places what stands in it: headings, code, other tables, a single column;
    in 163 files."""
    return (
        table.get("role") == "presentation"
        or next(table.iterdescendants("table", *HEADINGS), None) is not None
        or (
            next(table.iter("th"), None) is None
            and any(
                sum(1 for _ in islice(cell.iter("p", "div", "li", "dd"), 2)) > 1 or _has_code(cell)
                for cell in table.iter("td")
            )
        )
        or all(len(row) < 2 for row in table.iter("tr"))
    )


def flatten(table: Any) -> None:
    """Make each row of a table a line of inline text with the names of its columns; of a row with long cells this line
    is the term, and the cells its definition."""
    if _is_layout(table):
        return
    columns: list[str] = []
    below: dict[int, tuple[int, str, bool]] = {}  # what reaches into the next rows: how many, its text, is it a header
    has_rows = False
    for row in list(table.iter("tr")):
        waiting = deque(row.iterchildren("td", "th"))
        cells: list[tuple[str, bool, Any]] = []  # one for each column: its text, whether it is a header, its element
        in_head = next(row.iterancestors("thead"), None) is not None
        while waiting or len(cells) in below:
            at = len(cells)
            if at in below:  # in 50 files
                left, text, is_header = below.pop(at)
                if left > 1:
                    below[at] = left - 1, text, is_header
                cells.append((text, is_header, None))
                continue
            cell = waiting.popleft()
            is_header = cell.tag == "th" or in_head
            for inner in cell.iter() if not _has_code(cell) else ():
                if inner is not cell and inner.tag not in INLINE:
                    inner.tag, inner.text, inner.tail = "bdi", f" {inner.text or ''}", f" {inner.tail or ''}"
            text = folded("".join(cell.itertext()))
            is_short = len(text) <= LONGEST_CELL
            for n in range(_number(cell.get("colspan")) if at < _MOST_COLUMNS else 1):
                shown = text if n == 0 or (is_header and is_short) else ""
                if (rows := _number(cell.get("rowspan"))) > 1 and is_short:
                    below[at + n] = rows - 1, shown, is_header
                cells.append((shown, is_header, cell if n == 0 else None))
        if len(cells) > 1 and not has_rows and all(is_header for text, is_header, _ in cells if text):
            columns += [""] * (len(cells) - len(columns))
            for n, (text, _, _) in enumerate(cells):
                columns[n] = columns[n] if text == columns[n] else f"{columns[n]} {text}".strip()
            row.tag = "template"
            continue
        has_rows = True
        _write_row(row, columns, cells)


def _write_row(row: Any, columns: Sequence[str], cells: Sequence[tuple[str, bool, Any]]) -> None:
    heads = [*columns, *[""] * (len(cells) - len(columns))]
    if not columns and len(cells) > 1 and cells[0][1] and not cells[1][1]:  # the first cell names the row: 400 files
        heads[1], cells = cells[0][0], [("", False, cells[0][2]), *cells[1:]]
    for element in row:
        element.tail = None
    last = None
    for head, (text, _, cell) in zip(heads, cells, strict=False):
        if cell is None:
            if not text:
                continue
            cell = etree.SubElement(row, "bdi")
            cell.text = text
        row.append(cell)  # in the order of the columns
        cell.tag = "bdi"
        if not text:
            cell.clear()
        elif len(text) > LONGEST_CELL or _has_code(cell):
            cell.tag, cell.text = "dd", f"{head}: {cell.text or ''}" if head else cell.text
        else:
            if last is not None:
                last.tail = "; "
            last, cell.text = cell, f"{head}: {cell.text or ''}" if head else cell.text
            last.tail = None if text.endswith((".", "!", "?")) else "."
    if last is not None and next(row.iterchildren("dd"), None) is not None:
        term = etree.Element("dt")
        term.extend([cell for cell in row if cell.tag != "dd"])
        row.insert(0, term)


def _has_code(cell: Any) -> bool:
    """Whether a cell has code of several lines, which are kept."""
    return any("\n" in "".join(code.itertext()).strip() for code in cell.iter("pre"))


def _number(text: str | None) -> int:
    """Of columns or rows."""
    return max(1, min(int(text), _MOST_SPANNED)) if text and text.strip().isdecimal() else 1
