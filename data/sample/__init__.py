"""The sample that ships with polyhop: about 350 passages of real-world facts and 165 questions.

`questions.jsonl` has questions of 1 to 4 hops with answers, gold sentences and sub-questions; some have no answer in
the corpus.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from ..errors import DataError
from ..passages import Fact, Passage

if TYPE_CHECKING:
    import dspy

CORPUS = Path(__file__).with_name("passages.jsonl")
"""The corpus, for `polyhop index`."""
REPLIES = CORPUS.with_name("replies.jsonl")
"""A real model's replies to the questions of `polyhop demo`; the first line names it."""

Split = Literal["train", "dev", "test", "unanswerable"]


class SubQuestion(NamedTuple):
    """One hop. "#1" in ``question`` is the first sub-question's answer; ``passage_id`` is None if no passage has it."""

    question: str
    answer: str
    passage_id: str | None


@cache
def sample_passages() -> tuple[Passage, ...]:
    """The corpus in memory."""
    return tuple(Passage.from_record(record) for record in _records(CORPUS))


def load_sample(split: Split | None = None) -> list[dspy.Example]:
    """The questions of one split, or of train, dev and test, as DSPy examples whose input is ``question``.

    The split "unanswerable" has 30 questions whose answer the corpus does not have, and 30 with a false premise.

    Fields: ``id``, ``question``, ``answers`` (the first is the main one; ``("unknown",)`` if the corpus has none),
    ``gold_passages`` (ids), ``gold_facts`` (`Fact`), ``hops``, ``kind`` (single, bridge, composition, comparison,
    yes_no, unanswerable, false_premise), ``sub_questions`` (`SubQuestion`), ``split``.

    Raises:
        DataError: there is no such split.
    """
    if split not in (None, *get_args(Split)):
        raise DataError(f"The sample has the splits {', '.join(get_args(Split))}, not {split!r}.")
    file = "unanswerable.jsonl" if split == "unanswerable" else "questions.jsonl"
    return [_example(record) for record in _records(CORPUS.with_name(file)) if split in (None, record["split"])]


def _example(record: dict[str, Any]) -> dspy.Example:
    import dspy

    facts = tuple(Fact(passage, sentence) for passage, sentence in record["gold"])
    return dspy.Example(
        id=record["id"],
        question=record["question"],
        answers=tuple(record["answers"]),
        gold_passages=tuple(dict.fromkeys(fact.passage_id for fact in facts)),
        gold_facts=facts,
        hops=record["hops"],
        kind=record["kind"],
        sub_questions=tuple(SubQuestion(s["question"], s["answer"], s["passage"]) for s in record["sub_questions"]),
        split=record["split"],
    ).with_inputs("question")


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
