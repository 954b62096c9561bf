"""What an index looks like on disk, and the manifest that says what is in it.

    DIR/manifest.json        what was indexed, how, and which of the folders below is the index
    DIR/problems.jsonl       the first records that were left out, with file, line and reason
    DIR/lucene-<build>/      a plain Lucene index with Anserini's fields, which Anserini and Pyserini open as well
    DIR/vectors-<build>-<encoder>.f16, .json         dense vectors of its passages, if asked for (see `dense`)

The manifest is the commit point: it is replaced in one step when a build is complete, so that a folder either has a
whole index or none. What killed builds left behind is in folders that no manifest names.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import IndexFault
from ..text import bare_title, title_key

SCHEMA = 1
MANIFEST = "manifest.json"
PROBLEMS = "problems.jsonl"
LOCK = ".lock"
LUCENE = "lucene-"
VECTORS = re.compile(r"vectors-(?P<build>[0-9a-f]{12})-.+\.(f16|json|json\.part)")

# Anserini's own fields: the id (stored, and as doc values to break ties), the analysed text, the stored record.
ID, CONTENTS, RAW = "id", "contents", "raw"
# Ours, not analysed: the folded title, and the folded title without its disambiguation.
TITLE, BARE_TITLE = "title", "bare_title"

_LONGEST_KEY = 500  # characters; Lucene takes no keyword longer than 32,766 bytes


def title_terms(title: str) -> tuple[str, str]:
    """The keywords under which a title is found in the fields `TITLE` and `BARE_TITLE`; empty for no title."""
    return title_key(title)[:_LONGEST_KEY], title_key(bare_title(title))[:_LONGEST_KEY]


@dataclass(frozen=True)
class Manifest:
    """What is in an index.

    Attributes:
        passages: How many passages were indexed, after splitting.
        malformed: How many records were left out because they could not be read.
        duplicates: How many were left out because their id had been seen.
        corpus: The names of the files and folders that were indexed, without their places on the machine.
        corpus_hash: Of the passages as read, in their order: the same for a corpus and its gzip.
        overlong: How many are longer than what is read of a passage (`polyhop.data.passages.PAGE` characters).
        max_words: The length, in words, above which passages were split; None if they were not.
        lucene_folder: The folder of the Lucene index, inside the index's own.
        created: When the build was finished (UTC, ISO 8601).
    """

    passages: int
    malformed: int
    duplicates: int
    corpus: tuple[str, ...]
    corpus_hash: str
    max_words: int | None
    analyzer: str
    polyhop: str
    anserini: str
    lucene: str
    lucene_folder: str
    created: str
    schema: int = SCHEMA
    overlong: int = 0  # not in the manifests of older indexes

    @classmethod
    def read(cls, index: Path) -> Manifest:
        """The manifest of the index in a folder.

        Raises:
            IndexFault: there is no finished index, or it cannot be read by this version.
        """
        try:
            record = json.loads((index / MANIFEST).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise IndexFault(_what_is_there(index)) from None
        except (OSError, ValueError) as error:
            raise IndexFault(f"The manifest of the index {index} cannot be read: {error}. {rebuild(index)}") from error
        if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
            raise IndexFault(f"{index / MANIFEST} is not the manifest of a polyhop index.")
        if record["schema"] != SCHEMA:
            raise IndexFault(
                f"The index {index} has format {record['schema']}, written by polyhop {record.get('polyhop', '?')}; "
                f"this version reads format {SCHEMA}. {rebuild(index)}"
            )
        try:
            known = {"overlong": 0, **record}
            return cls(**{field.name: _frozen(known[field.name]) for field in fields(cls)})
        except KeyError as error:
            raise IndexFault(f"The manifest of the index {index} lacks {error}. {rebuild(index)}") from None

    def write(self, index: Path) -> None:
        """Put the manifest into place in one step: a reader sees the old one or the new one, also after a power cut."""
        unfinished = index / f"{MANIFEST}.part"
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(asdict(self), file, ensure_ascii=False, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, index / MANIFEST)


def rebuild(index: Path) -> str:
    """What to tell a user whose index cannot be used."""
    return f"Build it again: polyhop index CORPUS --out {index}"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _what_is_there(index: Path) -> str:
    build = f"polyhop index CORPUS --out {index}"
    if not index.exists():
        return f"There is no index at {index}. Build one: {build}"
    if not index.is_dir():
        return f"{index} is a file, not the folder of an index. To index it: polyhop index {index} --out DIR"
    if any(index.glob(f"{LUCENE}*")):
        return (
            f"The index {index} was never finished: its build was stopped or is still running. Build it again: {build}"
        )
    if any(index.glob("segments_*")):
        return f"{index} is a Lucene index that polyhop did not write. Index its corpus: polyhop index CORPUS --out DIR"
    return f"{index} is a folder without an index. Build one: {build}"
