"""A living index: add, delete and update documents, without a rebuild and beside readers.

    update_index("indexes/mine", add=["notes/new.md"], delete=["notes/old.md"])
    update_index("indexes/mine", folders=["notes"])   # only what has changed since

A change is one commit of Lucene, which writes new segments for new passages and marks the old ones as deleted; the
words for the chain retriever are written likewise. Many segments, or many deleted passages, are merged into one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import ujson

from ..chain.store import Bools
from ..documents.corpus import Corpus, Entry, Version
from ..errors import IndexFault, Problem
from ..passages import Passage
from ..text import clean
from .bm25 import MOST_NAMED, LuceneReader, leaves_of, live_documents
from .index import BuildProgress, Indexing, home_of
from .jvm import call, lucene_class
from .layout import DOCUMENT, ID, PROBLEMS, TEXT, VERSION, IndexManifest, writing
from .writer import IndexWriter

_MOST_SEGMENTS = 30  # with so many, a search takes a tenth of a millisecond more
_MOST_DELETED = 0.2  # share of the passages that are kept though they are deleted


class Changes(NamedTuple):
    """What an update did.

    Attributes:
        documents: The number of those that are new, changed or gone.
        added, deleted: Numbers of passages; of a changed document, all old ones are deleted and all new ones added.
        unreadable: The number of documents that are gone because their files cannot be read any more.
    """

    manifest: IndexManifest
    documents: int
    added: int
    deleted: int
    unreadable: int = 0


def update_index(
    index: Path | str,
    *,
    add: Sequence[Path | str] = (),
    delete: Sequence[str] = (),
    folders: Sequence[Path | str] = (),
    compact: bool = False,
    on_progress: Callable[[BuildProgress], None] = lambda progress: None,
    on_problem: Callable[[Problem], None] = lambda problem: None,
) -> Changes:
    """Change an index of polyhop; nothing is changed after an error.

    Args:
        add: Files and folders to add; documents that the index has are reported as duplicates.
        delete: Ids of documents, or their file names.
        folders: Folders that were indexed: what is new in them is added, what has changed replaced, and what is gone
            deleted, also if its file is damaged now. A file or a folder that cannot be opened stays as it was.
        compact: Merge all segments into one without deleted passages; else only if these are many.

    Raises:
        IndexFault: the index is missing or damaged, or not polyhop's; or a document to delete is not there, or still in
            one of the folders.
        DataError: a file to add cannot be read.
    """
    index = Path(index)
    with closing(LuceneReader.open(index)) as lucene:  # fails before anything is written
        if lucene.manifest.foreign:
            raise IndexFault(f"The index {index} was not made by polyhop, which changes its own only.")
    with (
        writing(index) as folder,
        closing(LuceneReader.open(index)) as lucene,
        IndexWriter(index, folder, create=False) as writer,
    ):
        before = lucene.manifest
        settings = before.corpus_hash, before.language, before.languages
        with Indexing(folder, writer, on_progress, on_problem, *settings) as indexing:
            update = _Update(index, lucene, writer, indexing)
            deleted = [document for name in delete for document in update.named(name)]
            update.delete(deleted)
            for path in folders:
                update.read_again(Path(path))
            if again := [document for document in deleted if document in update.new or document not in update.gone]:
                raise IndexFault(f"{again[0]} is still in its folder, so it cannot be deleted: remove the file first.")
            if add:
                update.add([Path(path) for path in add])
            return update.commit(folder, compact)


class _Update:
    """The state of an index before, and what of it is gone; the `Earlier` of an `Indexing`."""

    def __init__(self, index: Path, lucene: LuceneReader, writer: IndexWriter, indexing: Indexing) -> None:
        self._index, self._lucene, self._writer, self._indexing = index, lucene, writer, indexing
        self._before = lucene.manifest
        self.gone, self.new = set[str](), set[str]()  # documents that are deleted, and that are written
        self._names, self._homes, self._covered = list(self._before.corpus), list(self._before.homes), set[str]()
        self._unreadable = 0
        # Of the folder that is read again:
        self._contents = set[str]()  # of the versions that the index has
        self._kept = set[str]()  # those of them that stay
        self._unchanged = set[str]()  # documents that are not read
        self._problems = dict[str, Problem]()  # that were told before, by the contents of versions

    # --- what an `Indexing` asks ---

    def with_text(self, digest: str) -> list[str]:
        documents = dict.fromkeys(passage.document for passage in self._lucene.look_up(TEXT, digest))
        return [document for document in documents if document in self._unchanged or document not in self.gone]

    def keeps(self, entry: Entry) -> bool:
        content = entry.version.content
        if entry.passages is None and (problem := self._problems.get(content)):
            self._indexing.skip(problem)
        return self._keep(content, entry.id, entry.where) if content in self._contents else False

    def refuses(self, id: str, document: str) -> str | None:
        holders = [passage.document for field in (DOCUMENT, ID) for passage in self._lucene.look_up(field, id, 1)]
        if any(holder not in self.gone or holder != document for holder in holders):
            return f"the id {id!r} is in the index: --update replaces what has changed"
        return None

    def replaced(self, document: str) -> None:
        self.new.add(document)

    def _keep(self, content: str, document: str, where: str) -> bool:
        """Keep what has not changed, unless another has taken its id."""
        if why := self._indexing.taken(document, where):
            self._indexing.skip(Problem(where, why, "duplicate"))
        else:
            self._kept.add(content)
            self.gone.discard(document)
        return True

    # --- reading ---

    def add(self, paths: Sequence[Path]) -> None:
        """Read what the index does not have."""
        self._contents, self._unchanged, self._problems = set(), set(), {}
        self._indexing.add(self._corpus(paths), earlier=self)

    def read_again(self, path: Path) -> None:
        """Read what has changed in a folder."""
        if not path.is_dir():
            raise IndexFault(f"{path} is not a folder. Add a file with --add.")
        root = f"{clean(path.resolve().name)}/"
        versions = {content: Version(content) for content in self._versions(root)}
        self._problems = {p.version: p for p in self._problems_before() if p.version and p.where.startswith(root)}
        corpus = self._corpus([path])
        self._contents, self._kept, self._unchanged = set(versions), set(), set()
        if versions:
            self._unchanged = self._not_read(corpus)
        self.gone.update(version.document for version in versions.values())  # unless they are met again
        self._indexing.add(corpus, self._unchanged, self)
        for content, version in versions.items():
            if content not in self._kept and is_in(version.file, corpus.closed):
                self._keep(content, version.document, version.file)
            elif content not in self._kept and version.document not in self.new:
                self._unreadable += is_in(version.file, corpus.failed)
        for content in sorted(self._contents - self._kept):
            self._indexing.digest.update(content.encode())
            self._writer.delete(VERSION, content)

    def _not_read(self, corpus: Corpus) -> set[str]:
        """The documents that are not converted again: neither they nor their twins nor what they copy has changed."""
        indexed, copied = set[str](), dict[str, str]()  # of the copies, the document that each is one of
        for source in chain.from_iterable(corpus.formats):
            content = corpus.version(source).content
            if content in self._contents:
                indexed.add(source.name)
            elif content in self._problems:
                copied[source.name] = self._problems[content].other
        groups = [{source.name for source in group} for group in corpus.formats]
        same = [names for names in groups if names <= indexed | copied.keys()]
        kept = {"", *indexed.intersection(chain.from_iterable(same))}
        return {name for names in same if all(copied.get(name, "") in kept for name in names) for name in names}

    def _corpus(self, paths: Sequence[Path]) -> Corpus:
        """With the settings of the index."""
        before = self._before
        max_words = {"documents": None, "everything": before.max_words, "nothing": 0}[before.split]
        folders = [path.resolve() for path in paths if path.is_dir()]
        for home in folders:
            self._check_folder(home)
        roots = [*before.corpus, *(clean(home.name) for home in folders)]
        corpus = self._indexing.corpus(paths, max_words=max_words, roots=roots)
        self._homes += map(home_of, folders)
        self._covered |= corpus.covered
        for path, name in zip(paths, corpus.names, strict=True):
            if path.is_dir() or not any(clean(above.name) in before.corpus for above in path.resolve().parents):
                self._names.append(name)
        return corpus

    def _check_folder(self, home: Path) -> None:
        """Refuse a folder of which the index has another one of the same name, or the one above."""
        for folder in (home, *home.parents):
            root = f"{clean(folder.name)}/"
            files = {Version(content).file.removeprefix(root) for content in self._versions(root)}
            remaining = sum((folder / file).exists() for file in files)  # of a folder that was moved, or of another
            is_that = bool(files) and (home_of(folder) in self._before.homes or 2 * remaining > len(files))
            if folder == home and files and not is_that:
                raise IndexFault(
                    f"{home} has {remaining} of the {len(files)} files that the index has of a folder {home.name}. If "
                    "it was moved and has changed much, build the index again; if it is another one, rename it, or "
                    "index the folder above both."
                )
            if folder != home and is_that:
                raise IndexFault(f"{home} is in a folder that was indexed: --update {folder}")
            if is_that:
                return

    def _problems_before(self) -> Iterator[Problem]:
        """What was skipped before in files that were not read now."""
        before = self._before.home(self._index) / PROBLEMS
        with suppress(OSError, ValueError), before.open(encoding="utf-8") as file:
            for record in map(ujson.loads, file):
                where = record["where"]
                if not is_in(where, self._covered) and where.partition(":")[0] not in self._covered:
                    yield Problem(**{name: record[name] for name in Problem._fields if name in record})

    def _passages_of(self, document: str) -> list[Passage]:
        look_up = self._lucene.look_up
        passages = [*look_up(DOCUMENT, document, MOST_NAMED), *look_up(ID, document, MOST_NAMED)]
        return [passage for passage in passages if passage.document == document]

    def named(self, name: str) -> list[str]:
        """The documents with an id or a file's name."""
        parts = clean(name).removeprefix("./").split("/")
        if self._passages_of(name):
            return [name]
        for at in range(len(parts)):
            passages = self._lucene.look_up(DOCUMENT, "/".join(parts[at:]))
            if documents := list(dict.fromkeys(passage.document for passage in passages)):
                if len(documents) > 1:
                    raise IndexFault(f"{name!r} names several documents, such as {' and '.join(documents[:2])}.")
                return documents
        raise IndexFault(f"The index {self._index} has no document {name!r}.")

    def delete(self, documents: Sequence[str]) -> None:
        for document in dict.fromkeys(documents):
            for passage in self._passages_of(document):
                self._writer.delete(ID, passage.id)
            self._indexing.digest.update(document.encode())
            self.gone.add(document)

    def _versions(self, prefix: str) -> Iterator[str]:
        """The versions of the live documents of a folder."""
        for leaf in self._lucene.leaves:
            terms = call(leaf, "terms", VERSION)
            if terms is None:
                continue
            live, documents = live_documents(leaf), None
            iterator = call(terms, "iterator")
            status = call(iterator, "seekCeil", lucene_class("util.BytesRef")(prefix.encode()))
            term = call(iterator, "term") if call(status, "name") != "END" else None
            while term is not None and (version := call(term, "utf8ToString")).startswith(prefix):
                documents = call(iterator, "postings", documents, 0)
                # A document's passages are deleted together.
                if live[call(documents, "nextDoc")]:
                    yield version
                term = call(iterator, "next")

    # --- writing ---

    def commit(self, folder: Path, compact: bool) -> Changes:
        before, indexing = self._before, self._indexing
        for problem in self._problems_before():
            indexing.keep(problem)
        indexing.finish()
        if not (indexing.passages or self.gone or compact):
            os.replace(folder / PROBLEMS, before.home(self._index) / PROBLEMS)
            return Changes(before, 0, 0, 0)
        live, merge = self._left()
        kept = int(live.sum())
        if not kept + indexing.passages:
            raise IndexFault(f"Nothing would be left in the index {self._index}. Remove its folder instead.")
        if merge or compact:
            self._writer.merge()
            self._writer.merge_stores(before.stores(self._index), np.append(live, np.ones(indexing.passages, bool)))
        manifest = self._writer.commit(
            {
                **before.model_dump(exclude={"generation", "chain", "schema_version"}),
                **indexing.counts(before),
                "passages": kept + indexing.passages,
                "documents": before.documents - len(self.gone) + len(self.new),
                "corpus": tuple(dict.fromkeys(self._names)),
                "homes": tuple(dict.fromkeys(self._homes)),
                "updates": before.updates + 1,
            },
            {} if merge or compact else before.chain,
        )
        deleted = before.passages - kept
        return Changes(manifest, len(self.gone | self.new), indexing.passages, deleted, self._unreadable)

    def _left(self) -> tuple[Bools, bool]:
        """Which of the passages before are left; and whether the segments are to be merged, without the others."""
        reader = self._writer.reader()
        try:
            segments = {_name(leaf): leaf for leaf in leaves_of(reader)}
            names = [_name(leaf) for leaf in self._lucene.leaves]
            gone = [np.zeros(call(leaf, "maxDoc"), bool) for leaf in self._lucene.leaves]
            parts = [
                live_documents(segments[name]) if name in segments else nothing
                for name, nothing in zip(names, gone, strict=True)
            ]
        finally:
            call(reader, "close")
        live = np.concatenate(parts)
        many = max(len(segments), len(self._before.chain) + 1) > _MOST_SEGMENTS
        # Lucene removes a segment without any live passage, which renumbers those that follow.
        vanished = any(name not in segments for name in names)
        return live, many or vanished or (~live).sum() > _MOST_DELETED * len(live)


def _name(segment: Any) -> str:
    """The name of a segment, such as "_1"; Lucene writes it first."""
    return str(call(segment, "toString")).partition("(")[0]


def is_in(name: str, names: Collection[str]) -> bool:
    """Whether a file, or a folder that it is in, is among some."""
    return any(place in names for place in (name, *map(str, PurePosixPath(name).parents)))
