"""Build a BM25 index from a corpus of any size, and check one.

Passages stream from the corpus into Lucene's index writer, and the ids seen so far are kept on disk, so memory does not
grow with the corpus. Fields and analysis are Anserini's. Anserini's own `SimpleIndexer` is not used because it has no
unanalyzed fields, which title look-ups need.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple
from uuid import uuid4

import ujson
from filelock import FileLock, Timeout

from ..chain.store import StoreWriter
from ..corpora import Corpus
from ..errors import CorpusError, IndexFault, PolyhopError, Problem
from ..files import check_unlinked
from ..passages import PAGE, Passage, content_id
from ..splitting import MAX_WORDS
from .bm25 import LuceneReader
from .jvm import (
    anserini_jar,
    attach,
    autoclass,
    call,
    call_long,
    english_analyzer,
    java_exception,
    open_directory,
    reason,
)
from .layout import (
    ANALYZER,
    CONTENTS,
    DOCUMENT,
    ID,
    LOCK,
    LUCENE,
    MANIFEST,
    PROBLEMS,
    RAW,
    STORE,
    VECTORS,
    VERSION,
    DerivedFields,
    IndexManifest,
    document_names,
)
from .readers import titles_folder

LISTED_PROBLEMS = 1000  # written to problems.jsonl; all are counted
_PROGRESS_EVERY = 500  # passages
_BATCH = 256  # passages handed to a thread at a time
_BUFFER_MB = 32.0  # that Lucene buffers before it writes a segment; more is not faster


class BuildProgress(NamedTuple):
    """Bytes of the corpus read so far, bytes in total, and passages indexed so far."""

    read: int
    size: int
    passages: int


def build_index(
    corpora: Sequence[Path | str],
    out: Path | str,
    *,
    max_words: int | None = None,
    strict: bool = False,
    threads: int | None = None,
    on_progress: Callable[[BuildProgress], None] = lambda progress: None,
    on_problem: Callable[[Problem], None] = lambda problem: None,
) -> IndexManifest:
    """Index corpora into the folder ``out``; an existing index is replaced when the new one is complete.

    An interrupted build leaves ``out`` unchanged. Open readers keep reading a replaced index.

    Args:
        corpora: Files and folders that `Corpus` can read.
        out: The folder of the index: new, empty, or with an index.
        max_words: Split everything that has more words; 0 to split nothing. By default documents are split into
            passages of at most `MAX_WORDS` words, and passages stay as they are (see `Corpus`).
        strict: Stop at the first malformed or duplicate record instead of skipping it.
        threads: Writer threads; by default at most two.
        on_progress: Called every 500 passages.
        on_problem: Called with each skipped record.
    """
    for name, value, least in (("max_words", max_words, 0), ("threads", threads, 1)):
        if value is not None and value < least:
            raise ValueError(f"{name} must be {least} or more, got {value}")
    out = Path(out)
    skipped = SkippedRecords(on_problem)
    corpus = Corpus([Path(path) for path in corpora], max_words=max_words, strict=strict, on_problem=skipped.add)
    passages = documents = duplicates = overlong = 0
    read, is_new = ("", ""), False
    digest = blake2b(digest_size=16)
    with write_faults(out), building(out) as folder:
        with closing(_SeenIds(out / f"{folder.name}.ids")) as seen, LuceneWriter(folder, threads) as writer:
            for passage, where in corpus:
                digest.update(ujson.dumps(passage.to_record(), ensure_ascii=False).encode())
                if read != (read := (passage.document, where)):
                    first = seen.earlier(passage.document, where)
                    is_new = first is None
                    documents += is_new
                    if first is not None:
                        by_content = passage.document == content_id(passage.title, passage.text)
                        same = "title and text" if by_content else f"id {passage.document!r}"
                        corpus.reject(Problem(where, f"the same {same} as {first}"))
                        duplicates += 1
                if not is_new or (passage.place and seen.earlier(passage.id, where)):
                    continue
                writer.add(passage, corpus.version)
                passages += 1
                overlong += len(passage.text) > PAGE
                if passages % _PROGRESS_EVERY == 0:
                    on_progress(BuildProgress(corpus.position, corpus.size, passages))
            if not passages:
                raise CorpusError(f"No passage in {', '.join(corpus.names)}: {skipped.summary()}. Nothing was written.")
            on_progress(BuildProgress(corpus.size, corpus.size, passages))
            writer.commit()
        manifest = IndexManifest(
            passages=passages,
            documents=documents,
            malformed=skipped.count - duplicates,
            duplicates=duplicates,
            overlong=overlong,
            corpus=corpus.names,
            corpus_hash=digest.hexdigest(),
            max_words=MAX_WORDS if max_words is None else max_words,
            split="documents" if max_words is None else "everything" if max_words else "nothing",
            analyzer=ANALYZER,
            polyhop=version("polyhop"),
            anserini=anserini_jar().stem.split("-")[1],
            lucene=call(autoclass("org.apache.lucene.util.Version").LATEST, "toString"),
            lucene_folder=folder.name,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with closing(LuceneReader(out, manifest)) as lucene, StoreWriter(folder / STORE) as store:
            for start in range(0, passages, _BATCH):
                store.add(lucene.stored(range(start, min(start + _BATCH, passages))))
        skipped.write(out)
        manifest.write(out)
    return manifest


class SkippedRecords:
    """Counts the skipped records and keeps the first."""

    def __init__(self, on_problem: Callable[[Problem], None]) -> None:
        self.count = 0
        self._first: list[Problem] = []
        self._on_problem = on_problem

    def add(self, problem: Problem) -> None:
        self.count += 1
        if len(self._first) < LISTED_PROBLEMS:
            self._first.append(problem)
        self._on_problem(problem)

    def summary(self) -> str:
        if not self._first:
            return "it is empty"
        where, reason = self._first[0]
        return f"{self.count} malformed, the first at {where}: {reason}"

    def write(self, out: Path) -> None:
        with (out / PROBLEMS).open("w", encoding="utf-8") as file:
            file.writelines(ujson.dumps(problem._asdict(), ensure_ascii=False) + "\n" for problem in self._first)


class _SeenIds:
    """The ids seen so far and where each was first: on disk, so memory does not grow with the corpus."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        # A killed build starts over, so nothing needs to survive. 32 MB of the table stay in memory.
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -32000"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, place TEXT) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def earlier(self, id: str, where: str) -> str | None:
        """Where the id was seen first; None, and stored, if it is new."""
        if self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (id, where)).rowcount:
            return None
        (first,) = self._db.execute("SELECT place FROM seen WHERE id = ?", (id,)).fetchone()
        return str(first)

    def close(self) -> None:
        self._db.close()
        self._path.unlink(missing_ok=True)


# --- writing ---------------------------------------------------------------------------------------------------------


class LuceneWriter:
    """Writes passages to a new Lucene index; an exception inside the ``with`` block discards them.

    A failure in Lucene, such as a full disk, is raised as a Java exception, possibly some passages later.

    Args:
        folder: An existing folder, empty or with an index.
        threads: Writer threads; by default at most two, since more would wait for Python.
        append: Leave the segments of the index as they are; else merge all into one, in their order.
    """

    def __init__(self, folder: Path, threads: int | None = None, *, append: bool = False) -> None:
        attach()
        config = autoclass("org.apache.lucene.index.IndexWriterConfig")(english_analyzer())
        call(config, "setRAMBufferSizeMB", _BUFFER_MB)
        call(config, "setUseCompoundFile", False)
        index = "org.apache.lucene.index."
        call(
            config,
            "setMergePolicy",
            autoclass(f"{index}NoMergePolicy").INSTANCE if append else autoclass(f"{index}LogDocMergePolicy")(),
        )
        self._append = append
        self._writer = autoclass("org.apache.lucene.index.IndexWriter")(open_directory(folder), config)
        self._threads = threads or min(2, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="polyhop-index")
        self._documents: SimpleQueue[_Document] = SimpleQueue()  # free ones; one per thread
        for _ in range(self._threads):
            self._documents.put(_Document())
        self._batch: list[tuple[Passage, str]] = []
        self._pending: deque[Future[None]] = deque()

    def add(self, passage: Passage, version: str = "") -> None:
        """Queue a passage of a version of its document for writing; blocks while the queue is full."""
        self._batch.append((passage, version))
        if len(self._batch) >= _BATCH:
            self._submit_batch()

    def commit(self) -> None:
        """Write the rest, merge into one segment for the fastest searches unless appending, and sync to disk."""
        self._submit_batch()
        while self._pending:
            self._pending.popleft().result()
        if not self._append:
            self._pool.submit(self._merge).result()  # in a thread, so that Ctrl-C does not wait for it
        call_long(self._writer, "commit")

    def delete(self, field: str, keyword: str) -> None:
        """Delete the passages with a keyword that were there before."""
        term = autoclass("org.apache.lucene.index.Term")(field, keyword)
        # Replaces them by no document: pyjnius cannot choose between the two methods `deleteDocuments`.
        call_long(self._writer, "updateDocuments", term, autoclass("java.util.ArrayList")())

    def __enter__(self) -> LuceneWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._pool.shutdown()
            call_long(self._writer, "close")
        else:
            call_long(self._writer, "rollback")  # stops threads that are writing or merging
            self._pool.shutdown(cancel_futures=True)

    def _submit_batch(self) -> None:
        if len(self._pending) > 2 * self._threads:
            self._pending.popleft().result()
        self._pending.append(self._pool.submit(self._write, self._batch))
        self._batch = []

    def _write(self, batch: list[tuple[Passage, str]]) -> None:
        attach()
        document = self._documents.get()
        try:
            for passage, version in batch:
                call_long(self._writer, "addDocument", document.fill(passage, version))
        finally:
            self._documents.put(document)

    def _merge(self) -> None:
        attach()
        call_long(self._writer, "forceMerge", 1)


class _Document:
    """A Lucene document that is refilled for each passage, which is cheaper than new objects across JNI."""

    def __init__(self) -> None:
        keyword = autoclass("org.apache.lucene.document.StringField")
        store = autoclass("org.apache.lucene.document.Field$Store")
        self._bytes = autoclass("org.apache.lucene.util.BytesRef")
        self._id = keyword(ID, "", store.YES)
        self._tie_break = autoclass("org.apache.lucene.document.BinaryDocValuesField")(ID, self._bytes(b""))
        counted = autoclass("org.apache.lucene.document.FieldType")()
        call(counted, "setIndexOptions", autoclass("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
        as_text = "(Ljava/lang/String;Ljava/lang/CharSequence;Lorg/apache/lucene/index/IndexableFieldType;)V"
        self._contents = autoclass("org.apache.lucene.document.Field")(CONTENTS, "", counted, signature=as_text)
        self._raw = autoclass("org.apache.lucene.document.StoredField")(RAW, "")
        self._derived = DerivedFields()
        self._version = keyword(VERSION, "", store.NO)
        self._names = [keyword(DOCUMENT, "", store.NO) for _ in document_names("")]
        self._document = autoclass("org.apache.lucene.document.Document")()
        for field in (
            self._id,
            self._tie_break,
            self._contents,
            self._raw,
            self._version,
            *self._names,
            *self._derived.fields,
        ):
            call(self._document, "add", field)

    def fill(self, passage: Passage, version: str) -> Any:
        record = ujson.dumps(passage.to_record(), ensure_ascii=False, escape_forward_slashes=False)
        call(self._id, "setStringValue", passage.id)
        call(self._tie_break, "setBytesValue", self._bytes(passage.id.encode()))
        call(self._contents, "setStringValue", passage.searched)
        call(self._raw, "setStringValue", record)
        names = document_names(passage.document) if passage.place or "/" in passage.id else [""] * len(self._names)
        for field, name in zip(self._names, names, strict=True):
            call(field, "setStringValue", name)
        call(self._version, "setStringValue", version)
        self._derived.fill(passage)
        return self._document


# --- the folder ------------------------------------------------------------------------------------------------------


@contextmanager
def building(out: Path) -> Iterator[Path]:
    """A new folder in ``out`` for a Lucene index; it replaces the current one, or is removed after an error."""
    _refuse_foreign(out)
    created = [folder for folder in (out, *out.parents) if not folder.exists()]
    out.mkdir(parents=True, exist_ok=True)
    folder = out / f"{LUCENE}{uuid4().hex[:12]}"
    with locked(out):
        try:
            _clear(out, keep=_current(out))
            folder.mkdir()
            yield folder
            _clear(out, keep=folder.name)
        except BaseException:
            _clear(out, keep=_current(out))
            if created:
                (out / LOCK).unlink(missing_ok=True)
                for path in created:
                    path.rmdir()
            raise


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the write lock of an index."""
    lock = FileLock(out / LOCK)
    try:
        check_unlinked(out)
        lock.acquire(timeout=0)
    except ValueError as error:
        raise IndexFault(f"{error}.") from None
    except Timeout:
        raise IndexFault(f"Another build is writing to {out}. Wait for it, or build into another folder.") from None
    except OSError as error:
        raise IndexFault(f"The index {out} could not be written: {error}.") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def write_faults(out: Path) -> Iterator[None]:
    """Convert errors of the disk and of Lucene to an `IndexFault` that names the index."""
    try:
        yield
    except PolyhopError:
        raise
    except (OSError, sqlite3.Error) as error:
        raise IndexFault(f"The index {out} could not be written: {error}.") from error
    except java_exception() as error:
        raise IndexFault(f"The index {out} could not be written: {reason(error)}.") from error


def _refuse_foreign(out: Path) -> None:
    """Never write into a folder with other files."""
    if not out.exists():
        return
    if not out.is_dir():
        raise IndexFault(f"{out} is a file. Name a folder for the index.")
    names = [path.name for path in out.iterdir()]
    ours = (MANIFEST, PROBLEMS, LOCK)
    foreign = sorted(name for name in names if not name.startswith((LUCENE, *ours)) and not VECTORS.fullmatch(name))
    if not foreign and (MANIFEST not in names or any(name.startswith(LUCENE) for name in names)):
        return
    if _current(out) is None:
        found = ", ".join((foreign or names)[:3])
        raise IndexFault(f"{out} has other files ({found}). Name a new or empty folder for the index.")


def _current(out: Path) -> str | None:
    try:
        return IndexManifest.read(out).lucene_folder
    except IndexFault:
        return None


def _clear(out: Path, keep: str | None) -> None:
    """Remove every Lucene folder but one, vectors of other builds, and leftovers of killed builds.

    What Windows refuses to remove while it is in use goes with the next build.
    """
    for path in out.glob(f"{LUCENE}*"):
        if path.name == keep:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    for path in list(out.iterdir()):
        if (vectors := VECTORS.fullmatch(path.name)) and f"{LUCENE}{vectors['build']}" != keep:
            with suppress(OSError):
                path.unlink()


# --- checking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IndexReport:
    """The result of `check_index`; ``problems`` is empty for a sound index."""

    manifest: IndexManifest
    problems: tuple[str, ...]


def check_index(index: Path | str) -> IndexReport:
    """Verify the checksums and the structure of an index: finds damage that searches do not notice."""
    index = Path(index)
    manifest = IndexManifest.read(index)
    attach()
    folder, titles = manifest.folder(index), titles_folder(index, manifest)
    segments = sorted(each for each in titles.iterdir() if each.name != STORE) if titles else []
    problems = [problem for each in (folder, *segments) for problem in _damage(each)]
    if not problems and (found := _count(folder)) != manifest.passages:
        problems.append(f"it has {found:,} passages, but its manifest says {manifest.passages:,}")
    return IndexReport(manifest, tuple(problems))


def _damage(folder: Path) -> list[str]:
    """What Lucene finds wrong with an index."""
    output = autoclass("java.io.ByteArrayOutputStream")()
    try:
        checker = autoclass("org.apache.lucene.index.CheckIndex")(open_directory(folder, reading=True))
        try:
            stream = autoclass("java.io.PrintStream")(output, signature="(Ljava/io/OutputStream;)V")
            call(checker, "setInfoStream", stream)
            clean = call_long(checker, "checkIndex").clean
        finally:
            call(checker, "close")
    except java_exception() as error:
        return [f"Lucene cannot read it ({reason(error)})"]
    lines = call(output, "toString").splitlines()
    problems = [line.strip() for line in lines if "FAILED" in line or "Exception:" in line]
    return problems or ([] if clean else ["Lucene's CheckIndex reports damage"])


def _count(folder: Path) -> int:
    reader = call(autoclass("org.apache.lucene.index.DirectoryReader"), "open", open_directory(folder, reading=True))
    try:
        return int(call(reader, "numDocs"))
    finally:
        call(reader, "close")
