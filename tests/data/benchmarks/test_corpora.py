"""Corpora of benchmarks: each passage once, with the id that it has among a question's contexts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyhop.data.benchmarks import load_questions
from polyhop.data.documents.corpus import Corpus
from polyhop.data.errors import Problem
from polyhop.data.passages import Passage

from ..reading import placed
from . import records as r

WITH_CONTEXTS = ["hotpotqa", "2wiki", "musique", "squad", "own"]


def passages(path: Path, **options: Any) -> list[Passage]:
    return [passage for passage, _ in placed(Corpus([path], max_words=0, **options))]


@pytest.mark.parametrize("dataset", WITH_CONTEXTS)
def test_questions_pool_their_contexts(dataset: str, tmp_path: Path) -> None:
    record = r.FIRST_RECORDS[dataset]
    again = record if dataset == "squad" else {**record, "id": "2hop__other", "_id": "other"}
    path = r.write(tmp_path / "dev.jsonl.gz", r.lines([record, again]))
    questions = list(load_questions(dataset, path))
    pooled = passages(path)
    assert len({passage.id for passage in pooled}) == len(pooled) == 3
    assert {passage.id for question in questions for passage in question.pool} == {passage.id for passage in pooled}
    for question in questions:
        assert all(any(fact.matches(passage) for passage in pooled) for fact in question.gold)


def test_hipporag(tmp_path: Path) -> None:
    rows = [
        {"title": "Tarn", "text": "The Orm flows through Tarn.", "idx": 0},
        {"title": "Tarn", "text": "Tarn is a novel.", "idx": 1},
        {"title": "Void", "idx": 2},
    ]
    path = r.write(tmp_path / "corpus.json", json.dumps(rows))
    problems: list[Problem] = []
    read = passages(path, on_problem=problems.append)
    (question,) = load_questions("musique", r.write(tmp_path / "dev.jsonl", r.lines([r.MUSIQUE])))
    assert [passage.id for passage in read] == [question.pool[2].id, question.pool[0].id]
    assert [problem.where for problem in problems] == ["corpus.json:record 3"]


def test_multihoprag_articles(tmp_path: Path) -> None:
    """They are passages, however long; articles of others are split."""
    others = {"title": "Tin rises", "url": "u", "body": "Tin rose by\n2%. " * 200}
    given = {**others, "author": None, "source": "s", "category": "c", "published_at": "2023-01-02"}
    ((article, _),) = placed(Corpus([r.write(tmp_path / "corpus.json", json.dumps([given]))]))
    assert len(list(placed(Corpus([r.write(tmp_path / "others.json", json.dumps([others]))])))) > 1
    (question,) = load_questions("multihoprag", r.write(tmp_path / "q.json", json.dumps([r.MULTIHOPRAG])))
    assert [fact.matches(article) for fact in question.gold] == [True, False]
