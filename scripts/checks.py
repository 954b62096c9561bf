"""What `polyhop doctor` finds, and what it looks at on the machine: Python, packages, extras, memory and disk.

A check never raises for what it is there to find.
"""

from __future__ import annotations

import os
import shutil
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
    from packaging.requirements import Requirement

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
