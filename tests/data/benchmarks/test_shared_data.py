"""The real files: every record is read, and every gold passage is found where it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polyhop.data.benchmarks import load_questions
from polyhop.data.documents.corpus import Corpus
from polyhop.data.errors import Problem

from ..reading import placed

FILES = {
    "2wiki_open_dev.json.gz": ("2wiki", 509),
    "2wiki_train.json.gz": ("2wiki", 500),
    "2wiki_dev_with_context.json.gz": ("2wiki", 331),
    "hotpotqa_dev_distractor.json.gz": ("hotpotqa", 586),
    "hotpotqa_train.json.gz": ("hotpotqa", 100),
    "musique_ans_dev.jsonl.gz": ("musique", 155),
    "musique_ans_train.jsonl.gz": ("musique", 100),
    "nq_open_dev_sample.jsonl.gz": ("nq", 301),
    "triviaqa_sample.jsonl.gz": ("triviaqa", 250),
    "multihoprag_sample.json.gz": ("multihoprag", 238),
    "hover_dev_sample.json.gz": ("hover", 300),
    "frames_sample.json.gz": ("frames", 200),
    "bamboogle.json.gz": ("bamboogle", 125),
    "popqa_sample.json.gz": ("popqa", 250),
}
CORPORA = {
    "2wiki_open_dev.json.gz": "2wiki_corpus.jsonl.gz",
    "hotpotqa_dev_distractor.json.gz": "hotpotqa_corpus.jsonl.gz",
    "musique_ans_dev.jsonl.gz": "musique_corpus.jsonl.gz",
}


def load(folder: Path, name: str) -> list[Any]:
    problems: list[Problem] = []
    questions = list(load_questions(FILES[name][0], folder / name, on_problem=problems.append))
    assert not problems
    return questions


@pytest.mark.parametrize("name", FILES)
def test_every_record_is_read_and_gold_stands_in_its_pool(name: str, shared_data: Path) -> None:
    questions = load(shared_data, name)
    assert len(questions) == FILES[name][1]
    for question in questions:
        assert question.answers
        assert question.hops != 0
        for fact in question.gold if question.pool is not None else ():
            assert next(passage.id for passage in question.pool if fact.matches(passage)) == fact.passage_id


@pytest.mark.parametrize("name", CORPORA)
def test_gold_and_contexts_stand_in_the_corpus(name: str, shared_data: Path) -> None:
    corpus = {passage.id: passage for passage, _ in placed(Corpus([shared_data / CORPORA[name]]))}
    titles = {passage.title: passage for passage in corpus.values()}
    for question in load(shared_data, name):
        for fact in question.gold:
            assert fact.matches(corpus[fact.passage_id] if fact.passage_id else titles[fact.title])
        assert all(passage.id in corpus for passage in question.pool or ())
