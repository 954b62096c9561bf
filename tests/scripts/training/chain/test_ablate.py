"""What each sign of the chain retriever is worth, on the sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyhop.data.chain import ChainWeights
from polyhop.data.lucene.bm25 import BM25Index
from polyhop.data.lucene.index import build_index
from polyhop.data.sample import CORPUS, load_sample
from polyhop.scripts.studies.ablation import FEATURES, ablate
from polyhop.scripts.training.chain.workers import ALL_GOLD, RECALL, QuestionSet, Workers


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexes") / "sample"
    build_index([CORPUS], folder)
    return folder


@pytest.mark.slow
def test_each_sign_is_left_out_once(index: Path) -> None:
    with Workers([QuestionSet("sample", None, index)], jobs=1, folds=1, limit=None, seed=0) as workers:
        rows = {label: scores["sample"] for label, scores in ablate(workers, ChainWeights(), ["sample"])}
    assert list(rows) == [
        "the BM25 score alone",
        "everything",
        "everything, with round weights",
        *(f"without {sign}" for sign in FEATURES),
    ]
    everything = rows["everything"]
    assert everything[RECALL] > rows["the BM25 score alone"][RECALL] + 0.15
    assert everything[RECALL] > rows["without links, shared names, back-links"][RECALL] + 0.1
    assert everything[RECALL] > rows["without titles in the question"][RECALL]
    assert rows["the BM25 score alone"] == pytest.approx(bm25_alone(index))


def bm25_alone(folder: Path) -> dict[str, float]:
    """From the index itself, which knows nothing of weights."""
    index = BM25Index(folder)
    asked = [question for question in load_sample() if question.gold_passages]
    shares = []
    for question in asked:
        found = {hit.passage.id for hit in index.search(question.question, 5)}
        shares.append(len(found & set(question.gold_passages)) / len(set(question.gold_passages)))
    count = len(shares)
    return {"questions": count, RECALL: sum(shares) / count, ALL_GOLD: sum(share == 1 for share in shares) / count}
