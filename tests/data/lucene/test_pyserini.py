"""The real `LuceneSearcher` beside polyhop, in one process, with a Java that lacks what Pyserini asks for."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.fusion import FusedRetriever
from polyhop.data.lucene.pyserini import passage_of
from polyhop.data.passages import Hit, Passage, Retriever
from polyhop.programs.search import Search


class LuceneSearcher:
    """What polyhop uses of Pyserini's class: hits by id, in an order and with scores of its own."""

    __module__ = "pyserini.search.lucene._searcher"

    def __init__(self, stored: dict[str, tuple[str | None, str | None]]) -> None:
        self.stored = stored

    def search(self, query: str, k: int = 10) -> list[Any]:
        return [SimpleNamespace(docid=id, score=9.5 - n) for n, id in enumerate(self.stored)][:k]

    def doc(self, docid: str) -> Any:
        raw, contents = self.stored[docid]
        return SimpleNamespace(raw=lambda: raw, contents=lambda: contents)


def test_hits_are_the_searchers_own() -> None:
    searcher: Any = LuceneSearcher(
        {
            "z": ('{"id": "z", "contents": "Rome\\nA city."}', None),
            "a": (None, "Paris\nA capital."),
            "m": ("<DOC>A mill.</DOC>", None),
        }
    )
    search: Any = Search(searcher, k=3)
    hits = [Hit(Passage("z", "Rome", "A city."), 9.5, 1), Hit(Passage("a", "Paris", "A capital."), 8.5, 2)]
    assert search.retriever.search("any", 2) == hits
    assert isinstance(search.retriever, Retriever)
    assert copy.deepcopy(search).retriever.search("any", 1, 2)[0].passage.text == "A mill."
    assert [hit.passage.id for hit in FusedRetriever([searcher]).search("any", 2)] == ["z", "a"]
    assert search.retriever.search("any", 5, 3) == []
    textless: Any = Search(LuceneSearcher({"s": (None, None)}))  # type: ignore[arg-type]
    with pytest.raises(PolyhopError, match="stores no text"):
        textless.retriever.search("any", 1)


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
    sentences = ["A city.", "It is old."]
    assert passage_of("1", record | {"sentences": sentences}).sentences == tuple(sentences)
