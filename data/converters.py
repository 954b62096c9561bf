"""The text of documents: plain text, Markdown, HTML, PDF, Word and tables, as lines under headings.

Markdown, reStructuredText, notebooks, books and Word are converted to HTML first, so that one reader knows headings,
lists, tables, code and links. Large or compressed files are converted in processes of their own (`.conversion`).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from posixpath import dirname, normpath
from typing import Any, NamedTuple
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from lxml import etree

from .files import LARGEST_RECORD, read_bytes
from .html import LONGEST_ANCHOR_TEXT, LONGEST_HEADING, Text, Unreadable, of_html
from .importing import installs
from .links import TEMPLATE, untemplated
from .passages import MOST_LINKS
from .splitting import Href, Line, bounded_metadata
from .tables import Cell, TableRows, of_row
from .text import clean, split_sentences

__all__ = ["CONVERTERS", "LARGEST_FILE", "Text", "Unreadable", "convert", "of_html", "suffix_of"]

LARGEST_FILE = 256 << 20  # bytes of a PDF, Word file or book
TOO_LARGE = f"its text is larger than {LARGEST_RECORD >> 20} MB: split it"
_UNPACKED, _MOST_LINES = 512 << 20, 400_000  # bytes of what a Word file or a book contains; lines of a document

_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_SCALAR = re.compile(r"""^([A-Za-z][\w -]{0,60}):[ \t]+(["']?)(.+?)\2[ \t]*$""", re.MULTILINE)
_WIKI_LINK = re.compile(r"\[\[([^\[\]|\n]{1,200})(?:\|([^\[\]\n]{1,200}))?\]\](?![(\[])")
_ROLE = re.compile(r"\{([a-z][a-z:]{0,40})\}`[!~]?([^`<>]{1,200}?)(?:\s*<([^`<>\s]{1,200})>)?`")  # of MyST
_TEMPLATE_LINK = re.compile(rf"(\]\(|\]:[ \t]*)({TEMPLATE.pattern})")
_PACKED = frozenset(".txt .text .md .markdown .rst .html .htm .xhtml".split())  # also as .gz
_ASCII = bytes(range(128))
_MOST_ACCENTS = 0.3  # share of the letters of a text in an alphabet with accents
_LONGEST_OUTPUT = 2_000  # characters of what a cell of a notebook has printed
_OPF = "{http://www.idpf.org/2007/opf}"
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_WORD = 24  # letters; few are longer
_LEADERS = re.compile(r"(?:\. ?){6}")  # of a line in a table of contents
_GAP = 180  # thousandths of the size of a font: a space is wider, and an even space between letters narrower
_WIDE_GAP = 500  # what pypdf takes for a space in any font
_DIGITS = re.compile(r"\d+")


def suffix_of(path: Path) -> str:
    """The suffix by which `CONVERTERS` knows a file: ".txt" also of "a.txt.gz"."""
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    return inner if suffix == ".gz" and inner in _PACKED else suffix


def convert(path: Path) -> Text:
    """Convert a file of one of the suffixes in `CONVERTERS`, texts also if they are compressed by gzip.

    Raises:
        Unreadable: it is damaged, encrypted, too large, has no text, or a library is missing.
    """
    suffix = suffix_of(path)
    content = _read(path, LARGEST_FILE if suffix in (".pdf", ".docx", ".epub") else LARGEST_RECORD)
    if path.suffix.lower() == ".gz":
        content = _unpacked(content)
    try:
        text = CONVERTERS[suffix](content)
    except Unreadable:
        raise
    except BadZipFile:
        raise Unreadable(f"no {suffix} file, or encrypted") from None
    except (MemoryError, RecursionError) as error:
        raise Unreadable(f"too large or nested too deep ({type(error).__name__})") from None
    except Exception as error:  # noqa: BLE001  # a library may raise anything for a damaged or hostile file
        raise Unreadable(f"damaged ({type(error).__name__}: {str(error)[:100]})") from None
    if not text.lines and not text.title:
        raise Unreadable("empty")
    if sum(len(line.text) for line in text.lines) > LARGEST_RECORD:
        raise Unreadable(TOO_LARGE)
    if len(text.lines) > _MOST_LINES:
        raise Unreadable(f"more than {_MOST_LINES:,} sentences: split it")
    return text


def _read(path: Path, most: int) -> bytes:
    try:
        return read_bytes(path, most)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").removeprefix("it is ")
        raise Unreadable(f"{reason}: split it" if reason.startswith("larger") else reason) from None


def _unpacked(content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            unpacked = file.read(LARGEST_RECORD + 1)
    except (OSError, EOFError, zlib.error):
        raise Unreadable("the gzip file is damaged or cut short") from None
    if len(unpacked) > LARGEST_RECORD:
        raise Unreadable(f"it unpacks to more than {LARGEST_RECORD >> 20} MB: split it")
    return unpacked


def _decoded(content: bytes, charset: str = "cp1252") -> str:
    """The text of a file in UTF-8 or UTF-16, or else in another charset, if it looks like that."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return clean(content.decode("utf-16", "replace"))
    if b"\x00" in content:
        raise Unreadable("a binary file")
    try:
        return clean(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        if charset == "cp1252" and len(content.translate(None, _ASCII)) > _MOST_ACCENTS * len(content):
            raise Unreadable(f"not UTF-8 (byte {error.start + 1}): save it as UTF-8") from None
    try:
        return clean(content.decode(charset, "replace"))
    except (LookupError, ValueError):  # no such charset, or one that is not for texts, such as "idna"
        return clean(content.decode("cp1252", "replace"))


def _plain(content: bytes) -> Text:
    return Text("", [Line(sentence) for sentence in split_sentences(_decoded(content))])


# --- HTML ------------------------------------------------------------------------------------------------------------


def _html(content: bytes) -> Text:
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.replace(b"\x00", b" ")
    declared = _CHARSET.search(content[:4096])
    return of_html(_decoded(content, declared[1].decode() if declared else "cp1252"))


# --- Markdown --------------------------------------------------------------------------------------------------------


def _markdown(content: bytes) -> Text:
    source = _decoded(content).replace("\r\n", "\n")
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

    def role(state: StateInline, silent: bool) -> bool:
        found = _ROLE.match(state.src, state.pos)
        if found and not silent:
            if found[1] == "doc":
                state.push("link_open", "a", 1).attrs = {"href": found[3] or found[2]}
                state.push("text", "", 0).content = found[2]
                state.push("link_close", "a", -1)
            else:
                state.push("code_inline", "code", 0).content = found[2]
        state.pos = found.end() if found else state.pos
        return bool(found)

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wiki_link", wiki_link)
    parser.inline.ruler.before("link", "role", role)
    markup: str = parser.render(_TEMPLATE_LINK.sub(lambda found: found[1] + untemplated(found[2]), source))
    return markup


def _rst(content: bytes) -> Text:
    try:
        from .rst import rendered

        return of_html(rendered(_decoded(content)), first_heading=True)
    except ImportError:
        raise _missing("reStructuredText files") from None


def _notebook(content: bytes) -> Text:
    """Markdown, and code with the text that it has printed."""
    try:
        cells = json.loads(_decoded(content))["cells"]
        blocks = [block for cell in cells for block in _cell(cell)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unreadable("not a notebook of Jupyter, version 4 or later") from None
    return of_html(_rendered("\n\n".join(blocks)), first_heading=True)


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    shown = [each.get("text") or each.get("data", {}).get("text/plain") or "" for each in cell.get("outputs", ())]
    for text in (source, "".join("".join(each) for each in shown)[:_LONGEST_OUTPUT]):
        fence = "`" * (max(map(len, re.findall("`+", text)), default=2) + 3)
        yield f"{fence}\n{text}\n{fence}"


# --- books and Word --------------------------------------------------------------------------------------------------


def _missing(kind: str) -> Unreadable:
    return Unreadable(f"{kind} need a library that is not installed: run `{installs('documents')}`")


@contextmanager
def _archive(content: bytes) -> Iterator[ZipFile]:
    with ZipFile(io.BytesIO(content)) as parts:
        if sum(part.file_size for part in parts.infolist()) > _UNPACKED:
            raise Unreadable(f"it unpacks to more than {_UNPACKED >> 20} MB")
        yield parts


def _epub(content: bytes) -> Text:
    """A book: its chapters in the order in which they are read, each below its title."""
    with _archive(content) as parts:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        container = etree.fromstring(parts.read("META-INF/container.xml"), parser)
        place = next(container.iter("{*}rootfile")).get("full-path")
        package = etree.fromstring(parts.read(place), parser)
        files = {each.get("id"): unquote(each.get("href")) for each in package.iter(f"{_OPF}item")}
        names = [files[each.get("idref")] for each in package.iter(f"{_OPF}itemref") if each.get("idref") in files]
        chapters = [_html(parts.read(normpath(f"{dirname(place)}/{name}".lstrip("/")))) for name in names]
    title = next((each.text for each in package.iter("{http://purl.org/dc/elements/1.1/}title") if each.text), "")
    lines: list[Line] = []
    for chapter in chapters:
        above = (chapter.title,) if chapter.title and chapter.title != title else ()
        if above:
            lines.append(Line(f"{chapter.title}:", above, is_heading=True))
        for line in chapter.lines:
            links = tuple(map(_in_book, line.links))
            if not any(link.kind == "contents" and link.target.startswith("#") for link in links):
                lines.append(line._replace(headings=(*above, *line.headings), links=links))
    return Text(" ".join(clean(title).split())[:LONGEST_HEADING], lines)


def _in_book(href: Href) -> Href:
    """A link to another file of the book as one to another place in it."""
    file, _, fragment = href.target.partition("#")
    return href if ":" in file else href._replace(target=f"#{fragment}")


def _docx(content: bytes) -> Text:
    try:
        from mammoth import convert_to_html, images
    except ImportError:
        raise _missing("Word files") from None
    with _archive(content):
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


# --- PDF -------------------------------------------------------------------------------------------------------------


class _Page(NamedTuple):
    lines: list[str]
    links: list[tuple[str, str]]  # texts and targets


def _pdf(content: bytes) -> Text:
    try:
        from pypdf import PdfReader
    except ImportError:
        raise _missing("PDF files") from None
    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("it is encrypted and needs a password")
    pages = [_pdf_page(page) for page in reader.pages]
    if any(
        _are_glued(page.lines) and not _are_glued(_pdf_page(each, are_glued=True).lines)
        for each, page in zip(reader.pages, pages, strict=True)
    ):  # then in all of the document, which was made by one program
        pages = [_pdf_page(page, are_glued=True) for page in reader.pages]
    title = str((reader.metadata and reader.metadata.title) or "").strip()
    if not any(page.lines for page in pages):
        raise Unreadable("no text in it: scanned pages need OCR first")
    pages = _without_running_lines(pages)
    if not title and (first := next((page.lines for page in pages if page.lines), None)):
        heading = first[0]
        if len(first) > 1 and len(heading) <= 100 and heading[-1] not in ".,;":
            title = heading
            first.pop(0)
    return Text(clean(title)[:LONGEST_HEADING], list(_paged(pages)))


def _are_glued(lines: list[str]) -> bool:
    """Whether words have no spaces between them."""
    words = _WORD.findall(" ".join(lines))
    return sum(len(word) > _LONGEST_WORD for word in words) > max(2, len(words) / 100)


def _pdf_page(page: Any, are_glued: bool = False) -> _Page:
    """The text of a page, and its links to other documents.

    Args:
        are_glued: A small gap between letters is a space, too.
    """
    from pypdf.generic import FloatObject

    areas = [area for each in page.get("/Annots") or () if (area := _area(each.get_object()))]
    runs: list[tuple[float, float, str]] = []

    def widen(operator: bytes, operands: list[Any], *matrices: object) -> None:
        if operator == b"TJ":
            parts: list[Any] = []
            for each in operands[0]:
                is_gap = isinstance(each, int | float) and -_WIDE_GAP < each <= -_GAP
                parts += [FloatObject(-_WIDE_GAP), FloatObject(_WIDE_GAP + each)] if is_gap else [each]
            operands[0][:] = parts

    def collect(text: str, outer: list[float], inner: list[float], *font: object) -> None:
        x, y = inner[4:6]
        runs.append((x * outer[0] + y * outer[2] + outer[4], x * outer[1] + y * outer[3] + outer[5], text))

    before, after = widen if are_glued else None, collect if areas else None
    text = page.extract_text(visitor_operand_before=before, visitor_text=after)
    links = []
    for left, low, right, high, target in areas:
        inside = [run for x, y, run in runs if left - 2 <= x < right and low - 2 <= y < high and run.strip()]
        links.append((" ".join("".join(inside).split())[:LONGEST_ANCHOR_TEXT], target))
    return _Page([line.strip() for line in text.splitlines() if line.strip() and not _LEADERS.search(line)], links)


def _area(annotation: Any) -> tuple[float, float, float, float, str] | None:
    """Where a link to another document is on the page, and its target."""
    action = annotation.get("/A")
    if annotation.get("/Subtype") != "/Link" or not action:
        return None
    file = action.get_object().get("/URI") or action.get_object().get("/F")
    target = str((file.get("/UF") or file.get("/F") or "") if isinstance(file, dict) else file or "")
    if not target:
        return None
    left, low, right, high = map(float, annotation["/Rect"])
    return min(left, right), min(low, high), max(left, right), max(low, high), target


def _without_running_lines(pages: list[_Page]) -> list[_Page]:
    """The pages without headers and footers: first and last lines that most pages have, but for numbers."""
    ends = Counter(_DIGITS.sub("0", line) for page, _ in pages for line in {*page[:1], *page[-1:]})
    running = {line for line, count in ends.items() if count > max(1, (len(pages) - 1) / 2) or line == "0"}
    kept = (
        [line for n, line in enumerate(page) if 0 < n < len(page) - 1 or _DIGITS.sub("0", line) not in running]
        for page, _ in pages
    )
    return [page._replace(lines=lines) for page, lines in zip(pages, kept, strict=True)]


def _paged(pages: list[_Page]) -> Iterator[Line]:
    """Sentences below the number of the page on which they end."""
    carried = ""
    links: list[tuple[str, str]] = []
    for number, page in enumerate(pages, 1):
        text = carried + "\n".join(page.lines)
        text = re.sub(r"(?<=[^\W\d_])[-\u00ad]\n(?=[a-zß-ÿ])", "", text)  # a word that was divided
        sentences = split_sentences(clean(text).replace("\n", " "))
        is_open = bool(sentences) and number < len(pages) and sentences[-1][-1] not in ".?!:…。？！\"”')"
        carried = sentences.pop() + "\n" if is_open and len(sentences[-1]) < 1000 else ""
        found: list[list[Href]] = [[] for _ in sentences]
        waiting = []
        for text, target in [*links, *page.links]:
            shown = next((n for n, sentence in enumerate(sentences) if text in sentence), 0)
            if text and text in carried:
                waiting.append((text, target))
            elif sentences:
                before = sentences[shown][: max(0, sentences[shown].find(text))]
                found[shown].append(Href(len("".join(before.split())), target, text or target[:LONGEST_ANCHOR_TEXT]))
        links = waiting[:MOST_LINKS]
        for sentence, hrefs in zip(sentences, found, strict=True):
            yield Line(sentence, (f"page {number}",), links=tuple(sorted(hrefs)))


# --- tables ----------------------------------------------------------------------------------------------------------


def _table(content: bytes) -> Text:
    """The rows of a table with a header, each a sentence."""
    number = 0
    try:
        rows = TableRows(io.StringIO(_decoded(content), newline=""))
        named = [name[:1].upper() + name[1:] for name in rows.columns]
        lines = []
        for row in rows:
            for texts, _ in of_row(named, [Cell(" ".join(cell.split())) for cell in row]):
                lines += [Line(text) for text in texts]
            number = rows.line_num
    except csv.Error as error:
        raise Unreadable(f"not a table from line {number + 1} on: {error}") from None
    return Text("", lines)


CONVERTERS: dict[str, Callable[[bytes], Text]] = {
    ".txt": _plain,
    ".text": _plain,
    ".md": _markdown,
    ".markdown": _markdown,
    ".rst": _rst,
    ".ipynb": _notebook,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".epub": _epub,
    ".pdf": _pdf,
    ".docx": _docx,
    ".csv": _table,
    ".tsv": _table,
}
"""By suffix, see `suffix_of`."""
