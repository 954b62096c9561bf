"""The text of documents: plain text, Markdown, HTML, PDF, Word and tables, as lines under headings.

Markdown, reStructuredText, notebooks, books and Word become HTML first, so that one reader knows headings, lists,
tables, code and links. `conversions` reads many files, each in a process with limits.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from posixpath import dirname, normpath
from threading import local
from typing import Any, TypeVar
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from lxml import etree

from ..files import LARGEST_RECORD, read_bytes, table_rows
from ..importing import installs
from ..text import clean, count, split_sentences, undivided
from .html import LONGEST_HEADING, Text, Unreadable, of_html
from .markdown import rendered
from .pdf import of_pdf
from .split import Href, Line, bounded_metadata
from .tables import LONGEST_CELL

__all__ = ["CONVERTERS", "Text", "Unreadable", "conversions", "convert", "looks_like_text", "of_html"]

_LARGEST_FILE = 256 << 20  # bytes of a PDF, Word file or book
_TOO_LARGE = f"its text is larger than {LARGEST_RECORD >> 20} MB: split it"
_UNPACKED, _MOST_LINES = 512 << 20, 400_000  # bytes of what a Word file or a book contains; lines of a document
_MEMORY, _SECONDS = 4 << 30, 300.0  # bytes and seconds for the conversion of one document
# Seconds of the processor, so that it does not depend on what else runs; and more for each megabyte, of texts and of
# what may grow. The slowest PDF files that we know take 20.
_COMPUTING, _A_MB_OF_TEXT, _A_MB = 20.0, 10.0, 60.0
_LONGEST_REPLY = 128 << 20  # characters of a document as JSON, in which each line has its headings
_AHEAD = 8  # documents for each process, so that they have work while a slow one is waited for

_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(?![ \t]*\n)(.{0,20000}?)\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_YAML_KEY = re.compile(r"""(?:#.*\n|[ \t]*\n)*["']?\w[^:\n]{0,100}:(?:\s|$)""")  # after comments
_YAML_LINE = re.compile(r"""\s*$|\s+\S|[-#}\]](?!#)|["']?\w[^:]{0,100}:(?:\s|$)""")  # of a mapping
_SCALAR = re.compile(r"""^([A-Za-z][\w -]{0,60}):[ \t]+(["']?)(.+?)\2[ \t]*$""", re.MULTILINE)
_MOST_ACCENTS, _LONGEST_OUTPUT = 0.3, 2_000  # share of accented letters; characters that a cell has printed
_OBJECT = re.compile(r"<[^<>\n]{1,100}>")  # what is printed of an object that has no text
_WIDEST = codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE
_WIDE = *_WIDEST, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
_PRINTED = re.compile(r"[^\x00-\x07\x0e-\x1f\x7f]*")  # a backspace prints bold in pages of manuals
_WHOLE = re.compile(rb"</(?:\w+:)?(?:html|svg)\s*>", re.IGNORECASE)  # the end of a chapter
_TEXTS_OF_WORD = "word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"
_AS_HTML = {"p": "p", "tbl": "table", "tr": "tr", "tc": "td"}
_HEADING_STYLE = re.compile(r"(?:Title|[Hh]eading ?([1-6]))")
_LARGE = {".pdf": "pypdfium2", ".docx": "mammoth", ".epub": "zipfile"}  # what may grow, and the library that reads it

Job = TypeVar("Job")


def convert(path: Path) -> Text:
    """Convert a file of one of the suffixes in `CONVERTERS`; one with another is plain text.

    Raises:
        Unreadable: it is damaged, encrypted, too large, has no text, or a library is missing.
    """
    suffix = path.suffix.lower()
    try:
        text = CONVERTERS.get(suffix, _plain)(read_bytes(path, _LARGEST_FILE if suffix in _LARGE else LARGEST_RECORD))
    except Unreadable:
        raise
    except BadZipFile:
        raise Unreadable(f"no {suffix} file, or encrypted") from None
    except ImportError:
        raise Unreadable(f"{suffix} files need a library that is missing: run `{installs('documents')}`") from None
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    except (MemoryError, RecursionError) as error:
        raise Unreadable(f"too large or nested too deep ({type(error).__name__})") from None
    except Exception as error:  # noqa: BLE001  # a library may raise anything for a damaged or hostile file
        # Its message has words, or is the name of a part.
        reason = f": {str(error)[:100]}" if " " in str(error) else f", or no {suffix} file"
        raise Unreadable(f"damaged{reason}") from None
    if not text.lines and (text.lost or not text.title):
        raise Unreadable(text.lost or "empty")
    if sum(len(line.text) for line in text.lines) > LARGEST_RECORD:
        raise Unreadable(_TOO_LARGE)
    if len(text.lines) > _MOST_LINES:
        raise Unreadable(f"more than {_MOST_LINES:,} sentences: split it")
    return text


# --- processes -------------------------------------------------------------------------------------------------------

_IDLE: list[subprocess.Popen[str]] = []  # that wait for the next documents, and end with this process
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IDLE.clear)


def conversions(
    jobs: Iterable[tuple[Job, Path | None]], on_wait: Callable[[], None] = lambda: None
) -> Iterator[tuple[Job, Callable[[], Text | Unreadable | None]]]:
    """Convert documents in processes with limits of time and memory, so that one that exceeds them costs no other.

    Args:
        jobs: With the path of a document, or None for no document. A few are converted ahead.
        on_wait: Called each second while one is waited for.

    Returns:
        Each job with a function that waits for what its document says, in their order.
    """
    threads, jobs, is_done = min(4, os.cpu_count() or 1), iter(jobs), False
    used, mine = list[subprocess.Popen[str]](), local()
    waiting = deque[tuple[Job, Future[Text | Unreadable] | None]]()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="polyhop-convert")

    def converted(path: Path) -> Text | Unreadable:
        if (process := getattr(mine, "process", None)) is None:
            process = mine.process = _process()
            used.append(process)
        assert process.stdin
        assert process.stdout
        reply = ""
        with suppress(OSError, ValueError):
            computing = _COMPUTING, _A_MB if path.suffix.lower() in _LARGE else _A_MB_OF_TEXT
            process.stdin.write(json.dumps([str(path.absolute()), _SECONDS, *computing]) + "\n")
            process.stdin.flush()
            reply = process.stdout.readline()
        if not reply.endswith("\n"):
            mine.process = None
            late = {getattr(signal, "SIGALRM", -1): "its conversion took too long"}
            late |= {getattr(signal, "SIGPROF", -1): "its conversion took too long to compute, for its size"}
            return Unreadable(late.get(abs(process.wait()), "its conversion failed: the process ended"))
        answer = json.loads(reply)
        if "error" in answer:
            return Unreadable(answer["error"])
        lines = []
        for text, above, is_heading, apart, links, anchors, is_term, terms in answer["lines"]:
            hrefs, names = tuple(Href(*link) for link in links), tuple(anchors)
            lines.append(Line(text, tuple(above), is_heading, apart, hrefs, names, is_term, tuple(terms)))
        return Text(**answer | {"lines": lines})

    def waited(future: Future[Text | Unreadable]) -> Text | Unreadable:
        while not wait([future], timeout=1).done:
            on_wait()
        return future.result()

    def submit(count: int) -> None:
        for job, path in islice(jobs, count):
            waiting.append((job, pool.submit(converted, path) if path else None))

    try:
        submit(_AHEAD * threads)
        while waiting:
            job, future = waiting.popleft()
            yield job, partial(waited, future) if future else lambda: None
            submit(1)
        is_done = True
    finally:  # perhaps while a document is converted, which nobody waits for any more
        pool.shutdown(wait=is_done, cancel_futures=True)
        for process in used:
            if is_done and process.poll() is None:
                _IDLE.append(process)
                continue
            with suppress(OSError), process:
                os.killpg(process.pid, signal.SIGKILL)


def _process() -> subprocess.Popen[str]:
    """A process that waits, or a new one."""
    with suppress(IndexError):
        while True:
            if (process := _IDLE.pop()).poll() is None:
                return process
    return subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C is for the process that waits
    )


def _serve() -> None:
    """Convert the documents that are named on the standard input. The process ends with one that exceeds its limits;
    those that may grow large are converted in forks."""
    from resource import RLIMIT_AS, setrlimit

    setrlimit(RLIMIT_AS, (_MEMORY, _MEMORY))
    for line in sys.stdin:
        name, seconds, computing, a_megabyte = json.loads(line)
        path = Path(name)
        size = path.stat().st_size if path.exists() else 0
        library = _LARGE.get(path.suffix.lower())
        with suppress(ImportError, ValueError):  # once for all forks
            import_module(library or "")
        if (is_apart := library is not None or size > 1 << 20) and (child := os.fork()):
            if status := os.waitpid(child, 0)[1]:
                os._exit(abs(os.waitstatus_to_exitcode(status)))
            continue
        signal.setitimer(signal.ITIMER_REAL, seconds)
        signal.setitimer(signal.ITIMER_PROF, computing + a_megabyte * size / 1e6)
        try:
            reply = json.dumps(convert(path)._asdict())
        except Unreadable as error:
            reply = json.dumps({"error": str(error)})
        print(reply if len(reply) <= _LONGEST_REPLY else json.dumps({"error": _TOO_LARGE}), flush=True)
        if is_apart:
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)


# --- texts -----------------------------------------------------------------------------------------------------------


def _decoded(content: bytes, charset: str = "cp1252") -> str:
    """The text of a file in UTF-8, or with a mark in UTF-16 or UTF-32, or else in another charset, if it looks like
    that."""
    if content.startswith(_WIDE):
        return clean(content.decode("utf-32" if content.startswith(_WIDEST) else "utf-16", "replace"))
    if b"\x00" in content:
        raise Unreadable("a binary file")
    try:
        return clean(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        if charset == "cp1252" and len(content.translate(None, bytes(range(128)))) > _MOST_ACCENTS * len(content):
            raise Unreadable(f"not UTF-8 (byte {error.start + 1}): save it as UTF-8") from None
    try:
        return clean(content.decode(charset, "replace"))
    except (LookupError, ValueError):  # no such charset, or one that is not for texts, such as "idna"
        return clean(content.decode("cp1252", "replace"))


def looks_like_text(start: bytes) -> bool:
    """Whether a file without a suffix that starts so is text: in UTF-8, without control characters, and no script."""
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError:
        return False
    return bool(text.strip()) and not text.startswith("#!") and _PRINTED.fullmatch(text) is not None


def _plain(content: bytes) -> Text:
    """The sentences of its paragraphs."""
    text = re.sub(".\x08", "", _decoded(content))  # letters that are printed twice are bold
    return Text("", [Line(sentence) for sentence in split_sentences(undivided(text, typeset=False))])


# --- HTML ------------------------------------------------------------------------------------------------------------


def _html(content: bytes) -> Text:
    if not content.startswith(_WIDE):
        content = content.replace(b"\x00", b" ")
    declared = _CHARSET.search(content[:4096])
    return of_html(_decoded(content, declared[1].decode() if declared else "cp1252"))


# --- Markdown --------------------------------------------------------------------------------------------------------


def _markdown(content: bytes) -> Text:
    metadata, source = _front_matter(_decoded(content).replace("\r\n", "\n"))
    text = of_html(rendered(source), title=metadata.get("title", ""), first_heading=True)
    return text._replace(metadata=bounded_metadata(metadata))


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


def _rst(content: bytes) -> Text:
    from .rst import rendered as rendered_rst

    return of_html(rendered_rst(_decoded(content)), first_heading=True)


def _notebook(content: bytes) -> Text:
    """Markdown, and code with the text that it has printed."""
    damaged, blocks = 0, list[str]()
    try:
        cells = iter(json.loads(_decoded(content))["cells"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable("not a notebook of Jupyter, version 4 or later") from None
    for cell in cells:
        try:
            blocks += _cell(cell)
        except (TypeError, AttributeError):
            damaged += 1
    lost = f"{count(damaged, 'cell')} of it damaged" if damaged else ""
    return of_html(rendered("\n\n".join(blocks)), first_heading=True)._replace(lost=lost)


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


# --- books and Word --------------------------------------------------------------------------------------------------


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
        files = {item.get("id"): unquote(item.get("href")) for item in package.iter("{*}item")}
        names = [files[item.get("idref")] for item in package.iter("{*}itemref") if item.get("idref") in files]
        paths, members = [normpath(f"{dirname(place)}/{name}".lstrip("/")) for name in names], set(parts.namelist())
        contents = [parts.read(path) if path in members else b"" for path in paths]
    chapters = list(map(_html, contents))
    chapters_by_name = zip(names, contents, strict=True)
    damaged = [name for name, content in chapters_by_name if not _WHOLE.search(content.replace(b"\0", b""))]
    lost = f"{count(len(damaged), 'chapter')} of it cut off or missing, such as {clean(damaged[0])}" if damaged else ""
    titles = (element.text for element in package.iter("{http://purl.org/dc/elements/1.1/}title"))
    title = next(filter(None, titles), "")
    lines: list[Line] = []
    for chapter in chapters:
        above = (chapter.title,) if chapter.title and chapter.title != title else ()
        if above:
            lines.append(Line(f"{chapter.title}:", above, is_heading=True))
        for line in chapter.lines:
            links = tuple(  # to another file of the book: to another place in it
                link if ":" in link.target else link._replace(target=f"#{link.target.partition('#')[2]}")
                for link in line.links
            )
            if not any(link.kind == "contents" and link.target.startswith("#") for link in links):
                lines.append(line._replace(headings=(*above, *line.headings), links=links))
    return Text(" ".join(clean(title).split())[:LONGEST_HEADING], lines, lost=lost)


def _docx(content: bytes) -> Text:
    from mammoth import convert_to_html, images

    lost = ""
    with _archive(content) as parts:
        try:
            markup = convert_to_html(
                io.BytesIO(content),
                style_map="p[style-name='Title'] => h1:fresh",
                convert_image=images.img_element(lambda image: {"src": ""}),
            ).value
        except Exception as error:  # a style, a link or a picture that it refers to is missing
            markup = "".join(_paragraphs(parts, name) for name in _TEXTS_OF_WORD if name in parts.namelist())
            if not markup:
                raise
            lost = f"styles and links of it: {type(error).__name__}, {clean(str(error))[:100]}"

    def headers(row: re.Match[str]) -> str:
        return row.group().replace("<td", "<th").replace("</td>", "</th>")

    # Word does not tell that the first row of a table is its header.
    text = of_html(re.sub(r"<table>(?:<tbody>)?<tr>.*?</tr>", headers, clean(markup), flags=re.DOTALL))
    if not text.lines:
        raise Unreadable("no text in it")
    return text._replace(lost=lost)


def _paragraphs(parts: ZipFile, name: str) -> str:
    """The paragraphs and tables of a part of a Word file as HTML, without what it refers to."""
    root = etree.fromstring(parts.read(name), etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    for gone in list(root.iter("{*}del", "{*}moveFrom", "{*}instrText", "{*}Fallback")):
        gone.getparent().remove(gone)
    for element in list(root.iter("{*}*")):
        tag = etree.QName(element).localname
        style = next(element.iterfind("{*}pPr/{*}pStyle"), None)
        heading = None if style is None else _HEADING_STYLE.fullmatch("".join(style.values()))
        element.text = element.text if tag == "t" else " " if tag in ("tab", "br") else ""
        element.tag = f"h{heading[1] or 1}" if heading else _AS_HTML.get(tag, "span")
        element.attrib.clear()
    return etree.tostring(root, encoding="unicode", method="html")


# --- tables ----------------------------------------------------------------------------------------------------------


def _table(content: bytes) -> Text:
    """The rows of a table with a header, each a sentence: "Service: Ledger; Owner: Ada Berg."."""
    lines = []
    try:
        for _, row in table_rows(io.StringIO(_decoded(content), newline="")):
            cells = [(f"{name}: " if name else "", cell) for name, cell in row]
            short = "; ".join(name + cell for name, cell in cells if len(cell) <= LONGEST_CELL)
            lines += [f"{short}." if short and short[-1] not in ".!?" else short] if short else []
            lines += [text for _, cell in cells if len(cell) > LONGEST_CELL for text in split_sentences(cell)]
    except csv.Error as error:
        raise Unreadable(f"not a table: {error}") from None
    return Text("", [Line(text) for text in lines])


CONVERTERS: dict[str, Callable[[bytes], Text]] = {
    "": _plain,
    ".txt": _plain,
    ".text": _plain,
    ".md": _markdown,
    ".markdown": _markdown,
    ".mdx": _markdown,
    ".rst": _rst,
    ".ipynb": _notebook,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".epub": _epub,
    ".pdf": of_pdf,
    ".docx": _docx,
    ".csv": _table,
    ".tsv": _table,
}
"""By suffix, in small letters."""

if __name__ == "__main__":
    _serve()
