"""The generated folder of documents, and a small run of its study."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyhop.data.corpora import Corpus
from polyhop.data.errors import Problem
from polyhop.scripts.studies.folder.study import app
from polyhop.scripts.studies.folder.world import write_world


def test_every_document_is_read_and_states_its_facts(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    questions = write_world(folder, 24, 10, seed=1)
    problems: list[Problem] = []
    documents = {passage.id: passage for passage, _ in Corpus([folder], max_words=0, on_problem=problems.append)}
    assert (len(documents), problems) == (24, [])
    assert {path.suffix for path in folder.iterdir()} == {".pdf", ".html", ".md", ".docx"}
    for question in questions:
        gold = [documents[f"archive/{name}"] for name in question["gold"]]  # type: ignore[attr-defined]
        assert gold[0].title in str(question["question"])
        assert gold[1].title in gold[0].text
        assert str(question["answer"]) in gold[1].text
        assert not any(word in page.text for page in gold for word in ("Regional archive", "Page 1", "source:"))
    assert write_world(folder, 24, 10, seed=1) == questions


@pytest.mark.slow
def test_the_table() -> None:
    result = CliRunner().invoke(app, ["--documents", "8", "--questions", "2", "--program", "naive"])
    assert result.exit_code == 0, result.output
    assert "8 documents" in result.output
    rows = [[cell.strip() for cell in line.split("|")] for line in result.output.splitlines()[-2:]]
    assert [row[1] for row in rows] == ["whole", "in passages"]
    for row in rows:  # naive makes one call a question
        assert float(row[8].replace(",", "")) <= float(row[-2].replace(",", "")) < 8_000
