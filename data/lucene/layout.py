"""The files of an index, its manifest, and how it is written.

    DIR/segments_3, DIR/_2.fdt, ...    a Lucene index with Anserini's fields, which Anserini and Pyserini open as theirs
    DIR/polyhop/<generation>/          what polyhop adds to one commit of that index:
        manifest.json                  what was indexed, and how
        problems.jsonl                 all that was skipped, with file, line and reason: what is damaged first
        chain/                         the words of its new passages, for the chain retriever (`data.chain.store`)
        vectors-<encoder>.npy          dense vectors of its passages, if any (`data.dense`)

Lucene's commit is the transaction. It becomes visible when its list of segments is renamed from ``pending_segments_3``
to ``segments_3``. The generation is a hash of this list, which has a random id, and its folder is complete before: so
readers find the files of the commit that they read, or those of the one before. A writer that was killed leaves files
that no commit names, which Lucene and the next writer remove. If another program changes the index, the hash no longer
fits and polyhop says so.

An index that Anserini or Pyserini made is the same, without ``polyhop`` until it is adopted; polyhop never writes to
Lucene's files there.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from filelock import FileLock, Timeout
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    StringConstraints,
    ValidationError,
)

from ..errors import IndexFault, PolyhopError, first_error
from ..files import check_unlinked, read_bytes
from .jvm import autoclass, call, java_exception, open_directory, reason

MANIFEST = "manifest.json"
PROBLEMS = "problems.jsonl"
STORE = "chain"
OURS = "polyhop"
ANALYZER = "Anserini DefaultEnglishAnalyzer (Porter)"
_LOCK, _UNFINISHED = ".lock", "unfinished"
_SEGMENTS = re.compile(r"(?P<pending>pending_)?segments_(?P<number>[0-9a-z]+)")
_LUCENE = re.compile(r"_[0-9a-z]+([._].*)?|write\.lock|(pending_)?segments_[0-9a-z]+")

# Anserini's own fields: the id (stored, and as doc values to break ties), the analyzed text, the stored record.
ID, CONTENTS, RAW = "id", "contents", "raw"
# Ours, not analyzed. The id of the document, and the ends of a path: "a/b.md" and "b.md" for "notes/a/b.md".
DOCUMENT = "polyhop_document"
VERSION = "polyhop_version"  # of the document (see `polyhop.data.corpora.Corpus`), if it can be updated
TEXT = "polyhop_text"  # the hash of its text, to recognize copies

T = TypeVar("T")
Generation = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]


class IndexManifest(BaseModel):
    """What an index holds.

    Attributes:
        generation: The commit of the Lucene index.
        chain: The generations whose passages it has, in the order of Lucene's documents; none if it is not adopted.
        overlong: Passages longer than `polyhop.data.passages.PAGE` characters, of which only the start is read.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    generation: Generation
    chain: tuple[Generation, ...]
    passages: PositiveInt  # indexed passages, after splitting
    malformed: NonNegativeInt = 0  # records and files skipped because they cannot be read
    duplicates: NonNegativeInt = 0  # skipped because an earlier one has the same id or text
    corpus: tuple[str, ...]  # names of the indexed files and folders, without their paths
    corpus_hash: str  # hash of the passages in order: the same for a corpus and its gzip; of updates, too
    documents: NonNegativeInt  # that the passages were split from
    max_words: NonNegativeInt = 0  # of a passage that was split from a document; 0 if nothing was split
    split: Literal["documents", "everything", "nothing"] = "nothing"  # "everything": also what was a passage already
    analyzer: str = ANALYZER
    polyhop: str = ""
    anserini: str = ""
    lucene: str
    created: AwareDatetime  # when the build finished
    schema_version: Literal[10] = Field(default=10, alias="schema")
    overlong: NonNegativeInt = 0
    foreign: bool = False  # Anserini or Pyserini made the Lucene index, and `corpus_hash` is its generation
    updates: NonNegativeInt = 0  # that followed the build

    @classmethod
    def read(cls, index: Path) -> IndexManifest:
        """The manifest of the newest commit of an index."""
        if found := cls.find(index):
            return found
        if _generations(index):
            raise IndexFault(
                f"The index {index} has changed since polyhop wrote to it. Adopt it as it is: polyhop index --adopt "
                f"{index}"
            )
        return cls.of_foreign(index)

    @classmethod
    def find(cls, index: Path) -> IndexManifest | None:
        """The manifest of the newest commit of an index; None if another program made the commit."""
        return settled(index, lambda: cls._find(index))

    @classmethod
    def _find(cls, index: Path) -> IndexManifest | None:
        newest = _newest(index)
        if newest is None:
            raise IndexFault(_what_exists(index))
        generation = generation_of(index, newest)
        try:
            found = cls.load(index / OURS / generation)
        except FileNotFoundError:
            if _newest(index) == newest:
                return None
            raise IndexFault(f"The index {index} changes. Try again.") from None
        if found.generation != generation:
            raise IndexFault(f"The manifest of the index {index} is that of another. {rebuild(index)}")
        return found

    @classmethod
    def load(cls, folder: Path) -> IndexManifest:
        """The manifest in the folder of a generation.

        Raises:
            FileNotFoundError: there is none.
        """
        index = folder.parent.parent
        try:
            return cls.model_validate_json(read_bytes(folder / MANIFEST))
        except FileNotFoundError:
            raise
        except ValidationError as error:
            raise IndexFault(f"The manifest of the index {index}: {first_error(error)}. {rebuild(index)}") from None
        except OSError as error:
            raise IndexFault(f"The manifest of the index {index} cannot be read: {error}. {rebuild(index)}") from error

    @classmethod
    def of_foreign(cls, index: Path) -> IndexManifest:
        """The manifest of an index by Anserini or Pyserini that is not adopted."""
        try:
            reader = open_reader(index)
            try:
                passages, segments = call(reader, "numDocs"), segments_of(reader)
            finally:
                call(reader, "close")
        except java_exception() as error:
            raise IndexFault(f"The index {index} cannot be read ({reason(error)}). {rebuild(index)}") from error
        if not passages:
            raise IndexFault(f"The index {index} has no documents. {rebuild(index)}")
        generation = generation_of(index, segments)
        return cls(
            generation=generation,
            chain=(),
            passages=passages,
            corpus=(index.absolute().name,),
            corpus_hash=generation,
            documents=passages,
            lucene=lucene_version(),
            created=datetime.fromtimestamp((index / segments).stat().st_mtime, UTC),
            foreign=True,
        )

    def home(self, index: Path) -> Path:
        """The folder of what polyhop adds to this commit."""
        return index / OURS / self.generation

    def stores(self, index: Path) -> list[Path]:
        """The folders with the words of its passages."""
        return [index / OURS / generation / STORE for generation in self.chain]

    def to_json(self) -> dict[str, Any]:
        """The JSON object in the file."""
        return self.model_dump(mode="json", by_alias=True)


# --- Lucene's files --------------------------------------------------------------------------------------------------


def generation_of(index: Path, segments: str) -> str:
    """A hash of a commit's list of segments."""
    try:
        return blake2b(read_bytes(index / segments), digest_size=8).hexdigest()
    except OSError as error:
        raise IndexFault(f"The index {index} cannot be read: {error}. {rebuild(index)}") from error


def stamp(index: Path) -> tuple[Any, ...] | None:
    """Differs when the index has another commit; None if it cannot be seen."""
    with suppress(OSError):
        if newest := _newest(index):
            found = (index / newest).stat()
            return newest, found.st_ino, found.st_mtime_ns
    return None


def settled(index: Path, read: Callable[[], T]) -> T:
    """What a function reads of an index; again, if a writer has replaced that meanwhile."""
    while True:
        before = stamp(index)
        try:
            return read()
        except IndexFault:
            if stamp(index) == before:
                raise


def _newest(index: Path, *, pending: bool = False) -> str | None:
    """Lucene's newest list of segments."""
    try:
        found = [match for name in os.listdir(index) if (match := _SEGMENTS.fullmatch(name))]
    except OSError:
        return None
    lists = [match for match in found if bool(match["pending"]) == pending]
    return max(lists, key=lambda match: int(match["number"], 36)).group() if lists else None


def open_reader(index: Path) -> Any:
    """A reader of the newest commit."""
    return call(autoclass("org.apache.lucene.index.DirectoryReader"), "open", open_directory(index, reading=True))


def segments_of(reader: Any) -> str:
    """The name of the list of segments that a reader has read."""
    autoclass("org.apache.lucene.index.IndexCommit")  # see `autoclass`
    return str(call(call(reader, "getIndexCommit"), "getSegmentsFileName"))


def lucene_version() -> str:
    return str(call(autoclass("org.apache.lucene.util.Version").LATEST, "toString"))


# --- writing ---------------------------------------------------------------------------------------------------------


@contextmanager
def writing(index: Path) -> Iterator[Path]:
    """Hold the write lock of an index, with a folder for what polyhop will add to its next commit (see `publish`)."""
    home, above = index / OURS, [folder for folder in (index, *index.parents) if not folder.exists()]
    home.mkdir(parents=True, exist_ok=True)
    unfinished = home / _UNFINISHED
    try:
        with locked(index):
            shutil.rmtree(unfinished, ignore_errors=True)  # of a writer that was killed
            unfinished.mkdir()
            try:
                yield unfinished
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
                if not _generations(index):
                    shutil.rmtree(home, ignore_errors=True)
    finally:
        if above and _newest(index) is None:
            with suppress(OSError):
                (index / "write.lock").unlink(missing_ok=True)
                for folder in above:
                    folder.rmdir()


@contextmanager
def locked(index: Path) -> Iterator[None]:
    """Hold the write lock of an index."""
    lock = FileLock(index / OURS / _LOCK)
    try:
        if (index / OURS).is_symlink():
            raise ValueError(f"{index / OURS} is a symbolic link, which could have other files written: remove it")
        check_unlinked(index / OURS)
        lock.acquire(timeout=0)
    except ValueError as error:
        raise IndexFault(f"{error}.") from None
    except Timeout:
        raise IndexFault(f"Another build is writing to {index}. Wait for it, or build into another folder.") from None
    try:
        yield
    finally:
        lock.release()


def next_generation(index: Path) -> str:
    """The generation of the commit that Lucene has prepared."""
    pending = _newest(index, pending=True)
    if pending is None:
        raise IndexFault(f"The index {index} could not be written: Lucene has prepared no commit.")
    return generation_of(index, pending)


def publish(index: Path, unfinished: Path, manifest: IndexManifest) -> None:
    """Give the files that polyhop adds to a commit their place, before Lucene commits."""
    with (unfinished / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(manifest.model_dump_json(by_alias=True, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    shutil.rmtree(manifest.home(index), ignore_errors=True)  # of an earlier adoption
    os.rename(unfinished, manifest.home(index))


def remove_old(index: Path, manifest: IndexManifest) -> None:
    """Remove what only earlier commits need; readers that have opened it keep it."""
    for folder in _generations(index):
        if folder.name not in (manifest.generation, *manifest.chain):
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.name != manifest.generation:
            for path in folder.iterdir():
                if path.name != STORE:
                    path.unlink()


@contextmanager
def write_faults(index: Path) -> Iterator[None]:
    """Convert errors of the disk and of Lucene to an `IndexFault` that names the index."""
    try:
        yield
    except PolyhopError:
        raise
    except (OSError, sqlite3.Error) as error:
        raise IndexFault(f"The index {index} could not be written: {error}.") from error
    except java_exception() as error:
        raise IndexFault(f"The index {index} could not be written: {reason(error)}.") from error


def check_writable(out: Path) -> None:
    """Never write into a folder with other files, or over an index of others."""
    if not out.exists():
        return
    if not out.is_dir():
        raise IndexFault(f"{out} is a file. Name a folder for the index.")
    if is_own(out):
        return
    if _newest(out):
        raise IndexFault(f"{out} is an index that polyhop has not made. Name a new or empty folder for the index.")
    if others := sorted(path.name for path in out.iterdir() if path.name != OURS and not _LUCENE.fullmatch(path.name)):
        raise IndexFault(f"{out} has other files ({', '.join(others[:3])}). Name a new or empty folder for the index.")


# --- whose index it is -----------------------------------------------------------------------------------------------


def _generations(index: Path) -> list[Path]:
    try:
        return [path for path in (index / OURS).iterdir() if path.is_dir() and path.name != _UNFINISHED]
    except OSError:
        return []


def is_own(index: Path) -> bool:
    """Whether polyhop made an index."""
    for folder in _generations(index):
        with suppress(OSError, ValidationError):
            if not IndexManifest.model_validate_json(read_bytes(folder / MANIFEST)).foreign:
                return True
    return False


def rebuild(index: Path) -> str:
    """The advice for an index that cannot be used."""
    if _newest(index) and not is_own(index):
        return "Build or download it again."
    return f"Build it again: polyhop index CORPUS --out {index}"


def _what_exists(index: Path) -> str:
    build = f"polyhop index CORPUS --out {index}"
    if not index.exists():
        return f"There is no index at {index}. Build one: {build}"
    if not index.is_dir():
        return f"{index} is a file, not the folder of an index. To index it: polyhop index {index} --out DIR"
    if (index / OURS).exists():
        return f"The index {index} is incomplete: its build was stopped or is still running. Build it again: {build}"
    return f"{index} is a folder without an index. Build one: {build}"
