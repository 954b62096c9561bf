"""The real `LuceneSearcher` beside polyhop, in one process, with a Java that lacks what Pyserini asks for."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.data.fusion import FusedRetriever
from polyhop.data.lucene.pyserini import passage_of
from polyhop.data.passages import Hit, Passage, Retriever
from polyhop.data.sample import sample_passages
from polyhop.programs.search import Search

from .anserini import anserini_index

COMPLETE = all(find_spec(package) for package in ("torch", "transformers", "PIL"))

SCRIPT = """
import sys
from concurrent.futures import ThreadPoolExecutor
import polyhop
polyhop.start_java()
from pyserini.search.lucene import LuceneSearcher
from polyhop.data.errors import PolyhopError

folder = sys.argv[1]
searcher = LuceneSearcher(folder)
index = polyhop.BM25Index(folder)
for k1, b in ((0.9, 0.4), (25.0, 1.0)):
    searcher.set_bm25(k1, b)
    for query in ("w1 w2 w3", "Where was the owner of Kestrel born?", "w7"):
        theirs, ours = searcher.search(query, 1000), index.with_bm25(k1, b).search(query, 1000)
        assert [hit.docid for hit in theirs] == [hit.passage.id for hit in ours], query
        assert len(ours) > 100 or query.startswith("Where"), len(ours)
        # Anserini rounds to four decimals, less 0.000001 for each hit that ties with the one before.
        assert all(abs(a.score - b.score) < 0.00006 + 1e-6 * len(ours) for a, b in zip(theirs, ours)), query

program = polyhop.Naive(searcher)
for ranked_by in (searcher.unset_rm3, searcher.set_rm3, searcher.set_qld):
    ranked_by()
    theirs, found = searcher.search("w1 w2 w3", 30), program.search("w1 w2 w3", k=20, offset=10)
    assert [(hit.passage.id, hit.score) for hit in found] == [(hit.docid, hit.score) for hit in theirs[10:]]
    assert [hit.passage for hit in found] == index.passages([hit.passage.id for hit in found])
    with ThreadPoolExecutor(4) as pool:
        assert all(hits == found for hits in pool.map(lambda _: program.search("w1 w2 w3", k=20, offset=10), range(20)))

polyhop.adopt_index(folder)
searcher = LuceneSearcher(folder)
own = polyhop.ChainRetriever(polyhop.BM25Index(folder, 0.9, 0.4))
searcher.set_bm25(0.9, 0.4)
assert polyhop.ChainRetriever(searcher).search("w1 w2 w3", 5) == own.search("w1 w2 w3", 5)
searcher.set_qld()
try:
    polyhop.ChainRetriever(searcher)
except PolyhopError as error:
    print(error)
"""


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


@pytest.mark.slow
@pytest.mark.skipif(not COMPLETE, reason="all of Pyserini is not installed: make pyserini")
def test_ids_and_scores_are_pyserinis(tmp_path: Path) -> None:
    many = [Passage.of(f"Title {n}", f"w{n % 7} w{n % 11} w{n % 3} " * (1 + n % 5), id=f"d{n}") for n in range(3000)]
    records = (
        {**passage.to_record(), "contents": f"{passage.title}\n{passage.text}"}
        for passage in (*sample_passages(), *many)
    )
    folder = anserini_index(tmp_path / "ix", records, storeRaw=True, storeDocvectors=True)
    environment = {**os.environ, "OPENAI_API_KEY": "unused"}  # Pyserini wants one at import
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the chain retriever searches with BM25 alone" in done.stdout
