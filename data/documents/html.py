"""The text of HTML: sentences under headings with their links and anchors, without navigation.

Tables become rows of inline text in the tree first ("Service: Ledger; Owner: Ada Berg."); then the tree is walked once.
A term (``<dt>``) begins the first sentence of its definition.

Where a comment here, in `navigation` or in `tables` says how many files need a rule, it is of 3,589: the manuals of
SQLite, Apache and Python, the documentation of Redis and Argo CD, and what is installed on a Debian.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urljoin

from lxml import etree

from ..passages import LinkKind
from ..text import clean, raised, split_sentences
from .navigation import is_left_out
from .split import Href, Line
from .tables import HEADINGS, INLINE, flatten, folded

LONGEST_HEADING = LONGEST_ANCHOR_TEXT = _LONGEST_ANCHOR = 200  # characters
_DENSE_LIST, _DENSE_LINE = 0.5, 0.7  # share of letters that are in links where these are only listed, ...
_FEWEST_LINKS = 2  # ... with so many or more
_BESIDE = 12  # letters beside the links of a line that leads to parts of its page: "Jump to:" is no sentence
_LONG_LIST, _MOST_LINES = 10, 0.8  # also a list of so many lines of which this share starts with a link
_CONTROL = re.compile(  # characters that lxml reads, but does not write, and references to them
    r"[\x00-\x08\x0b\x0e-\x1f\ufffe\uffff]|&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01]|6553[45])"
    r"|[xX]0*(?:[0-8bBefEF]|1[\da-fA-F]|[fF]{3}[eEfF]));"
)
_SHORT_PAGE = 1000  # characters, of which nobody asks how many were read
_SEE_LEVEL = 7  # of "See also" where it is no heading, and of terms: below all headings

_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_TRANSPARENT = _VOID | (INLINE - {"a"})  # nothing depends on where they end
_LISTS = frozenset("ul ol dl table menu".split())
_SECTION = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s")
_UNSHOWN = frozenset("a button script select style noscript template svg title".split())
_LABELS = frozenset(  # of boxes: no headings (in 189 files), but the start of what follows: "Note: It is hot."
    "note notes tip hint warning caution important attention danger error info abstract example achtung hinweis".split()
)
_SEE = re.compile(  # in 253 files where it is no heading
    r"(?:see also|related(?: \w+){0,2}|further reading|read more|learn more|external links|siehe auch|voir aussi"
    r"|véase también|vedi anche|veja também|zie ook|関連項目|参见)\W*",
    re.IGNORECASE,
)
_SEE_ALSO = re.compile(r"see also\b", re.IGNORECASE)
# What a term says behind its name, such as parameters: in 17 of 135 pages of manuals.
_CALLED = re.compile(r"\s*\(.*", re.DOTALL)


class Unreadable(Exception):
    """A document cannot be converted; the message is the reason."""


class Text(NamedTuple):
    """What a file says: its title, or "" for none, its lines, its metadata, which share of the words outside of links
    it has of those that a page has, and what else of it is lost."""

    title: str
    lines: list[Line]
    metadata: Mapping[str, Any] | None = None
    share: float = 1.0
    lost: str = ""


def of_html(markup: str, *, title: str = "", first_heading: bool = False) -> Text:
    """The text of HTML: of its main part, without navigation, scripts and forms.

    Args:
        title: The title, if it is known; else it is a heading, or that of the page.
        first_heading: The first heading is the title, whatever its level; else only one of the highest level.

    Raises:
        Unreadable: elements are nested thousands deep.
    """
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.HTML(_CONTROL.sub(" ", markup).encode(), parser)
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise Unreadable("elements are nested too deep")
    if root is None:
        return Text(title, [])
    named = root.find("head/title")
    page_title = "" if named is None else folded("".join(named.itertext()))[:LONGEST_HEADING]
    first = next(root.iter("h1"), None)
    heading = "" if first is None else folded("".join(first.itertext()))
    # In 98 pages of SQLite's manual the first heading is that of a section, such as "1. Overview".
    is_section = _SECTION.match(heading) and heading.casefold() not in page_title.casefold()
    if not title and not first_heading and (not heading or is_section):
        title = page_title
    visible = _size("".join(_unlinked(root)))
    for table in list(root.iter("table")):
        flatten(table)
    reader = _Reader(title, title or ("" if first_heading else page_title), 6 if first_heading else 1)
    reader.read(root)
    lines = _with_kinds(reader.main_part())
    kept = sum(_size(line.text) - sum(_size(link.text) for link in line.links) for line in lines)
    return Text(reader.title or page_title, lines, share=kept / visible if visible > _SHORT_PAGE else 1.0)


def _unlinked(root: Any) -> Iterator[str]:
    """What a page shows, but for links."""
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        if event == "end":
            yield element.tail or ""
        elif element.tag in _UNSHOWN:
            walk.skip_subtree()
        else:
            yield element.text or ""


def _from_base(base: str, href: str) -> str:
    """A reference of a page as seen from the page itself; all 2,560 pages of LibreOffice's help have a base. A fragment
    alone stays on the page, as its readers expect."""
    if not base or href.startswith(("#", "[[", "{")):
        return href
    if "//" in base:
        try:
            return urljoin(base, href)
        except ValueError:  # no address at all
            return href
    return href if re.match(r"/|[a-zA-Z][\w+.-]*:", href) else base[: base.rfind("/") + 1] + href


class _Entry(NamedTuple):
    """A line, and what tells later whether it is kept."""

    line: Line
    is_main: bool
    lists: tuple[int, ...]  # the outermost and the innermost list or table that it is in


class _Reader:
    """Collects lines, in time and memory that grow with the text."""

    def __init__(self, title: str, shown_title: str, title_level: int) -> None:
        self.title = title
        self._shown_title, self._title_level = shown_title, title_level  # the lowest of a heading that is a title
        self._entries: list[_Entry] = []
        self._frames: list[tuple[str, tuple[tuple[int, str], ...]]] = []  # open elements, and the headings before them
        self._open = Counter[str]()
        self._path: tuple[tuple[int, str], ...] = ()  # levels and headings
        self._under_heading = 0  # lines before the first one that is below the last heading
        self._has_heading = False  # outside of the main part
        self._code = self._list_count = 0
        self._lists: list[int] = []
        self._base = ""
        self._link: tuple[str, int, int] | None = None  # an open one: its target, its `Href.at`, texts before it
        self._image = ""  # what it shows instead of a text
        self._next_block()

    def _next_block(self, label: str = "", anchors: Iterable[tuple[int, str]] = ()) -> None:
        self._text, self._size = [label], _size(label)  # characters without white space
        self._kept = self._size  # those of the label
        self._links: list[Href] = []
        self._anchors = [(0, name) for _, name in anchors]

    def read(self, root: Any) -> None:
        left_out = None
        self._base = next((base.get("href") for base in root.iter("base") if base.get("href")), "")
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            if event == "end":
                if element is left_out:
                    left_out = None
                else:
                    self._end(element.tag)
                self._add(element.tail)
            elif is_left_out(element):
                walk.skip_subtree()
                left_out = element
                if element.tag not in INLINE:
                    self._break()
            else:
                self._start(element)
                self._add(element.text)
        self._flush(is_last=True)
        if self._anchors and self._entries:  # behind the last line, in 4 files
            last = self._entries[-1]
            anchors = (*last.line.anchors, *(name for _, name in self._anchors))
            self._entries[-1] = last._replace(line=last.line._replace(anchors=anchors))

    def main_part(self) -> list[_Entry]:
        """The lines of the main part, if the page has one that is worth it."""
        inside = [entry for entry in self._entries if entry.is_main]
        is_worth_it = 4 * sum(len(entry.line.text) for entry in inside) >= sum(
            len(entry.line.text) for entry in self._entries
        )
        return inside if is_worth_it else self._entries

    def _start(self, element: Any) -> None:
        tag, attributes = element.tag, element.attrib
        if tag not in INLINE:
            self._break(is_last=tag in ("pre", *HEADINGS))
        if tag in _VOID:
            self._image = attributes.get("alt", "") if tag == "img" and self._link else self._image
            return
        name = attributes.get("id") or (tag == "a" and attributes.get("name"))
        if name and len(name) <= _LONGEST_ANCHOR:
            self._anchors.append((self._size, name))
        if tag == "sup" and self._text:  # in 31 files
            self._add(_raised(element, self._text[-1]))
        if tag in _TRANSPARENT:
            return
        if tag == "dt" and not (self._entries and self._entries[-1].line.is_term):  # several may have one definition
            self._path = self._above_terms()
        # Articles below headings are parts of what is said.
        is_main = tag == "main" or attributes.get("role") == "main" or (tag == "article" and not self._has_heading)
        kind = "heading" if tag in HEADINGS else "main" if is_main else tag
        self._frames.append((kind, self._path))
        self._open[kind] += 1
        if tag == "a":
            self._end_link()
            if target := attributes.get("href"):
                self._link = _from_base(self._base, target), self._size, len(self._text)
        elif tag in _LISTS:
            self._list_count += 1
            self._lists.append(self._list_count)
        self._code += kind == "pre"

    def _end(self, tag: str) -> None:
        if tag in _TRANSPARENT:
            return
        if tag == "a":
            self._end_link()
        elif tag in HEADINGS:
            self._end_heading(int(tag[1]))
        elif tag == "dt" and self._end_term():
            pass
        elif tag not in INLINE:
            self._break(is_end=True)
        if tag in _LISTS:
            self._lists.pop()
        if tag == "dl":
            self._path = self._above_terms()
        kind, path = self._frames.pop()
        self._open[kind] -= 1
        # A heading is above what is in the same part of the page, if there is anything.
        if tag not in INLINE and len(self._entries) > self._under_heading:
            self._path = path

    def _add(self, text: str | None) -> None:
        if text:
            self._text.append(text)
            self._size += _size(text)

    def _end_term(self) -> bool:
        """Whether a <dt> has a term; "See also" is a label."""
        text = folded("".join(self._text))
        is_term = self._size > self._kept and len(text) <= LONGEST_HEADING and not _SEE.fullmatch(text)
        if is_term:
            self._end_link()
            text = _before_stop(text)
            self._lines([text], is_term=True)
            self._path = (*self._path, (self._term_level(), _CALLED.sub("", text) or text))
            self._under_heading = len(self._entries)
        return is_term

    def _term_level(self) -> int:
        return _SEE_LEVEL + max(1, self._open["dl"])

    def _above_terms(self) -> tuple[tuple[int, str], ...]:
        """The headings, and the terms of outer definitions."""
        return tuple(part for part in self._path if part[0] < self._term_level())

    def _break(self, is_end: bool = False, is_last: bool = False) -> None:
        """The end of a block, or a space in a heading or in code."""
        if self._open["heading"]:
            self._text.append(" ")
        elif not self._open["pre"] or (is_end and self._frames[-1][0] == "pre"):
            self._flush(is_last)
        else:
            self._text.append("\n")

    def _flush(self, is_last: bool = False) -> None:
        """Make lines of the block, which ends; of a label only if nothing that could go with it follows."""
        if not self._size:
            self._text, self._links, self._link = [], [], None  # pictures
            return
        if self._size == self._kept and not is_last:
            return
        self._end_link()
        text = "".join(self._text)
        if self._open["pre"]:
            self._lines((line.rstrip() for line in text.splitlines()), apart=self._code)
            return
        text = folded(text)
        label = text.rstrip(":! ")
        sees = _SEE.fullmatch(label)
        if not self._links and (sees or label.casefold() in _LABELS) and not is_last:
            if sees:  # of a list of terms, this one alone
                level = self._term_level() if self._frames[-1][0] == "dt" else _SEE_LEVEL
                self._path = (*(part for part in self._path if part[0] < level), (level, label))
                self._under_heading = len(self._entries)
            self._next_block(f"{label}: ", self._anchors)
            return
        is_row = self._frames and self._frames[-1][0] == "tr"
        self._lines([_before_stop(text)] if is_row else split_sentences(text))

    def _lines(self, texts: Iterable[str], *, is_heading: bool = False, is_term: bool = False, apart: int = 0) -> None:
        """Add lines, and the links and anchors of the block that stand in each of them."""
        headings = tuple(text for level, text in self._path if level < _SEE_LEVEL)
        terms = tuple(text for level, text in self._path if level > _SEE_LEVEL)
        sees = any(_SEE.fullmatch(text) for _, text in self._path)
        links, anchors = deque(self._links), deque(self._anchors)
        lists = (self._lists[0], self._lists[-1]) if self._lists else ()
        start = 0
        for text in filter(None, texts):
            end = start + _size(text)
            kind: LinkKind = "see" if sees or _SEE_ALSO.match(text) else "text"
            inside = tuple(link._replace(at=max(0, link.at - start), kind=kind) for link in _until(end, links))
            names = tuple(name for _, name in _until(end, anchors))
            line = Line(clean(text) or text, headings, is_heading, apart, inside, names, is_term, terms)
            self._entries.append(_Entry(line, self._open["main"] > 0, lists))
            start = end
        self._next_block("", anchors)

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
        self._end_link()
        self._has_heading |= not self._open["main"]
        text = folded("".join(self._text))[:LONGEST_HEADING]
        if text.casefold() in _LABELS and self.title:
            self._next_block(f"{text}: ", self._anchors)
            return
        path = tuple(part for part in self._path if part[0] < level)
        if not self.title and level <= self._title_level:
            self.title, self._shown_title, self._path = text, text, ()
        elif text.casefold() == (path[-1][1] if path else self._shown_title).casefold():  # once is enough, in 311 files
            self._path = path
        else:
            self._path = (*path, (level, text))
            self._lines([text if text[-1] in ".?!:…。？！" else f"{text}:"], is_heading=True)
        self._under_heading = len(self._entries)
        self._next_block("", self._anchors)


def _raised(element: Any, before: str) -> str:
    """What goes before a superscript: "10⁶" is no "106", and a mark no part of the word; but "1st" is one word."""
    text = "".join(element.itertext())
    if not re.search(r"\w$", before) or not text.strip():
        return ""
    if re.fullmatch(r"[-+−]?\d+|[^\W\d]", text.strip()):
        if not len(element):
            element.text = raised(text.strip())
        return "^" if len(element) or element.text[-1].isascii() else ""
    return "" if re.search(r"\d$|\b[A-Z]$", before) or not re.match(r"\w", text) else " "


def _before_stop(row: str) -> str:
    """A row without spaces before the marks that `tables` has put behind its cells."""
    return re.sub(r" (?=;|\.$)", "", row)


class _Measure(NamedTuple):
    """How much of a line or of a list is links."""

    lines: int
    begun: int  # lines that start with a link
    letters: int
    linked: int  # letters of links
    links: int
    away: int  # links to other pages


def _measured(line: Line) -> _Measure:
    away = sum(not link.target.startswith("#") for link in line.links)
    linked = sum(_letters(link.text) for link in line.links)
    begun = bool(line.links) and line.links[0].at == 0
    return _Measure(1, begun, _letters(line.text), linked, len(line.links), away)


def _with_kinds(entries: Sequence[_Entry]) -> list[Line]:
    """The lines with the kinds of their links. A list that leads to parts of its own page is left out."""
    measures = [_measured(entry.line) for entry in entries]
    parts = defaultdict[int, list[_Measure]](list)  # of each list
    for entry, measure in zip(entries, measures, strict=True):
        for listing in {*entry.lists}:
            parts[listing].append(measure)
    dense = dict[int, bool]()  # lists of links, and whether they lead away, or say something
    for listing, inside in parts.items():
        whole = _Measure(*map(sum, zip(*inside, strict=True)))
        is_linked = whole.links >= _FEWEST_LINKS and whole.linked >= _DENSE_LIST * whole.letters
        is_index = whole.lines >= _LONG_LIST and whole.begun >= _MOST_LINES * whole.lines
        if is_linked or is_index:
            dense[listing] = whole.away > 0 or whole.linked < _DENSE_LIST * whole.letters
    lines: list[Line] = []
    for (line, _, lists), (_, _, letters, linked, links, away) in zip(entries, measures, strict=True):
        listed = links > _FEWEST_LINKS and not line.is_heading and linked >= _DENSE_LINE * letters
        leads_nowhere = listed and not away and letters - linked <= _BESIDE
        if leads_nowhere or not all(dense.get(listing, True) for listing in lists):
            continue
        if listed or not dense.keys().isdisjoint(lists):
            hrefs = (link._replace(kind="contents") if link.kind == "text" else link for link in line.links)
            line = line._replace(links=tuple(hrefs))
        lines.append(line)
    return lines


def _letters(text: str) -> int:
    return len(re.sub(r"[\W_]+", "", text))


def _size(text: str) -> int:
    """Characters that are no white space."""
    return len("".join(text.split()))


def _until(end: int, marks: deque[Any]) -> Iterator[Any]:
    """Take the marks that are before a place."""
    while marks and marks[0][0] < end:
        yield marks.popleft()
