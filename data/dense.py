"""Dense retrieval over an index: cosine similarity of sentence embeddings, by exact search through vectors on disk.

    embed_index("indexes/hotpotqa")  # once; as does `polyhop index --dense indexes/hotpotqa`
    index = DenseIndex("indexes/hotpotqa")
    for hit in index.search("Which studio made the film Solaris?", k=5):
        print(hit.rank, hit.score, hit.passage.title)

The vectors (`polyhop.data.vectors`) are mapped into memory and read in blocks, so that searching needs no memory that
grows with the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .encoder import Encoder, MiniLM, encode
from .errors import IndexFault
from .lucene.bm25 import open_lucene
from .lucene.layout import Manifest
from .passages import Hit
from .text import clean
from .vectors import embed_index, read_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .encoder import Floats

__all__ = ["DenseIndex", "Encoder", "MiniLM", "embed_index"]

_BLOCK = 1024  # rows searched at a time: 1.5 MB of float32 at 384 dimensions, which stay in the processor's cache
_QUERIES_KEPT = 256  # query vectors; programs search, page and score candidates with the same query


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
        self.path = Path(path)
        self.encoder = encoder or MiniLM()
        self._lucene = open_lucene(self.path)
        try:
            self.vectors, self._rows = read_vectors(self.path, self._lucene.manifest, self.encoder.name)
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
        vectors = encode(self.encoder, [clean(query) for query in queries])
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
