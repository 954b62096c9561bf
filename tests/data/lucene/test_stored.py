"""The records of corpora that Anserini indexes, read as passages."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.lucene.stored import passage_of
from polyhop.data.passages import Passage


@pytest.mark.parametrize(
    ("record", "title", "text"),
    [
        ({"contents": "Rome\nA city."}, "Rome", "A city."),
        ({"contents": '"Rome"\nA city.'}, "Rome", "A city."),  # Wikipedia in passages of 100 words
        ({"contents": "Only a text."}, "", "Only a text."),
        ({"contents": "Only a text.\n"}, "", "Only a text."),
        ({"contents": "w " * 200 + "\nThe first line is no title."}, "", "w " * 200 + "\nThe first line is no title."),
        ({"contents": "---\nauthor: Ada\ntitle: Rome: A City\ndate: 2004\n---\nA city."}, "Rome: A City", "A city."),
        ({"_id": "x", "title": "Rome", "text": "A city.", "metadata": {}}, "Rome", "A city."),  # BEIR
        ({"title": "Rome", "text": "A city.", "contents": "Rome\nA city."}, "Rome", "A city."),
        ({"title": "Rome", "contents": "Rome\nA city."}, "Rome", "A city."),
        ({"docid": "x", "title": "Rome", "segment": "A city.", "url": "u"}, "Rome", "A city."),  # MS MARCO v2
        ({"title": None, "body": "A city."}, "", "A city."),
        ({"title": "Rome", "contents": ["a", "list"]}, "Rome", '{"title":"Rome","contents":["a","list"]}'),
    ],
)
def test_records(record: dict[str, Any], title: str, text: str) -> None:
    assert passage_of("1", record) == Passage("1", title, text.strip())


def test_sentences_are_kept() -> None:
    record = {
        "id": "7",
        "title": "Rome",
        "sentences": ["A city.", "It is old."],
        "contents": "Rome\nA city. It is old.",
    }
    assert passage_of("1", record) == Passage.of("Rome", sentences=["A city.", "It is old."], id="1")
