"""Build a BM25 index from a corpus of any size, adopt one of Anserini or Pyserini, and check one.

Passages stream into Lucene's index writer, and the ids seen so far are kept on disk: memory does not grow with them.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import ujson

from ..chain.store import StoreWriter, hashes_of
from ..documents.corpus import Corpus, Entry
from ..documents.split import MAX_WORDS
from ..errors import DataError, IndexFault, Problem
from ..languages import AUTO, ENGLISH, check_language, language_of
from ..passages import PAGE, Passage
from .bm25 import LuceneReader
from .jvm import anserini_jar, autoclass, call, call_long, java_exception, lucene_class, open_directory, reason
from .layout import PROBLEMS, STORE, IndexManifest, check_writable, lucene_version, publish, writing
from .writer import IndexWriter

_PROGRESS_EVERY = 500  # passages
_MANY = 1 << 40
_NONE = Passage("", "", "")  # in place of a deleted document, to keep the numbers


class BuildProgress(NamedTuple):
    """How far an index is: the share of the work, from 0 to 1; the passages indexed so far; and what is read now,
    nothing while Lucene merges."""

    done: float
    passages: int
    file: str = ""


class Earlier(Protocol):
    """What an index has already, of which some is replaced."""

    def with_text(self, digest: str) -> Iterable[str]:
        """The documents that stay and have a text, by its hash."""
        ...

    def keeps(self, entry: Entry) -> bool:
        """Whether a document or a record stays as it is; what becomes of it is noted."""
        ...

    def refuses(self, id: str, document: str) -> str | None:
        """Why a document, or a passage of it, cannot have an id."""
        ...

    def replaced(self, document: str) -> None:
        """Note a document that is written."""
        ...


class Indexing:
    """Corpora on their way into an index: what is new in them is written, the rest is listed in `PROBLEMS`.

    A document with the text of another is left out, and so is what has the id of another.

    Args:
        folder: That of `polyhop.data.lucene.layout.writing`.
        hashed: The start of the hash of all passages.
        language: Of the passages, or `AUTO`.
        languages: Of those that the index has.

    Attributes:
        passages, documents: The numbers of those that were written.
        languages: The numbers of passages by language, of those before 1.
        skipped: The numbers of those that were not, by kind.
    """

    def __init__(
        self,
        folder: Path,
        writer: IndexWriter,
        on_progress: Callable[[BuildProgress], None],
        on_problem: Callable[[Problem], None],
        hashed: str = "",
        language: str = AUTO,
        languages: Sequence[str] = (),
    ) -> None:
        # How many passages there were of each is not known: their order stays.
        ranked = {code: _MANY * (len(languages) - at) for at, code in enumerate(languages)}
        self._language, self.languages = language, Counter(ranked)
        self._folder, self._writer, self._on_progress, self._on_problem = folder, writer, on_progress, on_problem
        self.passages = self.documents = self._overlong = 0
        self.digest = blake2b(hashed.encode(), digest_size=16)
        self.skipped, self.first = Counter[str](), "it is empty"
        # What was seen, on disk. A killed build starts over, so nothing needs to survive; 32 MB stay in memory.
        self._seen = sqlite3.connect(folder / "seen", isolation_level=None)
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -32000"):
            self._seen.execute(f"PRAGMA {setting}")
        self._seen.execute("CREATE TABLE seen (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        self._seen.execute("CREATE TABLE problems (later INTEGER, line TEXT)")
        self._seen.execute("BEGIN")

    def corpus(self, paths: Sequence[Path], **options: Any) -> Corpus:
        """A corpus that reports to this; the options are its own."""
        corpus = Corpus(
            paths,
            on_problem=self.skip,
            on_progress=lambda: self._on_progress(BuildProgress(corpus.share, self.passages, corpus.file)),
            **options,
        )
        return corpus

    def add(self, corpus: Corpus, unchanged: Collection[str] = (), earlier: Earlier | None = None) -> None:
        """Write what is new in a corpus.

        Args:
            unchanged: The names of documents that need not be read.
        """
        for entry in corpus.read(unchanged):
            if copied := self._first_with(entry, earlier):
                reason = f"the same text as {copied}"
                self.skip(Problem(entry.where, reason, "duplicate", entry.version.content, copied))
                continue
            if earlier and earlier.keeps(entry):
                continue
            if entry.passages is None:  # its problem was told
                continue
            if why := self._refusal(entry.id, entry, earlier):
                corpus.reject(Problem(entry.where, why, "duplicate"))
                continue
            self.documents += 1
            if earlier:
                earlier.replaced(entry.id)
            for passage in entry.passages:
                # By a record "notes.md#1".
                if passage.place and (why := self._refusal(passage.id, entry, earlier)):
                    corpus.reject(Problem(entry.where, why, "duplicate"))
                else:
                    self._write(passage, entry, corpus)

    def taken(self, id: str, where: str) -> str | None:
        """Why another document or passage cannot have an id, which is noted."""
        first = self._earlier(f"id {id}", where)
        return None if first is None else f"the same id {id!r} as {first}"

    def _refusal(self, id: str, entry: Entry, earlier: Earlier | None) -> str | None:
        return (earlier and earlier.refuses(id, entry.id)) or self.taken(id, entry.where)

    def _first_with(self, entry: Entry, earlier: Earlier | None) -> str | None:
        """Another document that has the text, in the index or read before."""
        if not entry.version.text:
            return None
        for document in earlier.with_text(entry.version.text) if earlier else ():
            if document != entry.id:
                return document
        first = self._earlier(f"text {entry.version.text}", entry.id)
        return first if first != entry.id else None

    def _earlier(self, key: str, value: str) -> str | None:
        """What was noted of a key; None, after noting a value, for a new one."""
        if self._seen.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (key, value)).rowcount:
            return None
        return str(self._seen.execute("SELECT value FROM seen WHERE key = ?", (key,)).fetchone()[0])

    def _write(self, read: Passage, entry: Entry, corpus: Corpus) -> None:
        passage = self._in_language(read)
        self.digest.update(ujson.dumps(passage.to_record(), ensure_ascii=False).encode())
        self._writer.add(passage, entry.version)
        self.passages += 1
        self.languages[passage.language] += 1
        self._overlong += len(passage.text) > PAGE
        if self.passages % _PROGRESS_EVERY == 0:
            self._on_progress(BuildProgress(corpus.share, self.passages, corpus.file))

    def _in_language(self, passage: Passage) -> Passage:
        """The passage with its language; that of most where its text does not tell."""
        language = self._language
        if language == AUTO:
            most = max(self.languages, key=self.languages.__getitem__, default=ENGLISH)
            language = passage.language if passage.language != ENGLISH else language_of(passage.text, most)
        return passage if language == passage.language else replace(passage, language=language)

    def skip(self, problem: Problem) -> None:
        """Report and list a problem."""
        if not self.skipped:
            self.first = f"the first that is skipped is {problem.where}: {problem.reason}"
        self.skipped[problem.kind] += 1
        self.keep(problem)
        self._on_problem(problem)

    def keep(self, problem: Problem) -> None:
        """List a problem, perhaps of an earlier state."""
        record = {name: value for name, value in problem._asdict().items() if value}
        line = ujson.dumps(record, ensure_ascii=False, escape_forward_slashes=False)
        self._seen.execute("INSERT INTO problems VALUES (?, ?)", (problem.kind != "damaged", line))

    def counts(self, before: IndexManifest | None = None) -> dict[str, Any]:
        """What the manifest says of the passages."""
        return {
            "malformed": self.skipped["damaged"],
            "duplicates": self.skipped["duplicate"],
            "overlong": self._overlong + (before.overlong if before else 0),
            "corpus_hash": self.digest.hexdigest(),
            **_analyzed(self._language, [language for language, _ in self.languages.most_common()]),
        }

    def finish(self) -> None:
        """Write the list of what was skipped, what is damaged first."""
        with (self._folder / PROBLEMS).open("w", encoding="utf-8") as file:
            for (line,) in self._seen.execute("SELECT line FROM problems ORDER BY later, rowid"):
                file.write(f"{line}\n")
        self._seen.close()
        (self._folder / "seen").unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._seen.close()


def home_of(folder: Path) -> str:
    """A hash of the path of a folder."""
    return blake2b(os.fsencode(folder.resolve()), digest_size=16).hexdigest()


def _analyzed(language: str, languages: Sequence[str]) -> dict[str, Any]:
    """What the manifest says of languages."""
    names = ("DefaultEnglishAnalyzer (Porter)" if code == ENGLISH else code for code in languages)
    return {"language": language, "languages": tuple(languages), "analyzer": f"Anserini {', '.join(names)}"}


def build_index(
    corpora: Sequence[Path | str],
    out: Path | str,
    *,
    max_words: int | None = None,
    language: str = AUTO,
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
        language: Of all documents, one of `LANGUAGES`; or `AUTO`: it is told from the text of each passage.
        strict: Stop at the first malformed or duplicate record instead of skipping it.
        on_progress: Called after each file and every 500 passages, and while a document is converted.
        on_problem: Called with each skipped record or file; the index lists them in `PROBLEMS`.
    """
    if max_words is not None and max_words < 0:
        raise ValueError(f"max_words must be 0 or more, got {max_words}")
    check_language(language)
    out = Path(out)
    check_writable(out)
    with (
        writing(out) as folder,
        IndexWriter(out, folder, create=True) as writer,
        Indexing(folder, writer, on_progress, on_problem, language=language) as indexing,
    ):
        corpus = indexing.corpus([Path(path) for path in corpora], max_words=max_words, strict=strict)
        indexing.add(corpus)
        if not indexing.passages:
            raise DataError(f"No passage in {', '.join(corpus.names)}: {indexing.first}. Nothing was written.")
        on_progress(BuildProgress(1.0, indexing.passages))
        indexing.finish()
        writer.merge()
        return writer.commit(
            {
                **indexing.counts(),
                "passages": indexing.passages,
                "documents": indexing.documents,
                "corpus": corpus.names,
                "homes": tuple(home_of(Path(path)) for path in corpora if Path(path).is_dir()),
                "max_words": MAX_WORDS if max_words is None else max_words,
                "split": "documents" if max_words is None else "everything" if max_words else "nothing",
                "polyhop": version("polyhop"),
                "anserini": anserini_jar().stem.split("-")[1],
                "lucene": lucene_version(),
                "created": datetime.now(UTC).replace(microsecond=0),
            }
        )


def adopt_index(
    index: Path | str, *, language: str = ENGLISH, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> IndexManifest:
    """Add the words of the passages to an index of Anserini or Pyserini, beside Lucene's untouched files, in one pass
    over the stored documents.

    An interrupted adoption leaves the index as it was; an earlier one is replaced.

    Args:
        language: In which the index was analyzed, one of `LANGUAGES`.
        on_progress: Called every 500 passages with the number of passages read, and their total.

    Raises:
        IndexFault: the index is missing, damaged or polyhop's own, or stores no text.
    """
    check_language(language)
    index = Path(index)
    with closing(LuceneReader(index, adopting=True)) as lucene:
        manifest = lucene.manifest
        if not manifest.foreign:
            raise IndexFault(f"The index {index} was made by polyhop, and has all that it needs.")
        lucene.manifest = manifest = manifest.model_copy(update=_analyzed(language, [language]))
        with writing(index) as unfinished:
            store = StoreWriter(unfinished / STORE)
            overlong = done = 0
            for start in range(0, len(lucene.live), _PROGRESS_EVERY):
                live = lucene.live[start : start + _PROGRESS_EVERY]
                passages = lucene.stored((start + np.flatnonzero(live)).tolist())
                overlong += sum(len(passage.text) > PAGE for passage in passages)
                done += len(passages)
                stored = iter(passages)
                store.add(next(stored) if alive else _NONE for alive in live)
                on_progress(done, manifest.passages)
            chain = {manifest.generation: store.finish()}
            made = {"overlong": overlong, "polyhop": version("polyhop"), "chain": chain}
            manifest = manifest.model_copy(update=made)
            publish(index, unfinished, manifest, lambda: None)
    return manifest


# --- checking --------------------------------------------------------------------------------------------------------


class IndexReport(NamedTuple):
    """The result of `check_index`; ``problems`` is empty for a sound index."""

    manifest: IndexManifest
    problems: tuple[str, ...]


def check_index(index: Path | str) -> IndexReport:
    """Verify the checksums and the structure of an index: finds damage that searches do not notice.

    Raises:
        IndexFault: it cannot even be opened.
    """
    index = Path(index)
    with closing(LuceneReader.open(index)) as lucene:
        manifest = lucene.manifest
    problems = []
    for store, hashes in manifest.stores(index).items():
        try:
            if hashes != hashes_of(store):
                problems.append(f"a file of {store} has changed")
        except OSError as error:
            problems.append(str(error))
    output = autoclass("java.io.ByteArrayOutputStream")()
    try:
        checker = lucene_class("index.CheckIndex")(open_directory(index, reading=True))
        try:
            stream = autoclass("java.io.PrintStream")(output, signature="(Ljava/io/OutputStream;)V")
            call(checker, "setInfoStream", stream)
            clean = call_long(checker, "checkIndex").clean
        finally:
            call(checker, "close")
    except java_exception() as error:
        return IndexReport(manifest, (*problems, f"Lucene cannot read it ({reason(error)})"))
    lines = [line.strip() for line in call(output, "toString").splitlines()]
    faults = [line for line in lines if "FAILED" in line or "Exception:" in line]
    problems += faults or ([] if clean else ["Lucene's CheckIndex reports damage"])
    return IndexReport(manifest, tuple(problems))
