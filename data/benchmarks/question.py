"""The one shape that the questions of all benchmarks have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from ..passages import Passage
from ..sample import SubQuestion
from ..text import clean

if TYPE_CHECKING:
    import dspy


@dataclass(frozen=True)
class GoldFact:
    """What a benchmark says is needed for the answer: a sentence of a passage, or a whole passage.

    Benchmarks address passages by title, by place among the question's contexts, or by quoting them; `matches` knows
    which.

    Attributes:
        title: Of the passage, exactly as the benchmark writes it: official prediction files want it so.
        sentence: 0-based index in the benchmark's own sentences; None for the whole passage. A few are out of range:
            the official scripts count them, so they are kept.
        passage_id: The passage's id, where its text is known.
        unique_title: The title alone identifies the passage (HotpotQA, 2WikiMultihopQA), in any edition of the corpus.
        text: The words of the fact, where the benchmark quotes them (MultiHop-RAG).
    """

    title: str
    sentence: int | None = None
    passage_id: str | None = None
    unique_title: bool = False
    text: str | None = None

    def matches(self, passage: Passage) -> bool:
        """Whether this is the passage, or one of the passages, that the fact stands in.

        The first of these that applies decides: a quoted text stands in the passage (white space apart, as MultiHop-RAG
        compares); titles are unique or no id is known, and the titles are equal; the ids are equal.
        """
        if self.text is not None:
            return _squeezed(self.text) in _squeezed(passage.text)
        if self.unique_title or self.passage_id is None:
            return passage.title == clean(self.title).strip()
        return passage.id == self.passage_id

    @property
    def passage(self) -> GoldFact:
        """The same address without the sentence: ``{fact.passage for fact in gold}`` are the gold passages."""
        return self if self.sentence is None else replace(self, sentence=None)


def _squeezed(text: str) -> str:
    return "".join(text.split())


@dataclass(frozen=True)
class Question:
    """A question with what its benchmark knows about it. What a benchmark does not know has the default.

    Attributes:
        id: Unique within the dataset.
        question: What is asked.
        answers: The main answer, then its aliases; no two are equal.
        gold: What the answer stands on, in the benchmark's order; empty where it does not say.
        pool: The question's own contexts; None where it has none or the setting is ``open``.
        hops: How many passages the answer needs, for reports only: no program may see it.
        kind: The benchmark's own type of question: ``bridge``, ``comparison_query``, ``3hop1``, ...
        answerable: False where the contexts do not hold the answer (MuSiQue-Full, null queries of MultiHop-RAG).
        official_id: The benchmark's id, which is the same for the two questions of a MuSiQue-Full pair.
        level: HotpotQA: ``easy``, ``medium`` or ``hard``.
        article: SQuAD: the title of the article.
        evidences: 2WikiMultihopQA: (subject, relation, object) triples.
        evidences_id: 2WikiMultihopQA: the same triples as Wikidata ids, for the official alias file; may be empty.
        answer_id: 2WikiMultihopQA: the answer's Wikidata id, for the official alias file.
        sub_questions: MuSiQue and the sample: the decomposition; "#1" is the answer to the first.
        paragraph_idx: MuSiQue: the official ``idx`` of each context, by passage id.
        where: The record it was read from: ``"dev.jsonl:17"``.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    gold: tuple[GoldFact, ...] = ()
    pool: tuple[Passage, ...] | None = None
    hops: int | None = None
    kind: str | None = None
    answerable: bool = True
    official_id: str = ""
    level: str | None = None
    article: str | None = None
    evidences: tuple[tuple[str, str, str], ...] = ()
    evidences_id: tuple[tuple[str, str, str], ...] = ()
    answer_id: str | None = None
    sub_questions: tuple[SubQuestion, ...] = ()
    paragraph_idx: Mapping[str, int] = field(default_factory=dict)
    where: str = ""

    def __post_init__(self) -> None:
        if not self.official_id:
            object.__setattr__(self, "official_id", self.id)

    def to_example(self) -> dspy.Example:
        """A DSPy example with all attributes, whose inputs are ``question`` and ``pool``."""
        import dspy

        return dspy.Example(**{item.name: getattr(self, item.name) for item in fields(self)}).with_inputs(
            "question", "pool"
        )


def distinct(*answers: str) -> tuple[str, ...]:
    """The answers in their order, each once, without empty ones."""
    return tuple(dict.fromkeys(answer for answer in answers if answer.strip()))


def question_id(question: str) -> str:
    """An id where the benchmark gives none: 16 hex digits, a hash of the words, so that files may be re-ordered."""
    return blake2b(" ".join(question.split()).encode(), digest_size=8).hexdigest()


def by_title(pool: Iterable[Passage]) -> dict[str, Passage]:
    """The first passage of each title."""
    first: dict[str, Passage] = {}
    for passage in pool:
        first.setdefault(passage.title, passage)
    return first
