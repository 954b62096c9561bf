"""Do the tests notice? Plant each fault of the lists beside this file in a copy of the checkout, and run its tests.

    python tests/mutants/run.py [FOLDER ...]      # `make mutants` runs all lists

A fault is caught if a test fails, or hangs for ten minutes. An error of collection does not count. The tests pass
without the fault first: otherwise everything would look caught. The exit status is 1 if a fault was missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
LISTS = Path(__file__).parent
SECONDS = 600
PASSED, FAILED = 0, 1
"""Exit statuses of pytest."""


@dataclass(frozen=True)
class Fault:
    """One change of one place: `old`, which occurs once in `file`, becomes `new`; one of `tests` must fail."""

    file: str
    old: str
    new: str
    tests: list[str]
    why: str

    def planted(self, source: str) -> str:
        if source.count(self.old) != 1:
            raise ValueError(f"{self.file}: occurs {source.count(self.old)} times, not once: {self.old!r}")
        return source.replace(self.old, self.new)


def faults(*folders: str) -> list[Fault]:
    """The faults of some lists, or of all."""
    lists = [LISTS / f"{name}.toml" for name in folders] or sorted(LISTS.glob("*.toml"))
    return [Fault(**fault) for path in lists for fault in tomllib.loads(path.read_text("utf-8"))["fault"]]


def copied(folder: Path) -> Path:
    """A copy of the checkout without what git ignores; `folder/src` has it as the package `polyhop`."""
    copy = folder / "polyhop"
    listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    (folder / "src").mkdir()
    (folder / "src" / "polyhop").symlink_to(copy)
    if (ROOT.parent / "shared").exists():
        (folder / "shared").symlink_to(ROOT.parent / "shared")
    return copy


def tested(copy: Path, tests: Sequence[str], seconds: int | None) -> int | None:
    """Pytest's exit status; nothing if it took too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "slow or not slow", "-p", "no:cacheprovider", *tests]
    # Otherwise a fault of the same size, planted in the same second, could run what was compiled before.
    settings = {"PYTHONPATH": str(copy.parent / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            command, cwd=copy, env=os.environ | settings, capture_output=True, timeout=seconds, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def caught(copy: Path, fault: Fault) -> bool:
    path = copy / fault.file
    source = path.read_text("utf-8")
    path.write_text(fault.planted(source), "utf-8")
    try:
        return tested(copy, fault.tests, SECONDS) in (FAILED, None)
    finally:
        path.write_text(source, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", help="lists to run, such as eval; all without any")
    planned = faults(*parser.parse_args().folders)
    copies: SimpleQueue[Path] = SimpleQueue()

    def check(fault: Fault) -> bool:
        copy = copies.get()
        try:
            found = caught(copy, fault)
        finally:
            copies.put(copy)
        print(f"{'caught' if found else 'MISSED'}  {fault.file}: {fault.why}", flush=True)
        return found

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as workers:
        for number in range(2):
            copies.put(copied(Path(name) / str(number)))
        first = Path(name) / "0" / "polyhop"
        if tested(first, sorted({test for fault in planned for test in fault.tests}), None) != PASSED:
            raise SystemExit("the tests fail without any fault: repair them first")
        missed = list(workers.map(check, planned)).count(False)
    print(f"{len(planned) - missed} of {len(planned)} faults caught")
    raise SystemExit(missed > 0)


if __name__ == "__main__":
    main()
