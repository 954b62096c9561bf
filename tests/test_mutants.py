"""The lists of planted faults follow the code: each names a place that exists once, and tests that exist."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
faults = runpy.run_path(str(ROOT / "tests" / "mutants" / "run.py"))["faults"]


def test_every_fault_can_be_planted() -> None:
    for fault in faults():
        ast.parse(fault.planted((ROOT / fault.file).read_text("utf-8")))
        for test in fault.tests:
            assert (ROOT / test.split("::")[0]).exists(), test
