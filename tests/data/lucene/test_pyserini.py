"""The real `LuceneSearcher` beside polyhop, in one process, with a Java that lacks what Pyserini asks for."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.lucene.pyserini import passage_of
from polyhop.data.passages import Passage
from polyhop.data.sample import sample_passages

from .anserini import anserini_index

COMPLETE = all(find_spec(package) for package in ("torch", "transformers", "PIL"))

SCRIPT = """
import sys
import polyhop
polyhop.start_java()
from pyserini.search.lucene import LuceneSearcher

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
"""


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
