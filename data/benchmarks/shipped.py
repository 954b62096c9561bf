"""The sample that ships with polyhop, in the shape of the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ..errors import DatasetError
from ..sample import Split, load_sample, sample_passages
from .question import GoldFact, Question


def sample_questions(split: str | None) -> Iterator[Question]:
    """The questions of a split (train, dev, test), or all of them.

    Raises:
        DatasetError: there is no such split; at once.
    """
    try:
        examples = load_sample(cast(Split, split))
    except ValueError as error:
        raise DatasetError(f"{error}.") from error
    titles = {passage.id: passage.title for passage in sample_passages()}
    return (
        Question(
            id=example.id,
            question=example.question,
            answers=example.answers,
            gold=tuple(
                GoldFact(titles[fact.passage_id], fact.sentence, fact.passage_id) for fact in example.gold_facts
            ),
            hops=example.hops,
            kind=example.kind,
            answerable=example.kind != "unanswerable",
            sub_questions=example.sub_questions,
        )
        for example in examples
    )
