"""The generated corpus: the same on every machine, as ambiguous as it says, its questions answerable."""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import islice

import pytest

from polyhop.bench.generated import GeneratedCorpus
from polyhop.data.text import bare_title, split_sentences

SIZE = 3_000
_DIGEST = "b99553e1aeb7"


@pytest.fixture(scope="module")
def corpus() -> GeneratedCorpus:
    return GeneratedCorpus(SIZE)


@pytest.fixture(scope="module")
def records(corpus: GeneratedCorpus) -> list[dict[str, str]]:
    return list(corpus)


def test_the_same_everywhere(corpus: GeneratedCorpus) -> None:
    def digest(made: GeneratedCorpus) -> str:
        return sha256(repr([*islice(made, 100), *made.questions(20)]).encode()).hexdigest()[:12]

    assert digest(corpus) == _DIGEST
    assert digest(GeneratedCorpus(300)) != digest(GeneratedCorpus(300, seed=1))


def test_questions_have_answers(corpus: GeneratedCorpus, records: list[dict[str, str]]) -> None:
    by_id = {record["id"]: record for record in records}
    questions = list(corpus.questions(300))
    assert len({question["text"] for question in questions}) > 290
    for question in questions:
        first, second = (by_id[id] for id in question["gold"])
        named = bare_title(first["title"])
        match = re.fullmatch(rf"Which (\w+) did the (\w+) of {re.escape(named)} ([\w ]+)\?", question["text"])
        assert match
        mentions = [text for text in split_sentences(first["text"]) if bare_title(second["title"]) in text]
        assert any(match[2] in text.rstrip(".").split() for text in mentions)
        asked = {match[1], *match[3].split()}
        assert any(asked <= set(text.rstrip(".").split()) for text in split_sentences(second["text"]))
        assert first is not second
