"""Files that others may have written, read within bounds."""

from __future__ import annotations

import csv
import errno
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMATS = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".md", ".markdown", ".mdx"), "markdown"),
    ".rst": "rst",
    ".ipynb": "notebook",
    ".docx": "word",
    ".epub": "book",
    **dict.fromkeys((".txt", ".text"), "text"),
    ".pdf": "pdf",
    **dict.fromkeys((".csv", ".tsv"), "table"),
}
"""The formats of documents by the suffixes of their files, in small letters, richest first: HTML is what Markdown and
other sources were made into, with the names of its links; a PDF has lost the structure of its text, and some the
spaces."""
LINES = (".jsonl", ".ndjson")
"""The suffixes of files with a record in each line."""

LARGEST_JSON = 64 << 20  # bytes of a file of JSON that is read whole, and of a line of a run
LARGEST_RECORD = 32 << 20  # bytes of a line or a text of a corpus, and of a line of questions

_PIECE = 1 << 16
_LOOKED_AT = 20  # lines of a table, for what separates its cells


def bounded_lines(file: IO[bytes], most: int = LARGEST_RECORD) -> Iterator[bytes | None]:
    """The lines of a file; None for a line of more than ``most`` bytes, which is passed over."""
    while line := file.readline(most + 1):
        if len(line) <= most or line.endswith(b"\n"):
            yield line
            continue
        while (rest := file.readline(_PIECE)) and not rest.endswith(b"\n"):
            pass
        yield None


def table_rows(lines: Iterator[str]) -> Iterator[tuple[int, list[tuple[str | None, str]]]]:
    """The rows of a table whose first row of several cells names the columns, by commas, semicolons or tabs, or what a
    line ``sep=;`` says: each with its line, and its cells with the names as they are written. Empty cells are left out;
    those without a column, also of a title above the names, have None.

    Raises:
        csv.Error: this is no table, or has a cell of more than 4 MB.
    """
    csv.field_size_limit(4 << 20)
    first, offset = [*islice(lines, _LOOKED_AT)], 0
    if first and (separator := re.fullmatch(r"sep=([^\"\s]|\t)", first[0].rstrip("\r\n"), re.IGNORECASE)):
        delimiter, offset = separator[1], 1
    else:
        delimiter = max(",;\t", key=lambda mark: _fit(first, mark))
    is_wide, columns, line = _fit(first[offset:], delimiter)[0] > 0, list[str](), offset + 1
    rows = csv.reader(chain(first[offset:], lines), delimiter=delimiter)
    for row in rows:
        filled = [cell.strip() for cell in row if cell.strip()]
        if columns:
            named: list[tuple[str | None, str]] = [
                (name, cell.strip()) for name, cell in zip(columns, row, strict=False) if cell.strip()
            ]
            if rest := " ".join(row[len(columns) :]).strip():
                named.append((None, rest))
            if named:
                yield line, named
        elif is_wide and len(filled) == 1 and row[0].strip():  # a title
            yield line, [(None, filled[0])]
        elif filled:
            columns = [name.strip() for name in row]
        line = rows.line_num + offset + 1


def _fit(lines: Sequence[str], delimiter: str) -> tuple[int, int]:
    """How many lines have the most frequent number of cells above one, and that number."""
    widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if len(row) > 1)
    return max(((count, width) for width, count in widths.items()), default=(0, 0))


def check_regular(path: Path) -> None:
    """Refuse what is not a file, before it is opened: a pipe can be read once, and perhaps never ends.

    Raises:
        ValueError: it is not a regular file.
    """
    if not path.is_file():
        raise ValueError(f"{path} is not a regular file: write what it holds into one first")


def check_unlinked(folder: Path) -> None:
    """Refuse a folder, to read or to write, whose files may be elsewhere.

    Raises:
        OSError: the folder cannot be read.
        ValueError: it contains a symbolic link.
    """
    if link := next((entry for entry in folder.iterdir() if entry.is_symlink()), None):
        raise ValueError(f"{link} is a symbolic link, and links are not followed here: put a copy in its place")


def read_bytes(path: Path, most: int = LARGEST_JSON) -> bytes:
    """The content of a file.

    Raises:
        OSError: the file cannot be read; also if it is none, such as a pipe, or larger than ``most`` bytes.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        size = f"{most >> 20} MB" if most >> 20 else f"{most >> 10} kB"
        raise OSError(errno.EINVAL, f"it is larger than {size}", str(path))
    return content


def load_array(path: Path) -> NDArray[Any]:
    """The array in a ``.npy`` file, memory-mapped unless it is small: an empty one cannot be.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not such a file, or cut off.
    """
    import numpy as np  # commands that need no array read files, too

    try:
        small = path.stat().st_size <= _PIECE
        return np.asarray(np.load(path, None if small else "r", allow_pickle=False))
    except (EOFError, OverflowError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def read_json(path: Path) -> Any:
    """The JSON value in a file.

    Raises:
        OSError: the file cannot be read, or is too large.
        ValueError: it is not UTF-8, not JSON, or nested too deep, or has a text that cannot be written again.
    """
    content = read_bytes(path)
    try:
        value = json.loads(content)
        if rb"\ud" in content.lower():  # half a character
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except UnicodeEncodeError:
        raise ValueError("it has a lone surrogate") from None
    return value
