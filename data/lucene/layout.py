"""The files of an index, its manifest, and how it is written.

    DIR/segments_3, DIR/_2.fdt, ...    a Lucene index with Anserini's fields, which Anserini and Pyserini open as theirs
    DIR/polyhop/<generation>/          what polyhop adds to one commit of that index:
        manifest.json                  what was indexed, and how
        problems.jsonl                 all that was skipped, with file, line and reason: what is damaged first
        chain/                         what finds its new passages by titles and links (`data.chain.store`)
        vectors-<encoder>.npy          dense vectors of its passages, if any (`data.dense`)
        keys-<encoder>.npy             hashes of what was encoded; "earlier-" before both: of the state before

Lucene's commit is the transaction: its list of segments is renamed from ``pending_segments_3`` to ``segments_3``. The
generation is a hash of this list, which has a random id, and its folder is complete before: so readers find the files
of the commit that they read. What a killed writer leaves is removed by the next one. An index of Anserini or Pyserini
is the same, without ``polyhop`` until it is adopted; polyhop never writes to Lucene's files there.
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
from typing import Annotated, Any, Literal

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
from ..files import read_bytes, read_json
from .jvm import call, java_exception, lucene_class, open_directory, reason

HOME = ".polyhop"
"""The index of a folder of documents, in it: a hidden folder, which is not indexed itself."""
MANIFEST = "manifest.json"
PROBLEMS = "problems.jsonl"
STORE = "chain"
OURS = "polyhop"
VECTORS, KEYS, EARLIER = "vectors-", "keys-", "earlier-"
_LOCK, _UNFINISHED = ".lock", "unfinished"
_LUCENE = re.compile(r"_[0-9a-z]+([._].*)?|write\.lock|(pending_)?segments_[0-9a-z]+")

# Anserini's own fields: the id (stored, and as doc values to break ties), the analyzed text, the stored record.
ID, CONTENTS, RAW = "id", "contents", "raw"
# Ours, not analyzed. The id of the document, and the ends of a path: "a/b.md" and "b.md" for "notes/a/b.md".
DOCUMENT = "polyhop_document"
VERSION = "polyhop_version"  # of the document (see `polyhop.data.documents.corpus.Corpus`), if it can be updated
TEXT = "polyhop_text"  # the hash of its text, to recognize copies

Generation = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]


class IndexManifest(BaseModel):
    """What an index holds.

    Attributes:
        generation: The commit of the Lucene index.
        chain: The generations whose passages it has, in the order of Lucene's documents, with the hashes of the files
            of each (see `data.chain.store`); none if it is not adopted.
        overlong: Passages longer than `polyhop.data.passages.PAGE` characters, of which only the start is read.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    schema_version: Literal[14] = Field(default=14, alias="schema")  # first, so that another version is told as such
    generation: Generation
    chain: dict[Generation, dict[str, str]]
    passages: PositiveInt  # indexed passages, after splitting
    malformed: NonNegativeInt = 0  # records and files skipped because they cannot be read
    duplicates: NonNegativeInt = 0  # skipped because an earlier one has the same id or text
    corpus: tuple[str, ...]  # names of the indexed files and folders, without their paths
    homes: tuple[str, ...] = ()  # hashes of the paths of these folders, to know them again
    corpus_hash: str  # hash of the passages in order: the same for a corpus and its gzip; of updates, too
    documents: NonNegativeInt  # that the passages were split from
    max_words: NonNegativeInt = 0  # of a passage that was split from a document; 0 if nothing was split
    split: Literal["documents", "everything", "nothing"] = "nothing"  # "everything": also what was a passage already
    analyzer: str = "Anserini DefaultEnglishAnalyzer (Porter)"
    language: str = "en"
    languages: tuple[str, ...] = ("en",)
    polyhop: str = ""
    anserini: str = ""
    lucene: str
    created: AwareDatetime  # when the build finished
    overlong: NonNegativeInt = 0
    foreign: bool = False  # Anserini or Pyserini made the Lucene index, and `corpus_hash` is its generation
    updates: NonNegativeInt = 0  # that followed the build

    @classmethod
    def of(cls, index: Path, reader: Any, *, adopting: bool = False) -> IndexManifest:
        """The manifest of what a reader of Lucene has read; a new one for an index of others.

        Args:
            adopting: Allow an index that another program has changed since polyhop wrote to it.
        """
        lucene_class("index.IndexCommit")  # see `autoclass`
        segments = index / call(call(reader, "getIndexCommit"), "getSegmentsFileName")
        passages, generation = int(call(reader, "numDocs")), generation_of(segments)
        try:
            manifest = cls.load(index / OURS / generation)
        except FileNotFoundError:
            if _generations(index) and not adopting:
                raise IndexFault(
                    f"The index {index} has changed since polyhop wrote to it. Adopt it as it is: polyhop index "
                    f"--adopt {index}"
                ) from None
        else:
            if (manifest.generation, manifest.passages) != (generation, passages):
                raise IndexFault(f"The manifest of the index {index} is that of another. {rebuild(index)}")
            return manifest
        if not passages:
            raise IndexFault(f"The index {index} has no documents. {rebuild(index)}")
        return cls(
            generation=generation,
            chain={},
            passages=passages,
            corpus=(index.absolute().name,),
            corpus_hash=generation,
            documents=passages,
            lucene=lucene_version(),
            created=datetime.fromtimestamp(segments.stat().st_mtime, UTC),
            foreign=True,
        )

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
        except (ValidationError, OSError) as error:
            why = first_error(error) if isinstance(error, ValidationError) else error
            raise IndexFault(f"The manifest of the index {index} cannot be read: {why}. {rebuild(index)}") from None

    def home(self, index: Path) -> Path:
        """The folder of what polyhop adds to this commit."""
        return index / OURS / self.generation

    def stores(self, index: Path) -> dict[Path, dict[str, str]]:
        """The folders with the words of its passages, and the hashes of their files."""
        return {index / OURS / generation / STORE: hashes for generation, hashes in self.chain.items()}

    def to_json(self) -> dict[str, Any]:
        """The JSON object in the file."""
        return self.model_dump(mode="json", by_alias=True)


# --- Lucene's files --------------------------------------------------------------------------------------------------


def generation_of(segments: Path) -> str:
    """A hash of a commit's list of segments."""
    return blake2b(read_bytes(segments), digest_size=8).hexdigest()


def stamp(index: Path) -> tuple[Any, ...] | None:
    """Differs when the index has another commit; None if it has none."""
    with suppress(OSError):
        if newest := newest_segments(index):
            status = (index / newest).stat()
            return newest, status.st_ino, status.st_mtime_ns
    return None


def newest_segments(index: Path, prefix: str = "segments_") -> str | None:
    """Lucene's newest list of segments; with ``pending_segments_``, that of the next commit."""
    try:
        lists = [name for name in os.listdir(index) if re.fullmatch(rf"{prefix}[0-9a-z]+", name)]
    except OSError:
        return None
    return max(lists, key=lambda name: int(name.removeprefix(prefix), 36)) if lists else None


def index_of(folder: Path) -> Path:
    """An index that is named by its own folder or by that of its documents."""
    return folder / HOME if newest_segments(folder / HOME) and not newest_segments(folder) else folder


def index_above() -> Path | None:
    """The index of the current folder or of the nearest one above it; None if there is none."""
    return next((folder / HOME for folder in (Path(), *Path.cwd().parents) if newest_segments(folder / HOME)), None)


def open_reader(index: Path) -> Any:
    """A reader of the newest commit."""
    return call(lucene_class("index.DirectoryReader"), "open", open_directory(index, reading=True))


def lucene_version() -> str:
    return str(call(lucene_class("util.Version").LATEST, "toString"))


def rebuild(index: Path) -> str:
    """The advice for an index that cannot be used."""
    if newest_segments(index) and not _is_own(index):
        return "Build or download it again."
    return f"Build it again: polyhop index CORPUS --out {index}"


def build_command(index: Path) -> str:
    """The command that makes an index where there is none: that of a folder of documents is inside it."""
    has_files = index.is_dir() and not (index / OURS).exists() and any(index.iterdir())
    return f"polyhop index {index} --out {index / HOME}" if has_files else f"polyhop index CORPUS --out {index}"


# --- writing ---------------------------------------------------------------------------------------------------------


@contextmanager
def locked(index: Path) -> Iterator[None]:
    """Hold the write lock of an index; errors of the disk and of Lucene become an `IndexFault` that names it."""
    lock = FileLock(index / OURS / _LOCK)
    try:
        (index / OURS).mkdir(parents=True, exist_ok=True)
        for path in (index / OURS, *(index / OURS).iterdir()):
            if path.is_symlink():
                raise IndexFault(f"{path} is a symbolic link, which could have other files changed: remove it.")
        with lock.acquire(timeout=0):
            yield
    except PolyhopError:
        raise
    except Timeout:
        raise IndexFault(f"Another build is writing to {index}. Wait for it, or build into another folder.") from None
    except ValidationError as error:
        raise IndexFault(
            f"The manifest of the index {index} is wrong ({first_error(error)}). {rebuild(index)}"
        ) from error
    except (OSError, sqlite3.Error) as error:
        advice = "If the folder is read-only or full, name another one with --out."
        raise IndexFault(f"The index {index} could not be written: {error}. {advice}") from error
    except java_exception() as error:
        raise IndexFault(f"The index {index} could not be written: {reason(error)}.") from error


@contextmanager
def writing(index: Path) -> Iterator[Path]:
    """The same, with a folder for what polyhop will add to the next commit (see `publish`)."""
    is_new, unfinished = not index.exists(), index / OURS / _UNFINISHED
    with locked(index):
        shutil.rmtree(unfinished, ignore_errors=True)  # of a writer that was killed
        unfinished.mkdir()
        try:
            yield unfinished
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            if not _generations(index):
                shutil.rmtree(index if is_new and newest_segments(index) is None else index / OURS, ignore_errors=True)


def publish(index: Path, unfinished: Path, manifest: IndexManifest, commit: Callable[[], Any]) -> None:
    """Give the files that polyhop adds to a commit their place, let Lucene commit, and remove what only earlier commits
    need; readers that have opened it keep it."""
    with (unfinished / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(manifest.model_dump_json(by_alias=True, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    shutil.rmtree(manifest.home(index), ignore_errors=True)  # of an earlier adoption
    os.rename(unfinished, manifest.home(index))
    commit()
    home = manifest.home(index)
    for folder in _generations(index):
        if folder.name != manifest.generation:
            _keep_vectors(folder, home)
        if folder.name not in (manifest.generation, *manifest.chain):
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.name != manifest.generation:
            for path in folder.iterdir():
                if path.name != STORE:
                    path.unlink()


def _keep_vectors(folder: Path, home: Path) -> None:
    """Move the vectors of an earlier state to the new one, with their keys: those that were complete, or else those
    that it had itself of one before."""
    for before in ("", EARLIER):
        for keys in folder.glob(f"{before}{KEYS}*.npy"):
            vectors = folder / keys.name.replace(KEYS, VECTORS, 1)
            kept = home / f"{EARLIER}{vectors.name.removeprefix(EARLIER)}"
            if vectors.exists() and not kept.exists():
                os.replace(keys, home / f"{EARLIER}{keys.name.removeprefix(EARLIER)}")
                os.replace(vectors, kept)


def check_writable(out: Path) -> None:
    """Never write into a folder with other files, or over an index of others."""
    if not out.is_dir():
        if out.exists():
            raise IndexFault(f"{out} is a file. Name a folder for the index.")
    elif not _is_own(out):
        if newest_segments(out):
            raise IndexFault(f"{out} is an index that polyhop has not made. Name a new or empty folder for the index.")
        if others := sorted(
            path.name for path in out.iterdir() if path.name != OURS and not _LUCENE.fullmatch(path.name)
        ):
            raise IndexFault(f"{out} has other files ({', '.join(others[:3])}). Name a new or empty folder.")


def _generations(index: Path) -> list[Path]:
    try:
        return [path for path in (index / OURS).iterdir() if path.is_dir() and path.name != _UNFINISHED]
    except OSError:
        return []


def _is_own(index: Path) -> bool:
    """Whether polyhop made an index, in this version or an earlier one."""
    for folder in _generations(index):
        with suppress(OSError, ValueError, AttributeError):
            if not read_json(folder / MANIFEST).get("foreign"):
                return True
    return False
