"""The public names, and what importing them costs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import polyhop

ROOT = Path(polyhop.__file__).parent
CACHE = os.environ.get("UV_CACHE_DIR", str(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "uv")))
"""Where uv kept what it installed; tests have another home."""


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
    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["setuptools"]["packages"]
    library = ("signatures", "data", "engines", "programs", "eval", "optimizers", "app", "scripts", "serve")
    modules = [*ROOT.glob("*.py"), *(path for folder in library for path in (ROOT / folder).rglob("*.py"))]
    packages = {".".join(("polyhop", *path.parent.relative_to(ROOT).parts)) for path in modules}
    assert sorted(listed) == sorted(packages)


def test_there_is_one_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    latest = next(line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## "))
    assert latest.split()[1] == version
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


@pytest.mark.slow
def test_a_wheel_installs_and_answers_in_an_empty_environment(tmp_path: Path) -> None:
    """Without a network: from what `make` downloaded."""
    source, bin = tmp_path / "source", tmp_path / "env" / "bin"
    left = shutil.ignore_patterns(
        ".git", ".venv", "build", "dist", "runs", "indexes", "tests", "docs", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=left)

    def uv(*arguments: object) -> None:
        command = [str(Path(sys.executable).with_name("uv")), *map(str, arguments), "--offline", "--cache-dir", CACHE]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        if "network was disabled" in done.stderr or "was not found in the cache" in done.stderr:
            pytest.skip("uv has not kept what it installed")
        assert not done.returncode, done.stderr

    uv("build", "--wheel", "--out-dir", tmp_path, source)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as held:
        names = {name.removeprefix("polyhop/") for name in held.namelist() if name.startswith("polyhop/")}
    with (ROOT / "pyproject.toml").open("rb") as file:
        packages = [
            name.partition(".")[2].replace(".", "/") for name in tomllib.load(file)["tool"]["setuptools"]["packages"]
        ]
    files = {f"{each}/" if each else "": (source / each).iterdir() for each in packages}
    wanted = {f"{folder}{path.name}" for folder, paths in files.items() for path in paths if folder and path.is_file()}
    data = {
        f"{path.relative_to(source)}"
        for name in ("eval/report/assets", "eval/report/templates", "optimizers/templates", "serve/page")
        for path in (source / name).iterdir()
    }
    assert names == wanted | data | {"__init__.py", "py.typed"}

    uv("venv", bin.parent)
    leave_out = ("--overrides", ROOT / "overrides.txt", "--constraint", ROOT / "constraints.txt")
    uv("pip", "install", "--python", bin / "python", *leave_out, wheel)
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "mill.md").write_text("# Tarn Mill\n\nTarn Mill was bought by Ida Lund in 1911.\n")
    (documents / "lund.html").write_text("<h1>Ida Lund</h1><p>Ida Lund was a weaver who was born in Brevik.</p>")

    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([bin / "polyhop", *arguments], capture_output=True, text=True, cwd=documents, env=alone)

    indexed, asked = run("index"), run("ask", "Where was the buyer of Tarn Mill born?", "--json")
    assert (indexed.returncode, asked.returncode) == (0, 0), indexed.stderr + asked.stderr
    assert json.loads(asked.stdout)["answer"] == "Brevik"
    assert "pip install 'fastapi" in run("serve").stderr
    assert run("doctor").returncode == 0
