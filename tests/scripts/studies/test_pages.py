"""Questions about named pages, made from an index."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.scripts.studies.pages import main, questions


@pytest.fixture
def index(tmp_path: Path) -> BM25Index:
    docs, dice = tmp_path / "docs", Random(0)
    docs.mkdir()
    for name in ("Kiln", "Loom", "Mill"):
        text = ""
        for part in range(40):
            words = " ".join("".join(dice.choices("abcdefghij", k=6)) for _ in range(9))
            text += f"{f'## Part {part}' * (part % 10 == 0)}\n\nThe keeper says {words} at night.\n\n"
        (docs / f"{name}.md").write_text(f"# {name}\n\n{text}")
    build_index([docs], tmp_path / "index")
    return BM25Index(tmp_path / "index")


def test_each_question_has_the_title_and_words_of_a_later_passage(
    index: BM25Index, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = list(questions(index, 9))
    assert asked
    for question, id in asked:
        passage = index.passage(id)
        words = question.removeprefix("What is the ").partition(" in ")[0].split()
        assert question.endswith(f" in {passage.title}?")
        assert words
        assert all(word in passage.text for word in words)
    main([str(index.path)])
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == ["bm25", "chain"]
