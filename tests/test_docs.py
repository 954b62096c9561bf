"""README and docs: their Python runs as written, their profiles and links are valid, nothing is left to be written."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polyhop.app.named import NamedProgram
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.engines.models import read_profile
from polyhop.eval.metrics import METRICS
from polyhop.programs.candidates import Cited
from polyhop.scripts.options import COMMANDS

from .scripts.cli import done, of_run, written

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the index that the examples use."""
    folder = tmp_path_factory.mktemp("docs")
    notes = folder / "notes"
    notes.mkdir()
    (notes / "ada.md").write_text("# Ada Berg\n\nAda Berg works for Kestrel.")
    (notes / "kestrel.md").write_text("# Kestrel\n\nKestrel was founded by Otto Lind in 2004.")
    build_index([notes], folder / "indexes" / "mine")
    abstracts = [("Ada Berg", ["Ada Berg works for Kestrel."]), ("Kestrel", ["Kestrel was founded by Otto Lind."])]
    lines = [{"title": title, "text": text} for title, text in abstracts]
    build_index([written(folder / "abstracts.jsonl", lines)], folder / "indexes" / "abstracts")
    return folder


@pytest.fixture(scope="module", autouse=True)
def mine(folder: Path) -> Iterator[None]:
    """The module of docs/extending.md, in the current folder of the examples."""
    for page, name in (("extending", "mine"), ("dspy", "hop"), ("hover", "abstracts")):
        (module,) = blocks(ROOT / "docs" / f"{page}.md", "py")
        (folder / f"{name}.py").write_text(module, encoding="utf-8")
    sys.path.insert(0, str(folder))
    known = METRICS.copy()
    yield
    sys.path.remove(str(folder))
    METRICS.clear()
    METRICS.update(known)


def test_the_own_module_works_on_the_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    options = "--dataset sample --limit 3 --program mine:Relay --retriever mine:TitlesFirst --metric mine:answer_words"
    done("evaluate", *options.split(), "--out", "runs/own")
    summary = of_run(folder / "runs" / "own")
    assert summary["metrics"]["answer_words"] > 0
    assert summary["by_agent"].keys() == {"scout", "answerer"}
    asked = ("ask", "Who founded Kestrel?", "--index", "indexes/mine", "--program", "mine:Relay")
    assert "Otto Lind" in done(*asked).stdout
    plain = NamedProgram("hop:Hop").open(BM25Index(Path("indexes/mine")), "mine:TitlesFirst")
    assert plain.retriever("Kestrel", k=1) == ["Kestrel | Kestrel was founded by Otto Lind in 2004."]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    if page.stem == "hover":
        assert names["scores"].score == 100
    if page.stem == "programs":
        assert 0 < names["questions"] < 10
        drafts = [Cited(str(n), question="Who?") for n in range(300)]
        review = names["Erring"]().review
        assert 15 < sum(review.erred("accuracy", each, 0.2) == 1.0 for each in drafts) < 45
        assert 15 < sum(review.erred("credibility", each, 1.0) == 0.0 for each in drafts) < 45
    if page.stem == "README":
        assert names["prediction"].answer == "Otto Lind"
        assert names["own"].answer == "Zavrazhye"


def test_your_own_questions_are_evaluated_as_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    page = ROOT / "docs" / "evaluation.md"
    (folder / "q.jsonl").write_text(blocks(page, "json")[0], encoding="utf-8")
    (command,) = (block for block in blocks(page, "sh") if "--dataset own" in block)
    assert done(*command.split()[1:]).stderr == ""
    means = of_run(folder / "runs" / "a")["metrics"]
    assert [means[name] for name in ("answer_em", "passage_recall@5")] == [1.0, 1.0]


def test_the_profiles_can_be_read(tmp_path: Path) -> None:
    found = blocks(ROOT / "docs" / "models.md", "toml")
    assert found
    for block in found:
        (tmp_path / "models.toml").write_text(block, encoding="utf-8")
        assert read_profile(tmp_path / "models.toml").models


@pytest.mark.parametrize("page", PAGES[:2] + PAGES[3:], ids=lambda page: page.stem)
def test_the_options_of_commands_exist(page: Path) -> None:
    known = {
        model.__name__.lower(): {
            each.json_schema_extra["flag"] or f"--{name.replace('_', '-')}"  # type: ignore[index]
            for name, each in model.model_fields.items()
        }
        for model in COMMANDS
    }
    text = page.read_text("utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"\bpolyhop (\w+)((?: [^|`#\n]*)?)", text):
        if name in known:
            assert set(re.findall(r"(?<![\w-])(?:--[a-z][\w-]*|-k\b)", rest)) <= known[name], (name, rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_nothing_is_left_to_be_written(page: Path) -> None:
    assert not re.findall(r"^[A-Z]{5,}$|TODO|TBD", page.read_text("utf-8"), re.MULTILINE)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 200
