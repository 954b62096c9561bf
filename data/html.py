"""The text of HTML: sentences under headings with their links and anchors, without navigation."""

from __future__ import annotations

import re
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lxml import etree

from .navigation import HEADINGS, folded, is_left_out, rows_of_steps
from .passages import LinkKind
from .splitting import Href, Line
from .tables import Cell, Table, is_layout, of_row, size_of
from .text import split_sentences

LONGEST_HEADING = 200  # characters
_LONGEST_ANCHOR = 200
LONGEST_ANCHOR_TEXT = 200
_DENSE_LIST, _DENSE_LINE = 0.5, 0.7  # share of letters that are in links where these are only listed, ...
_FEWEST_LINKS = 2  # ... with so many or more
_LONG_LIST, _MOST_LINES = 10, 0.8  # also a list of so many lines of which this share starts with a link
_MOST_SPANNED = 100  # columns or rows

_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark meter output q ruby rt rp s "
    "samp small span strike strong sub sup time tt u var wbr".split()
)
_TRANSPARENT = _VOID | (_INLINE - {"a"})  # nothing depends on where they end
_PERMALINK = re.compile(r"\s*[¶#§🔗]+\s*$")
_SEE = re.compile(
    r"(?:see also|related(?: \w+){0,2}|further reading|read more|learn more|external links|siehe auch|voir aussi"
    r"|véase también|vedi anche|veja também|zie ook|関連項目|参见)\W*",
    re.IGNORECASE,
)
_SEE_ALSO = re.compile(r"see also\b", re.IGNORECASE)
_LISTS = frozenset("ul ol dl table menu".split())
_LABELS = frozenset(  # of boxes: no headings
    "note notes tip hint warning caution important attention danger error info abstract example achtung hinweis".split()
)
_NO_LETTERS = re.compile(r"[\W_]+")
_NUMBERED = re.compile(r"^(?:(?:Chapter|Section|Appendix|Part)\s+)?(?:(?:[A-Z]\.)?\d+(?:\.\d+)*[.:]?|[A-Z]+[.:])\s+")
_ADDED = re.compile(r"\s+(?:[|–—·»-]\s.*|\([^()]*\)$)")  # to the title of a page, such as the site's name
_NEVER = sys.maxsize


class Unreadable(Exception):
    """A document cannot be converted; the message is the reason."""


class Text(NamedTuple):
    """What a file says: its title, or "" for none, its lines, and its metadata."""

    title: str
    lines: list[Line]
    metadata: Mapping[str, Any] | None = None


def of_html(markup: str, *, title: str = "", first_heading: bool = False) -> Text:
    """The text of HTML: of its main part, without navigation, scripts and forms.

    Args:
        title: The title, if it is known; else it is a heading, or that of the page.
        first_heading: The first heading is the title, whatever its level; else only one of the highest level.

    Raises:
        Unreadable: elements are nested thousands deep.
    """
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.HTML(markup.encode(), parser)
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise Unreadable("elements are nested too deep")
    if root is None:
        return Text(title, [])
    named = root.find("head/title")
    page_title = "" if named is None else folded("".join(named.itertext()))[:LONGEST_HEADING]
    forms = {_bare(title)}
    if not title and next(root.iter("h1"), None) is None and not first_heading:
        title = page_title
        forms = {_bare(title), _bare(_ADDED.sub("", title))}
    reader = _Reader(title, forms, first_heading)
    reader.read(root)
    return Text(reader.title or page_title, reader.lines())


class _Found(NamedTuple):
    """A line, and what tells later whether it is kept."""

    line: Line
    is_main: bool
    lists: tuple[int, ...]  # the outermost and the innermost list or table that it is in


class _Frame(NamedTuple):
    """An element that is open, and what was known before."""

    tag: str
    path: tuple[tuple[int, str], ...]


class _Reader:
    """Collects lines, in time and memory that grow with the text."""

    def __init__(self, title: str, title_forms: set[str], first_heading: bool) -> None:
        self.title = title
        self._title_forms = title_forms
        self._first_heading = first_heading
        self._found: list[_Found] = []
        self._frames: list[_Frame] = []
        self._open = Counter[str]()  # names of open elements, "heading" and "main"
        self._path: tuple[tuple[int, str], ...] = ()  # levels and headings
        self._under_heading = 0  # lines before the first one that is below the last heading
        self._see_from = _NEVER  # frames that are open around what follows "See also" without a heading
        self._see_term = False
        self._label = ""  # "Note:" before the next line
        self._code = self._list_count = 0
        self._lists: list[int] = []
        self._tables: list[Table | None] = []  # None for one that is only layout
        # Of the block that is being read:
        self._text: list[str] = []
        self._size = 0  # characters without white space
        self._links: list[Href] = []
        self._anchors: list[tuple[int, str]] = []
        self._link: tuple[str, int, int] | None = None  # an open one: its target, its `Href.at`, texts before it
        self._image = ""  # what it shows instead of a text

    def read(self, root: Any) -> None:
        rows = rows_of_steps(root)
        left_out = None
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            if event == "end":
                if element is left_out:
                    left_out = None
                else:
                    self._end(element)
                self._add(element.tail)
            elif element in rows or is_left_out(element) or (element.tag == "thead" and self._table is None):
                walk.skip_subtree()
                left_out = element
                if element.tag not in _INLINE:
                    self._break()
            else:
                self._start(element)
                self._add(element.text)
        self._flush()
        if self._anchors and self._found:
            last = self._found[-1]
            anchors = (*last.line.anchors, *(name for _, name in self._anchors))
            self._found[-1] = last._replace(line=last.line._replace(anchors=anchors))

    def lines(self) -> list[Line]:
        """The lines of the main part, if the page has one that is worth it."""
        found = self._found
        inside = [each for each in found if each.is_main]
        if 4 * sum(len(each.line.text) for each in inside) >= sum(len(each.line.text) for each in found):
            found = inside
        return _with_kinds(found)

    # --- events

    def _start(self, element: Any) -> None:
        tag, given = element.tag, element.attrib
        if tag not in _INLINE:
            self._break()
        if tag in _VOID:
            if tag in ("br", "hr"):
                self._break()
            elif tag == "img" and self._link:
                self._image = given.get("alt", "")
            return
        if given and (name := given.get("id") or (tag == "a" and given.get("name"))) and len(name) <= _LONGEST_ANCHOR:
            self._anchors.append((self._size, name))
        if tag in _TRANSPARENT:
            return
        self._frames.append(_Frame(tag, self._path))
        self._open["heading" if tag in HEADINGS else tag] += 1
        if given.get("role") == "main":
            self._open["main"] += 1
        if tag == "a":
            self._end_link()
            if target := given.get("href"):
                self._link = target, self._size, len(self._text)
        elif tag in _LISTS:
            self._list_count += 1
            self._lists.append(self._list_count)
            if tag == "table":
                self._tables.append(None if is_layout(element) else Table())
        elif tag == "pre":
            self._code += 1
        elif tag in ("td", "th") and self._table:
            self._table.in_cell = True

    def _end(self, element: Any) -> None:
        tag = element.tag
        if tag in _TRANSPARENT:
            return
        if tag == "a":
            self._end_link()
        elif tag in HEADINGS and not self._in_cell:
            self._end_heading(int(tag[1]))
        elif tag in ("td", "th") and self._in_cell:
            self._end_cell(element)
        elif tag == "tr" and self._table:
            self._flush()
            self._end_row(self._table)
        elif tag not in _INLINE:
            self._break(is_end=True)
        if tag in _LISTS:
            self._lists.pop()
            if tag == "table":
                self._tables.pop()
        frame = self._frames.pop()
        self._open["heading" if tag in HEADINGS else tag] -= 1
        if element.attrib.get("role") == "main":
            self._open["main"] -= 1
        if len(self._frames) < self._see_from:
            self._see_from = _NEVER
        # A heading is above what is in the same part of the page, if there is anything.
        if tag not in _INLINE and len(self._found) > self._under_heading:
            self._path = frame.path

    def _add(self, text: str | None) -> None:
        if text:
            self._text.append(text)
            self._size += len("".join(text.split()))

    # --- blocks

    @property
    def _table(self) -> Table | None:
        return self._tables[-1] if self._tables else None

    @property
    def _in_cell(self) -> bool:
        return self._table is not None and self._table.in_cell

    def _break(self, is_end: bool = False) -> None:
        """The end of a block, or a space in a cell, in a heading or in code."""
        if self._in_cell or self._open["heading"]:
            self._text.append(" ")
        elif not self._open["pre"] or (is_end and self._frames[-1].tag == "pre"):
            self._flush()
        else:
            self._text.append("\n")

    def _taken(self) -> Cell:
        """The block up to here, which ends."""
        self._end_link()
        text = "".join(self._text)
        text = text if self._open["pre"] and not self._in_cell else folded(text)
        block = Cell(text, self._links, self._anchors)
        self._text, self._size, self._links, self._anchors = [], 0, [], []
        return block

    def _flush(self) -> None:
        """Make lines of the block."""
        if not self._size:
            self._text, self._links, self._link = [], [], None  # pictures
            return
        tag = self._frames[-1].tag if self._frames else ""
        block = self._taken()
        if self._open["pre"]:
            self._lines((line.rstrip() for line in block.text.splitlines()), block, apart=self._code)
            return
        if tag == "dt":
            self._see_term = bool(_SEE.fullmatch(block.text))
        elif not block.links and _SEE.fullmatch(block.text):
            self._see_from = len(self._frames) - (tag not in ("div", "body", "section", "aside"))
        if not self._is_label(block):
            self._lines(split_sentences(block.text), block)

    def _is_label(self, block: Cell) -> bool:
        """Whether a block is only the label of a box, which then is the start of the next one: "Note: It is hot."."""
        label = block.text.rstrip(":! ")
        if block.links or (label.casefold() not in _LABELS and not _SEE.fullmatch(label)):
            return False
        self._label = f"{label}:"
        self._anchors = [(0, name) for _, name in block.anchors]
        return True

    def _lines(self, texts: Iterable[str], block: Cell, *, is_heading: bool = False, apart: int = 0) -> None:
        """Add lines, and what stands in each of them."""
        headings = tuple(text for _, text in self._path)
        sees = (
            len(self._frames) >= self._see_from
            or (self._see_term and self._open["dd"] > 0)
            or any(map(_SEE.fullmatch, headings))
        )
        links, anchors = deque(block.links), deque(block.anchors)
        start = 0
        texts = list(filter(None, texts))
        if self._label and texts:
            label, self._label = self._label, ""
            if is_heading or apart or self._table:
                self._lines([label], Cell(""))
            else:
                texts[0], start = f"{label} {texts[0]}", -size_of(label)
        is_main = bool(self._open["main"] or self._open["article"])
        lists = (self._lists[0], self._lists[-1]) if self._lists else ()
        for text in texts:
            end = start + size_of(text)
            see: LinkKind = "see" if sees or _SEE_ALSO.match(text) else "text"
            line = Line(
                text,
                headings,
                is_heading,
                apart,
                tuple(link._replace(at=max(0, link.at - start), kind=see) for link in _until(end, links)),
                tuple(name for _, name in _until(end, anchors)),
            )
            self._found.append(_Found(line, is_main, lists))
            start = end
        self._anchors = [*((0, name) for _, name in anchors), *self._anchors]

    def _end_link(self) -> None:
        """Also where a block ends in a link: then it has the text up to there."""
        if self._link:
            target, at, texts = self._link
            text = folded("".join(self._text[texts:])) or folded(self._image)
            if text:
                self._links.append(Href(at, target, text[:LONGEST_ANCHOR_TEXT]))
                self._link = None
        self._image = ""

    def _end_heading(self, level: int) -> None:
        if not self._size:
            self._flush()
            return
        block = self._taken()
        text = _PERMALINK.sub("", block.text)[:LONGEST_HEADING]
        path = tuple((above, heading) for above, heading in self._path if above < level)
        self._see_from = _NEVER
        if text.casefold() in _LABELS and self.title:
            self._is_label(block)
            return
        if not self.title and (self._first_heading or level == 1):
            self.title, self._title_forms, self._path = text, {_bare(text)}, ()
        elif _bare(text) in ({_bare(path[-1][1])} if path else self._title_forms):  # once is enough
            self._path = path
        else:
            self._path = (*path, (level, text))
            text = text if text[-1] in ".?!:…。？！" else f"{text}:"
            self._lines([text], block, is_heading=True)
            block = Cell("")
        self._under_heading = len(self._found)
        self._anchors = [*((0, name) for _, name in block.anchors), *self._anchors]

    def _end_cell(self, element: Any) -> None:
        assert self._table
        self._table.in_cell = False
        given = element.attrib
        self._table.cells.append(
            self._taken()._replace(
                is_header=element.tag == "th" or self._open["thead"] > 0,
                columns=_number(given.get("colspan")),
                rows=_number(given.get("rowspan")),
            )
        )

    def _end_row(self, table: Table) -> None:
        before = table.cells
        if row := table.end_row():
            for texts, cell in of_row(table.columns, row):
                self._lines(texts, cell)
        else:
            self._anchors += [(0, name) for cell in before for _, name in cell.anchors]


def _bare(title: str) -> str:
    """A heading without its number."""
    return (_NUMBERED.sub("", title) or title).casefold()


def _with_kinds(found: Sequence[_Found]) -> list[Line]:
    """The lines with the kinds of their links. A list that leads to parts of its own page is left out."""
    text, linked, links, away = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    count, first = Counter[int](), Counter[int]()  # lines, and those that start with a link
    for line, _, lists in found:
        for each in {*lists}:
            count[each] += 1
            first[each] += bool(line.links) and line.links[0].at == 0
            text[each] += _letters(line.text)
            linked[each] += sum(_letters(link.text) for link in line.links)
            links[each] += len(line.links)
            away[each] += _leads_away(line)
    dense = {
        each
        for each in text
        if (links[each] >= _FEWEST_LINKS and linked[each] >= _DENSE_LIST * text[each])
        or (count[each] >= _LONG_LIST and first[each] >= _MOST_LINES * count[each])
    }
    lines: list[Line] = []
    for line, _, lists in found:
        if any(each in dense and not away[each] for each in lists):
            continue
        if line.links:
            many = len(line.links) > _FEWEST_LINKS and not line.is_heading
            listed = many and sum(_letters(link.text) for link in line.links) >= _DENSE_LINE * _letters(line.text)
            if listed and not _leads_away(line):
                continue
            if listed or not dense.isdisjoint(lists):
                hrefs = (link._replace(kind="contents") if link.kind == "text" else link for link in line.links)
                line = line._replace(links=tuple(hrefs))
        lines.append(line)
    return lines


def _leads_away(line: Line) -> int:
    """The number of links of a line that lead to other pages."""
    return sum(not link.target.startswith("#") for link in line.links)


def _letters(text: str) -> int:
    return len(_NO_LETTERS.sub("", text))


# --- places in a text ------------------------------------------------------------------------------------------------


def _until(end: int, marks: deque[Any]) -> Iterator[Any]:
    """Take the marks that are before a place."""
    while marks and marks[0][0] < end:
        yield marks.popleft()


def _number(text: str | None) -> int:
    """Of columns or rows."""
    return max(1, min(int(text), _MOST_SPANNED)) if text and text.strip().isdecimal() else 1
