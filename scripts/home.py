"""The index that is searched without an option: that of the current folder."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from ..data.errors import PolyhopError
from .index import HOME
from .index import index as build


def chosen_index(index: Path | None) -> Path:
    """What is searched: an index or the sample; for a folder of documents, such as the current one, its own index. In a
    terminal, a folder that has none is indexed if the user agrees.
    """
    folder = index or Path()
    if index and (not folder.is_dir() or is_index(folder)):
        return index
    inside = folder / HOME
    if is_index(inside):
        return inside
    command = f"polyhop index {folder} --out {inside}" if index else "polyhop index"
    if not in_terminal():
        raise PolyhopError(
            f"nothing to search in {folder.resolve()}: '{command}' makes an index of its documents, --index DIR names "
            "another, and --index sample is the sample corpus"
        )
    typer.confirm(f"{folder.resolve()} has no index. Index its documents now?", default=True, abort=True, err=True)
    build([str(folder)], inside)
    return inside


def in_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # a service may have none


def is_index(folder: Path) -> bool:
    return any(folder.glob("segments_*"))  # Lucene's lists of its files
