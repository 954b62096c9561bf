"""The generated corpus: the same on every machine, as ambiguous as it says, its questions answerable."""

from __future__ import annotations

import re
from collections import Counter
from hashlib import sha256
from itertools import islice

import pytest

from polyhop.data.text import bare_title, split_sentences
from polyhop.scripts.studies.generated import GeneratedCorpus

SIZE = 10_000
_DIGEST = "358b230fbea8"


@pytest.fixture(scope="module")
def corpus() -> GeneratedCorpus:
    return GeneratedCorpus(SIZE)


@pytest.fixture(scope="module")
def records(corpus: GeneratedCorpus) -> list[dict[str, str]]:
    return list(corpus)


def test_the_same_everywhere(corpus: GeneratedCorpus) -> None:
    def digest(made: GeneratedCorpus) -> str:
        return sha256(repr([*islice(made, 100), *made.questions(20)]).encode()).hexdigest()[:12]

    assert digest(corpus) == digest(GeneratedCorpus(SIZE)) == _DIGEST
    assert digest(GeneratedCorpus(SIZE, seed=1)) != digest(corpus)


def test_any_passage_alone(corpus: GeneratedCorpus, records: list[dict[str, str]]) -> None:
    assert [corpus.passage(number) for number in (9_000, 7, 9_000)] == [records[9_000], records[7], records[9_000]]
    assert [record["id"] for record in records] == [f"p{number}" for number in range(SIZE)]


def test_titles_are_ambiguous(records: list[dict[str, str]]) -> None:
    titles = Counter(record["title"] for record in records)
    bare = Counter(bare_title(record["title"]) for record in records)

    def share(count: int) -> float:
        return count / SIZE

    assert 0.2 < share(sum(count for count in titles.values() if count > 1)) < 0.3
    assert 0.33 < share(sum(count for count in bare.values() if count > 1)) < 0.45
    assert 0.1 < share(sum(title.endswith(")") * count for title, count in titles.items())) < 0.15
    one_word = [title for title in titles if " " not in title]
    assert 0.15 < share(sum(titles[title] for title in one_word)) < 0.3
    words = set(re.findall(r"\b[a-z]+\b", " ".join(record["text"] for record in records)))
    assert sum(title.lower() in words for title in one_word) > 200  # a common word may be a title
    last_names = Counter(title.split()[-1] for title in titles if len(title.split()) == 2 and "(" not in title)
    assert last_names.most_common(1)[0][1] > 5


def test_texts_mention_titles(corpus: GeneratedCorpus, records: list[dict[str, str]]) -> None:
    mentioned: Counter[int] = Counter()
    for number, record in enumerate(records):
        others = corpus.mentions(number)
        assert 2 <= len(others) <= 8
        assert number not in others
        assert all(f" {bare_title(records[other]['title'])}" in record["text"] for other in others)
        mentioned.update(set(others))
    most = mentioned.most_common(1)[0]
    assert most[0] == 0
    assert most[1] > SIZE / 15  # the first name stands in very many texts
    assert sum(mentioned[number] <= 5 for number in range(SIZE)) > SIZE / 2  # and most names in few


def test_texts_are_sentences(records: list[dict[str, str]]) -> None:
    for record in records[:500]:
        sentences = split_sentences(record["text"])
        assert 4 <= len(sentences) <= 8
        assert all(sentence[0].isupper() and sentence[-1] == "." for sentence in sentences)
    words = sum(len(record["text"].split()) for record in records) / SIZE
    assert 85 < words < 110


def test_questions_have_answers(corpus: GeneratedCorpus, records: list[dict[str, str]]) -> None:
    by_id = {record["id"]: record for record in records}
    questions = list(corpus.questions(300))
    assert len({question.text for question in questions}) > 290
    for question in questions:
        first, second = (by_id[id] for id in question.gold)
        named = bare_title(first["title"])
        match = re.fullmatch(rf"Which (\w+) did the (\w+) of {re.escape(named)} ([\w ]+)\?", question.text)
        assert match
        mentions = [text for text in split_sentences(first["text"]) if bare_title(second["title"]) in text]
        assert any(match[2] in text.rstrip(".").split() for text in mentions)
        asked = {match[1], *match[3].split()}
        assert any(asked <= set(text.rstrip(".").split()) for text in split_sentences(second["text"]))
        assert first is not second


def test_questions_differ_by_seed(corpus: GeneratedCorpus) -> None:
    assert list(corpus.questions(5)) == list(corpus.questions(5))
    assert list(corpus.questions(5)) != list(corpus.questions(5, seed=1))
