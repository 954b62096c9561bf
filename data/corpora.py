"""Corpora as streams of passages: documents, records, and folders of them.

One record is held in memory at a time. A malformed record is reported with its file, line and reason, and skipped; a
file of another kind is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import ujson
from numpy.typing import NDArray

from .conversion import conversions
from .converters import Text, Unreadable
from .errors import CorpusError, LeftOut, Problem
from .files import check_regular
from .folder import walk
from .links import LinkMap
from .passages import Passage
from .records import SUFFIXES, Kind, are_documents, is_read, kind_of, objection, read_lines, read_table
from .splitting import LONGEST_PASSAGE, MAX_WORDS, Document, count_words, split
from .text import clean

_WORD = re.compile(r"\w+")

Runs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Source:
    path: Path
    name: str  # in reports, and of a document its id: the file's name, with its folder if a folder was given
    kind: Kind
    size: int  # bytes
    in_folder: bool = False


class Version(NamedTuple):
    """What an index notes of a document, to see later whether it has changed.

    Attributes:
        content: Its file, a hash of its content and its id, one a line; empty for records of a file that was not read
            with its folder.
        text: A hash of its text; empty for records.
    """

    content: str = ""
    text: str = ""

    @classmethod
    def of(cls, source: _Source, digest: str, document: str) -> Version:
        return cls(f"{source.name}\n{digest}\n{document}")

    @property
    def document(self) -> str:
        return self.content.split("\n", 2)[2]


class _Task(NamedTuple):
    """A file to read.

    Attributes:
        version: Of a document.
        convert: Whether a document is to be converted; not if it is known or still left out.
        twins: The three-word runs of files with its name in richer formats, by id.
        left_out: That it was left out before, and still is.
    """

    source: _Source
    version: Version = Version()
    convert: bool = False
    twins: dict[str, Runs] | None = None
    left_out: LeftOut | None = None


_SLOW = {".pdf": 15.0, ".docx": 5.0, ".epub": 5.0, ".gz": 2.0}
"""Seconds per megabyte of the manuals of Python, git, R and gnuplot; of other formats about one."""


class _Work:
    """What is done and left: bytes alone would say little, since a megabyte of PDF takes as long as many of text."""

    def __init__(self, sources: Iterable[_Source]) -> None:
        self._left, self._done, self._current = sum(map(_cost, sources)), 0.0, 0.0
        self.file, self.part = "", 0.0  # that is read now, and how much of it is done
        self.page = self.pages = 0  # of this file, if it has pages

    def start(self, source: _Source, page: int = 0, pages: int = 0) -> None:
        self.file, self.page, self.pages, self.part = source.name, page, pages, page / pages if pages else 0.0
        self._current = _cost(source)

    def finish(self, source: _Source, *, was_read: bool) -> None:
        self._left -= _cost(source)
        self._done += _cost(source) * was_read
        self._current = 0.0

    @property
    def share(self) -> float:
        """How much of the work is done, from 0 to 1."""
        done, left = self._done + self._current * self.part, self._left - self._current * self.part
        share = done / (done + left) if left > 0 else 1.0
        return min(share, 0.99) if self._current else share


def _cost(source: _Source) -> float:
    return source.size * _SLOW.get(source.path.suffix.lower(), 1.0)


class _Notes(dict[str, str]):
    def earlier(self, key: str, value: str) -> str | None:
        return None if self.setdefault(key, value) is value else self[key]


def _version(source: _Source) -> Version:
    """Of a document; of one that cannot be read, without a hash."""
    try:
        with source.path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        digest = ""
    return Version.of(source, digest, source.name)


def _text_hash(text: Text) -> str:
    digest = hashlib.blake2b(text.title.encode(), digest_size=16)
    for line in text.lines:
        digest.update(f"\n{line.text}".encode())
    return digest.hexdigest()


def _record_version(source: _Source, made: Passage | Document | str) -> Version:
    if not source.in_folder or not isinstance(made, Passage):
        return Version()
    content = ujson.dumps(made.to_record()).encode()
    return Version.of(source, hashlib.blake2b(content, digest_size=16).hexdigest(), made.id)


class Corpus:
    """Passages streamed from files and folders, in the order given; files of one name in several formats together.

    A file with the bytes or the text of another is left out, and so is one that has the name of another and mostly its
    text in a poorer format (see `_FORMATS`).

    Args:
        paths: Documents with one of the suffixes in `CONVERTERS`; records with the text of one passage or document each
            (JSON Lines, gzip or plain; a JSON list; a table with a column for texts) with the fields of polyhop,
            Pyserini, BEIR, LangChain, LlamaIndex or Haystack; folders of these (see `walk`); and what
            `benchmark_passages` reads, such as HotpotQA questions, whose contexts are pooled.
        max_words: Split everything that is longer; 0 to split nothing. By default documents are split at `MAX_WORDS`:
            text files, and records of JSON Lines that are no passages (see `_are_documents`).
        known: The contents of versions of documents, which are not read again.
        left_out: What was left out before, by the content of its version.
        earlier: Returns what was noted of a key; None, after noting a value, for a new one.
        indexed: Returns the documents of an index that have a text, by its hash.
        roots: Names of folders: a file that is in one has the id that it has when the folder is read.
        strict: Raise at the first malformed record instead of reporting it.
        on_problem: Called with each skipped record or file, at once with those that have no reader.
        on_progress: Called after each file, and several times a second while one is waited for.

    Attributes:
        work: How much is done, and what is read now.
        version: Of the document of the last passage.
        unchanged: The versions among ``known`` that were met.
        failed: The files and folders in which something could not be read.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        max_words: int | None = None,
        known: Collection[str] = (),
        left_out: Mapping[str, LeftOut] | None = None,
        earlier: Callable[[str, str], str | None] | None = None,
        indexed: Callable[[str], Iterable[str]] = lambda text: (),
        roots: Collection[str] = (),
        strict: bool = False,
        on_problem: Callable[[Problem], None] = lambda problem: None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._known, self._left_out = known, left_out or {}
        self._earlier, self._indexed = earlier or _Notes().earlier, indexed
        self._documents, self._there = {Version(content).document for content in known}, set[str]()
        self.version, self.unchanged, self.failed = Version(), set[str](), set[str]()
        self._max_words, self._everything = MAX_WORDS if max_words is None else max_words, bool(max_words)
        self._strict = strict
        self._on_problem, self._on_progress = on_problem, on_progress
        self.names = tuple(clean(Path(path).resolve().name) for path in paths)
        self._files = set[str]()  # that were named
        self._folders = tuple(f"{name}/" for path, name in zip(paths, self.names, strict=True) if Path(path).is_dir())
        self._sources = [source for path in paths for source in self._found(Path(path), roots)]
        self.work = _Work(self._sources)
        documents = [source.name for source in self._sources if source.kind == "document"]
        self._links = LinkMap([*documents, *self._documents])

    def __iter__(self) -> Iterator[tuple[Passage, str]]:
        """Every passage with its place (``"corpus.jsonl:17"``)."""
        jobs = ((task, task.source.path if task.convert else None) for task in self._tasks())
        for task, converted in conversions(jobs, self._wait):
            self.work.start(task.source)
            self.work.part = float(bool(converted))
            yield from self._read(task, converted)
            self.work.finish(task.source, was_read=task.source.kind != "document" or bool(converted))
            self._on_progress()

    def _wait(self, task: _Task, page: int, pages: int) -> None:
        self.work.start(task.source, page, pages)
        self._on_progress()

    # --- what is to be done ---

    def _found(self, path: Path, roots: Collection[str]) -> Iterator[_Source]:
        """The files to read; the others are reported."""
        if not path.is_dir():
            single = _single(path, roots)
            self._files.add(single.name)
            yield single
            return
        home, count = clean(path.resolve().name), 0
        for each in walk(path):
            if isinstance(source := _in_folder(each, path, home), Problem):
                if source.kind == "damaged":
                    self.failed.add(source.where)
                self._on_problem(source)
            else:
                count += 1
                yield source
        if not count:
            raise CorpusError(f"The folder {path} has no file of a kind that is read: {', '.join(SUFFIXES)}.")

    def _tasks(self) -> Iterator[_Task]:
        """The files in their order, but those of one document in several formats together, the richest first."""
        groups: dict[tuple[bool, str], list[_Source]] = {}
        for source in self._sources:
            is_document = source.kind == "document"
            groups.setdefault((is_document, _format(source)[1] if is_document else source.name), []).append(source)
        documents = [source for source in self._sources if source.kind == "document"] if self._known else []
        versions = {source.name: _version(source) for source in documents}
        for sources in groups.values():
            sources.sort(key=_format)
            # Before any is read: a text that is there is left out of the files that follow.
            if self._are_settled(found := [versions[source.name] for source in sources if source.name in versions]):
                self._there.update(version.document for version in found if version.content in self._known)
        for (is_document, _), sources in groups.items():
            if is_document:
                yield from self._group(sources, [versions.get(each.name) or _version(each) for each in sources])
            else:
                yield from map(_Task, sources)

    def _are_settled(self, versions: Sequence[Version]) -> bool:
        """Whether the files of a document are as they were."""
        before = [self._left_out.get(version.content) for version in versions]
        names = {version.document for version in versions}
        return all(
            version.content in self._known or (left and (left.text or left.other in names))
            for version, left in zip(versions, before, strict=True)
        )

    def _group(self, sources: Sequence[_Source], versions: Sequence[Version]) -> Iterator[_Task]:
        are_settled = self._are_settled(versions)
        twins: dict[str, Runs] | None = {} if len(sources) > 1 and not are_settled else None
        for source, version in zip(sources, versions, strict=True):
            left = self._left_out.get(version.content) if are_settled else None
            if left and left.text:
                first = self._first(left.text, source.name)
                left = left._replace(other=first) if first else None
            is_known = are_settled and version.content in self._known
            yield _Task(source, version, not (left or is_known), twins, left)

    def _first(self, text: str, name: str) -> str | None:
        """Another document that has a text."""
        for document in self._indexed(text):
            if document != name and (document in self._there or document not in self._documents):
                return document
        first = self._earlier(f"text {text}", name)
        return first if first != name else None

    # --- reading ---

    def _read(self, task: _Task, converted: Text | Unreadable | None) -> Iterator[tuple[Passage, str]]:
        source = task.source
        if source.kind == "document":
            yield from self._document(task, converted)
        elif source.kind == "benchmark":
            from .benchmarks import benchmark_passages

            for passage, where in benchmark_passages(source.path, strict=self._strict, on_problem=self._on_problem):
                yield from self._pieces(source, where, passage, _record_version(source, passage), is_document=False)
        else:
            yield from self._records(source)

    def _document(self, task: _Task, converted: Text | Unreadable | None) -> Iterator[tuple[Passage, str]]:
        source, version = task.source, task.version
        if task.left_out:
            self._leave_out(source, task.left_out)
        elif converted is None:
            self.unchanged.add(version.content)
        elif isinstance(converted, Unreadable):
            self._fail(source, source.name, str(converted))
        elif twin := self._twin(task, converted):
            self._leave_out(source, LeftOut(version.content, twin, ""))
        elif first := self._first(text := _text_hash(converted), source.name):
            self._leave_out(source, LeftOut(version.content, first, text))
        elif version.content in self._known:
            self.unchanged.add(version.content)
        else:
            made = _document(source, converted)
            yield from self._pieces(source, source.name, made, version._replace(text=text), is_document=True)

    def _twin(self, task: _Task, text: Text) -> str | None:
        """The document in a richer format that says the same."""
        if task.twins is None:
            return None
        runs = _runs(text)
        for other, richer in task.twins.items():
            if len(runs) and np.isin(runs, richer).mean() >= _SAME:
                return other
        task.twins[task.source.name] = runs
        return None

    def _leave_out(self, source: _Source, left: LeftOut) -> None:
        reason = f"the same text as {left.other}" + ", in another format" * (not left.text)
        self._on_problem(Problem(source.name, reason, "duplicate", left))

    def _fail(self, source: _Source, where: str, reason: str) -> None:
        self.failed.add(source.name)
        self.reject(Problem(where, reason))

    def _records(self, source: _Source) -> Iterator[tuple[Passage, str]]:
        try:
            file = source.path.open("rb")
        except OSError as error:
            raise CorpusError(f"{source.path} cannot be read: {error.strerror}.") from error
        with file:
            records = read_lines(source.path, file) if source.kind == "lines" else read_table(source.path)
            is_document, records = are_documents(records)
            for place, made in records:
                self.work.part = file.tell() / (source.size or 1)
                where = f"{source.name}:{place}"
                yield from self._pieces(source, where, made, _record_version(source, made), is_document)

    def _pieces(
        self, source: _Source, where: str, made: Passage | Document | str, version: Version, is_document: bool
    ) -> Iterator[tuple[Passage, str]]:
        if isinstance(made, str):
            self._fail(source, where, made)
        elif version.content and version.content in self._known:
            self.unchanged.add(version.content)
        else:
            for piece in self._split(made, is_document):
                self.version = version
                yield self._linked(piece), where

    def _linked(self, piece: Passage) -> Passage:
        """A passage whose links name documents of the corpus where they can."""
        if not piece.links:
            return piece
        links = (link._replace(target=self._links(piece.document, link.target)) for link in piece.links)
        return replace(piece, links=tuple(links))

    def _split(self, made: Passage | Document, is_document: bool) -> list[Passage]:
        if isinstance(made, Document):
            return split(made, self._max_words) if self._max_words else [made.whole()]
        most = self._max_words if self._everything or is_document else LONGEST_PASSAGE
        # Spares most passages the count.
        if not self._max_words or len(made.text) <= most or count_words(made.text) <= most:
            return [made]
        return split(Document.of(made), self._max_words)

    def covers(self, where: str) -> bool:
        """Whether a place is in one of the files or folders that are read."""
        return where in self._files or where.partition(":")[0] in self._files or where.startswith(self._folders)

    def has_failed(self, name: str) -> bool:
        """Whether a file, or a folder that it is in, could not be read."""
        return not self.failed.isdisjoint((name, *map(str, PurePosixPath(name).parents)))

    def reject(self, problem: Problem) -> None:
        """Report a skipped record, or raise if ``strict``."""
        if self._strict:
            raise CorpusError(f"{problem.where}: {problem.reason}")
        self._on_problem(problem)


# --- which files -----------------------------------------------------------------------------------------------------


def _single(path: Path, roots: Collection[str]) -> _Source:
    if not path.exists():
        raise CorpusError(f"There is no file or folder {path}.")
    try:
        check_regular(path)
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise CorpusError(f"{error}.") from error
    folder = next((each for each in path.resolve().parents if clean(each.name) in roots), None)
    name = clean(path.resolve().relative_to(folder.parent).as_posix() if folder else path.name)
    return _Source(path, name, kind_of(path), size, in_folder=folder is not None)


def _in_folder(found: Path | Problem, folder: Path, home: str) -> _Source | Problem:
    if isinstance(found, Problem):
        where = Path(found.where)
        is_wanted = not where.suffix or is_read(where)  # such as a link to a picture
        return found._replace(where=clean(found.where), kind=found.kind if is_wanted else "other")
    # The folder's name is part of the id, since many folders have a README.md.
    name = clean(f"{home}/{found.relative_to(folder).as_posix()}")
    if not is_read(found):
        return Problem(name, f"no reader for files of the kind {found.suffix or 'without a suffix'}", "other")
    try:
        check_regular(found)
        return _Source(found, name, kind_of(found), found.stat().st_size, in_folder=True)
    except (OSError, ValueError, CorpusError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).removeprefix(f"{found} ")
        return Problem(name, reason or "it cannot be read")


_FORMATS = ".html .htm .xhtml .md .markdown .rst .ipynb .docx .epub .txt .text .pdf".split()
"""The formats that a document may have beside others, richest first. HTML is what Markdown and other sources were made
into, with the names of its links; a PDF has lost the structure of its text, and some the spaces."""

_SAME = 0.5
"""The share of the three-word runs of a file that its twin in a richer format has. Of 766 files with the name of a
richer one (the manuals of Python and git, Debian's policy), 749 have more; of 1,500 pairs with other names, one has."""


def _format(source: _Source) -> tuple[int, str]:
    """The rank of a file's format, and what its twins have in common: the name without the formats, and without the
    folder in which Sphinx keeps the sources of its pages ("_sources/library/os.rst.txt" of "library/os.html")."""
    name, rank = source.name.replace("/_sources/", "/"), len(_FORMATS)
    while (suffix := PurePosixPath(name).suffix) and suffix.lower() in (*_FORMATS, ".gz"):
        name = name.removesuffix(suffix)
        rank = rank if suffix.lower() == ".gz" else _FORMATS.index(suffix.lower())
    return rank, name


def _runs(text: Text) -> Runs:
    """Hashes of the runs of three words in a text."""
    words = np.fromiter((hash(word) for line in text.lines for word in _WORD.findall(line.text.lower())), np.int64)
    first, second, third = words[:-2], words[1:-1], words[2:]
    return np.unique(first * 3 + second * 5 + third * 7)


def _document(source: _Source, text: Text) -> Document | str:
    path = source.path.with_suffix("") if source.path.suffix.lower() == ".gz" else source.path
    title = text.title or clean(path.stem)
    document = Document(source.name, title, text.lines, text.metadata)
    return objection(document.whole()) or document
