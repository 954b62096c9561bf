"""Tables: files of them, their cells, and their rows as sentences."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TextIO

from .navigation import HEADINGS
from .splitting import Href
from .text import split_sentences

_LONGEST_CELL = 300  # characters of a cell that belongs into a sentence of its row
_MOST_COLUMNS = 1000
LARGEST_ROW = 4 << 20  # characters of a row of a file


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        links: With their places in the text, see `Href.at`.
        anchors: Also with their places.
        columns: How many it takes; ``rows`` likewise.
    """

    text: str
    links: Sequence[Href] = ()
    anchors: Sequence[tuple[int, str]] = ()
    is_header: bool = False
    columns: int = 1
    rows: int = 1


class Table:
    def __init__(self) -> None:
        self.columns: list[str] = []
        self.cells: list[Cell] = []
        self.in_cell = self._has_rows = False
        self._below: dict[int, tuple[int, Cell]] = {}  # cells that reach into the rows below: how many, by column

    def end_row(self) -> list[Cell]:
        """The cells of a row, one for each column, with those that reach into it; none if it is a header."""
        given, self.cells = deque(self.cells), []
        row: list[Cell] = []
        while given or len(row) in self._below:
            if len(row) in self._below:
                left, cell = self._below.pop(len(row))
                if left > 1:
                    self._below[len(row)] = left - 1, cell
                row.append(cell)
                continue
            cell = given.popleft()
            short = len(cell.text) <= _LONGEST_CELL
            for n in range(cell.columns if len(row) < _MOST_COLUMNS else 1):
                if cell.rows > 1 and short:
                    again = cell.text if n == 0 or cell.is_header else ""
                    self._below[len(row)] = cell.rows - 1, Cell(again, is_header=cell.is_header)
                row.append(cell if n == 0 or (cell.is_header and short) else Cell(""))
        if len(row) > 1 and not self._has_rows and all(cell.is_header for cell in row if cell.text):
            names = [*self.columns, *[""] * (len(row) - len(self.columns))]
            texts = [cell.text for cell in row] + [""] * (len(names) - len(row))
            self.columns = [
                name if text == name else f"{name} {text}".strip() for name, text in zip(names, texts, strict=True)
            ]
            return []
        self._has_rows = True
        return row


def of_row(columns: Sequence[str], cells: Sequence[Cell]) -> Iterator[tuple[list[str], Cell]]:
    """A row of a table as a sentence, "Service: Ledger; Owner: Ada Berg.", and the sentences of long cells, each with a
    cell that says what stands in them."""
    heads = list(columns)
    if not columns and len(cells) > 1 and cells[0].is_header and not cells[1].is_header:
        heads, cells = [cells[0].text], cells[1:]
    named = [(heads[n] if n < len(heads) else "", cell) for n, cell in enumerate(cells) if cell.text]
    short = [(name, cell) for name, cell in named if len(cell.text) <= _LONGEST_CELL]
    if short:
        parts: list[str] = []
        links: list[Href] = []
        anchors: list[tuple[int, str]] = []
        size = 0
        for name, cell in short:
            start = size + (size_of(name) + 1 if name else 0)
            links += (link._replace(at=start + link.at) for link in cell.links)
            anchors += ((start + at, name) for at, name in cell.anchors)
            parts.append(f"{name}: {cell.text}" if name else cell.text)
            size = start + size_of(cell.text) + 1
        text = "; ".join(parts) + ("" if parts[-1].endswith((".", "!", "?")) else ".")
        yield [text], Cell(text, links, anchors)
    for _, cell in named:
        if len(cell.text) > _LONGEST_CELL:
            yield split_sentences(cell.text), cell


def is_layout(table: Any) -> bool:
    """Whether a table only places what stands in it: headings, code, other tables, a single column."""
    if table.get("role") == "presentation" or next(table.iterdescendants("table", *HEADINGS), None) is not None:
        return True
    if any("\n" in "".join(code.itertext()).strip() for code in table.iter("pre")):
        return True
    if next(table.iter("th"), None) is None and any(
        sum(1 for _ in islice(cell.iter("p", "div", "li", "dd"), 2)) > 1 for cell in table.iter("td")
    ):
        return True
    return all(len(row) < 2 for row in table.iter("tr"))


def size_of(text: str) -> int:
    """Characters that are no white space."""
    return len("".join(text.split()))


class TableRows:
    """The rows of a table after its header, each a list of cells.

    Attributes:
        columns: The folded names of the columns.

    Raises:
        csv.Error: this is no table, or has a row of more than `LARGEST_ROW` characters.
    """

    def __init__(self, file: TextIO) -> None:
        csv.field_size_limit(LARGEST_ROW)
        self._file, self._left = file, LARGEST_ROW
        header = self._line()
        delimiter = max(",;\t", key=header.count)
        self.columns = [name.strip().casefold() for name in next(csv.reader([header], delimiter=delimiter), [])]
        self._rows = csv.reader(iter(self._line, ""), delimiter=delimiter)

    def __iter__(self) -> Iterator[list[str]]:
        self._left = LARGEST_ROW
        for row in self._rows:
            yield row
            self._left = LARGEST_ROW

    @property
    def line_num(self) -> int:
        """The number of the last line that was read, from 1 after the header."""
        return self._rows.line_num

    def _line(self) -> str:
        """A line of the row that is being read, which may have several."""
        line = self._file.readline(self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            raise csv.Error(f"a row of more than {LARGEST_ROW >> 20} MB")
        return line
