"""Import what a command line names as ``MODULE:NAME``: a retriever, a metric or a program of the user's own."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from .errors import PolyhopError


def import_named(spec: str, what: str) -> Any:
    """The attribute ``NAME`` of ``MODULE``; modules of the current folder are found, as with ``python -m``."""
    module, _, name = spec.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PolyhopError(f"cannot import the {what} {spec!r}: {error}") from error
