"""The public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import polyhop


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_polyhop_imports_nothing_heavy() -> None:
    heavy = "{'dspy', 'jnius', 'pydantic', 'rich', 'numpy', 'torch'}"
    assert python(f"import sys, polyhop; print(sorted({heavy} & set(sys.modules)))") == "[]"


@pytest.mark.parametrize("name", polyhop.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(polyhop, name) is not None
    assert name in dir(polyhop)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        polyhop.nonsense  # noqa: B018


def test_four_lines_of_python() -> None:
    program = polyhop.Naive(polyhop.PassagePool([polyhop.Passage.of("Paris", "Paris is the capital of France.")]))
    program.set_lm(polyhop.lm())
    prediction = program(question="What is the capital of France?")
    assert prediction.evidence[0].passage.title == "Paris"


def test_the_wheel_has_every_package() -> None:
    root = Path(polyhop.__file__).parent
    with (root / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["setuptools"]["packages"]
    library = ("signatures", "data", "engines", "programs", "eval", "optimizers", "scripts", "serve")
    modules = [*root.glob("*.py"), *(path for folder in library for path in (root / folder).rglob("*.py"))]
    packages = {".".join(("polyhop", *path.parent.relative_to(root).parts)) for path in modules}
    not_in_the_wheel = ("polyhop.scripts.training", "polyhop.scripts.studies")
    assert sorted(listed) == sorted(name for name in packages if not name.startswith(not_in_the_wheel))
