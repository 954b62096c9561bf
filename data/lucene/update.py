"""A living index: add, delete and update documents, without a rebuild and beside readers.

    update_index("indexes/mine", add=["notes/new.md"], delete=["notes/old.md"])
    update_index("indexes/mine", folders=["notes"])   # only what has changed since

A change is one commit of Lucene: readers see all of it at their next search, or nothing of it. Lucene writes new
segments for new passages and marks the old ones as deleted; the words for the chain retriever are written likewise, one
folder a change. Many segments, or many deleted passages, are merged into one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ujson

from ..chain.words import Bools
from ..corpora import Corpus, Version
from ..errors import IndexFault, Problem
from ..passages import PAGE, Passage
from ..text import clean
from .bm25 import LuceneReader, leaves_of, live_documents
from .index import BuildProgress, Notes, SkippedRecords
from .jvm import attach, autoclass, call
from .layout import DOCUMENT, ID, PROBLEMS, TEXT, VERSION, IndexManifest, write_faults, writing
from .writer import IndexWriter

_MOST_SEGMENTS = 30  # with so many, a search takes a tenth of a millisecond more
_MOST_DELETED = 0.2  # share of the passages that are kept though they are deleted
_MOST_NAMED = 10_000  # passages of one document


class Changes(NamedTuple):
    """What an update did.

    Attributes:
        added, deleted: Numbers of passages; of a changed document, all old ones are deleted and all new ones added.
        unchanged: Documents that were met again.
    """

    manifest: IndexManifest
    added: int
    deleted: int
    unchanged: int


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
        index: The folder of the index.
        add: Files and folders to add; documents that the index has are reported as duplicates.
        delete: Ids of documents, or their file names.
        folders: Folders that were indexed: what is new in them is added, what has changed is replaced and what is gone
            is deleted. A file that cannot be read any more is reported, and stays as it was.
        compact: Merge all segments into one without deleted passages; else only if these are many.

    Raises:
        IndexFault: the index is missing or damaged, or not polyhop's; or a document to delete is not there, or still in
            one of the folders.
        DataError: a file to add cannot be read.
    """
    index = Path(index)
    attach()
    if IndexManifest.read(index).foreign:  # fails before anything is written into a folder without an index
        raise IndexFault(f"The index {index} was not made by polyhop, which changes its own only.")
    with (
        write_faults(index),
        writing(index) as folder,
        closing(LuceneReader.open(index)) as lucene,
        IndexWriter(index, folder, create=False) as writer,
        closing(Notes(folder)) as notes,
        closing(SkippedRecords(folder, on_problem)) as skipped,
    ):
        update = _Update(index, lucene, writer, notes, skipped, on_progress)
        return update.run(folder, add, delete, folders, compact)


class _Update:
    def __init__(
        self,
        index: Path,
        lucene: LuceneReader,
        writer: IndexWriter,
        notes: Notes,
        skipped: SkippedRecords,
        on_progress: Callable[[BuildProgress], None],
    ) -> None:
        self._index, self._lucene, self._writer, self._on_progress = index, lucene, writer, on_progress
        self._before, self._notes, self._skipped = lucene.manifest, notes, skipped
        self._gone = set[str]()  # documents that are deleted
        self._new = set[str]()
        self._digest = blake2b(self._before.corpus_hash.encode(), digest_size=16)
        self.added = self.overlong = self.unchanged = 0
        self._corpus, self._read = list(self._before.corpus), list[Corpus]()

    def run(
        self,
        folder: Path,
        add: Sequence[Path | str],
        delete: Sequence[str],
        folders: Sequence[Path | str],
        compact: bool,
    ) -> Changes:
        before = self._before
        deleted = [document for name in delete for document in self._named(name)]
        self._delete(deleted)
        for path in folders:
            self._update(Path(path))
        if again := [document for document in deleted if document in self._new or document not in self._gone]:
            raise IndexFault(f"{again[0]} is still in its folder, so it cannot be deleted: remove the file first.")
        if add:
            self._add(self._corpus_of([Path(path) for path in add]))
        for problem in self._problems_before():
            self._skipped.keep(problem)
        self._skipped.close()
        if not (self.added or self._gone or compact):
            os.replace(folder / PROBLEMS, before.home(self._index) / PROBLEMS)
            return Changes(before, 0, 0, self.unchanged)
        live, merge = self._left()
        kept = int(live.sum())
        if not kept + self.added:
            raise IndexFault(f"Nothing would be left in the index {self._index}. Remove its folder instead.")
        if merge or compact:
            self._writer.merge()
            self._writer.merge_stores(before.stores(self._index), np.append(live, np.ones(self.added, bool)))
        self._notes.close()
        manifest = self._writer.commit(
            {
                **before.model_dump(exclude={"generation", "chain", "schema_version"}),
                "passages": kept + self.added,
                "documents": before.documents - len(self._gone) + len(self._new),
                "malformed": self._skipped.counts["damaged"],
                "duplicates": self._skipped.counts["duplicate"],
                "overlong": before.overlong + self.overlong,
                "corpus": tuple(dict.fromkeys(self._corpus)),
                "corpus_hash": self._digest.hexdigest(),
                "updates": before.updates + 1,
            },
            () if merge or compact else before.chain,
        )
        return Changes(manifest, self.added, before.passages - kept, self.unchanged)

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

    def _corpus_of(
        self, paths: Sequence[Path], known: Collection[str] = (), left_out: Iterable[Problem] = ()
    ) -> Corpus:
        """With the settings of the index."""
        before = self._before
        max_words = {"documents": None, "everything": before.max_words, "nothing": 0}[before.split]
        roots = [*before.corpus, *(clean(path.resolve().name) for path in paths if path.is_dir())]
        gone = set(self._gone)

        def indexed(text: str) -> list[str]:
            found = self._lucene.look_up(self._lucene.with_keyword(TEXT, text), _MOST_NAMED)
            return [document for document in dict.fromkeys(each.document for each in found) if document not in gone]

        corpus = Corpus(
            paths,
            max_words=max_words,
            known=known,
            left_out={problem.version: problem for problem in left_out},
            earlier=self._notes.earlier,
            indexed=indexed,
            roots=roots,
            on_problem=self._skipped.add,
            on_progress=lambda: self._on_progress(BuildProgress(corpus.share, self.added, corpus.file)),
        )
        self._read.append(corpus)
        self._corpus += [
            name
            for path, name in zip(paths, corpus.names, strict=True)
            if path.is_dir() or not any(clean(above.name) in before.corpus for above in path.resolve().parents)
        ]
        return corpus

    def _update(self, path: Path) -> None:
        if not path.is_dir():
            raise IndexFault(f"{path} is not a folder. Add a file with --add.")
        root = f"{clean(path.resolve().name)}/"
        known = {version: Version(version) for version in self._versions(root)}
        left_out = (problem for problem in self._problems_before() if problem.where.startswith(root))
        corpus = self._corpus_of([path], known, left_out)
        self._gone.update(version.document for version in known.values())  # unless they are met again
        self._add(corpus)
        kept = corpus.unchanged | {
            content
            for content, version in known.items()
            if corpus.has_failed(version.file) and version.document not in self._new
        }
        self._gone.difference_update(known[content].document for content in kept)
        for version in sorted(known.keys() - kept):
            self._digest.update(version.encode())
            self._writer.delete(VERSION, version)
        self.unchanged += len(corpus.unchanged)

    def _add(self, corpus: Corpus) -> None:
        read, is_new = ("", ""), False
        for passage, where in corpus:
            if read != (read := (passage.document, where)):
                is_new = self._is_new(passage.document, corpus, where)
            if is_new:
                self._digest.update(f"{passage.id}\n{passage.searched}".encode())
                self._writer.add(passage, corpus.version)
                self.added += 1
                self.overlong += len(passage.text) > PAGE

    def _is_new(self, document: str, corpus: Corpus, where: str) -> bool:
        there = document in self._new or (document not in self._gone and self._passages_of(document, 1))
        if there:
            reason = f"the id {document!r} is in the index: --update replaces what has changed"
            corpus.reject(Problem(where, reason, "duplicate"))
            return False
        self._new.add(document)
        return True

    def _problems_before(self) -> Iterator[Problem]:
        """What was skipped before in files that were not read now."""
        before = self._before.home(self._index) / PROBLEMS
        with suppress(OSError, ValueError), before.open(encoding="utf-8") as file:
            for record in map(ujson.loads, file):
                if not any(corpus.covers(record["where"]) for corpus in self._read):
                    yield Problem(**{name: record[name] for name in Problem._fields if name in record})

    def _passages_of(self, document: str, limit: int = _MOST_NAMED) -> list[Passage]:
        lucene = self._lucene
        queries = (lucene.with_keyword(DOCUMENT, document), lucene.with_ids([document]))
        found = [passage for query in queries for passage in lucene.look_up(query, limit)]
        return [passage for passage in found if passage.document == document]

    def _named(self, name: str) -> list[str]:
        """The documents with an id or a file's name."""
        lucene, parts = self._lucene, clean(name).removeprefix("./").split("/")
        if self._passages_of(name):
            return [name]
        for at in range(len(parts)):
            found = lucene.look_up(lucene.with_keyword(DOCUMENT, "/".join(parts[at:])), _MOST_NAMED)
            documents = list(dict.fromkeys(passage.document for passage in found))
            if len(documents) > 1:
                listed = ", ".join(documents[:5])
                raise IndexFault(f"{name!r} names {len(documents)} documents: {listed}. Give the id of one.")
            if documents:
                return documents
        raise IndexFault(f"The index {self._index} has no document {name!r}.")

    def _delete(self, documents: Sequence[str]) -> None:
        for document in dict.fromkeys(documents):
            for passage in self._passages_of(document):
                self._writer.delete(ID, passage.id)
            self._digest.update(document.encode())
            self._gone.add(document)

    def _versions(self, prefix: str) -> Iterator[str]:
        """The versions of the live documents of a folder."""
        for leaf in self._lucene.leaves:
            terms = call(leaf, "terms", VERSION)
            if terms is None:
                continue
            live, documents = live_documents(leaf), None
            each = call(terms, "iterator")
            found = call(each, "seekCeil", autoclass("org.apache.lucene.util.BytesRef")(prefix.encode()))
            term = call(each, "term") if call(found, "name") != "END" else None
            while term is not None and (version := call(term, "utf8ToString")).startswith(prefix):
                documents = call(each, "postings", documents, 0)
                # A document's passages are deleted together.
                if live[call(documents, "nextDoc")]:
                    yield version
                term = call(each, "next")


def _name(segment: Any) -> str:
    """The name of a segment, such as "_1"; Lucene writes it first."""
    return str(call(segment, "toString")).partition("(")[0]
