"""The chain retriever on real benchmark questions: what it finds and BM25 does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.passages import Passage, Retriever
from polyhop.eval.gold import gold_of
from polyhop.eval.questions import Questions
from polyhop.eval.scoring import ranking_scores

ASKED = 100  # questions of each benchmark


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "questions", "recall"),
    [
        ("2wiki", "2wiki_open_dev.json.gz", 0.95),
        ("hotpotqa", "hotpotqa_dev_distractor.json.gz", 0.93),
        ("musique", "musique_ans_dev.jsonl.gz", 0.6),
    ],
)
def test_published_recall_without_a_model(
    name: str, questions: str, recall: float, shared_data: Path, tmp_path: Path
) -> None:
    build_index([shared_data / f"{name}_corpus.jsonl.gz"], tmp_path / "index")
    index = BM25Index(tmp_path / "index")
    chain = mean_recall(ChainRetriever(index), index, name, shared_data / questions)
    bm25 = mean_recall(index, index, name, shared_data / questions)
    assert chain >= recall
    assert chain >= bm25 + 0.1


def mean_recall(retriever: Retriever, index: BM25Index, name: str, file: Path) -> float:
    scores = []
    for example in Questions(name, str(file), setting="open", limit=ASKED):
        known: list[Passage] = [passage for fact in example.gold for passage in index.titled(fact.title)]
        ranking = [hit.passage.id for hit in retriever.search(example.question, 5)]
        scores.append(ranking_scores(ranking, gold_of(example, known).passages, (5,))["passage_recall@5"])
    return sum(scores) / len(scores)
