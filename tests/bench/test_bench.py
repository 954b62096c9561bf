"""What measures and trains: small runs of each script."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from polyhop.bench import ablation, benchmark, pages
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index


def test_questions_about_pages_have_the_title_and_words_of_a_later_passage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, dice = tmp_path / "docs", Random(0)
    folder.mkdir()
    for name in ("Kiln", "Loom", "Mill"):
        text = ""
        for part in range(40):
            words = " ".join("".join(dice.choices("abcdefghij", k=6)) for _ in range(9))
            text += f"{f'## Part {part}' * (part % 10 == 0)}\n\nThe keeper says {words} at night.\n\n"
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}")
    build_index([folder], tmp_path / "index")
    index = BM25Index(tmp_path / "index")
    asked = list(pages.questions(index, 9))
    assert asked
    for question, id in asked:
        passage = index.passage(id)
        words = question.removeprefix("What is the ").partition(" in ")[0]
        assert question.endswith(f" in {passage.title}?")
        assert words
        assert all(word in passage.text for word in words.split())
    pages.main([str(index.path)])
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == ["bm25", "chain"]


@pytest.mark.slow
def test_the_benchmark_of_retrieval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(
        ["--passages", "300", "100", "--questions", "10", "--out", str(tmp_path), "--systems", "bm25", "chain"]
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["100 bm25", "100 chain", "300 bm25", "300 chain"]
    for line in lines:
        assert float(line.partition("all gold@5 ")[2].split()[0]) > 0.5  # real work was measured


@pytest.mark.slow
def test_the_ablation(capsys: pytest.CaptureFixture[str]) -> None:
    ablation.main(["sample", "--limit", "8"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 3 + len(ablation.FEATURES)
    assert lines[3].startswith("| everything | ")
