"""Corpora as streams of passages: documents, records, and folders of them.

One record is held in memory at a time. A malformed record is reported with its file, line and reason, and skipped; a
file of another kind is an error.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, cast

import ujson

from .conversion import Conversions
from .converters import CONVERTERS, TableRows, Text, Unreadable
from .errors import CorpusError, Problem
from .files import LARGEST_RECORD, bounded_lines, check_regular
from .folder import walk
from .passages import Passage
from .splitting import LONGEST_PASSAGE, MAX_WORDS, USUAL_PASSAGE, Document, bounded_metadata, count_words, split
from .text import clean

LONGEST_ID = 512  # characters
_LOOKED_AT = 100  # records, to tell what a file has

_TOO_LARGE = f"larger than {LARGEST_RECORD >> 20} MB: split it"
_GZIP = b"\x1f\x8b"
_CONTEXTS = re.compile(rb'"(?:context|paragraphs|data|document\w*)"\s*:')
_FILES = ("file_name", "filename", "source")  # in the metadata of other tools
_TEXTS = ("text", "page_content", "content", "contents")  # polyhop and LlamaIndex, LangChain, Haystack, Pyserini


@dataclass(frozen=True)
class _Source:
    path: Path
    name: str  # in reports, and of a document its id: the file's name, with its folder if a folder was given
    kind: Literal["document", "lines", "table", "benchmark", "refused"] = "document"
    refused: str = ""  # why it is skipped
    in_folder: bool = False


def _size(source: _Source) -> int:
    try:
        return source.path.stat().st_size
    except OSError:
        return 0


def _version(source: _Source, digest: str, document: str) -> str:
    return f"{source.name}\n{digest}\n{document}"


def _file_hash(path: Path) -> str:
    """A hash of a file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return ""


def _record_version(source: _Source, made: Passage | Document | str) -> str:
    if not source.in_folder or not isinstance(made, Passage):
        return ""
    content = ujson.dumps(made.to_record()).encode()
    return _version(source, hashlib.blake2b(content, digest_size=16).hexdigest(), made.id)


class Corpus:
    """Passages streamed from files and folders, in the order given.

    Args:
        paths: Documents with one of the suffixes in `CONVERTERS`; records with the text of one passage or document each
            (JSON Lines, gzip or plain; a JSON list; a table with a column for texts) with the fields of polyhop,
            Pyserini, BEIR, LangChain, LlamaIndex or Haystack; folders of these (see `walk`); and what
            `benchmark_passages` reads, such as HotpotQA questions, whose contexts are pooled.
        max_words: Split everything that is longer; 0 to split nothing. By default documents are split at `MAX_WORDS`:
            text files, and records of JSON Lines that are no passages (see `_are_documents`).
        known: Versions of documents, which are not read again.
        roots: Names of folders: a file that is in one has the id that it has when the folder is read.
        strict: Raise at the first malformed record instead of reporting it.
        on_problem: Called with each skipped record.

    Attributes:
        size: Bytes of all files on disk.
        position: Bytes read so far.
        version: Of the document of the last passage: its file, a hash of its content and its id, one a line; empty for
            records of a file that was not read with its folder.
        unchanged: The versions among ``known`` that were met.
        failed: The files in which something could not be read.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        max_words: int | None = None,
        known: Collection[str] = (),
        roots: Collection[str] = (),
        strict: bool = False,
        on_problem: Callable[[Problem], None] = lambda problem: None,
    ) -> None:
        self._sources = [source for path in paths for source in _sources(Path(path), roots)]
        self._known, self.unchanged = known, set[str]()
        self.version, self.failed = "", set[str]()
        self._versions = deque[str]()  # of the documents that are converted ahead
        self._max_words, self._everything = MAX_WORDS if max_words is None else max_words, bool(max_words)
        self._strict = strict
        self._on_problem = on_problem
        self.names = tuple(clean(Path(path).resolve().name) for path in paths)
        self.size = sum(_size(source) for source in self._sources if not source.refused)
        self.position = 0

    def __iter__(self) -> Iterator[tuple[Passage, str]]:
        """Every passage with its place (``"corpus.jsonl:17"``)."""
        with Conversions() as conversions:
            yield from self._read(conversions(self._changed()))

    def _changed(self) -> Iterator[Path | None]:
        """The documents to convert; None for one that has not changed. Their versions are put into `_versions`."""
        for source in self._sources:
            if source.kind == "document":
                version = _version(source, _file_hash(source.path), source.name)
                self._versions.append(version)
                yield None if version in self._known else source.path

    def _read(self, converted: Iterator[Text | Unreadable | None]) -> Iterator[tuple[Passage, str]]:
        finished = 0
        for source in self._sources:
            if source.refused:
                self.failed.add(source.name)
                self._on_problem(Problem(source.name, source.refused))
                continue
            if source.kind == "document":
                yield from self._convert(source, next(converted))
                finished = self.position = finished + _size(source)
                continue
            if source.kind == "benchmark":
                from .benchmarks import benchmark_passages

                for passage, where in benchmark_passages(source.path, strict=self._strict, on_problem=self._on_problem):
                    version = _record_version(source, passage)
                    yield from self._pieces(source, where, passage, version, is_document=False)
            else:
                yield from self._records(source, finished)
            finished = self.position = finished + _size(source)

    def _convert(self, source: _Source, text: Text | Unreadable | None) -> Iterator[tuple[Passage, str]]:
        version = self._versions.popleft()
        if text is None:
            self.unchanged.add(version)
        else:
            yield from self._pieces(source, source.name, _document(source, text), version, is_document=True)

    def _records(self, source: _Source, finished: int) -> Iterator[tuple[Passage, str]]:
        try:
            file = source.path.open("rb")
        except OSError as error:
            raise CorpusError(f"{source.path} cannot be read: {error.strerror}.") from error
        with file:
            records = _read_lines(source, file) if source.kind == "lines" else _read_table(source)
            looked_at = _first(records)
            are_documents = _are_documents([made for _, made in looked_at])
            for where, made in chain(looked_at, records):
                self.position = finished + file.tell()
                yield from self._pieces(source, where, made, _record_version(source, made), are_documents)

    def _pieces(
        self, source: _Source, where: str, made: Passage | Document | str, version: str, is_document: bool
    ) -> Iterator[tuple[Passage, str]]:
        if isinstance(made, str):
            self.failed.add(source.name)
            self.reject(Problem(where, made))
        elif version and version in self._known:
            self.unchanged.add(version)
        else:
            for piece in self._split(made, is_document):
                self.version = version
                yield piece, where

    def _split(self, made: Passage | Document, is_document: bool) -> list[Passage]:
        if isinstance(made, Document):
            return split(made, self._max_words) if self._max_words else [made.whole()]
        most = self._max_words if self._everything or is_document else LONGEST_PASSAGE
        # Spares most passages the count.
        if not self._max_words or len(made.text) <= most or count_words(made.text) <= most:
            return [made]
        return split(Document.of(made), self._max_words)

    def reject(self, problem: Problem) -> None:
        """Report a skipped record, or raise if ``strict``."""
        if self._strict:
            raise CorpusError(f"{problem.where}: {problem.reason}")
        self._on_problem(problem)


# --- which files -----------------------------------------------------------------------------------------------------


def _sources(path: Path, roots: Collection[str]) -> list[_Source]:
    if path.is_dir():
        home = clean(path.resolve().name)
        found = [_in_folder(each, path, home) for each in walk(path)]
        if all(each.refused for each in found):
            raise CorpusError(f"The folder {path} has no file of a kind that is read: {', '.join(_KINDS)}.")
        return found
    if not path.exists():
        raise CorpusError(f"There is no file or folder {path}.")
    try:
        check_regular(path)
    except (OSError, ValueError) as error:
        raise CorpusError(f"{error}.") from error
    folder = next((each for each in path.resolve().parents if clean(each.name) in roots), None)
    name = clean(path.resolve().relative_to(folder.parent).as_posix() if folder else path.name)
    return [_Source(path, name, _kind(path), in_folder=folder is not None)]


def _in_folder(found: Path | Problem, folder: Path, home: str) -> _Source:
    if isinstance(found, Problem):
        return _Source(folder, clean(found.where), "refused", found.reason)
    # The folder's name is part of the id, since many folders have a README.md.
    name = clean(f"{home}/{found.relative_to(folder).as_posix()}")
    packed = found.suffix.lower() == ".gz"
    if (Path(found.stem) if packed else found).suffix.lower() not in _KINDS or (packed and found.stem[-3:] == "csv"):
        return _Source(found, name, "refused", f"no reader for files of the kind {found.suffix or 'without a suffix'}")
    try:
        check_regular(found)
        return _Source(found, name, _kind(found), in_folder=True)
    except (OSError, ValueError, CorpusError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).removeprefix(f"{found} ")
        return _Source(found, name, "refused", reason or "it cannot be read")


_KINDS = (*CONVERTERS, ".jsonl", ".ndjson")


def _kind(path: Path) -> Literal["document", "lines", "table", "benchmark"]:
    """What a file has, judged by its suffix and its first bytes."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            try:
                return "document" if {*_TEXTS, "sentences"}.isdisjoint(TableRows(file).columns) else "table"
            except csv.Error as error:
                raise CorpusError(f"{path} is not a table: {error}.") from error
    if suffix in CONVERTERS:
        return "document"
    return _kind_of_records(path)


def _kind_of_records(path: Path) -> Literal["lines", "table", "benchmark"]:
    """Which kind of JSON a file has, judged by its first bytes."""
    expected = "Expected JSON Lines: one object with 'title' and 'text' (or 'sentences') a line, plain or gzip."
    try:
        with path.open("rb") as file:
            start = file.read(4096)
        if start.startswith(_GZIP):
            with gzip.open(path) as unpacked:
                start = unpacked.read(4096)
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path} cannot be read: {error}.") from error
    if start.startswith(b"PAR1"):
        raise CorpusError(f"{path} is a Parquet file. {expected}")
    if b"\x00" in start:
        raise CorpusError(f"{path} is a binary file. {expected}")
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if first.startswith(b"[") or (first.startswith(b"{") and not _holds_passage(first.splitlines()[0])):
        from .benchmarks import holds_passages

        if holds_passages(path):
            return "benchmark"
    if first.startswith(b"[") and not any(f'"{name}"'.encode() in first for name in _TEXTS):
        raise CorpusError(f"{path} is a JSON array, but not of passages. {expected}")
    if first and not first.startswith(b"{") and not {".jsonl", ".ndjson", ".json"} & set(path.suffixes):
        raise CorpusError(f"{path} is in no format that is known here. {expected}")
    return "table" if first.startswith(b"[") else "lines"


def _holds_passage(line: bytes) -> bool:
    """Whether a line of JSON, possibly truncated, has the fields of `Passage.from_record`."""
    try:
        record = ujson.loads(line)
    except (ValueError, OverflowError):
        return line != b"{" and not _CONTEXTS.search(line)  # a brace alone opens an indented document
    return isinstance(record, dict) and not record.keys().isdisjoint((*_TEXTS, "sentences", "kwargs", "text_resource"))


# --- reading ---------------------------------------------------------------------------------------------------------

_Made = tuple[str, Passage | Document | str]  # a place, and what is there or the reason why it is skipped


def _first(records: Iterator[_Made]) -> list[_Made]:
    """The first records, but not much more than a megabyte of text."""
    found: list[_Made] = []
    size = 0
    while len(found) < _LOOKED_AT and size < 1 << 20 and (record := next(records, None)):
        found.append(record)
        size += len(record[1].text) if isinstance(record[1], Passage) else 0
    return found


def _are_documents(made: Sequence[Passage | Document | str]) -> bool:
    """Whether most of the first records of a file are too long for passages."""
    sizes = sorted(len(each.text.split()) for each in made if isinstance(each, Passage))
    return bool(sizes) and sizes[len(sizes) // 2] > USUAL_PASSAGE


def _read_lines(source: _Source, file: BufferedReader) -> Iterator[_Made]:
    packed = file.peek(2).startswith(_GZIP)
    lines = gzip.GzipFile(fileobj=file) if packed else file
    number = 0
    try:
        for number, line in enumerate(bounded_lines(cast(IO[bytes], lines)), 1):
            if line is None:
                yield f"{source.name}:{number}", _TOO_LARGE
            elif made := _read_record(line if number > 1 else line.removeprefix(b"\xef\xbb\xbf")):
                yield f"{source.name}:{number}", made
    except (OSError, EOFError, zlib.error) as error:
        damage = f"the gzip file is damaged or cut short after line {number}" if packed else "it cannot be read"
        raise CorpusError(f"{source.path}: {damage} ({error}).") from error


def _read_record(line: bytes) -> Passage | str | None:
    if not line.strip():
        return None
    try:
        record = ujson.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"not UTF-8 (byte {error.start + 1} of the line)"
    except (ValueError, OverflowError) as error:
        return f"not JSON: {error}"
    return _passage(record)


def _passage(record: Any) -> Passage | str:
    try:
        passage = Passage.from_record(_with_our_names(record) if isinstance(record, dict) else record)
    except ValueError as error:
        return str(error)
    return _objection(passage) or passage


def _with_our_names(record: dict[str, Any]) -> Mapping[str, Any]:
    """Convert the fields of other tools. Pyserini's ``contents`` is a text, or a title and a text separated by a line
    break; LangChain also writes a record as the ``kwargs`` of another, LlamaIndex a text in a ``text_resource``."""
    if isinstance(record.get("kwargs"), dict):
        record = record["kwargs"]
    if isinstance(record.get("text_resource"), dict):
        record = record | record["text_resource"]
    metadata = record.get("metadata", record.get("meta"))
    name = next((name for name in _TEXTS if record.get(name) is not None), "text")
    found: dict[str, Any] = {key: record.get(key) for key in ("title", "sentences", "place")} | {
        "text": record.get(name)
    }
    found["id"] = next((record[key] for key in ("id", "_id", "id_") if record.get(key) is not None), None)
    found["metadata"] = bounded_metadata(metadata)
    if name == "contents" and isinstance(found["text"], str) and found["sentences"] is None:
        title, line_break, text = found["text"].partition("\n")
        if line_break and found["title"] is None:
            found["title"], found["text"] = title.strip().strip('"'), text
    if found["title"] is None and isinstance(metadata, dict):
        named = [metadata.get("title"), *(Path(str(metadata[key])).stem for key in _FILES if metadata.get(key))]
        found["title"] = next((title for title in named if title and isinstance(title, str)), None)
    return found


def _read_table(source: _Source) -> Iterator[_Made]:
    """The records of a JSON list, or the rows of a table."""
    if source.path.suffix.lower() not in (".csv", ".tsv"):
        from .benchmarks.files import read_records

        for record in read_records(source.path):
            if isinstance(record, Problem):
                yield record.where, record.reason
            else:
                yield record.where, _passage(dict(record.fields))
        return
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = TableRows(file)
        try:
            for row in rows:
                filled = {name: cell for name, cell in zip(rows.columns, row, strict=False) if cell.strip()}
                if filled:
                    yield f"{source.name}:{rows.line_num}", _passage(filled)
        except csv.Error as error:
            raise CorpusError(f"{source.path} is not a table from line {rows.line_num} on: {error}.") from error


def _document(source: _Source, text: Text | Unreadable) -> Document | str:
    if isinstance(text, Unreadable):
        return str(text)
    title = text.title or clean(source.path.stem)
    document = Document(source.name, title, text.lines, text.metadata)
    return _objection(document.whole()) or document


def _objection(passage: Passage) -> str | None:
    if not passage.title and not passage.text:
        return "title and text are empty"
    if len(passage.id) > LONGEST_ID:
        return f"the id is longer than {LONGEST_ID} characters"
    return None
