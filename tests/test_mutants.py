"""The list of functions whose changes must be noticed follows the code, and changes are what they say."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
run = runpy.run_path(str(ROOT / "tests" / "mutants" / "run.py"))

SOURCE = """
def worth(values, least=1):
    total = 0
    for value in values:
        if value > least and value != 3:
            total += value
    log(total)
    return max(total, 0)
"""


def test_every_function_and_its_tests_exist() -> None:
    functions = run["functions"]()
    assert len(functions) >= 150
    for function in functions:
        change = next(run["changes"]((ROOT / function.file).read_text("utf-8"), function.name, 0))
        ast.parse(change.source)
        for test in function.tests:
            assert (ROOT / test.split("::")[0]).exists(), test


def test_a_change_is_one_place_of_the_function() -> None:
    made = [change.what for change in run["changes"](SOURCE, "worth")]
    assert "- total += value\n+ pass" in made
    assert "- log(total)\n+ pass" in made
    assert "- return max(total, 0)\n+ return min(total, 0)" in made
    assert "- return max(total, 0)\n+ return max(total, 1)" in made
    assert any("value >= least" in text for text in made)
    assert any("value > least or value != 3" in text for text in made)
    assert any("+ if not (value > least and value != 3):" in text for text in made)
    assert len(set(made)) == len(made) == 10
