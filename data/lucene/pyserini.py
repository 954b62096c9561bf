"""Pyserini: its prebuilt indexes, from its own registry and in its own cache folder, and its searchers."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import IndexFault, PolyhopError
from .jvm import attach

PREFIX = "pyserini:"
_BM25 = re.compile(r"BM25\(k1=([\d.]+),b=([\d.]+)\)")


def locate(index: Path | str) -> Path:
    """The folder of an index; ``pyserini:NAME`` is one of Pyserini's, downloaded if it is not in Pyserini's cache.

    The cache is ``$PYSERINI_CACHE``, by default ``~/.cache/pyserini``.

    Raises:
        IndexFault: Pyserini has no BM25 index of this name, or cannot download it.
    """
    name = str(index)
    if not name.startswith(PREFIX):
        return Path(index)
    name = name.removeprefix(PREFIX)
    attach()  # before Pyserini starts Java with a module that BM25 does not need and some Javas lack
    known = import_module("pyserini.prebuilt_index_info").TF_INDEX_INFO
    if name not in known:
        near = " or ".join(get_close_matches(name, known))
        raise IndexFault(f"Pyserini has no BM25 index {name!r}{f': is it {near}?' if near else '.'}")
    util = import_module("pyserini.util")
    try:
        with redirect_stdout(sys.stderr):  # it prints its progress
            return Path(util.download_prebuilt_index(name, verbose=False))
    except (OSError, ValueError, AssertionError) as error:  # AssertionError: a wrong size or checksum
        url = known[name]["urls"][0]
        raise IndexFault(
            f"Pyserini's index {name!r} cannot be downloaded from {url} ({error}). Try again, or unpack it into "
            f"{util.get_cache_home()}/indexes yourself."
        ) from error


def adapt(retriever: Any) -> Any:
    """A `LuceneSearcher` of Pyserini as a `BM25Index` with its parameters; anything else as it is.

    Raises:
        PolyhopError: the searcher ranks by something else than BM25 alone.
    """
    if not any(base.__name__ == "LuceneSearcher" and "pyserini" in base.__module__ for base in type(retriever).__mro__):
        return retriever
    found = _BM25.fullmatch(retriever.get_similarity().toString())
    if not found or retriever.is_using_rm3() or retriever.is_using_rocchio():
        raise PolyhopError(
            "polyhop searches with BM25 alone: call set_bm25, unset_rm3 and unset_rocchio of the LuceneSearcher"
        )
    from .bm25 import BM25Index

    return BM25Index(retriever.index_dir, float(found[1]), float(found[2]))
