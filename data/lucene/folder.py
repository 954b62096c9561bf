"""The folder of an index while it is written: locked, and replaced when the new state is complete."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from ..errors import IndexFault, PolyhopError
from ..files import check_unlinked
from .jvm import java_exception, reason
from .layout import LOCK, LUCENE, MANIFEST, PROBLEMS, VECTORS, IndexManifest


@contextmanager
def building(out: Path) -> Iterator[Path]:
    """A new folder in ``out``; it replaces the current one, or is removed after an error."""
    _refuse_foreign(out)
    created = [folder for folder in (out, *out.parents) if not folder.exists()]
    out.mkdir(parents=True, exist_ok=True)
    folder = out / f"{LUCENE}{uuid4().hex[:12]}"
    with locked(out):
        try:
            _clear(out, keep=_current(out))
            folder.mkdir()
            yield folder
            _clear(out, keep=folder.name)
        except BaseException:
            _clear(out, keep=_current(out))
            if created:
                (out / LOCK).unlink(missing_ok=True)
                for path in created:
                    path.rmdir()
            raise


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the write lock of an index."""
    lock = FileLock(out / LOCK)
    try:
        check_unlinked(out)
        lock.acquire(timeout=0)
    except ValueError as error:
        raise IndexFault(f"{error}.") from None
    except Timeout:
        raise IndexFault(f"Another build is writing to {out}. Wait for it, or build into another folder.") from None
    except OSError as error:
        raise IndexFault(f"The index {out} could not be written: {error}.") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def write_faults(out: Path) -> Iterator[None]:
    """Convert errors of the disk and of Lucene to an `IndexFault` that names the index."""
    try:
        yield
    except PolyhopError:
        raise
    except (OSError, sqlite3.Error) as error:
        raise IndexFault(f"The index {out} could not be written: {error}.") from error
    except java_exception() as error:
        raise IndexFault(f"The index {out} could not be written: {reason(error)}.") from error


def _refuse_foreign(out: Path) -> None:
    """Never write into a folder with other files."""
    if not out.exists():
        return
    if not out.is_dir():
        raise IndexFault(f"{out} is a file. Name a folder for the index.")
    names = [path.name for path in out.iterdir()]
    ours = (MANIFEST, PROBLEMS, LOCK)
    foreign = sorted(name for name in names if not name.startswith((LUCENE, *ours)) and not VECTORS.fullmatch(name))
    if not foreign and (MANIFEST not in names or any(name.startswith(LUCENE) for name in names)):
        return
    if _current(out) is None:
        found = ", ".join((foreign or names)[:3])
        raise IndexFault(f"{out} has other files ({found}). Name a new or empty folder for the index.")


def _current(out: Path) -> str | None:
    try:
        return IndexManifest.read(out).lucene_folder
    except IndexFault:
        return None


def _clear(out: Path, keep: str | None) -> None:
    """Remove every state but one, vectors of others, and leftovers of killed builds.

    What Windows refuses to remove while it is in use goes with the next build.
    """
    for path in list(out.glob(f"{LUCENE}*")):
        if path.name == keep:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    for path in list(out.iterdir()):
        if (vectors := VECTORS.fullmatch(path.name)) and f"{LUCENE}{vectors['build']}" != keep:
            with suppress(OSError):
                path.unlink()
