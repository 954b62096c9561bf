"""The text of documents: plain text, Markdown, HTML, PDF, Word and tables, as lines under headings.

Markdown, reStructuredText, notebooks, books and Word become HTML first, so that one reader knows headings, lists,
tables, code and links.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

from ..files import FORMATS, LARGEST_RECORD, read_bytes, table_rows
from ..importing import installs
from ..text import split_sentences, undivided
from .decode import decoded, decoded_html
from .html import Text, Unreadable, of_html
from .markdown import of_markdown, of_notebook
from .office import of_docx, of_epub
from .pdf import of_pdf
from .rst import rendered
from .split import Line
from .tables import LONGEST_CELL

_LARGEST_FILE = 256 << 20  # bytes of a PDF, Word file or book
_MOST_LINES = 400_000  # of a document


def convert(path: Path) -> Text:
    """Convert a file of one of the suffixes in `FORMATS`; one with another is plain text.

    Raises:
        Unreadable: it is damaged, encrypted, too large, has no text, or a library is missing.
    """
    suffix = path.suffix.lower()
    form = FORMATS.get(suffix, "text")
    try:
        most = _LARGEST_FILE if form in ("pdf", "word", "book") else LARGEST_RECORD
        text = _CONVERTERS[form](read_bytes(path, most))
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
        raise Unreadable(f"its text is larger than {LARGEST_RECORD >> 20} MB: split it")
    if len(text.lines) > _MOST_LINES:
        raise Unreadable(f"more than {_MOST_LINES:,} sentences: split it")
    return text


def _plain(content: bytes) -> Text:
    """The sentences of its paragraphs."""
    text = re.sub(".\x08", "", decoded(content))  # letters that are printed twice are bold
    return Text("", [Line(sentence) for sentence in split_sentences(undivided(text, typeset=False))])


def _table(content: bytes) -> Text:
    """The rows of a table with a header, each a sentence: "Service: Ledger; Owner: Ada Berg."."""
    lines = []
    try:
        for _, row in table_rows(io.StringIO(decoded(content), newline="")):
            cells = [(f"{name}: " if name else "", cell) for name, cell in row]
            short = "; ".join(name + cell for name, cell in cells if len(cell) <= LONGEST_CELL)
            lines += [f"{short}." if short and short[-1] not in ".!?" else short] if short else []
            lines += [text for _, cell in cells if len(cell) > LONGEST_CELL for text in split_sentences(cell)]
    except csv.Error as error:
        raise Unreadable(f"not a table: {error}") from None
    return Text("", [Line(text) for text in lines])


_CONVERTERS: dict[str, Callable[[bytes], Text]] = {
    "html": lambda content: of_html(decoded_html(content)),
    "markdown": lambda content: of_markdown(decoded(content)),
    "rst": lambda content: of_html(rendered(decoded(content)), first_heading=True),
    "notebook": lambda content: of_notebook(decoded(content)),
    "word": of_docx,
    "book": of_epub,
    "text": _plain,
    "pdf": of_pdf,
    "table": _table,
}
"""By the formats of `FORMATS`."""
