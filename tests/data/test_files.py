"""Files of others: read within bounds, and never written through a link."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.errors import IndexFault, PolyhopError
from polyhop.data.files import read_json
from polyhop.data.lucene.index import build_index
from polyhop.engines.budget import read_spent
from polyhop.optimizers.settings import read_settings

READERS: dict[str, Callable[[Path], Any]] = {
    "settings.toml": read_settings,
    "settings.json": read_settings,
    "spent.json": read_spent,
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_or_too_large_is_one_line(name: str, tmp_path: Path) -> None:
    def refused(message: str) -> None:
        with pytest.raises(PolyhopError, match=message) as raised:
            READERS[name](path)
        assert "\n" not in str(raised.value)

    path = tmp_path / name
    os.mkfifo(path)  # would never end
    refused("not a regular file")
    path.unlink()
    path.mkdir()
    refused("not a regular file")
    path.rmdir()
    with path.open("wb") as file:
        file.truncate(2**40)  # a sparse file
    refused("it is larger than")
    path.write_bytes(b'{"a": ' + b"[" * 100_000)
    refused(str(path))
    path.write_bytes(b"a = " + b"[" * 10_000)
    refused(str(path))
    path.write_bytes(b"\xff\xfe")
    refused(str(path))


@pytest.mark.parametrize("text", [rb'["\ud800"]', rb'{"\uDFFF": 1}'])
def test_half_a_character_is_refused(text: bytes, tmp_path: Path) -> None:
    """It could be read, but not be written or shown."""
    (tmp_path / "a").write_bytes(text)
    with pytest.raises(ValueError, match="lone surrogate"):
        read_json(tmp_path / "a")
    (tmp_path / "a").write_bytes(rb'["\ud83d\ude00"]')
    assert read_json(tmp_path / "a") == ["\U0001f600"]


def test_an_index_is_not_built_through_links(tmp_path: Path) -> None:
    corpus, mine, out = tmp_path / "corpus.jsonl", tmp_path / "mine.txt", tmp_path / "index"
    corpus.write_text('{"id": "1", "title": "Ada", "text": "Ada wrote."}\n')
    mine.write_text("precious")
    for name in ("polyhop", "polyhop/.lock", "polyhop/unfinished"):
        (out / name).parent.mkdir(parents=True)
        (out / name).symlink_to(mine if "/" in name else tmp_path)
        with pytest.raises(IndexFault, match="is a symbolic link"):
            build_index([corpus], out)
        assert (mine.read_text(), {path.name for path in tmp_path.iterdir()}) == (
            "precious",
            {"corpus.jsonl", "mine.txt", "index"},
        )
        (out / name).unlink()
        (out / "polyhop").rmdir() if "/" in name else None
        out.rmdir()
