"""The text of documents: plain text, Markdown, HTML, PDF, Word and tables, as lines under headings.

Markdown and Word are converted to HTML first, so that one reader knows headings, lists, tables and code. Conversions
of large or compressed files run in processes of their own, see `polyhop.data.conversion`.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from zipfile import BadZipFile, ZipFile

from .files import LARGEST_RECORD, read_bytes
from .splitting import Line, bounded_metadata
from .text import clean, split_sentences

LARGEST_FILE = 256 << 20  # bytes of a PDF or Word file
LARGEST_ROW = 4 << 20  # characters of a row of a table
_UNPACKED = 512 << 20  # bytes of what a Word file contains
_MOST_LINES = 400_000  # sentences, headings and rows of a document: each takes some hundred bytes
_LONGEST_HEADING = 200  # characters
_LONGEST_CELL = 300  # characters of a cell that belongs into a sentence of its row

_SKIPPED = frozenset(
    "script style noscript template nav footer aside form button select svg iframe head title object dialog".split()
)
_SKIPPED_ROLES = frozenset("navigation banner contentinfo search menu dialog".split())
_SKIPPED_NAMES = frozenset(  # of classes and ids
    "nav navbar navigation breadcrumb breadcrumbs sidebar pagination footer cookie-banner toc".split()
)
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark meter output q ruby rt rp s "
    "samp small span strike strong sub sup time tt u var wbr".split()
)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_PERMALINK = re.compile(r"\s*[¶#§🔗]+\s*$")
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_SCALAR = re.compile(r"""^([A-Za-z][\w -]{0,60}):[ \t]+(["']?)(.+?)\2[ \t]*$""", re.MULTILINE)
_DIGITS = re.compile(r"\d+")


class Unreadable(Exception):
    """A document cannot be converted; the message is the reason."""


class Text(NamedTuple):
    """What a file says: its title, or "" for none, its lines, and its metadata."""

    title: str
    lines: list[Line]
    metadata: Mapping[str, Any] | None = None


def convert(path: Path) -> Text:
    """Convert a file of one of the suffixes in `CONVERTERS`.

    Raises:
        Unreadable: it is damaged, encrypted, too large, has no text, or a library is missing.
    """
    text = CONVERTERS[path.suffix.lower()](path)
    if not text.lines and not text.title:
        raise Unreadable("empty")
    if len(text.lines) > _MOST_LINES:
        raise Unreadable(f"more than {_MOST_LINES:,} sentences: split it")
    return text


def _read(path: Path, most: int = LARGEST_RECORD) -> bytes:
    try:
        return read_bytes(path, most)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").removeprefix("it is ")
        raise Unreadable(f"{reason}: split it" if reason.startswith("larger") else reason) from None


def _decoded(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return clean(content.decode("utf-16", "replace"))
    if b"\x00" in content:
        raise Unreadable("a binary file")
    try:
        return clean(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 (byte {error.start + 1})") from None


def _plain(path: Path) -> Text:
    return Text("", [Line(sentence) for sentence in split_sentences(_decoded(_read(path)))])


# --- HTML ------------------------------------------------------------------------------------------------------------


def _html(path: Path) -> Text:
    content = _read(path)
    try:
        text = _decoded(content)
    except Unreadable:
        declared = _CHARSET.search(content[:4096])
        try:
            text = content.decode(declared[1].decode() if declared else "cp1252", "replace")
        except (LookupError, ValueError):  # no such charset, or one that is not for texts, such as "idna"
            text = content.decode("cp1252", "replace")
    return of_html(clean(text))


def of_html(markup: str, *, first_heading: bool = False) -> Text:
    """The text of HTML: of its main part, without navigation, scripts and forms.

    Args:
        first_heading: The first heading is the title, whatever its level; else only one of the highest level.
    """
    reader = _Reader(first_heading)
    reader.feed(markup)
    reader.close()
    reader.flush()
    inside = [line for line, is_main in reader.lines if is_main]
    lines = [line for line, _ in reader.lines]
    if 4 * sum(len(line.text) for line in inside) >= sum(len(line.text) for line in lines):
        lines = inside
    return Text(reader.title or " ".join(reader.page_title.split()), lines)


class _Row(NamedTuple):
    cells: list[str]
    headers: list[bool]


class _Reader(HTMLParser):
    """Collects lines; memory and time grow with the text, not with the depth of elements."""

    def __init__(self, first_heading: bool) -> None:
        super().__init__()
        self.title = self.page_title = ""
        self.lines: list[tuple[Line, bool]] = []  # and whether it is in the main part
        self._first_heading = first_heading
        self._open: list[str] = []
        self._counts = Counter[str]()
        self._skipped_at: int | None = None  # elements that are open around what is skipped
        self._main_at: int | None = None  # and around what says that it is the main part
        self._text: list[str] = []
        self._path: list[tuple[int, str]] = []  # levels and headings
        self._row: _Row | None = None
        self._columns: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            if tag in ("br", "hr"):
                self._break()
            return
        if tag not in _INLINE:
            self._break()
        given = {name: value or "" for name, value in attrs}
        if self._skipped_at is None and self._is_skipped(tag, given):
            self._skipped_at = len(self._open)
        if self._main_at is None and given.get("role") == "main":
            self._main_at = len(self._open)
        if tag in ("td", "th", "tr") and self._row is not None:
            self.handle_endtag("tr" if tag == "tr" else "th" if self._open[-1] == "th" else "td")
        self._open.append(tag)
        self._counts[tag] += 1
        if self._skipped_at is not None:
            return
        if tag == "pre":
            self._code += 1
        elif tag == "table":
            self._columns = []
        elif tag == "tr":
            self._row = _Row([], [])
        elif tag in ("td", "th") and self._row is not None:
            self._row.headers.append(tag == "th")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self._counts[tag]:
            return
        while True:
            closed = self._open.pop()
            self._counts[closed] -= 1
            if self._skipped_at is None and closed not in _INLINE:
                self._close(closed)
            if self._skipped_at is not None and len(self._open) <= self._skipped_at:
                self._skipped_at = None
            if self._main_at is not None and len(self._open) <= self._main_at:
                self._main_at = None
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._skipped_at is None:
            self._text.append(data)
        elif self._open[-1] == "title" and not self._counts["svg"] and len(self.page_title) < _LONGEST_HEADING:
            self.page_title += data

    def flush(self) -> None:
        """Make lines of the text since the last block."""
        text, self._text = "".join(self._text), []
        if self._counts["pre"]:
            self._add(*(Line(line.strip(), self._headings, apart=self._code) for line in text.splitlines()))
        else:
            self._add(*(Line(sentence, self._headings) for sentence in split_sentences(" ".join(text.split()))))

    @property
    def _headings(self) -> tuple[str, ...]:
        return tuple(text for _, text in self._path)

    def _add(self, *lines: Line) -> None:
        is_main = bool(self._counts["main"] or self._counts["article"] or self._main_at is not None)
        self.lines += [(line, is_main) for line in lines if line.text]

    def _is_skipped(self, tag: str, given: Mapping[str, str]) -> bool:
        names = f"{given.get('class', '')} {given.get('id', '')}".split()
        return (
            tag in _SKIPPED
            or "hidden" in given
            or given.get("aria-hidden") == "true"
            or given.get("role") in _SKIPPED_ROLES
            or (tag not in ("html", "body") and not _SKIPPED_NAMES.isdisjoint(names))
        )

    def _break(self) -> None:
        """The end of a block, or a space in a cell of a table or a heading."""
        if self._skipped_at is not None:
            return
        if not self._text:
            return
        if self._row is not None or any(self._counts[heading] for heading in _HEADINGS):
            self._text.append(" ")
        elif not self._counts["pre"]:
            self.flush()

    def _close(self, tag: str) -> None:
        if tag in _HEADINGS and self._row is None:
            self._end_heading(int(tag[1]))
        elif tag in ("td", "th") and self._row is not None:
            self._row.cells.append(" ".join("".join(self._text).split()))
            self._text = []
        elif tag == "tr" and self._row is not None:
            self._end_row(self._row)
        elif tag == "pre" and self._row is None:
            self._counts["pre"] += 1  # still code
            self.flush()
            self._counts["pre"] -= 1
        else:
            self._break()

    def _end_heading(self, level: int) -> None:
        text = _PERMALINK.sub("", " ".join("".join(self._text).split()))[:_LONGEST_HEADING]
        self._text = []
        if not text:
            return
        if not self.title and (self._first_heading or level == 1):
            self.title, self._path = text, []
            return
        self._path = [*((above, heading) for above, heading in self._path if above < level), (level, text)]
        self._add(Line(text if text[-1] in ".?!:…。？！" else f"{text}:", self._headings, is_heading=True))

    def _end_row(self, row: _Row) -> None:
        self._row = None
        if row.cells and all(row.headers) and not self._columns:
            self._columns = row.cells
            return
        self._add(*(Line(text, self._headings) for text in of_row(self._columns, row.cells)))


def of_row(columns: list[str], cells: list[str]) -> Iterator[str]:
    """A row of a table as a sentence, "Service: Ledger; Owner: Ada Berg.", and the sentences of long cells."""
    named = [(columns[n] if n < len(columns) else "", cell.strip()) for n, cell in enumerate(cells)]
    short = [f"{name}: {cell}" if name else cell for name, cell in named if cell and len(cell) <= _LONGEST_CELL]
    if short:
        yield "; ".join(short) + ("" if short[-1].endswith((".", "!", "?")) else ".")
    for _, cell in named:
        if len(cell) > _LONGEST_CELL:
            yield from split_sentences(cell)


# --- Markdown --------------------------------------------------------------------------------------------------------


def _markdown(path: Path) -> Text:
    from markdown_it import MarkdownIt

    source = _decoded(_read(path)).replace("\r\n", "\n")
    metadata: dict[str, str] = {}
    if found := _FRONT_MATTER.match(source):
        metadata = {match[1].strip().casefold(): match[3] for match in _SCALAR.finditer(found[1])}
        source = source[found.end() :]
    text = of_html(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source), first_heading=True)
    return Text(metadata.get("title") or text.title, text.lines, bounded_metadata(metadata))


# --- PDF and Word ----------------------------------------------------------------------------------------------------


def _missing(kind: str) -> Unreadable:
    return Unreadable(f"{kind} need a library that is not installed: pip install 'polyhop[documents]'")


@contextmanager
def _undamaged(kind: str) -> Iterator[None]:
    """Turn what a library raises into an `Unreadable`."""
    try:
        yield
    except Unreadable:
        raise
    except BadZipFile:
        raise Unreadable(f"not a {kind}, or encrypted") from None
    except Exception as error:  # noqa: BLE001  # anything may come of a damaged or hostile file
        raise Unreadable(f"a damaged {kind} ({type(error).__name__}: {str(error)[:100]})") from None


def _pdf(path: Path) -> Text:
    try:
        from pypdf import PdfReader
    except ImportError:
        raise _missing("PDF files") from None
    content = _read(path, LARGEST_FILE)
    with _undamaged("PDF"):
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is encrypted and needs a password")
        pages = [page.extract_text().splitlines() for page in reader.pages]
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    pages = [[line.strip() for line in page if line.strip()] for page in pages]
    if not any(pages):
        raise Unreadable("no text in it: scanned pages need OCR first")
    pages = _without_running_lines(pages)
    if not title and (first := next((page for page in pages if page), None)):
        heading = first[0]
        if len(first) > 1 and len(heading) <= 100 and heading[-1] not in ".,;":
            title = heading
            first.pop(0)
    return Text(clean(title)[:_LONGEST_HEADING], list(_paged(pages)))


def _without_running_lines(pages: list[list[str]]) -> list[list[str]]:
    """The pages without headers and footers: first and last lines that most pages have, but for numbers."""
    ends = Counter(_DIGITS.sub("0", line) for page in pages for line in {*page[:1], *page[-1:]})
    running = {line for line, count in ends.items() if count > max(1, (len(pages) - 1) / 2) or line == "0"}
    return [
        [line for n, line in enumerate(page) if 0 < n < len(page) - 1 or _DIGITS.sub("0", line) not in running]
        for page in pages
    ]


def _paged(pages: list[list[str]]) -> Iterator[Line]:
    """Sentences below the number of the page on which they end."""
    carried = ""
    for number, page in enumerate(pages, 1):
        text = carried + "\n".join(page)
        text = re.sub(r"(?<=[^\W\d_])[-\u00ad]\n(?=[a-zß-ÿ])", "", text)  # a word that was divided
        sentences = split_sentences(clean(text).replace("\n", " "))
        is_open = bool(sentences) and number < len(pages) and sentences[-1][-1] not in ".?!:…。？！\"”')"
        carried = sentences.pop() + "\n" if is_open and len(sentences[-1]) < 1000 else ""
        yield from (Line(sentence, (f"page {number}",)) for sentence in sentences)


def _docx(path: Path) -> Text:
    try:
        from mammoth import convert_to_html, images
    except ImportError:
        raise _missing("Word files") from None
    content = _read(path, LARGEST_FILE)
    with _undamaged("Word file"):
        with ZipFile(io.BytesIO(content)) as parts:
            if sum(part.file_size for part in parts.infolist()) > _UNPACKED:
                raise Unreadable(f"it unpacks to more than {_UNPACKED >> 20} MB")
        markup = convert_to_html(
            io.BytesIO(content),
            style_map="p[style-name='Title'] => h1:fresh",
            convert_image=images.img_element(lambda image: {"src": ""}),
        ).value
    text = of_html(_with_headers(clean(markup)))
    if not text.lines:
        raise Unreadable("no text in it")
    return text


def _with_headers(markup: str) -> str:
    """The first row of each table as its header: Word does not tell."""

    def headers(match: re.Match[str]) -> str:
        return match.group().replace("<td", "<th").replace("</td>", "</th>")

    return re.sub(r"<table>(?:<tbody>)?<tr>.*?</tr>", headers, markup, flags=re.DOTALL)


# --- tables ----------------------------------------------------------------------------------------------------------


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


def _table(path: Path) -> Text:
    """The rows of a table with a header, each a sentence."""
    number = 0
    try:
        rows = TableRows(io.StringIO(_decoded(_read(path)), newline=""))
        named = [name[:1].upper() + name[1:] for name in rows.columns]
        lines = []
        for row in rows:
            lines += [Line(" ".join(line.split())) for line in of_row(named, row)]
            number = rows.line_num
    except csv.Error as error:
        raise Unreadable(f"not a table from line {number + 1} on: {error}") from None
    return Text("", lines)


CONVERTERS: dict[str, Callable[[Path], Text]] = {
    ".txt": _plain,
    ".md": _markdown,
    ".markdown": _markdown,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".pdf": _pdf,
    ".docx": _docx,
    ".csv": _table,
    ".tsv": _table,
}
"""By suffix."""
