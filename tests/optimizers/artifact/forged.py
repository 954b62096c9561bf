"""Artifacts that an attacker may have made: with valid hashes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from polyhop.optimizers.artifact_format import hash_of

Edit = Callable[[Any], Any]


def forge(path: Path, name: str, edit: Edit) -> None:
    """Change the JSON of a file, in place or to what ``edit`` returns, and update the hashes."""
    value = json.loads((path / name).read_text())
    changed = edit(value)
    value = value if changed is None else changed
    if name == "manifest.json":
        seal(path, value)
    else:
        put(path, name, json.dumps(value).encode(errors="surrogatepass"))


def put(path: Path, name: str, data: bytes) -> None:
    """Write a file, and update the hashes."""
    (path / name).write_bytes(data)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][name] = hash_of(data)
    seal(path, manifest)


def seal(path: Path, manifest: Any) -> None:
    if isinstance(manifest, dict):
        with suppress(UnicodeEncodeError):
            manifest["hash"] = hash_of({name: value for name, value in manifest.items() if name != "hash"})
    (path / "manifest.json").write_text(json.dumps(manifest))
