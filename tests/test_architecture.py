"""The rules of the house: imports go one way, without cycles, and use no private names of other packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

FLOORS = ("data", "signatures", "engines", "programs", "eval", "optimizers", "app", "serve", "scripts")
"""The folders: each may import itself and those before it."""

SOURCES = sorted(path for folder in FLOORS for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in SOURCES}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """The modules of the package that a file imports, at its top or in a function, but not for types only."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in _executed(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.relative_to(ROOT).parts[: -node.level]
            base = ".".join((*folder, *((node.module,) if node.module else ())))
            for alias in node.names:
                full = f"{base}.{alias.name}".strip(".")
                yield full if full in MODULES else base


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        waiting += ast.iter_child_nodes(node)


def test_imports_go_one_way() -> None:
    wrong = []
    for path in SOURCES:
        below = FLOORS[: FLOORS.index(path.relative_to(ROOT).parts[0]) + 1]
        folders = {module: module.split(".")[0] for module in imports(path)}
        wrong += [
            f"{path.relative_to(ROOT)} imports {module}"
            for module, folder in folders.items()
            if folder in FLOORS and folder not in below
        ]
    assert not wrong, "\n".join(wrong)


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = {name: set(imports(path)) & set(MODULES) - {name} for name, path in MODULES.items()}
    # A package's __init__ gathers its modules, which may import one another, but not the package.
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle
    folders = {
        path.parent: set[Path]() for path in SOURCES if path.parent.parent != ROOT
    }  # data/chain, eval/report, ...
    for path in SOURCES:
        imported = {MODULES[name].parent for name in imports(path) if name in MODULES}
        folders.get(path.parent, set()).update(folder for folder in imported if folder in folders)
    TopologicalSorter({folder: others - {folder} for folder, others in folders.items()}).prepare()


def test_no_private_name_of_a_dependency_is_imported() -> None:
    """Ruff's SLF001 finds private attributes."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and not node.level
        for part in (*(node.module or "").split("."), *(alias.name for alias in node.names))
        if part.startswith("_") and not part.startswith("__")
    ]
    assert not wrong, "\n".join(wrong)


PRONOUNS = frozenset("each found known told given said own".split())


def test_values_are_named_by_nouns() -> None:
    """A name that could be that of anything says nothing: of all names that are bound, at most one in a hundred is such
    a word. Some are fields of records and prompts that others read."""
    bound = [(path, name, node.lineno) for path in SOURCES for name, node in _bound(tree_of(path))]
    vague = [f"{path.relative_to(ROOT)}:{line} {name}" for path, name, line in bound if name.strip("_") in PRONOUNS]
    assert len(vague) <= len(bound) / 100, "\n".join(vague)


def _bound(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
