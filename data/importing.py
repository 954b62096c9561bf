"""Import what a command line names as ``MODULE:NAME`` or ``FILE.py:NAME``; tell how to install what a feature needs."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import requires
from pathlib import Path
from shlex import join
from typing import Any

from .errors import PolyhopError


def import_named(spec: str, what: str) -> Any:
    """The attribute ``NAME`` of ``MODULE``, or of ``FILE.py``, which is imported under its name as a script's neighbour
    would be; modules of the current folder are found, as with ``python -m``.

    Raises:
        PolyhopError: there is no such module or attribute, or another module has the name of the file.
    """
    module, _, name = spec.rpartition(":")
    file = Path(module).absolute() if module.endswith(".py") else None
    if (folder := str(file.parent if file else Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        imported = import_module(file.stem if file else module)
        if file and (loaded := getattr(imported, "__file__", None)) and not file.samefile(loaded):
            raise ImportError(f"the module {file.stem} is {loaded}: rename your file")
        return getattr(imported, name)
    except (ImportError, AttributeError, ValueError, OSError) as error:
        raise PolyhopError(f"cannot import the {what} {spec!r}: {error}") from error


def installs(extra: str) -> str:
    """The command that installs what an extra needs: a target of the checkout's Makefile, or pip with its packages."""
    if (Path(__file__).parents[1] / "Makefile").exists():
        return f"make {extra}"
    parts = (requirement.partition(";") for requirement in requires("polyhop") or [])
    needed = [name.strip() for name, _, marker in parts if f"extra == '{extra}'" in marker.replace('"', "'")]
    return join(["pip", "install", *needed])
