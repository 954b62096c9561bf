"""The annotations of a benchmark's questions, as prompts show them, to recognize gold evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import dspy

from ....data.benchmarks import GoldFact
from ....data.passages import Passage
from ....data.text import clean
from ....engines.lexical.prompt import ParsedPassage, parse_passages
from ....eval.gold import gold_of
from ....signatures.fields import NumberedPassage


@dataclass(frozen=True)
class GoldPage:
    """A gold passage.

    Attributes:
        title: As prompts show it.
        texts: Its sentences as prompts show them; empty if only the title is known.
        sentences: The numbers of its gold sentences, from 1; empty if the passage counts as a whole.
        sub_question: The sub-question that it answers.
    """

    title: str
    texts: tuple[str, ...]
    sentences: tuple[int, ...]
    sub_question: str

    def is_shown_as(self, page: ParsedPassage) -> bool:
        """Whether a prompt shows this passage, or some of its sentences."""
        if page.title != self.title:
            return False
        shown = [(_number(line.id), line.text) for line in page.sentences]
        # Where the last sentence of a prompt is empty, its id is taken for the end of the line before.
        return not self.texts or all(n <= len(self.texts) and text.startswith(self.texts[n - 1]) for n, text in shown)

    def ids(self, page: ParsedPassage) -> tuple[str, ...]:
        """The ids of the gold evidence on a page that shows it."""
        if not self.sentences:
            return (page.number,)
        return tuple(line.id for line in page.sentences if _number(line.id) in self.sentences)


@dataclass(frozen=True)
class Annotated:
    """A question with its answers, its gold passages, and its decomposition."""

    answers: tuple[str, ...]
    pages: tuple[GoldPage, ...]
    sub_questions: tuple[str, ...]


def annotate(examples: Iterable[dspy.Example]) -> dict[str, Annotated]:
    """The questions of a benchmark by `question_key`.

    Raises:
        ValueError: a question has no gold evidence, or two equal questions have different evidence.
    """
    known: dict[str, Annotated] = {}
    for example in examples:
        annotated = _annotated(example)
        if not annotated.pages:
            raise ValueError(f"the question has no gold evidence, so nothing can be simulated: {example.question!r}")
        if known.setdefault(question_key(example.question), annotated) != annotated:
            raise ValueError(f"two questions read alike and have different gold evidence: {example.question!r}")
    return known


def question_key(question: str) -> str:
    """A question without extra white space."""
    return " ".join(clean(question).split())


def _annotated(example: dspy.Example) -> Annotated:
    asked = {step.passage_id: step.question for step in example.get("sub_questions") or () if step.passage_id}
    sentences: dict[GoldFact, list[int]] = {}
    for fact in example.get("gold") or ():
        sentences.setdefault(fact.passage, []).extend(() if fact.sentence is None else (fact.sentence + 1,))
    pages = []
    for fact, numbers in sentences.items():
        passage = next((passage for passage in example.get("pool") or () if fact.matches(passage)), None)
        page = _as_shown(passage or Passage.of(fact.title, sentences=()))
        texts = tuple(line.text for line in page.sentences)
        there = tuple(number for number in dict.fromkeys(numbers) if number <= len(texts) or not texts)
        about = asked.get(fact.passage_id) or f'What does the page "{page.title}" say?'
        pages.append(GoldPage(page.title, texts, there, about))
    steps = tuple(step.question for step in example.get("sub_questions") or ())
    return Annotated(gold_of(example).answers, tuple(pages), steps or tuple(page.sub_question for page in pages))


def _as_shown(passage: Passage) -> ParsedPassage:
    sentences = dict(enumerate(passage.sentences, 1))
    (page,) = parse_passages(NumberedPassage(number=1, title=passage.title, sentences=sentences).render())
    return page


def _number(id: str) -> int:
    return int(id.partition("s")[2])
