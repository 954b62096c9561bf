"""Adopt an index that Anserini or Pyserini made: add what the chain retriever needs, beside Lucene's untouched files.

adopt_index("indexes/wikipedia")     # once; `polyhop index --adopt indexes/wikipedia` does the same
retriever = ChainRetriever(BM25Index("indexes/wikipedia"))
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ..chain.store import StoreWriter
from ..errors import IndexFault
from ..passages import PAGE, Passage
from .bm25 import LuceneReader
from .jvm import attach
from .layout import STORE, IndexManifest, publish, remove_old, write_faults, writing

_BATCH = 500  # passages
_NONE = Passage("", "", "")  # in place of a deleted document, to keep the numbers


def adopt_index(
    index: Path | str, *, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> IndexManifest:
    """Add the words of the passages to an index of Anserini or Pyserini, in one pass over the stored documents.

    An interrupted adoption leaves the index as it was. An earlier adoption is replaced.

    Args:
        index: The folder with Lucene's files.
        on_progress: Called every 500 passages with the number of passages read, and their total.

    Raises:
        IndexFault: the index is missing, damaged or polyhop's own, or stores no text.
    """
    index = Path(index)
    attach()
    found = IndexManifest.find(index)
    if found and not found.foreign:
        raise IndexFault(f"The index {index} was made by polyhop, and has all that it needs.")
    with write_faults(index), writing(index) as unfinished:
        manifest = IndexManifest.of_foreign(index)
        with closing(LuceneReader(index, manifest)) as lucene, closing(StoreWriter(unfinished / STORE)) as store:
            overlong = done = 0
            for start in range(0, len(lucene.live), _BATCH):
                live = lucene.live[start : start + _BATCH]
                passages = lucene.stored((start + np.flatnonzero(live)).tolist())
                overlong += sum(len(passage.text) > PAGE for passage in passages)
                done += len(passages)
                there = iter(passages)
                store.add(next(there) if alive else _NONE for alive in live)
                on_progress(done, manifest.passages)
            store.finish()
        made = {"overlong": overlong, "polyhop": version("polyhop"), "chain": (manifest.generation,)}
        manifest = manifest.model_copy(update=made)
        publish(index, unfinished, manifest)
        remove_old(index, manifest)
    return manifest
