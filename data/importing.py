"""Import what a command line names as ``MODULE:NAME``, and tell how to install what a feature needs."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from shlex import join
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


def installs(extra: str) -> str:
    """The command that installs what an extra needs: a target of the checkout's Makefile, or pip with its packages."""
    if (Path(__file__).parents[1] / "Makefile").exists():
        return f"make {extra}"
    try:
        known = requires("polyhop") or []
    except PackageNotFoundError:  # neither a checkout nor installed, such as a copy of the source
        known = []
    parts = (requirement.partition(";") for requirement in known)
    needed = [name.strip() for name, _, marker in parts if f"extra == '{extra}'" in marker.replace('"', "'")]
    return join(["pip", "install", *needed])
