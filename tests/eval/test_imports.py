"""Metrics are cheap to import: a program that scores one answer waits for no library."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "scipy", "dspy", "ir_measures")


@pytest.mark.parametrize("module", ["metrics", "retrieval", "trec", "official.hotpotqa", "official.multihop_rag"])
def test_nothing_heavy_comes_along(module: str) -> None:
    code = f"import sys, polyhop.eval.{module}; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
