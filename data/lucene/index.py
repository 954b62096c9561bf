"""Build a BM25 index from a corpus of any size, and check one.

Passages stream from the corpus into Lucene's index writers, and the ids seen so far are kept on disk, so memory does
not grow with the corpus.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import NamedTuple

import ujson

from ..chain.store import HASHES, Store, hashes_of
from ..corpora import Corpus
from ..errors import DataError, Problem
from ..files import read_json
from ..passages import PAGE, content_id
from ..splitting import MAX_WORDS
from .jvm import anserini_jar, attach, autoclass, call, call_long, java_exception, open_directory, reason
from .layout import (
    PROBLEMS,
    IndexManifest,
    check_writable,
    lucene_version,
    open_reader,
    write_faults,
    writing,
)
from .writer import IndexWriter

_PROGRESS_EVERY = 500  # passages


class BuildProgress(NamedTuple):
    """How far an index is: the share of the work, from 0 to 1; the passages indexed so far; and what is read now,
    nothing while Lucene merges."""

    done: float
    passages: int
    file: str = ""


def build_index(
    corpora: Sequence[Path | str],
    out: Path | str,
    *,
    max_words: int | None = None,
    strict: bool = False,
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
        on_progress: Called after each file and every 500 passages, and several times a second while a document is
            converted.
        on_problem: Called with each skipped record or file; ``out`` has all of them in `PROBLEMS`.
    """
    if max_words is not None and max_words < 0:
        raise ValueError(f"max_words must be 0 or more, got {max_words}")
    out = Path(out)
    passages = documents = overlong = 0
    read, is_new = ("", ""), False
    digest = blake2b(digest_size=16)
    check_writable(out)
    with write_faults(out), writing(out) as folder, IndexWriter(out, folder, create=True) as writer:
        with closing(Notes(folder)) as notes, closing(SkippedRecords(folder, on_problem)) as skipped:
            corpus = Corpus(
                [Path(path) for path in corpora],
                max_words=max_words,
                earlier=notes.earlier,
                strict=strict,
                on_problem=skipped.add,
                on_progress=lambda: on_progress(BuildProgress(corpus.share, passages, corpus.file)),
            )
            for passage, where in corpus:
                digest.update(ujson.dumps(passage.to_record(), ensure_ascii=False).encode())
                if read != (read := (passage.document, where)):
                    first = notes.earlier(f"id {passage.document}", where)
                    is_new = first is None
                    documents += is_new
                    if first is not None:
                        by_content = passage.document == content_id(passage.title, passage.text)
                        same = "title and text" if by_content else f"id {passage.document!r}"
                        corpus.reject(Problem(where, f"the same {same} as {first}", "duplicate"))
                if not is_new or (passage.place and notes.earlier(f"id {passage.id}", where)):
                    continue
                writer.add(passage, corpus.version)
                passages += 1
                overlong += len(passage.text) > PAGE
                if passages % _PROGRESS_EVERY == 0:
                    on_progress(BuildProgress(corpus.share, passages, corpus.file))
            if not passages:
                raise DataError(f"No passage in {', '.join(corpus.names)}: {skipped.summary()}. Nothing was written.")
            on_progress(BuildProgress(1.0, passages))
        writer.merge()
        return writer.commit(
            {
                "passages": passages,
                "documents": documents,
                "malformed": skipped.counts["damaged"],
                "duplicates": skipped.counts["duplicate"],
                "overlong": overlong,
                "corpus": corpus.names,
                "corpus_hash": digest.hexdigest(),
                "max_words": MAX_WORDS if max_words is None else max_words,
                "split": "documents" if max_words is None else "everything" if max_words else "nothing",
                "polyhop": version("polyhop"),
                "anserini": anserini_jar().stem.split("-")[1],
                "lucene": lucene_version(),
                "created": datetime.now(UTC).replace(microsecond=0),
            }
        )


class SkippedRecords:
    """Counts what is skipped, and writes it to `PROBLEMS`, what is damaged first: memory does not grow with it."""

    def __init__(self, folder: Path, on_problem: Callable[[Problem], None]) -> None:
        self.counts, self._first = Counter[str](), ""
        self._on_problem, self._damaged = on_problem, (folder / PROBLEMS).open("w", encoding="utf-8")
        self._others = TemporaryFile("w+", encoding="utf-8", dir=folder)  # noqa: SIM115

    def add(self, problem: Problem) -> None:
        self.counts[problem.kind] += 1
        self._first = self._first or f"{problem.where}: {problem.reason}"
        self.keep(problem)
        self._on_problem(problem)

    def keep(self, problem: Problem) -> None:
        """Write a problem, perhaps of an earlier state."""
        file = self._damaged if problem.kind == "damaged" else self._others
        record = {name: value for name, value in problem._asdict().items() if value}
        file.write(ujson.dumps(record, ensure_ascii=False, escape_forward_slashes=False) + "\n")

    def summary(self) -> str:
        return f"{self.counts.total():,} skipped, the first is {self._first}" if self._first else "it is empty"

    def close(self) -> None:
        if not self._others.closed:
            self._others.seek(0)
            copyfileobj(self._others, self._damaged)
            self._others.close()
        self._damaged.close()


class Notes:
    """Ids and hashes that were seen, and what was noted of them: on disk, so memory does not grow with the corpus."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "notes"
        self._db = sqlite3.connect(self._path, isolation_level=None)
        # A killed build starts over, so nothing needs to survive. 32 MB of the table stay in memory.
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -32000"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def earlier(self, key: str, value: str) -> str | None:
        """What was noted of a key; None, and the value noted, if it is new."""
        if self._db.execute("INSERT OR IGNORE INTO notes VALUES (?, ?)", (key, value)).rowcount:
            return None
        (first,) = self._db.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
        return str(first)

    def close(self) -> None:
        self._db.close()
        self._path.unlink(missing_ok=True)


# --- checking --------------------------------------------------------------------------------------------------------


class IndexReport(NamedTuple):
    """The result of `check_index`; ``problems`` is empty for a sound index."""

    manifest: IndexManifest
    problems: tuple[str, ...]


def check_index(index: Path | str) -> IndexReport:
    """Verify the checksums and the structure of an index: finds damage that searches do not notice."""
    index = Path(index)
    manifest = IndexManifest.read(index)
    attach()
    problems = _damage(index)
    try:
        Store.open(manifest.stores(index))
        for store in manifest.stores(index):
            if (store / HASHES).exists() and read_json(store / HASHES) != hashes_of(store):  # older ones have none
                problems.append(f"a file of {store} has changed")
    except (OSError, ValueError) as error:
        problems.append(str(error))
    if not problems:
        reader = open_reader(index)
        found = int(call(reader, "numDocs"))
        call(reader, "close")
        if found != manifest.passages:
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
