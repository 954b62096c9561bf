"""Corpora as streams of passages: JSON Lines (plain or gzip), folders of texts, single texts.

One record is held in memory at a time. A malformed record is reported with its file, line and reason, and skipped; a
file of another kind is an error.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

import ujson

from .errors import CorpusError, Problem
from .files import LARGEST_RECORD, bounded_lines, check_regular
from .passages import Passage
from .splitting import LONGEST_PASSAGE, MAX_WORDS, USUAL_PASSAGE, Document, Line, count_words, split
from .text import clean, split_sentences

TEXT_SUFFIXES = (".md", ".txt")
LONGEST_ID = 512  # characters
_LOOKED_AT = 100  # records, to tell what a file has

_TOO_LARGE = f"larger than {LARGEST_RECORD >> 20} MB: split it"
_GZIP = b"\x1f\x8b"
_CONTEXTS = re.compile(rb'"(?:context|paragraphs|data|document\w*)"\s*:')
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)


@dataclass(frozen=True)
class _Source:
    path: Path
    name: str  # in reports: the file's name, with its folder if a folder was given
    id: str | None = None  # the passage's id, for a text
    benchmark: bool = False  # a benchmark's own format, or its questions with their contexts
    refused: str = ""  # why it is skipped


class Corpus:
    """Passages streamed from files and folders, in the order given.

    Args:
        paths: JSON Lines files, gzip or plain (``{id?, title?, text}``, ``{id?, title?, sentences}``, or Pyserini's
            ``{id, contents}``); text files (.txt, .md: one passage each); folders, searched recursively for text
            files, but not through links that lead out of them; and what `benchmark_passages` reads, such as HotpotQA
            questions, whose contexts are pooled.
        max_words: Split everything that is longer; 0 to split nothing. By default documents are split at `MAX_WORDS`:
            text files, and records of JSON Lines that are no passages (see `_are_documents`).
        strict: Raise at the first malformed record instead of reporting it.
        on_problem: Called with each skipped record.

    Attributes:
        size: Bytes of all files on disk.
        position: Bytes read so far.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        max_words: int | None = None,
        strict: bool = False,
        on_problem: Callable[[Problem], None] = lambda problem: None,
    ) -> None:
        self._sources = [source for path in paths for source in _sources(Path(path))]
        self._max_words, self._everything = MAX_WORDS if max_words is None else max_words, bool(max_words)
        self._strict = strict
        self._on_problem = on_problem
        self.names = tuple(clean(Path(path).resolve().name) for path in paths)
        self.size = sum(source.path.stat().st_size for source in self._sources if not source.refused)
        self.position = 0

    def __iter__(self) -> Iterator[tuple[Passage, str]]:
        """Every passage with its place (``"corpus.jsonl:17"``)."""
        finished = 0
        for source in self._sources:
            if source.refused:
                self.reject(Problem(source.name, source.refused))
                continue
            if source.benchmark:
                from .benchmarks import benchmark_passages

                for passage, where in benchmark_passages(source.path, strict=self._strict, on_problem=self._on_problem):
                    for piece in self._split(passage, is_document=False):
                        yield piece, where
                finished += source.path.stat().st_size
                self.position = finished
                continue
            try:
                file = source.path.open("rb")
            except OSError as error:
                raise CorpusError(f"{source.path} cannot be read: {error.strerror}.") from error
            with file:
                records = _read_lines(source, file) if source.id is None else _read_text(source, file)
                looked_at = _first(records)
                are_documents = _are_documents([made for _, made in looked_at])
                for where, made in chain(looked_at, records):
                    self.position = finished + file.tell()
                    if isinstance(made, str):
                        self.reject(Problem(where, made))
                        continue
                    for piece in self._split(made, are_documents):
                        yield piece, where
            finished += source.path.stat().st_size
            self.position = finished

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


def _sources(path: Path) -> list[_Source]:
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix.lower() in TEXT_SUFFIXES and file.is_file())
        inside = [file.relative_to(path) for file in found]
        visible = [file for file in inside if not any(part.startswith(".") for part in file.parts)]
        if not visible:
            raise CorpusError(f"The folder {path} has no .txt or .md file. Name other files one by one.")
        name = path.resolve().name
        # The folder's name is part of the id, since many folders have a README.md.
        names = [clean(f"{name}/{file.as_posix()}") for file in visible]
        home, outside = path.resolve(), "a link out of the folder: name its target, if you want it read"
        return [
            _Source(path / file, name, name, refused="" if (path / file).resolve().is_relative_to(home) else outside)
            for file, name in zip(visible, names, strict=True)
        ]
    if not path.exists():
        raise CorpusError(f"There is no file or folder {path}.")
    try:
        check_regular(path)
    except (OSError, ValueError) as error:
        raise CorpusError(f"{error}.") from error
    if path.suffix.lower() in TEXT_SUFFIXES:
        return [_Source(path, clean(str(path)), clean(path.name))]
    return [_Source(path, clean(path.name), benchmark=_is_benchmark(path))]


def _is_benchmark(path: Path) -> bool:
    """Whether a file is in a benchmark's format instead of JSON Lines, judged by its first bytes."""
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
            return True
    if first.startswith(b"["):
        raise CorpusError(f"{path} is a JSON array, but not of passages. {expected}")
    if first and not first.startswith(b"{") and not {".jsonl", ".ndjson", ".json"} & set(path.suffixes):
        raise CorpusError(f"{path} is in no format that is known here. {expected}")
    return False


def _holds_passage(line: bytes) -> bool:
    """Whether a line of JSON, possibly truncated, has the fields of `Passage.from_record`."""
    try:
        record = ujson.loads(line)
    except (ValueError, OverflowError):
        return line != b"{" and not _CONTEXTS.search(line)  # a brace alone opens an indented document
    return isinstance(record, dict) and not record.keys().isdisjoint(("text", "sentences", "contents"))


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
    try:
        passage = Passage.from_record(_with_our_names(record) if isinstance(record, dict) else record)
    except ValueError as error:
        return str(error)
    return _objection(passage) or passage


def _with_our_names(record: dict[str, Any]) -> Mapping[str, Any]:
    """Convert BEIR's ``_id`` and Pyserini's ``contents``, a text or a title and a text separated by a line break."""
    if "_id" in record and "id" not in record:
        record["id"] = record["_id"]
    contents = record.get("contents")
    if isinstance(contents, str) and record.get("text") is None and record.get("sentences") is None:
        title, line_break, text = contents.partition("\n")
        if line_break and record.get("title") is None:
            record["title"], record["text"] = title.strip().strip('"'), text
        else:
            record["text"] = contents
    return record


def _read_text(source: _Source, file: BufferedReader) -> Iterator[_Made]:
    content = file.read(LARGEST_RECORD + 1)
    if len(content) > LARGEST_RECORD:
        yield source.name, _TOO_LARGE
        return
    if b"\x00" in content:
        yield source.name, "a binary file"
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield source.name, f"not UTF-8 (byte {error.start + 1})"
        return
    heading = _HEADING.search(text) if source.path.suffix.lower() == ".md" else None
    if heading:
        text = text[: heading.start()] + text[heading.end() :]
    if not text.strip() and not heading:
        yield source.name, "empty"
        return
    title = heading[1] if heading else clean(source.path.stem)
    document = Document(source.id or "", title, [Line(sentence) for sentence in split_sentences(clean(text))])
    yield source.name, _objection(document.whole()) or document


def _objection(passage: Passage) -> str | None:
    if not passage.title and not passage.text:
        return "title and text are empty"
    if len(passage.id) > LONGEST_ID:
        return f"the id is longer than {LONGEST_ID} characters"
    return None
