"""Dense retrieval over an index: cosine similarity of sentence embeddings, by exact search.

The vectors are float16 rows of a ``.npy`` file beside the index; row n belongs to Lucene's document n. The file is
memory-mapped and searched in blocks. Its name is that of the encoder, with ``.part`` behind it until it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeAlias
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from .errors import IndexFault, PolyhopError
from .files import load_array
from .importing import installs
from .lucene.bm25 import LuceneReader, OpenIndex
from .lucene.layout import IndexManifest, locked
from .lucene.pyserini import locate
from .lucene.update import update_index
from .passages import Hit, Passage, check_page
from .text import clean

Floats: TypeAlias = NDArray[np.float32]

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PREFIX = "vectors-"
_ROW = "<f2"  # float16, little-endian: changes no rank and halves the file
_BLOCK = 4096  # rows per search step
_DIGITS = 6  # of a score; a product of matrices gives equal rows scores that differ in the seventh
_QUERIES_CACHED = 256  # query vectors; programs search, page and score candidates with the same query


# --- encoders --------------------------------------------------------------------------------------------------------


class Encoder(Protocol):
    """Turns texts into a finite array of shape (texts, dimension), in any thread. Vectors are stored under its name, so
    each model needs its own."""

    @property
    def name(self) -> str: ...

    def __call__(self, texts: Sequence[str], /) -> Any: ...


def encode(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """Unit vectors of shape (texts, dimension); an all-zero vector stays zero."""
    vectors = np.asarray(encoder(texts), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise ValueError(
            f"the encoder {encoder.name} must return {len(texts)} rows of finite numbers, got shape {vectors.shape}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


class SentenceEncoder:
    """A model of sentence-transformers, loaded at the first call.

    Args:
        name: On the Hugging Face hub, or the folder of a model, whose absolute path becomes the name.

    Raises:
        PolyhopError: sentence-transformers is not installed; when called, the model cannot be loaded.
    """

    def __init__(self, name: str = DEFAULT_MODEL) -> None:
        if not find_spec("sentence_transformers"):
            raise PolyhopError(
                f"dense retrieval needs sentence-transformers, which is not installed: {installs('dense')}"
            )
        self.name = str(Path(name).resolve()) if Path(name).is_dir() else name
        self._model: Any = None
        self._lock = Lock()  # the tokenizer is not thread-safe

    def __call__(self, texts: Sequence[str], /) -> Any:
        with self._lock:
            if self._model is None:
                try:
                    self._model = import_module("sentence_transformers").SentenceTransformer(self.name)
                except Exception as error:
                    why = str(error).partition("\n")[0]
                    raise PolyhopError(f"the model {self.name} cannot be loaded: {why}") from error
            return self._model.encode(list(texts), show_progress_bar=False)

    def __reduce__(self) -> tuple[type[SentenceEncoder], tuple[str]]:
        return SentenceEncoder, (self.name,)


# --- the retriever ---------------------------------------------------------------------------------------------------


class DenseIndex(OpenIndex):
    """A thread-safe `Retriever` over an index with vectors; it ranks every passage.

    Scores are cosines, rounded to six digits; ties are broken by Lucene's document number. Pickling keeps the path and
    the encoder, by default the `SentenceEncoder` of the vectors that the index has.

    Raises:
        IndexFault: the index is missing, unfinished or damaged, or has no vectors of this encoder.
        PolyhopError: sentence-transformers is not installed; or the index has vectors of several encoders.
    """

    def __init__(self, path: Path | str, encoder: Encoder | None = None) -> None:
        self.path = locate(path)
        lucene = LuceneReader.open(self.path)
        self._current = lambda: lucene  # the vectors are of this state
        try:
            names = encoders_of(self.path, lucene.manifest)
            if encoder is None and len(names) > 1 and DEFAULT_MODEL not in names:
                raise PolyhopError(f"the index {path} has vectors of {', '.join(names)}: give DenseIndex one")
            self.encoder = encoder or SentenceEncoder(names[0] if len(names) == 1 else DEFAULT_MODEL)
            self._rows = read_vectors(self.path, lucene.manifest, self.encoder.name)
        except BaseException:
            lucene.close()
            raise
        self._query = lru_cache(_QUERIES_CACHED)(self._vector)

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The hits of rank ``offset + 1`` to ``offset + k``; none for a blank query."""
        check_page(k, offset)
        if not query.strip():
            return []
        order, scores = self._nearest(self._query(query))
        page = order[offset : offset + k].tolist()
        ranked = enumerate(zip(self._lucene.stored(page), scores[page].tolist(), strict=True), offset + 1)
        return [Hit(passage, score, rank) for rank, (passage, score) in ranked]

    def similarities(self, query: str, documents: Sequence[int]) -> Floats:
        """The cosines of a query with the vectors of Lucene's document numbers, shape (documents,)."""
        return np.vecdot(self.rows(documents), self._query(query)).round(_DIGITS)

    def rows(self, documents: Sequence[int]) -> Floats:
        """The unit vectors of Lucene's document numbers, shape (documents, dimension)."""
        return self._rows[np.asarray(documents, np.intp)].astype(np.float32)

    def _vector(self, query: str) -> Floats:
        vector: Floats = encode(self.encoder, [clean(query)])[0]
        if len(vector) != self._rows.shape[1]:
            raise IndexFault(
                f"The index {self.path} has vectors of {self._rows.shape[1]} dimensions, and {self.encoder.name} "
                f"makes {len(vector)}: the model has changed. Rename the encoder and embed again."
            )
        return vector

    def _nearest(self, vector: Floats) -> tuple[NDArray[np.intp], Floats]:
        """The numbers of all documents, nearest first, and their cosines."""
        starts = range(0, len(self), _BLOCK)
        blocks = [self._rows[start : start + _BLOCK].astype(np.float32) @ vector for start in starts]
        scores: Floats = np.concatenate(blocks).round(_DIGITS)
        return np.argsort(-scores, kind="stable"), scores

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> tuple[type[DenseIndex], tuple[str, Encoder]]:
        return DenseIndex, (str(self.path.absolute()), self.encoder)

    def __repr__(self) -> str:
        return f"DenseIndex({str(self.path)!r}, {self.encoder.name!r})"


# --- vectors on disk -------------------------------------------------------------------------------------------------


class Vectors(NamedTuple):
    """What an index has: the encoder's name, and the number and the length of its vectors."""

    encoder: str
    rows: int
    dimension: int

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        return 2 * self.rows * self.dimension


def embed_index(
    index_path: Path | str,
    encoder: Encoder | None = None,
    batch: int = 256,
    on_progress: Callable[[int, int], None] = lambda done, rows: None,
) -> Vectors:
    """Add vectors to an index. An interrupted run resumes after its last complete batch.

    Args:
        encoder: By default the `SentenceEncoder` of `DEFAULT_MODEL`.
        batch: Passages encoded and written at a time.
        on_progress: Called with the number of embedded passages, earlier runs included, and the total.
    """
    if batch < 1:
        raise ValueError(f"batch must be positive, got {batch}")
    path, encoder = locate(index_path), encoder or SentenceEncoder()
    with closing(LuceneReader.open(path)) as lucene:
        if not lucene.manifest.chain:
            raise IndexFault(f"The index {path} is not adopted. Adopt it once: polyhop index --adopt {path}")
    if lucene.has_deletions and not lucene.manifest.foreign:
        update_index(path, compact=True)
    with locked(path), closing(LuceneReader.open(path)) as lucene:
        if lucene.has_deletions:
            raise IndexFault(f"The index {path} has deleted documents, which vectors cannot skip. Merge it first.")
        file, rows = _file(path, lucene.manifest, encoder.name), lucene.manifest.passages
        part = file.with_name(f"{file.name}.part")
        first = _embed(encoder, lucene.stored([0]))
        done, shape = rows, (rows, first.shape[1])
        if not _are_vectors(file, shape, first):
            mode = "r+" if _are_vectors(part, shape, first) else "w+"
            vectors = np.lib.format.open_memmap(part, mode, _ROW, shape)
            written = vectors.any(axis=1)  # the file is full of zeros at first
            done = rows if written.all() else int(np.argmin(written)) // batch * batch
            while done < rows:
                on_progress(done, rows)
                embedded = _embed(encoder, lucene.stored(range(done, min(done + batch, rows))))
                vectors[done : done + len(embedded)] = embedded
                vectors.flush()
                done += len(embedded)
            with part.open("rb") as finished:
                os.fsync(finished.fileno())
            os.replace(part, file)
        on_progress(rows, rows)
    return Vectors(encoder.name, *shape)


def _are_vectors(file: Path, shape: tuple[int, int], first: Floats) -> bool:
    """Whether a file has vectors of the same encoder, perhaps not all of them yet."""
    try:
        vectors = load_array(file)
    except (OSError, ValueError):
        return False
    # The same encoder's numbers vary with the batch and the machine, but not in the second decimal.
    return vectors.shape == shape and vectors.dtype == _ROW and np.allclose(vectors[0], first[0], atol=0.01)


def read_vectors(index: Path, manifest: IndexManifest, encoder: str) -> NDArray[np.float16]:
    """The memory-mapped vectors of an encoder, shape (documents, dimension)."""
    add = f"polyhop index --dense {index}" + ("" if encoder == DEFAULT_MODEL else f" --encoder {encoder}")
    try:
        vectors = load_array(_file(index, manifest, encoder))
    except FileNotFoundError:
        others = ", ".join(encoders_of(index, manifest)) or "none"
        raise IndexFault(
            f"The index {index} has no vectors of {encoder} (of other encoders: {others}). Add them, or resume: {add}"
        ) from None
    except (OSError, ValueError) as error:
        raise IndexFault(f"The vectors of the index {index} are damaged ({error}). Make them again: {add}") from error
    if vectors.ndim != 2 or vectors.dtype != _ROW or len(vectors) != manifest.passages:
        raise IndexFault(f"The vectors of the index {index} are not those of its passages. Make them again: {add}")
    return vectors


def encoders_of(index: Path, manifest: IndexManifest) -> list[str]:
    """The names of the encoders whose vectors an index has."""
    files = sorted(manifest.home(index).glob(f"{_PREFIX}*.npy"))
    return [unquote(file.stem.removeprefix(_PREFIX)) for file in files]


def _embed(encoder: Encoder, passages: Sequence[Passage]) -> Floats:
    # Models are trained on running text, where a title with a full stop reads as a sentence.
    texts = [f"{passage.heading}. {passage.text}" if passage.title else passage.text for passage in passages]
    return encode(encoder, texts)


def _file(index: Path, manifest: IndexManifest, encoder: str) -> Path:
    return manifest.home(index) / f"{_PREFIX}{quote(encoder, safe='')}.npy"
