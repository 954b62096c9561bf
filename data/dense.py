"""Dense retrieval over an index: cosine similarity of sentence embeddings, by exact search.

The vectors are float16 rows of a ``.npy`` file beside the index; row n belongs to Lucene's document n. The file is
memory-mapped and searched in blocks. Its name is that of the encoder, with ``.part`` behind it until it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import lru_cache
from hashlib import blake2b
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
from .lucene.layout import EARLIER, KEYS, VECTORS, IndexManifest, locked
from .lucene.pyserini import locate
from .lucene.update import update_index
from .passages import Hit, Passage, check_page
from .text import clean

Floats: TypeAlias = NDArray[np.float32]

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_ROW = "<f2"  # float16, little-endian: changes no rank and halves the file
_BLOCK = 4096  # rows per search step
_IN_MEMORY = 1 << 26  # numbers that are kept as float32, which are searched several times faster than float16 on disk
_DIGITS = 6  # of a score; a product of matrices gives equal rows scores that differ in the seventh
_SAME = 0.01  # difference of the same encoder's numbers
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
                f"the vectors need sentence-transformers, which is not installed: {installs('dense')}. Or leave them "
                "out: --retriever chain-bm25"
            )
        self.name = str(Path(name).resolve()) if Path(name).is_dir() else name
        self._model: Any = None
        self._lock = Lock()  # the tokenizer is not thread-safe

    def __call__(self, texts: Sequence[str], /) -> Any:
        with self._lock:
            if self._model is None:
                try:
                    model = import_module("sentence_transformers").SentenceTransformer(self.name)
                    # Half the time on processors that compute with it, and the same ranks.
                    self._model = model.bfloat16() if _computes_bfloat16() else model
                except Exception as error:
                    why = str(error).partition("\n")[0]
                    raise PolyhopError(f"the model {self.name} cannot be loaded: {why}") from error
            return (
                self._model.encode(list(texts), show_progress_bar=False, convert_to_tensor=True).float().cpu().numpy()
            )

    def __reduce__(self) -> tuple[type[SentenceEncoder], tuple[str]]:
        return SentenceEncoder, (self.name,)


def _computes_bfloat16() -> bool:
    torch = import_module("torch")
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # new in PyTorch 2.8
    on_cpu = not (torch.cuda.is_available() or torch.backends.mps.is_available())
    return on_cpu and bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


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
        if self._rows.size <= _IN_MEMORY:
            self._rows = self._rows.astype(np.float32)
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

    def vector(self, query: str, passage: Passage | None = None) -> Floats:
        """The unit vector of a query, or of a query and a passage, read as one text; shape (dimension,)."""
        return self._query(f"{query} {_running(passage)}" if passage else query)

    def nearest(self, vector: Floats, k: int) -> list[tuple[int, float]]:
        """Lucene's numbers of the ``k`` documents with the highest cosine with a unit vector, and their cosines."""
        order, scores = self._nearest(vector)
        return list(zip(order[:k].tolist(), scores[order[:k]].tolist(), strict=True))

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
    """Add vectors to an index. An interrupted run resumes after its last complete batch; after an update of the index,
    what the vectors before it know is not encoded again.

    Args:
        encoder: By default the `SentenceEncoder` of `DEFAULT_MODEL`.
        batch: Passages encoded and written at a time.
        on_progress: Called with the number of embedded passages, earlier runs included, and the total.
    """
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
        first = encode(encoder, _texts(lucene, 0, 1))
        earlier = _Earlier.of(file)
        done, shape = rows, (rows, first.shape[1])
        if not _are_vectors(file, shape, first):
            mode = "r+" if _are_vectors(part, shape, first) else "w+"
            vectors = np.lib.format.open_memmap(part, mode, _ROW, shape)
            written = vectors.any(axis=1)  # the file is full of zeros at first
            done = rows if written.all() else int(np.argmin(written)) // batch * batch
            while done < rows:
                on_progress(done, rows)
                embedded = earlier.embedded(encoder, _texts(lucene, done, min(done + batch, rows)), first.shape[1])
                vectors[done : done + len(embedded)] = embedded
                vectors.flush()
                done += len(embedded)
            with part.open("rb") as finished:
                os.fsync(finished.fileno())
            keys = [_key(text) for at in range(0, rows, batch) for text in _texts(lucene, at, min(at + batch, rows))]
            np.save(keys_of(file), np.array(keys, np.uint64))
            os.replace(part, file)
            for old in (earlier_of(file), earlier_of(keys_of(file))):
                old.unlink(missing_ok=True)
        on_progress(rows, rows)
    return Vectors(encoder.name, *shape)


def _are_vectors(file: Path, shape: tuple[int, int], first: Floats) -> bool:
    """Whether a file has vectors of the same encoder, perhaps not all of them yet."""
    try:
        vectors = load_array(file)
    except (OSError, ValueError):
        return False
    # The same encoder's numbers vary with the batch and the machine, but not in the second decimal.
    return vectors.shape == shape and vectors.dtype == _ROW and np.allclose(vectors[0], first[0], atol=_SAME)


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
    return _names(index, manifest, VECTORS)


def outdated_encoders(index: Path, manifest: IndexManifest) -> list[str]:
    """The names of the encoders whose vectors an index had before it was changed, and has not now."""
    now = encoders_of(index, manifest)
    return [name for name in _names(index, manifest, f"{EARLIER}{VECTORS}") if name not in now]


def _names(index: Path, manifest: IndexManifest, prefix: str) -> list[str]:
    files = sorted(manifest.home(index).glob(f"{prefix}*.npy"))
    return [unquote(file.stem.removeprefix(prefix)) for file in files]


def _running(passage: Passage) -> str:
    """What is encoded: models are trained on running text, where a title with a full stop reads as a sentence."""
    return f"{passage.heading}. {passage.text}" if passage.title else passage.text


class _Earlier(NamedTuple):
    """The vectors of an index before it was changed, and where that of each text is."""

    vectors: NDArray[Any]
    rows: dict[int, int]
    checked: list[int]  # not empty once it is known that the encoder is the same

    @classmethod
    def of(cls, file: Path) -> _Earlier:
        try:
            vectors, keys = load_array(earlier_of(file)), load_array(earlier_of(keys_of(file)))
        except (OSError, ValueError):
            return cls(np.zeros((0, 0), np.float16), {}, [])
        return cls(vectors, dict(zip(keys.tolist(), range(len(vectors)), strict=False)), [])

    def embedded(self, encoder: Encoder, texts: Sequence[str], dimension: int) -> Floats:
        """The vectors of texts; those that are not known are encoded."""
        rows = [self.rows.get(_key(text), -1) for text in texts] if self.vectors.shape[1:] == (dimension,) else []
        rows = rows or [-1] * len(texts)
        if not self.checked and (at := next((at for at, row in enumerate(rows) if row >= 0), None)) is not None:
            # The model may be another one of the same name.
            again = encode(encoder, [texts[at]])[0]
            if not np.allclose(again, self.vectors[rows[at]].astype(np.float32), atol=_SAME):
                self.rows.clear()
                rows = [-1] * len(texts)
            self.checked.append(at)
        new = [at for at, row in enumerate(rows) if row < 0]
        vectors = np.zeros((len(texts), dimension), np.float32)
        if len(new) < len(texts):
            is_known = np.array(rows) >= 0
            vectors[is_known] = self.vectors[[row for row in rows if row >= 0]]
        if new:
            vectors[new] = encode(encoder, [texts[at] for at in new])
        return vectors


def _texts(lucene: LuceneReader, start: int, end: int) -> list[str]:
    return [_running(passage) for passage in lucene.stored(range(start, end))]


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def keys_of(vectors: Path) -> Path:
    """The file with the hashes of the texts of a file of vectors."""
    return vectors.with_name(vectors.name.replace(VECTORS, KEYS, 1))


def earlier_of(file: Path) -> Path:
    """What a file of vectors, or of their keys, is called in the next state of the index."""
    return file.with_name(f"{EARLIER}{file.name}")


def _file(index: Path, manifest: IndexManifest, encoder: str) -> Path:
    return manifest.home(index) / f"{VECTORS}{quote(encoder, safe='')}.npy"
