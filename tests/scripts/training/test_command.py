"""What the training commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyhop.scripts.training.command import QuestionFile


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2wiki:dev.json:indexes/2wiki:0.5", QuestionFile("2wiki", Path("dev.json"), Path("indexes/2wiki"), 0.5)),
        ("hotpotqa:a/dev.json.gz", QuestionFile("hotpotqa", Path("a/dev.json.gz"))),
        ("musique:dev.jsonl::2", QuestionFile("musique", Path("dev.jsonl"), None, 2.0)),
        ("sample:", QuestionFile("sample", None)),
    ],
)
def test_an_option_names_questions(text: str, expected: QuestionFile) -> None:
    assert QuestionFile.parse(text) == expected
    assert expected.name in ("dev", "sample")
