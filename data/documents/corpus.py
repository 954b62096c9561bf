"""Corpora as streams of documents and records, each as its passages.

One is held in memory at a time. A malformed record is reported with its file, line and reason, and skipped; a file of
another kind is an error.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from html import unescape
from itertools import chain
from pathlib import Path
from posixpath import dirname
from typing import NamedTuple

import ujson

from ..benchmarks.corpora import passages_of
from ..errors import DataError, Problem
from ..files import FORMATS, LINES
from ..importing import installs
from ..links import LinkMap
from ..passages import Passage
from ..records import LONGEST_ID, read_records
from ..text import clean
from .html import Text, Unreadable
from .processes import conversions
from .split import LONGEST_PASSAGE, MAX_WORDS, USUAL_PASSAGE, Document, count_words, split
from .walk import UNOPENED, Source, source_of, suffix_of, walk, why_unread

_MOST_LOST = 0.3  # of the words of a page, without links; of 1,500 pages of manuals, one that was broken had less
_SAME = 0.5
"""The share of the three-word runs of a file that its twin in a richer format has. Of 766 files with the name of a
richer one (the manuals of Python and git, Debian's policy), 749 have more; of 1,500 pairs with other names, one has."""
_LOOKED_AT = 100  # records, to tell what a file has
_HEADING = re.compile(
    r"<h1\b[^<>]{0,200}>(.{1,400}?)</h1>|^#[ \t]+([^\n]{1,200})", re.DOTALL | re.IGNORECASE | re.MULTILINE
)
_PAGE_TITLE = re.compile(r"<title>(.{1,400}?)</title>", re.DOTALL | re.IGNORECASE)
_ADDRESSES = re.compile(  # of a page, in the front matter of Hugo and Jekyll
    r"^(?:aliases|redirect_from|permalink|url)[ \t]*[:=](.*(?:\n[ \t]*[-\]\"'/].*)*)", re.MULTILINE
)
_FRONT = ("---", "+++")
_START, _MANY = 1 << 16, 3  # bytes with a page's first heading; pages that share it, and the lines that follow it


class Version(NamedTuple):
    """The state of a document or record, to see later whether it has changed.

    Attributes:
        content: Its file, a hash of its content and its id, one a line; empty for records of a file that was not read
            with its folder.
        text: A hash of its text; empty for records.
    """

    content: str = ""
    text: str = ""

    @property
    def file(self) -> str:
        return self.content.split("\n", 2)[0]

    @property
    def is_closed(self) -> bool:
        """Whether its file could not be opened."""
        return self.content.split("\n", 2)[1:2] == [""]

    @property
    def document(self) -> str:
        return self.content.split("\n", 2)[2]


class Entry(NamedTuple):
    """A document or a record: its id, its place (``"corpus.jsonl:17"``), and its passages; None for a document that was
    not to be read."""

    id: str
    where: str
    version: Version
    passages: list[Passage] | None


_Job = tuple[Source, dict[str, set[int]] | None]
"""A file, and the three-word runs of those of its twins that are read, by id, if it has any."""


class Corpus:
    """Files and folders to read, in the order given; files of one name in several formats together.

    A document that has the name of another and mostly its text in a poorer format is left out (see `FORMATS`).

    Args:
        paths: Documents with one of the suffixes in `FORMATS`; records with the text of one passage or document each
            (JSON Lines, gzip or plain; a JSON list; a table with a column for texts) with the fields of polyhop,
            Pyserini, BEIR, LangChain, LlamaIndex or Haystack; folders of these (see `walk`); and benchmarks, such as
            HotpotQA questions, whose contexts are pooled (see `passages_of`).
        max_words: Split everything that is longer; 0 to split nothing. By default documents are split at `MAX_WORDS`:
            text files, and records of files in which most are too long for passages.
        roots: Names of folders: a file that is in one has the id that it has when the folder is read.
        strict: Raise at the first malformed record instead of reporting it.
        on_problem: Called with each skipped record or file, at once with those that have no reader.
        on_progress: Called before and after each file, and each second while one is waited for.

    Attributes:
        names: Of the files and folders, without their paths.
        covered: The same, of files in ``roots`` with the path from there.
        formats: The documents, those of one name in several formats together, the richest first.
        file: What is read now.
        failed: The files and folders in which something could not be read.
        closed: Those of them that could not be opened, or whose library is missing: what they say is unknown.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        max_words: int | None = None,
        roots: Collection[str] = (),
        strict: bool = False,
        on_problem: Callable[[Problem], None] = lambda problem: None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._max_words, self._everything = MAX_WORDS if max_words is None else max_words, bool(max_words)
        self._strict, self._on_problem, self._on_progress = strict, on_problem, on_progress
        self.file = ""
        self.failed, self.closed, self.covered = set[str](), set[str](), set[str]()
        self.names = tuple(clean(path.resolve().name) for path in paths)
        homes = dict[str, Path]()
        for home in (path.resolve() for path in paths if path.is_dir()):
            if (other := homes.setdefault(clean(home.name), home)) != home:
                raise DataError(
                    f"The folders {other} and {home} have one name, with which the ids of their files begin. Index the "
                    "folder above them, or rename one."
                )
        self._sources = [source for path in paths for source in self._in_path(path, roots)]
        documents = [source for source in self._sources if source.is_document]
        self._documents = {source.name for source in documents}
        self._below_shared, addresses = _looked_at(documents)
        self._links = LinkMap([source.name for source in documents], addresses)
        self._groups = defaultdict[tuple[bool, str], list[Source]](list)
        for source in self._sources:
            self._groups[source.is_document, source.format[1]].append(source)
        for group in self._groups.values():
            group.sort(key=lambda source: source.format)
        self.formats = [group for (is_document, _), group in self._groups.items() if is_document]
        self._done, self._all = 0, sum(source.size for source in self._sources) or 1

    def __iter__(self) -> Iterator[Entry]:
        return self.read()

    def read(self, unchanged: Collection[str] = ()) -> Iterator[Entry]:
        """Every document and record; the documents with the names ``unchanged`` without their passages."""
        for (source, twins), text in conversions(self._jobs(unchanged), self._waits):
            before = self._done
            if not source.is_document:
                yield from self._records(source)
            else:
                version = self.version(source)
                self.closed.update([source.name] if version.is_closed else ())
                if text is None:
                    yield Entry(source.name, source.name, version, None)
                elif entry := self._document(source, version, text, twins):
                    yield entry
            self._done = before + source.size
            self._on_progress()

    @property
    def share(self) -> float:
        """How much of the work is done, from 0 to 1."""
        return self._done / self._all

    def reject(self, problem: Problem) -> None:
        """Report a skipped record, or raise if ``strict``."""
        if self._strict:
            raise DataError(f"{problem.where}: {problem.reason}")
        self._on_problem(problem)

    def version(self, source: Source) -> Version:
        """Of a document, without the hash of its text; of one that cannot be read, without any."""
        try:
            with source.path.open("rb") as file:
                digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        except OSError:
            digest = ""
        # It is read again when its first heading becomes a title, or none any more.
        digest += "+" * (digest != "" and source.name in self._below_shared)
        return Version(f"{source.name}\n{digest}\n{source.name}")

    def _jobs(self, unchanged: Collection[str]) -> Iterator[tuple[_Job, Path | None]]:
        """The files, with the paths of those that are to be converted."""
        for group in self._groups.values():
            twins: dict[str, set[int]] | None = {} if len(group) > 1 else None
            for source in group:
                is_new = source.is_document and source.name not in unchanged
                yield (source, twins), source.path if is_new else None

    def _waits(self, job: _Job) -> None:
        self.file = job[0].name
        self._on_progress()

    def _in_path(self, path: Path, roots: Collection[str]) -> Iterator[Source]:
        """The files to read; the others of a folder are reported."""
        home = path.resolve()
        if not path.is_dir():
            folder = next((above for above in home.parents if clean(above.name) in roots), None)
            name = clean(home.relative_to(folder.parent).as_posix() if folder else path.name)
            self.covered.add(name)
            if not path.exists():
                raise DataError(f"There is no file or folder {path}.")
            try:
                yield source_of(path, name, in_folder=folder is not None)
            except (OSError, ValueError) as error:
                raise DataError(f"{path} cannot be read: {error}.") from error
            return
        self.covered.add(clean(home.name))
        count = 0
        for file, reason in walk(path):
            # The folder's name is part of the id, since many folders have a README.md.
            name = clean((Path(home.name) / file.relative_to(home)).as_posix())
            unread = why_unread(file)
            if unread and not reason:
                self._on_problem(Problem(name, unread, "other"))
                continue
            try:
                if not reason:
                    yield source_of(file, name, in_folder=True)
                    count += 1
            except OSError as error:
                reason = error.strerror or UNOPENED
                self.closed.add(name)
            except ValueError as error:
                reason = str(error).removeprefix(f"{file} ")
            if reason:
                is_missed = not unread or not file.suffix  # other than a link to a picture
                self.failed.update([name] if is_missed else ())
                self.closed.update([name] if reason == UNOPENED else ())
                self._on_problem(Problem(name, reason, "damaged" if is_missed else "other"))
        if not count:
            kinds = ", ".join((*FORMATS, *LINES))
            raise DataError(f"The folder {path} has no file of a kind that is read: {kinds}.")

    # --- reading ---

    def _document(
        self, source: Source, version: Version, text: Text | Unreadable, twins: dict[str, set[int]] | None
    ) -> Entry | None:
        if isinstance(text, Unreadable):
            is_final = installs("documents") not in str(text)
            self._fail(Problem(source.name, str(text), version=version.content if is_final else ""), source)
            self.closed.update(() if is_final else [source.name])
            return None
        if len(source.name) > LONGEST_ID:
            self._fail(Problem(source.name, f"the id is longer than {LONGEST_ID} characters"), source)
            return None
        if twins is not None and (twin := _twin(text, source.name, twins)):
            reason = f"the same text as {twin}, in another format"
            self._on_problem(Problem(source.name, reason, "duplicate", version.content, twin))
            return None
        reason = f"only {text.share:.0%} of its text is read: the rest is in forms and navigation"
        if reason := text.lost or (reason if text.share < _MOST_LOST else ""):
            self._on_problem(Problem(source.name, reason, "partial", version.content))
        digest = _text_hash(text)
        if source.name in self._below_shared:
            text = _below_shared_title(text)
        stem = clean(source.path.stem if suffix_of(source.path) else source.path.name)
        document = Document(source.name, text.title or stem, text.lines, text.metadata)
        pieces = split(document, self._max_words) if self._max_words else [document.whole()]
        return Entry(source.name, source.name, version._replace(text=digest), self._linked(pieces))

    def _records(self, source: Source) -> Iterator[Entry]:
        before = self._done

        def progress(position: int) -> None:
            self._done = before + position

        try:
            records = read_records(source.path, source.name, progress)
            passages, is_benchmark = passages_of(records, lambda problem: self._fail(problem, source))
            are_documents, passages = (False, passages) if is_benchmark else _are_documents(passages)
            for passage, where in passages:
                if passage.document in self._documents:
                    self.reject(Problem(where, f"the id {passage.document!r} is that of a file", "duplicate"))
                    continue
                version = Version()
                if source.in_folder:
                    content = ujson.dumps(passage.to_record()).encode()
                    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
                    version = Version(f"{source.name}\n{digest}\n{passage.id}")
                yield Entry(passage.document, where, version, self._linked(self._split(passage, are_documents)))
        except DataError as error:
            if self._strict or not source.in_folder:
                raise
            self._fail(Problem(source.name, str(error)), source)
            self.closed.update([source.name] if self.version(source).is_closed else ())

    def _split(self, passage: Passage, is_document: bool) -> list[Passage]:
        most = self._max_words if self._everything or is_document else LONGEST_PASSAGE
        # Spares most passages the count.
        if not self._max_words or len(passage.text) <= most or count_words(passage.text) <= most:
            return [passage]
        return split(Document.of(passage), self._max_words)

    def _linked(self, pieces: Iterable[Passage]) -> list[Passage]:
        """The pieces of a document, whose links name documents of the corpus where they can."""
        linked = list[Passage]()
        for piece in pieces:
            links = tuple(link._replace(target=self._links(piece.document, link.target)) for link in piece.links)
            linked.append(replace(piece, links=links) if links else piece)
        return linked

    def _fail(self, problem: Problem, source: Source) -> None:
        self.failed.add(source.name)
        self.reject(problem)


def _text_hash(text: Text) -> str:
    """With the targets of its links: a page that leads elsewhere is no copy."""
    digest = hashlib.blake2b(text.title.encode(), digest_size=16)
    for line in text.lines:
        digest.update("\n".join(["", line.text, *(link.target for link in line.links)]).encode())
    return digest.hexdigest()


def _twin(text: Text, name: str, twins: dict[str, set[int]]) -> str | None:
    """The document in a richer format that says the same, if one does; else its own three-word runs are noted."""
    words = [word for line in text.lines for word in re.findall(r"\w+", line.text.lower())]
    runs = {hash(run) for run in zip(words, words[1:], words[2:], strict=False)}
    for other, richer in twins.items():
        if runs and len(runs & richer) >= _SAME * len(runs):
            return other
    twins[name] = runs
    return None


def _plain_title(title: str) -> str:
    return " ".join(re.sub(r"[*_`]", "", unescape(re.sub(r"<[^<>]*>", "", title))).split()).casefold()


def _looked_at(sources: Iterable[Source]) -> tuple[set[str], list[tuple[str, str]]]:
    """The documents whose first heading most pages of the folder have, such as the name of a project: it is no title
    (65 of the 69 pages of the manual of Node.js, 12 of 2,561 of LibreOffice's). And documents, each with another
    address that it gives itself (140 of 924 pages of Redis and Argo CD)."""
    pages, titles, addresses = Counter[str](), defaultdict[tuple[str, str], list[str]](list), list[tuple[str, str]]()
    for source in sources:
        if FORMATS.get(source.path.suffix.lower()) in ("html", "markdown"):
            with suppress(OSError), source.path.open("rb") as file:
                start, folder = file.read(_START).decode("utf-8", "replace"), dirname(source.name)
                pages[folder] += 1
                if heading := _HEADING.search(start) or _PAGE_TITLE.search(start):
                    titles[folder, _plain_title(heading[heading.lastindex or 0])].append(source.name)
                front = start.split("\n---")[0].split("\n+++")[0] if start[:3] in _FRONT else ""
                for listed in _ADDRESSES.findall(front):
                    addresses += ((source.name, address) for address in re.findall(r"[\w./][^\s\"',\[\]]*", listed))
    shared = (names for (folder, _), names in titles.items() if len(names) >= max(_MANY, pages[folder] / 2))
    return {name for names in shared for name in names}, addresses


def _below_shared_title(text: Text) -> Text:
    """A text with the next heading as its title, if it is among the first lines; else without one."""
    at = next((n for n, line in enumerate(text.lines[:_MANY]) if line.is_heading), None)
    if at is None:
        return text._replace(title="")
    (*before, heading), rest = text.lines[: at + 1], text.lines[at + 1 :]
    if rest:
        rest[0] = rest[0]._replace(anchors=(*heading.anchors, *rest[0].anchors))
    title = heading.headings[-1]
    below = [line._replace(headings=line.headings[line.headings[:1] == (title,) :]) for line in rest]
    return text._replace(title=title, lines=[*before, *below])


def _are_documents(passages: Iterator[tuple[Passage, str]]) -> tuple[bool, Iterator[tuple[Passage, str]]]:
    """Whether most of the first records of a file are too long for passages; and all of them."""
    first: list[tuple[Passage, str]] = []
    size = 0
    while len(first) < _LOOKED_AT and size < 1 << 20 and (placed := next(passages, None)):
        first.append(placed)
        size += len(placed[0].text)
    words = sorted(len(passage.text.split()) for passage, _ in first)
    return bool(words) and words[len(words) // 2] > USUAL_PASSAGE, chain(first, passages)
