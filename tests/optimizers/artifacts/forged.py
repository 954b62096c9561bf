"""Artifacts as somebody may have made them who means harm: with every hash as it should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from polyhop.optimizers.artifacts.files import hash_of

Edit = Callable[[Any], Any]


def forge(path: Path, name: str, edit: Edit) -> None:
    """Change the JSON of a file, in place or for what ``edit`` returns, and set the hashes right."""
    if name != "manifest.json":
        value = json.loads((path / name).read_text())
        changed = edit(value)
        put(path, name, json.dumps(value if changed is None else changed).encode(errors="surrogatepass"))
        return
    manifest = json.loads((path / name).read_text())
    changed = edit(manifest)
    seal(path, manifest if changed is None else changed)


def put(path: Path, name: str, data: bytes) -> None:
    """Write the bytes of a file, and set the hashes right."""
    (path / name).write_bytes(data)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][name] = hash_of(data)
    seal(path, manifest)


def seal(path: Path, manifest: Any) -> None:
    if isinstance(manifest, dict):
        with suppress(UnicodeEncodeError):
            manifest["hash"] = hash_of({name: value for name, value in manifest.items() if name != "hash"})
    (path / "manifest.json").write_text(json.dumps(manifest))
