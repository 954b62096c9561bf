"""Corpora as streams of passages: documents, records, and folders of them.

One record is held in memory at a time. A malformed record is reported with its file, line and reason, and skipped; a
file of another kind is an error.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import unescape
from itertools import chain
from pathlib import Path, PurePosixPath
from posixpath import dirname
from typing import NamedTuple

import ujson

from ..benchmarks.corpora import passages_of
from ..errors import DataError, Problem
from ..importing import installs
from ..links import LinkMap
from ..passages import Passage
from ..records import LONGEST_ID, read_records
from ..text import clean
from .convert import CONVERTERS, Text, Unreadable, conversions
from .split import LONGEST_PASSAGE, MAX_WORDS, USUAL_PASSAGE, Document, count_words, split
from .walk import LINES, UNOPENED, Source, source_of, suffix_of, walk, why_unread

_MOST_LOST = 0.3  # of the words of a page, without links; of 1,500 pages of manuals, one that was broken had less
_SAME = 0.5
"""The share of the three-word runs of a file that its twin in a richer format has. Of 766 files with the name of a
richer one (the manuals of Python and git, Debian's policy), 749 have more; of 1,500 pairs with other names, one has."""
_LOOKED_AT = 100  # records, to tell what a file has
_MARKUP = frozenset(".html .htm .xhtml .md .markdown .mdx".split())
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
    """What an index notes of a document, to see later whether it has changed.

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


class _Job(NamedTuple):
    """A file to read: its version if it is a document, and the three-word runs of those of its twins that are read, by
    id (None if it has none)."""

    source: Source
    version: Version = Version()
    twins: dict[str, set[int]] | None = None


class Corpus:
    """Passages streamed from files and folders, in the order given; files of one name in several formats together.

    A document with the text of another is left out, and so is one that has the name of another and mostly its text in a
    poorer format (see `FORMATS`).

    Args:
        paths: Documents with one of the suffixes in `CONVERTERS`; records with the text of one passage or document each
            (JSON Lines, gzip or plain; a JSON list; a table with a column for texts) with the fields of polyhop,
            Pyserini, BEIR, LangChain, LlamaIndex or Haystack; folders of these (see `walk`); and benchmarks, such as
            HotpotQA questions, whose contexts are pooled (see `passages_of`).
        max_words: Split everything that is longer; 0 to split nothing. By default documents are split at `MAX_WORDS`:
            text files, and records of files in which most are too long for passages.
        known: The contents of versions of documents, which are not read again.
        left_out: The problems of files, by the content of their versions. They are not read again; duplicates while the
            other document is as it was.
        earlier: Returns what was noted of a key; None, after noting a value, for a new one.
        indexed: Returns the documents of an index that have a text, by its hash.
        roots: Names of folders: a file that is in one has the id that it has when the folder is read.
        strict: Raise at the first malformed record instead of reporting it.
        on_problem: Called with each skipped record or file, at once with those that have no reader.
        on_progress: Called before and after each file, and each second while one is waited for.

    Attributes:
        file: What is read now.
        version: Of the document of the last passage.
        unchanged: The versions among ``known`` that were met.
        homes: Hashes of the paths of the folders.
        failed: The files and folders in which something could not be read.
        closed: Those of them that could not be opened, or whose library is missing: what they say is unknown.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        max_words: int | None = None,
        known: Collection[str] = (),
        left_out: Mapping[str, Problem] | None = None,
        earlier: Callable[[str, str], str | None] | None = None,
        indexed: Callable[[str], Iterable[str]] = lambda digest: (),
        roots: Collection[str] = (),
        strict: bool = False,
        on_problem: Callable[[Problem], None] = lambda problem: None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._known, self._left_out = known, left_out or {}
        self._max_words, self._everything = MAX_WORDS if max_words is None else max_words, bool(max_words)
        self._strict, self._on_problem, self._on_progress = strict, on_problem, on_progress
        self.file, self.version = "", Version()
        self.unchanged, self.failed, self.closed = set[str](), set[str](), set[str]()
        self.names = tuple(clean(path.resolve().name) for path in paths)
        self.homes = tuple(home_of(path.resolve()) for path in paths if path.is_dir())
        homes = dict[str, Path]()
        for home in (path.resolve() for path in paths if path.is_dir()):
            if (other := homes.setdefault(clean(home.name), home)) != home:
                raise DataError(
                    f"The folders {other} and {home} have one name, with which the ids of their files begin. Index the "
                    "folder above them, or rename one."
                )
        self._covered = set[str]()  # the files and folders that were named
        self._sources = [source for path in paths for source in self._found(path, roots)]
        self._replaced = {Version(content).document for content in known}  # without those that are as they were
        documents = [source for source in self._sources if source.is_document]
        self._documents = {source.name for source in documents}
        notes = dict[str, str]()
        self._earlier = earlier or (lambda key, value: None if notes.setdefault(key, value) is value else notes[key])
        self._indexed = indexed
        self._below_shared, addresses = _looked_at(documents)
        self._links = LinkMap([*(source.name for source in documents), *self._replaced], addresses)
        self._done, self._all = 0, sum(source.size for source in self._sources) or 1

    def __iter__(self) -> Iterator[tuple[Passage, str]]:
        """Every passage with its place (``"corpus.jsonl:17"``)."""
        for job, text in conversions(self._jobs(), self._on_progress):
            self.file, before = job.source.name, self._done
            self._on_progress()
            yield from self._document(job, text()) if job.source.is_document else self._records(job.source)
            self._done = before + job.source.size
            self._on_progress()

    @property
    def share(self) -> float:
        """How much of the work is done, from 0 to 1."""
        return self._done / self._all

    def covers(self, where: str) -> bool:
        """Whether a place is in one of the files or folders that are read."""
        return is_in(where, self._covered) or where.partition(":")[0] in self._covered

    def reject(self, problem: Problem) -> None:
        """Report a skipped record, or raise if ``strict``."""
        if self._strict:
            raise DataError(f"{problem.where}: {problem.reason}")
        self._on_problem(problem)

    def _found(self, path: Path, roots: Collection[str]) -> Iterator[Source]:
        """The files to read; the others of a folder are reported."""
        home = path.resolve()
        if not path.is_dir():
            folder = next((above for above in home.parents if clean(above.name) in roots), None)
            name = clean(home.relative_to(folder.parent).as_posix() if folder else path.name)
            self._covered.add(name)
            if not path.exists():
                raise DataError(f"There is no file or folder {path}.")
            try:
                yield source_of(path, name, in_folder=folder is not None)
            except (OSError, ValueError) as error:
                raise DataError(f"{path} cannot be read: {error}.") from error
            return
        self._covered.add(clean(home.name))
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
            kinds = ", ".join(filter(None, (*CONVERTERS, *LINES)))
            raise DataError(f"The folder {path} has no file of a kind that is read: {kinds}.")

    def _jobs(self) -> Iterator[tuple[_Job, Path | None]]:
        """The files, those of one document in several formats together, the richest first; with the path of those that
        are to be converted."""
        groups = defaultdict[tuple[bool, str], list[Source]](list)
        for source in self._sources:
            groups[source.is_document, source.format[1]].append(source)
        documents = [group for (is_document, _), group in groups.items() if is_document]
        versions = {source.name: self._version(source) for group in documents for source in group if self._known}
        unchanged = self._unchanged(documents, versions) if self._known else set[str]()
        for (is_document, _), group in groups.items():
            twins: dict[str, set[int]] | None = {} if len(group) > 1 else None
            for source in sorted(group, key=lambda source: source.format):
                if is_document:
                    version = versions.get(source.name) or self._version(source)
                    yield _Job(source, version, twins), None if source.name in unchanged else source.path
                else:
                    yield _Job(source), None

    def _unchanged(self, groups: Sequence[Sequence[Source]], versions: Mapping[str, Version]) -> set[str]:
        """The documents that are not converted again: neither they nor their twins nor what they copy has changed."""
        indexed = {name for name, version in versions.items() if version.content in self._known}
        copied = {
            name: self._left_out[version.content].other
            for name, version in versions.items()
            if version.content in self._left_out
        }
        same = [group for group in groups if all(source.name in indexed or source.name in copied for source in group)]
        kept = indexed & {source.name for group in same for source in group}
        unchanged = {
            source.name
            for group in same
            if all(source.name in kept or copied[source.name] in {"", *kept} for source in group)
            for source in group
        }
        self._replaced -= indexed & unchanged  # before any is read: files that follow may be copies of what is there
        return unchanged

    def _version(self, source: Source) -> Version:
        """Of a document; of one that cannot be read, without a hash."""
        try:
            with source.path.open("rb") as file:
                digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        except OSError:
            digest = ""
        # It is read again when its first heading becomes a title, or none any more.
        digest += "+" * (digest != "" and source.name in self._below_shared)
        return Version(f"{source.name}\n{digest}\n{source.name}")

    # --- reading ---

    def _document(self, job: _Job, text: Text | Unreadable | None) -> Iterator[tuple[Passage, str]]:
        source, version = job.source, job.version
        self.closed.update([source.name] if version.is_closed else ())
        if text is None:
            self.unchanged.update([version.content] if version.content in self._known else ())
            problem = self._left_out.get(version.content)
            if problem and problem.kind == "damaged":
                self._fail(problem, source)
            elif problem:
                self._on_problem(problem)
        elif isinstance(text, Unreadable):
            is_final = installs("documents") not in str(text)
            self._fail(Problem(source.name, str(text), version=version.content if is_final else ""), source)
            self.closed.update(() if is_final else [source.name])
        elif len(source.name) > LONGEST_ID:
            self._fail(Problem(source.name, f"the id is longer than {LONGEST_ID} characters"), source)
        elif twin := _twin(text, source.name, job.twins):
            reason = f"the same text as {twin}, in another format"
            self._on_problem(Problem(source.name, reason, "duplicate", version.content, twin))
        elif copied := self._first_with(digest := _text_hash(text), source.name):
            self._on_problem(Problem(source.name, f"the same text as {copied}", "duplicate", version.content, copied))
        elif version.content in self._known:
            self.unchanged.add(version.content)
        else:
            reason = f"only {text.share:.0%} of its text is read: the rest is in forms and navigation"
            if reason := text.lost or (reason if text.share < _MOST_LOST else ""):
                self._on_problem(Problem(source.name, reason, "partial", version.content))
            if source.name in self._below_shared:
                text = _below_shared_title(text)
            stem = clean(source.path.stem if suffix_of(source.path) else source.path.name)
            document = Document(source.name, text.title or stem, text.lines, text.metadata)
            pieces = split(document, self._max_words) if self._max_words else [document.whole()]
            yield from self._linked(pieces, version._replace(text=digest), source.name)

    def _records(self, source: Source) -> Iterator[tuple[Passage, str]]:
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
                    version = _version_of(source, ujson.dumps(passage.to_record()).encode(), passage.id)
                if version.content and version.content in self._known:
                    self.unchanged.add(version.content)
                else:
                    yield from self._linked(self._split(passage, are_documents), version, where)
        except DataError as error:
            if self._strict or not source.in_folder:
                raise
            self._fail(Problem(source.name, str(error)), source)
            self.closed.update([source.name] if self._version(source).is_closed else ())

    def _split(self, passage: Passage, is_document: bool) -> list[Passage]:
        most = self._max_words if self._everything or is_document else LONGEST_PASSAGE
        # Spares most passages the count.
        if not self._max_words or len(passage.text) <= most or count_words(passage.text) <= most:
            return [passage]
        return split(Document.of(passage), self._max_words)

    def _linked(self, pieces: Iterable[Passage], version: Version, where: str) -> Iterator[tuple[Passage, str]]:
        """The pieces of a document, whose links name documents of the corpus where they can."""
        self.version = version
        for piece in pieces:
            links = tuple(link._replace(target=self._links(piece.document, link.target)) for link in piece.links)
            yield replace(piece, links=links) if links else piece, where

    def _fail(self, problem: Problem, source: Source) -> None:
        self.failed.add(source.name)
        self.reject(problem)

    def _first_with(self, digest: str, name: str) -> str | None:
        """Another document that has a text, in the index or read before."""
        for document in self._indexed(digest):
            if document != name and document not in self._replaced:
                return document
        first = self._earlier(f"text {digest}", name)
        return first if first != name else None


def _text_hash(text: Text) -> str:
    """With the targets of its links: a page that leads elsewhere is no copy."""
    digest = hashlib.blake2b(text.title.encode(), digest_size=16)
    for line in text.lines:
        digest.update("\n".join(["", line.text, *(link.target for link in line.links)]).encode())
    return digest.hexdigest()


def _twin(text: Text, name: str, twins: dict[str, set[int]] | None) -> str | None:
    """The document in a richer format that says the same, if one does; else its own three-word runs are noted."""
    if twins is None:
        return None
    words = [word for line in text.lines for word in re.findall(r"\w+", line.text.lower())]
    runs = {hash(run) for run in zip(words, words[1:], words[2:], strict=False)}
    for other, richer in twins.items():
        if runs and len(runs & richer) >= _SAME * len(runs):
            return other
    twins[name] = runs
    return None


def home_of(folder: Path) -> str:
    """A hash of the path of a folder."""
    return hashlib.blake2b(os.fsencode(folder), digest_size=16).hexdigest()


def is_in(name: str, names: Collection[str]) -> bool:
    """Whether a file, or a folder that it is in, is among some."""
    return any(place in names for place in (name, *map(str, PurePosixPath(name).parents)))


def _version_of(source: Source, content: bytes, document: str) -> Version:
    return Version(f"{source.name}\n{hashlib.blake2b(content, digest_size=16).hexdigest()}\n{document}")


def _plain_title(title: str) -> str:
    return " ".join(re.sub(r"[*_`]", "", unescape(re.sub(r"<[^<>]*>", "", title))).split()).casefold()


def _looked_at(sources: Iterable[Source]) -> tuple[set[str], list[tuple[str, str]]]:
    """The documents whose first heading most pages of the folder have, such as the name of a project: it is no title.
    And documents, each with another address that it gives itself."""
    pages, titles, addresses = Counter[str](), defaultdict[tuple[str, str], list[str]](list), list[tuple[str, str]]()
    for source in sources:
        if source.path.suffix.lower() in _MARKUP:
            with suppress(OSError), source.path.open("rb") as file:
                start, folder = file.read(_START).decode("utf-8", "replace"), dirname(source.name)
                pages[folder] += 1
                if heading := _HEADING.search(start) or _PAGE_TITLE.search(start):
                    titles[folder, _plain_title(heading[heading.lastindex or 0])].append(source.name)
                for listed in (
                    _ADDRESSES.findall(start.split("\n---")[0].split("\n+++")[0]) if start[:3] in _FRONT else ()
                ):
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
