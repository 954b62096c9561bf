"""Pyserini's prebuilt indexes, from its own registry and in its own cache folder."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from ..errors import IndexFault
from ..importing import installs
from .jvm import attach

PREFIX = "pyserini:"


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
    try:
        util = import_module("pyserini.util")
    except ImportError as error:  # pandas
        raise IndexFault(f"Pyserini's downloads need more packages ({error}): run `{installs('hub')}`.") from error
    try:
        with redirect_stdout(sys.stderr):  # it prints its progress
            return Path(util.download_prebuilt_index(name, verbose=False))
    except (OSError, ValueError, AssertionError) as error:  # AssertionError: a wrong size or checksum
        url = known[name]["urls"][0]
        raise IndexFault(
            f"Pyserini's index {name!r} cannot be downloaded from {url} ({error}). Try again, or unpack it into "
            f"{util.get_cache_home()}/indexes yourself."
        ) from error
