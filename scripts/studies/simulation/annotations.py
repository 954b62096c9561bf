"""The annotations of a benchmark's questions, as prompts show them, to recognize gold evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import dspy

from ....data.benchmarks import GoldFact
from ....data.passages import Hit, Passage
from ....data.pool import PassagePool
from ....data.references import references, replace_references
from ....data.sample import SubQuestion
from ....data.text import bare_title, clean, title_key
from ....engines.lexical.prompt import ParsedPassage, parse_passages
from ....eval.gold import gold_of
from ....optimizers.exemplars import in_words
from ....signatures.fields import NumberedPassage


@dataclass(frozen=True)
class GoldPage:
    """A gold passage.

    Attributes:
        title: As prompts show it.
        texts: Its sentences as prompts show them; empty if only the title is known.
        sentences: The numbers of its gold sentences, from 1; empty if the passage counts as a whole.
        sub_question: The sub-question that it answers.
        answer: Its answer; the title where it is not annotated.
        query: The sub-question with the answers of earlier ones.
        behind: The indices of the gold passages that lead to it.
        keys: What a query must name to find it, each by its `title_key`; empty if any query may.
    """

    title: str
    texts: tuple[str, ...]
    sentences: tuple[int, ...]
    sub_question: str
    answer: str
    query: str
    behind: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()

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
    id: str = ""

    def mark(self, page: int) -> str:
        """A word that names a gold passage."""
        return f"q{self.id}p{page}"


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
    steps = tuple(example.get("sub_questions") or ())
    by_passage = {step.passage_id: number for number, step in enumerate(steps) if step.passage_id}
    answers = {number: step.answer for number, step in enumerate(steps, 1)}
    sentences: dict[GoldFact, list[int]] = {}
    for fact in example.get("gold") or ():
        sentences.setdefault(fact.passage, []).extend(() if fact.sentence is None else (fact.sentence + 1,))
    order = {by_passage[fact.passage_id]: at for at, fact in enumerate(sentences) if fact.passage_id in by_passage}
    pages: list[GoldPage] = []
    for fact, numbers in sentences.items():
        passage = next((passage for passage in example.get("pool") or () if fact.matches(passage)), None)
        page = _as_shown(passage or Passage.of(fact.title, sentences=()))
        texts = tuple(line.text for line in page.sentences)
        there = tuple(number for number in dict.fromkeys(numbers) if number <= len(texts) or not texts)
        pages.append(GoldPage(page.title, texts, there, *_asked(fact, page.title, steps, by_passage, answers)))
        if fact.passage_id in by_passage:
            step = steps[by_passage[fact.passage_id]]
            leading = [n for n in references(step.question) if n - 1 in order]
            keys = tuple(title_key(answers[n]) for n in leading)
            pages[-1] = replace(pages[-1], behind=tuple(order[n - 1] for n in leading), keys=keys)
    if not steps:
        pages = [_locked(page, pages, example.question) for page in pages]
    asked = tuple(step.question for step in steps) or tuple(page.sub_question for page in pages)
    key = blake2b(question_key(example.question).encode("utf-8", "replace"), digest_size=4).hexdigest()
    return Annotated(gold_of(example).answers, tuple(pages), asked, key)


def _asked(
    fact: GoldFact,
    title: str,
    steps: Sequence[SubQuestion],
    by_passage: Mapping[str, int],
    answers: Mapping[int, str],
) -> tuple[str, str, str]:
    """The sub-question of a gold passage, its answer, and the query for it."""
    if fact.passage_id is None or fact.passage_id not in by_passage:
        question = f'What does the page "{title}" say?'
        return question, title, question
    step = steps[by_passage[fact.passage_id]]
    return step.question, step.answer, replace_references(step.question, answers.get)


def _locked(page: GoldPage, pages: Sequence[GoldPage], question: str) -> GoldPage:
    """A page that the question does not name is behind those that name it."""
    key = title_key(bare_title(page.title))
    if not key or f" {key} " in f" {title_key(question)} ":
        return page
    leading = [n for n, other in enumerate(pages) if other is not page and key in title_key(" ".join(other.texts))]
    if not leading:
        return page
    asked = f"What is the page that #{leading[0] + 1} leads to as number {pages.index(page) + 1}?"
    return replace(page, sub_question=asked, behind=tuple(leading), keys=(key,))


def _as_shown(passage: Passage) -> ParsedPassage:
    sentences = dict(enumerate(passage.sentences, 1))
    (page,) = parse_passages(NumberedPassage(number=1, title=passage.title, sentences=sentences).render())
    return page


def _number(id: str) -> int:
    return int(id.partition("s")[2])


LOST = 0.2
"""Share of the locked passages that no query finds, as BM25's 20 best passages miss about a fifth of MuSiQue's."""


class LockedPool(PassagePool):
    """A question's own passages, where a query finds a later hop only if it names what leads to it.

    `LOST` of the later hops are never found.
    """

    def __init__(self, passages: Iterable[Passage], pages: Iterable[GoldPage]) -> None:
        super().__init__(passages)
        self._locks: dict[str, tuple[str, ...]] = {}
        self._lost: set[str] = set()
        for passage in self.passages:
            shown = _as_shown(passage)
            if keys := next((page.keys for page in pages if page.is_shown_as(shown)), ()):
                self._locks[passage.id] = keys
                if int(passage.id, 36) % 1000 < 1000 * LOST:
                    self._lost.add(passage.id)

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        said = f" {title_key(query)} "
        found = [
            hit
            for hit in super().search(query, len(self) or 1)
            if hit.passage.id not in self._lost
            and all(f" {key} " in said for key in self._locks.get(hit.passage.id, ()))
        ]
        return [replace(hit, rank=rank) for rank, hit in enumerate(found[offset : offset + k], offset + 1)]


def lock(example: dspy.Example) -> dspy.Example:
    """The question with a `LockedPool`."""
    return example.copy(pool=LockedPool(example.pool, _annotated(example).pages))


def marked(example: dspy.Example) -> dspy.Example:
    """The question with an annotated sub-question for each gold passage, by which `SimulatedEngine` recognizes a step.

    A program may show a sub-question to an agent without the question itself. Without a decomposition, a sub-question
    asks for a page by its title.
    """
    known = _annotated(example)
    ids = list(dict.fromkeys(fact.passage_id for fact in example.gold))
    steps = tuple(example.get("sub_questions") or ()) or tuple(
        SubQuestion(page.query, page.answer, id) for page, id in zip(known.pages, ids, strict=True)
    )
    pages = {id: n for n, id in enumerate(ids) if id is not None}
    numbers = [pages.get(step.passage_id or "", len(pages)) for step in steps]
    texts = [f"{step.question} {known.mark(n)}" for step, n in zip(steps, numbers, strict=True)]
    return in_words(
        example.copy(sub_questions=[step._replace(question=text) for step, text in zip(steps, texts, strict=True)])
    )
