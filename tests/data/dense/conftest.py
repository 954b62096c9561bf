"""An index with vectors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyhop.data.dense import DenseIndex, Vectors, embed_index

from .hashing import Hashing, build, records


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = build(tmp_path_factory.mktemp("dense"), records(1000))
    assert embed_index(path, Hashing(), batch=64) == Vectors(encoder="tests/hashing", dimension=16, rows=1000)
    return path


@pytest.fixture(scope="module")
def index(built: Path) -> Iterator[DenseIndex]:
    with DenseIndex(built, Hashing()) as opened:
        yield opened


@pytest.fixture
def own(built: Path, tmp_path: Path) -> Path:
    """A copy of the index with its vectors, to be changed."""
    return Path(shutil.copytree(built, tmp_path / "ix"))
