"""Building a BM25 index from a corpus of any size, and checking one.

Passages stream from the corpus into Lucene's index writer, and the ids seen so far are kept on disk: memory does not
grow with the corpus. Fields and analysis are Anserini's, so that scores are Anserini's own.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import ujson
from filelock import FileLock, Timeout

from ..corpora import Corpus, split_long
from ..errors import CorpusError, IndexFault, PolyhopError, Problem
from ..passages import PAGE, Passage, content_id
from .jvm import anserini_jar, attach, autoclass, call, java_exception, reason
from .layout import LOCK, LUCENE, MANIFEST, PROBLEMS, VECTORS, Manifest, rebuild
from .writer import LuceneWriter, open_directory

LISTED_PROBLEMS = 1000  # so many are written to problems.jsonl; all are counted
_TOLD_EVERY = 500  # passages between two reports of progress


class Progress(NamedTuple):
    """How far a build is: bytes of the corpus read, bytes in all, passages indexed."""

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
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_problem: Callable[[Problem], None] = lambda problem: None,
) -> Manifest:
    """Index corpora into the folder ``out``; an index that is there already is replaced once the new one is complete.

    Whatever stops a build, ``out`` holds what it held before. Readers of a replaced index keep reading it.

    Args:
        corpora: Files and folders that `Corpus` can read.
        out: The folder of the index: a new one, an empty one, or one with an index.
        max_words: Split longer passages, in words, at sentence boundaries.
        strict: Stop at the first malformed or duplicate record instead of leaving it out.
        threads: How many threads write; by default as many as pay.
        on_progress: Called now and then.
        on_problem: Called with each record that is left out.

    Raises:
        CorpusError: the corpus cannot be read, has no passage, or (``strict``) has a bad record.
        IndexFault: ``out`` holds something else, another build is writing to it, or the disk is full.
        JavaError: Java cannot be started.
        ValueError: ``max_words`` or ``threads`` is not positive.
    """
    for name, value in (("max_words", max_words), ("threads", threads)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be positive, got {value}")
    out = Path(out)
    problems = _Problems(on_problem)
    corpus = Corpus([Path(path) for path in corpora], strict=strict, on_problem=problems.add)
    passages = duplicates = overlong = 0
    digest = blake2b(digest_size=16)
    with write_faults(out), _building(out) as folder:
        with closing(_SeenIds(out / f"{folder.name}.ids")) as seen, LuceneWriter(folder, threads) as writer:
            for passage, where in corpus:
                digest.update(ujson.dumps(passage.to_record(), ensure_ascii=False).encode())
                for piece in split_long(passage, max_words) if max_words else (passage,):
                    if first := seen.earlier(piece.id, where):
                        corpus.reject(Problem(where, _duplicate(piece, first)))
                        duplicates += 1
                        continue
                    writer.add(piece)
                    passages += 1
                    overlong += len(piece.text) > PAGE
                    if passages % _TOLD_EVERY == 0:
                        on_progress(Progress(corpus.position, corpus.size, passages))
            if not passages:
                raise CorpusError(
                    f"No passage in {', '.join(corpus.names)}: {problems.summary()}. Nothing was written."
                )
            on_progress(Progress(corpus.size, corpus.size, passages))
            writer.commit()
        manifest = Manifest(
            passages=passages,
            malformed=problems.count - duplicates,
            duplicates=duplicates,
            overlong=overlong,
            corpus=corpus.names,
            corpus_hash=digest.hexdigest(),
            max_words=max_words,
            analyzer="Anserini DefaultEnglishAnalyzer (Porter)",
            polyhop=version("polyhop"),
            anserini=anserini_jar().stem.split("-")[1],
            lucene=call(autoclass("org.apache.lucene.util.Version").LATEST, "toString"),
            lucene_folder=folder.name,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        problems.write(out)
        manifest.write(out)
    return manifest


def _duplicate(passage: Passage, first: str) -> str:
    if passage.id == content_id(passage.title, passage.text):
        return f"the same title and text as {first}"
    return f"the id {passage.id!r} was used before, at {first}"


# --- what was left out -----------------------------------------------------------------------------------------------


class _Problems:
    """Counts the records that were left out, and keeps the first."""

    def __init__(self, told: Callable[[Problem], None]) -> None:
        self.count = 0
        self._first: list[Problem] = []
        self._told = told

    def add(self, problem: Problem) -> None:
        self.count += 1
        if len(self._first) < LISTED_PROBLEMS:
            self._first.append(problem)
        self._told(problem)

    def summary(self) -> str:
        if not self._first:
            return "it is empty"
        where, reason = self._first[0]
        return f"{self.count} malformed, the first at {where}: {reason}"

    def write(self, out: Path) -> None:
        with (out / PROBLEMS).open("w", encoding="utf-8") as file:
            file.writelines(ujson.dumps(problem._asdict(), ensure_ascii=False) + "\n" for problem in self._first)


class _SeenIds:
    """Which ids were met, and where first: on disk, so that millions cost no memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        # A build that dies is started over, so nothing here needs to survive. 32 MB of the table stay in memory.
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -32000"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, place TEXT) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def earlier(self, id: str, where: str) -> str | None:
        """Where the id was met before; None, and remembered, if it is new."""
        if self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (id, where)).rowcount:
            return None
        (first,) = self._db.execute("SELECT place FROM seen WHERE id = ?", (id,)).fetchone()
        return str(first)

    def close(self) -> None:
        self._db.close()
        self._path.unlink(missing_ok=True)


# --- the folder ------------------------------------------------------------------------------------------------------


@contextmanager
def _building(out: Path) -> Iterator[Path]:
    """A new folder in ``out`` for a Lucene index: if all goes well it stays and what it replaces goes, else it goes."""
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
    """Be the only one who writes to an index.

    Raises:
        IndexFault: another process is writing to it, or this one may not.
    """
    lock = FileLock(out / LOCK)
    try:
        lock.acquire(timeout=0)
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
    """Turn what disks and Lucene may raise into an error that names the index."""
    try:
        yield
    except PolyhopError:
        raise
    except (OSError, sqlite3.Error) as error:
        raise IndexFault(f"The index {out} could not be written: {error}.") from error
    except java_exception() as error:
        raise IndexFault(f"The index {out} could not be written: {reason(error)}.") from error


def _refuse_foreign(out: Path) -> None:
    """Never write among files that are not ours."""
    if not out.exists():
        return
    if not out.is_dir():
        raise IndexFault(f"{out} is a file. Name a folder for the index.")
    names = [path.name for path in out.iterdir()]
    ours = (MANIFEST, PROBLEMS, LOCK)
    foreign = sorted(name for name in names if not name.startswith((LUCENE, *ours)) and not VECTORS.fullmatch(name))
    if not foreign and (MANIFEST not in names or any(name.startswith(LUCENE) for name in names)):
        return
    try:
        Manifest.read(out)
    except IndexFault:
        found = ", ".join((foreign or names)[:3])
        raise IndexFault(f"{out} holds other files ({found}). Name a new or empty folder for the index.") from None


def _current(out: Path) -> str | None:
    try:
        return Manifest.read(out).lucene_folder
    except IndexFault:
        return None


def _clear(out: Path, keep: str | None) -> None:
    """Remove every Lucene folder but one, vectors of other passages than its own, and what killed builds left."""
    for path in out.glob(f"{LUCENE}*"):
        if path.name == keep:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # one that cannot go now (Windows, in use) goes with the next build
        else:
            path.unlink(missing_ok=True)
    for path in list(out.iterdir()):
        if (vectors := VECTORS.fullmatch(path.name)) and f"{LUCENE}{vectors['build']}" != keep:
            with suppress(OSError):  # in use, on Windows: goes with the next build
                path.unlink()


# --- checking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IndexReport:
    """What `check_index` found; ``problems`` is empty for a sound index."""

    manifest: Manifest
    problems: tuple[str, ...]


def check_index(index: Path | str) -> IndexReport:
    """Read every byte of an index and compare checksums and structure: finds damage that searches run past.

    Raises:
        IndexFault: there is no finished index.
        JavaError: Java cannot be started.
    """
    index = Path(index)
    manifest = Manifest.read(index)
    folder = index / manifest.lucene_folder
    if not folder.is_dir():
        raise IndexFault(f"The index {index} lost its folder {folder.name}. {rebuild(index)}")
    attach()
    said = autoclass("java.io.ByteArrayOutputStream")()
    try:
        checker = autoclass("org.apache.lucene.index.CheckIndex")(open_directory(folder))
        try:
            call(
                checker, "setInfoStream", autoclass("java.io.PrintStream")(said, signature="(Ljava/io/OutputStream;)V")
            )
            clean = call(checker, "checkIndex").clean
        finally:
            call(checker, "close")
    except java_exception() as error:
        return IndexReport(manifest, (f"Lucene cannot read it ({reason(error)})",))
    problems = [
        line.strip() for line in call(said, "toString").splitlines() if "FAILED" in line or "Exception:" in line
    ]
    if not clean and not problems:
        problems.append("Lucene's CheckIndex finds it damaged")
    if clean and (found := _count(folder)) != manifest.passages:
        problems.append(f"it has {found:,} passages, and its manifest says {manifest.passages:,}")
    return IndexReport(manifest, tuple(problems))


def _count(folder: Path) -> int:
    reader = call(autoclass("org.apache.lucene.index.DirectoryReader"), "open", open_directory(folder))
    try:
        return int(call(reader, "numDocs"))
    finally:
        call(reader, "close")
