"""Do the tests notice? Change a function in a copy of the checkout, and run the tests of its file.

    python tests/mutants/run.py [--seed N] [TEXT ...]      # `make mutants` runs all functions of functions.toml

Each function gets one change, drawn by the seed from all that `changes` knows: a condition is turned around, a number
is one more, "and" becomes "or", a statement is left out. Changes are drawn, not chosen, so that the share that is
noticed says what the tests would notice of an error that nobody has thought of. A change is noticed if a test fails, or
hangs for ten minutes; an error of collection does not count. The tests pass without any change first: otherwise
everything would look noticed. TEXT limits the functions to those with it in their names. The exit status is 1 if
fewer than 95% were noticed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
SECONDS = 600
PASSED, FAILED = 0, 1
"""Exit statuses of pytest."""

ENOUGH = 0.95

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef

_OTHER: dict[type, type] = {
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "True": "False", "False": "True"}


@dataclass(frozen=True)
class Function:
    """A function of the package, as ``Class.method`` in a file, and the tests that must notice a change of it."""

    file: str
    name: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


@dataclass(frozen=True)
class Change:
    """A file with one change, and what it is in words."""

    source: str
    what: str


def functions(*texts: str) -> list[Function]:
    """The functions of the list, or those with one of some texts in their names."""
    files = tomllib.loads((Path(__file__).parent / "functions.toml").read_text("utf-8"))
    listed = [
        Function(file, name, tuple(entry["tests"])) for file, entry in files.items() for name in entry["functions"]
    ]
    return [function for function in listed if not texts or any(text in str(function) for text in texts)]


def definition(tree: ast.Module, name: str) -> AnyFunction:
    """The definition of a function; of several with the same name, as of a property, the last.

    Raises:
        LookupError: there is none.
    """
    scope: ast.Module | ast.ClassDef | AnyFunction = tree
    for part in name.split("."):
        inner = [node for node in ast.walk(scope) if isinstance(node, ast.ClassDef | AnyFunction)]
        named = [node for node in inner if node is not scope and node.name == part]
        if not named:
            raise LookupError(name)
        scope = named[-1]
    assert isinstance(scope, AnyFunction)
    return scope


def changes(source: str, name: str, seed: object = None) -> Iterator[Change]:
    """What can be changed in a function, each alone; with a seed in a random order."""
    tree = ast.parse(source)
    before = ast.unparse(definition(tree, name)).splitlines()
    order = list(range(len(list(_places(definition(tree, name))))))
    if seed is not None:
        random.Random(f"{seed} {name}").shuffle(order)
    for n in order:
        changed = copy.deepcopy(tree)
        function = definition(changed, name)
        _apply(list(_places(function))[n])
        after = ast.unparse(function).splitlines()
        lines = [f"- {line.strip()}" for line in before if line not in after]
        lines += [f"+ {line.strip()}" for line in after if line not in before]
        if lines:
            yield Change(ast.unparse(changed) + "\n", "\n".join(lines))


def _places(function: AnyFunction) -> Iterator[tuple[ast.AST, str, int]]:
    """The nodes of the body that can be changed, with the field and the index that the change is in."""
    for node in (function, *(inner for statement in function.body for inner in ast.walk(statement))):
        match node:
            case ast.Compare():
                yield from ((node, "ops", n) for n, sign in enumerate(node.ops) if type(sign) in _OTHER)
            case ast.BoolOp() | ast.BinOp() if type(node.op) in _OTHER and not _is_type(node):
                yield node, "op", 0
            case ast.If() | ast.IfExp() | ast.While():
                yield node, "test", 0
            case ast.Constant() if type(node.value) in (int, float, bool):
                yield node, "value", 0
            case ast.Name() if node.id in _NAMES and isinstance(node.ctx, ast.Load):
                yield node, "id", 0
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                yield from (
                    (node, field, n)
                    for n, statement in enumerate(statements)
                    if isinstance(statement, ast.AugAssign | ast.Raise | ast.Continue | ast.Break)
                    or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))
                )


def _is_type(node: ast.BoolOp | ast.BinOp) -> bool:
    """Whether ``|`` may stand between types: `isinstance(x, int | str)`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)


def _apply(place: tuple[ast.AST, str, int]) -> None:
    node, field, n = place
    value = getattr(node, field)
    if field in ("body", "orelse", "finalbody"):
        value[n] = ast.copy_location(ast.Pass(), value[n])
    elif field == "ops":
        value[n] = _OTHER[type(value[n])]()
    elif field == "op":
        setattr(node, field, _OTHER[type(value)]())
    elif field == "test":
        setattr(node, field, ast.UnaryOp(ast.Not(), copy.copy(value)))
    elif field == "id":
        setattr(node, field, _NAMES[value])
    else:
        setattr(node, field, not value if isinstance(value, bool) else value + 1)


def copied(folder: Path) -> Path:
    """A copy of the checkout without what git ignores; `folder/src` has it as the package `polyhop`."""
    checkout = folder / "polyhop"
    listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
    (folder / "src").mkdir()
    (folder / "src" / "polyhop").symlink_to(checkout)
    if (ROOT.parent / "shared").exists():
        (folder / "shared").symlink_to(ROOT.parent / "shared")
    return checkout


def tested(checkout: Path, tests: Sequence[str], seconds: int | None) -> int | None:
    """Pytest's exit status; nothing if it took too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "slow or not slow", "-p", "no:cacheprovider", *tests]
    # Otherwise a change of the same size, made in the same second, could run what was compiled before.
    settings = {"PYTHONPATH": str(checkout.parent / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            command, cwd=checkout, env=os.environ | settings, capture_output=True, timeout=seconds, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def noticed(checkout: Path, function: Function, change: Change) -> bool:
    path = checkout / function.file
    source = path.read_text("utf-8")
    path.write_text(change.source, "utf-8")
    try:
        return tested(checkout, function.tests, SECONDS) in (FAILED, None)
    finally:
        path.write_text(source, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="functions with this in FILE:NAME; all without any")
    parser.add_argument("--seed", type=int, default=0, help="draws other changes")
    options = parser.parse_args()
    chosen = functions(*options.texts)
    checkouts: SimpleQueue[Path] = SimpleQueue()

    def check(function: Function) -> bool:
        change = next(changes((ROOT / function.file).read_text("utf-8"), function.name, options.seed))
        checkout = checkouts.get()
        try:
            is_noticed = noticed(checkout, function, change)
        finally:
            checkouts.put(checkout)
        print("noticed " if is_noticed else "MISSED  ", f"{function}\n{change.what}", flush=True)
        return is_noticed

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as workers:
        for number in range(2):
            checkouts.put(copied(Path(name) / str(number)))
        first = Path(name) / "0" / "polyhop"
        if tested(first, sorted({test for function in chosen for test in function.tests}), None) != PASSED:
            raise SystemExit("the tests fail without any change: repair them first")
        count = list(workers.map(check, chosen)).count(True)
    print(f"{count} of {len(chosen)} changes noticed")
    raise SystemExit(count < ENOUGH * len(chosen))


if __name__ == "__main__":
    main()
