"""The files of an index, and its manifest.

    DIR/manifest.json        what was indexed, how, and which of the folders below is current
    DIR/problems.jsonl       all that was skipped, with file, line and reason: what is damaged first, then duplicates
    DIR/lucene-<build>/      a plain Lucene index with Anserini's fields, which Anserini and Pyserini can open
    DIR/lucene-<build>/chain/      the words of its passages for the chain retriever (see `polyhop.data.chain.store`)
    DIR/vectors-<build>-<encoder>.f16, .json         dense vectors of its passages, if any (see `polyhop.data.dense`)

The manifest is replaced atomically when a build or an update is complete, so a folder has either a complete index or
none. Folders that no manifest names are left over from those that were killed. An update begins with links to the files
of the state before, since Lucene never changes a file.

An index that Anserini or Pyserini made is a folder with Lucene's files. What polyhop adds is in a folder of its own:

    DIR/segments_1, ...          Lucene's files, which polyhop never writes
    DIR/polyhop/manifest.json    as above, if the index is adopted (see `polyhop.data.lucene.adoption`)
    DIR/polyhop/lucene-<build>/  the titles of its passages, and the words in chain/
    DIR/polyhop/vectors-...      as above
"""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    StringConstraints,
    ValidationError,
)

from ..errors import IndexFault, first_error
from ..files import read_bytes, read_json
from ..passages import Passage
from ..text import bare_title, plain, title_key
from .jvm import autoclass, call, java_exception, open_directory, reason

SCHEMA = 8
MANIFEST = "manifest.json"
PROBLEMS = "problems.jsonl"
LOCK = ".lock"
LUCENE = "lucene-"
STORE = "chain"
ADOPTED = "polyhop"
ANALYZER = "Anserini DefaultEnglishAnalyzer (Porter)"
VECTORS = re.compile(r"vectors-(?P<build>[0-9a-f]{12})-.+\.(f16|json|json\.part)")
_SEGMENTS = re.compile(r"segments_[0-9a-z]+")

# Anserini's own fields: the id (stored, and as doc values to break ties), the analyzed text, the stored record.
ID, CONTENTS, RAW = "id", "contents", "raw"
# Ours, not analyzed: the folded title, and the folded title without its disambiguation. Anserini can write a "title".
TITLE, BARE_TITLE = "polyhop_title", "polyhop_bare_title"
# The id of the document, and the ends of a path: "a/b.md" and "b.md" for "notes/a/b.md".
DOCUMENT = "polyhop_document"

_LONGEST_KEY = 500  # characters; Lucene's limit for a keyword is 32,766 bytes


def title_terms(title: str) -> tuple[str, str]:
    """The keywords of a title in the fields `TITLE` and `BARE_TITLE`; empty for no title."""
    return title_key(title)[:_LONGEST_KEY], title_key(bare_title(title))[:_LONGEST_KEY]


class DerivedFields:
    """The fields with the keys of the title. They are refilled for each passage, which is cheaper than new objects
    across JNI; for one thread."""

    def __init__(self) -> None:
        keyword = autoclass("org.apache.lucene.document.StringField")
        store = autoclass("org.apache.lucene.document.Field$Store")
        self._title = keyword(TITLE, "", store.NO)
        self._bare_title = keyword(BARE_TITLE, "", store.NO)
        self.fields = (self._title, self._bare_title)

    def fill(self, passage: Passage) -> None:
        title, bare_title = title_terms(passage.title)
        call(self._title, "setStringValue", title)
        call(self._bare_title, "setStringValue", bare_title)


# The version of the document (see `polyhop.data.corpora.Corpus`), if it can be updated.
VERSION = "polyhop_version"
TEXT = "polyhop_text"  # the hash of its text, to recognize copies


def document_names(document: str) -> tuple[str, str, str, str]:
    """The keywords of a document in the field `DOCUMENT`; some may be equal."""
    parts = document.split("/")
    return document, "/".join(parts[-3:]), "/".join(parts[-2:]), parts[-1]


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("it has no time zone")
    return text


class IndexManifest(BaseModel):
    """What an index holds.

    Attributes:
        overlong: Passages longer than `polyhop.data.passages.PAGE` characters, of which only the start is read.
    """

    model_config = ConfigDict(frozen=True)

    passages: PositiveInt  # indexed passages, after splitting
    malformed: NonNegativeInt  # records and files skipped because they cannot be read
    duplicates: NonNegativeInt  # skipped because an earlier one has the same id or text
    corpus: tuple[str, ...]  # names of the indexed files and folders, without their paths
    corpus_hash: str  # hash of the passages in order: the same for a corpus and its gzip; of updates, too
    documents: NonNegativeInt  # that the passages were split from
    max_words: NonNegativeInt  # of a passage that was split from a document; 0 if nothing was split
    split: Literal["documents", "everything", "nothing"]  # "everything": also what was a passage already
    analyzer: str
    polyhop: str
    anserini: str
    lucene: str
    lucene_folder: Annotated[str, StringConstraints(pattern=rf"^{LUCENE}\w+$")]  # name of the Lucene index's folder
    created: Annotated[str, AfterValidator(_moment)]  # when the build finished (UTC, ISO 8601)
    schema_version: int = Field(default=SCHEMA, alias="schema")
    overlong: NonNegativeInt = 0
    foreign: bool = False  # Anserini or Pyserini made the Lucene index, and `corpus_hash` is of its list of segments
    adopted: bool = False  # and polyhop added the titles
    updates: NonNegativeInt = 0  # that followed the build

    @classmethod
    def read(cls, index: Path) -> IndexManifest:
        """The manifest of the index in a folder."""
        if not is_foreign(index):
            return cls._read(index)
        if not (index / ADOPTED / MANIFEST).exists():
            return cls.of_foreign(index)
        manifest = cls._read(index / ADOPTED)
        if manifest.corpus_hash != _segments_hash(index):
            raise IndexFault(
                f"The index {index} has changed since it was adopted. Adopt it again: polyhop index --adopt {index}"
            )
        return manifest

    @classmethod
    def of_foreign(cls, index: Path) -> IndexManifest:
        """The manifest of an index by Anserini or Pyserini that is not adopted."""
        try:
            reader = call(
                autoclass("org.apache.lucene.index.DirectoryReader"), "open", open_directory(index, reading=True)
            )
            try:
                passages = call(reader, "numDocs")
            finally:
                call(reader, "close")
        except java_exception() as error:
            raise IndexFault(f"The index {index} cannot be read ({reason(error)}). {rebuild(index)}") from error
        if not passages:
            raise IndexFault(f"The index {index} has no documents. {rebuild(index)}")
        written = _segments(index)[-1].stat().st_mtime
        return cls(
            passages=passages,
            malformed=0,
            duplicates=0,
            corpus=(index.absolute().name,),
            corpus_hash=_segments_hash(index),
            documents=passages,
            max_words=0,
            split="nothing",
            analyzer=ANALYZER,
            polyhop="",
            anserini="",
            lucene=call(autoclass("org.apache.lucene.util.Version").LATEST, "toString"),
            lucene_folder=f"{LUCENE}{_segments_hash(index)[:12]}",
            created=datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds"),
            foreign=True,
        )

    @classmethod
    def _read(cls, index: Path) -> IndexManifest:
        try:
            record = read_json(index / MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            raise IndexFault(_what_exists(index)) from None
        except (OSError, ValueError) as error:
            raise IndexFault(f"The manifest of the index {index} cannot be read: {error}. {rebuild(index)}") from error
        if not isinstance(record, dict) or type(record.get("schema")) is not int:
            raise IndexFault(f"{index / MANIFEST} is not the manifest of a polyhop index.")
        if record["schema"] != SCHEMA:
            raise IndexFault(
                f"The index {index} has format {record['schema']}, written by polyhop "
                f"{plain(str(record.get('polyhop', '?')))[:40]}; this version reads format {SCHEMA}. {rebuild(index)}"
            )
        try:
            return cls.model_validate(record)
        except ValidationError as error:
            raise IndexFault(f"The manifest of the index {index}: {first_error(error)}. {rebuild(index)}") from None

    def home(self, index: Path) -> Path:
        """The folder that polyhop writes to."""
        return index / ADOPTED if self.foreign else index

    def folder(self, index: Path) -> Path:
        """The folder of the Lucene index: in the folder of the index and nowhere else."""
        if self.foreign:
            return index
        folder = index / self.lucene_folder
        if not folder.is_dir() or folder.is_symlink():
            raise IndexFault(f"The folder {folder.name} of the index {index} is missing. {rebuild(index)}")
        return folder

    def write(self, index: Path) -> None:
        """Replace the manifest atomically and durably."""
        unfinished = index / f"{MANIFEST}.part"
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(self.to_json(), file, ensure_ascii=False, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, index / MANIFEST)

    def to_json(self) -> dict[str, Any]:
        """The JSON object in the file."""
        return self.model_dump(mode="json", by_alias=True)


def is_foreign(index: Path) -> bool:
    """Whether a folder is a Lucene index that polyhop has not made."""
    return not (index / MANIFEST).exists() and bool(_segments(index))


def _segments(index: Path) -> list[Path]:
    """Lucene's lists of segments, oldest first; it reads the newest."""
    found = [path for path in index.glob("segments_*") if _SEGMENTS.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("segments_"), 36))


def _segments_hash(index: Path) -> str:
    """A hash of the newest list of segments, which has a random id: it changes with every write to the index."""
    newest = _segments(index)[-1]
    try:
        return blake2b(read_bytes(newest), digest_size=16).hexdigest()
    except OSError as error:
        raise IndexFault(f"The index {index} cannot be read: {error}. {rebuild(index)}") from error


def rebuild(index: Path) -> str:
    """The advice for an index that cannot be used."""
    if is_foreign(index):
        return "Build or download it again."
    return f"Build it again: polyhop index CORPUS --out {index}"


def _what_exists(index: Path) -> str:
    build = f"polyhop index CORPUS --out {index}"
    if not index.exists():
        return f"There is no index at {index}. Build one: {build}"
    if not index.is_dir():
        return f"{index} is a file, not the folder of an index. To index it: polyhop index {index} --out DIR"
    if any(index.glob(f"{LUCENE}*")):
        return f"The index {index} is incomplete: its build was stopped or is still running. Build it again: {build}"
    return f"{index} is a folder without an index. Build one: {build}"
