"""Files that others may have written, read within bounds."""

from __future__ import annotations

import csv
import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_JSON = 64 << 20  # bytes of a file of JSON that is read whole, and of a line of a run
LARGEST_RECORD = 32 << 20  # bytes of a line or a text of a corpus, and of a line of questions

_PIECE = 1 << 16


def bounded_lines(file: IO[bytes], most: int = LARGEST_RECORD) -> Iterator[bytes | None]:
    """The lines of a file; None for a line of more than ``most`` bytes, which is passed over."""
    while line := file.readline(most + 1):
        if len(line) <= most or line.endswith(b"\n"):
            yield line
            continue
        while (rest := file.readline(_PIECE)) and not rest.endswith(b"\n"):
            pass
        yield None


def table_rows(lines: Iterator[str]) -> Iterator[tuple[int, dict[str | None, str]]]:
    """The rows of a table whose first line names the columns, by commas, semicolons or tabs: each with its line and its
    cells by folded names. Empty cells are left out; those without a column are below None.

    Raises:
        csv.Error: this is no table, or has a cell of more than 4 MB.
    """
    csv.field_size_limit(4 << 20)
    header = next(lines, "")
    delimiter = max(",;\t", key=header.count)
    columns = [name.strip().casefold() for name in next(csv.reader([header], delimiter=delimiter), [])]
    rows, line = csv.reader(lines, delimiter=delimiter), 2
    for row in rows:
        cells = [" ".join(row[len(columns) :]), *row]
        named = {name: cell.strip() for name, cell in zip([None, *columns], cells, strict=False) if cell.strip()}
        if named:
            yield line, named
        line = rows.line_num + 2


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
