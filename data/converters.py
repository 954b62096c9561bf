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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from zipfile import BadZipFile, ZipFile

from .files import LARGEST_RECORD, read_bytes
from .html import LONGEST_HEADING, Cell, Text, Unreadable, of_html, of_row
from .links import TEMPLATE, untemplated
from .splitting import Line, bounded_metadata
from .text import clean, split_sentences

__all__ = ["CONVERTERS", "LARGEST_FILE", "TableRows", "Text", "Unreadable", "convert", "of_html"]

LARGEST_FILE = 256 << 20  # bytes of a PDF or Word file
LARGEST_ROW = 4 << 20  # characters of a row of a table
_UNPACKED = 512 << 20  # bytes of what a Word file contains
_MOST_LINES = 400_000  # sentences, headings and rows of a document: each takes some hundred bytes

_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_SCALAR = re.compile(r"""^([A-Za-z][\w -]{0,60}):[ \t]+(["']?)(.+?)\2[ \t]*$""", re.MULTILINE)
_WIKI_LINK = re.compile(r"\[\[([^\[\]|\n]{1,200})(?:\|([^\[\]\n]{1,200}))?\]\](?![(\[])")
_TEMPLATE_LINK = re.compile(rf"(\]\(|\]:[ \t]*)({TEMPLATE.pattern})")
_DIGITS = re.compile(r"\d+")


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


# --- Markdown --------------------------------------------------------------------------------------------------------


def _markdown(path: Path) -> Text:
    source = _decoded(_read(path)).replace("\r\n", "\n")
    metadata: dict[str, str] = {}
    if found := _FRONT_MATTER.match(source):
        metadata = {match[1].strip().casefold(): match[3] for match in _SCALAR.finditer(found[1])}
        source = source[found.end() :]
    text = of_html(_rendered(source), title=metadata.get("title", ""), first_heading=True)
    return text._replace(metadata=bounded_metadata(metadata))


def _rendered(source: str) -> str:
    """Markdown as HTML."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

    def wiki_link(state: StateInline, silent: bool) -> bool:
        found = _WIKI_LINK.match(state.src, state.pos)
        if found and not silent:
            state.push("link_open", "a", 1).attrs = {"href": f"[[{found[1]}]]"}
            state.push("text", "", 0).content = found[2] or found[1]
            state.push("link_close", "a", -1)
        state.pos = found.end() if found else state.pos
        return bool(found)

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wiki_link", wiki_link)
    markup: str = parser.render(_TEMPLATE_LINK.sub(lambda found: found[1] + untemplated(found[2]), source))
    return markup


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
    return Text(clean(title)[:LONGEST_HEADING], list(_paged(pages)))


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
            for texts, _ in of_row(named, [Cell(" ".join(cell.split())) for cell in row]):
                lines += [Line(text) for text in texts]
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
