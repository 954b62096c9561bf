"""Questions and their gold facts, in one shape for all benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from ..passages import Passage
from ..sample import SubQuestion
from ..text import clean

if TYPE_CHECKING:
    import dspy


@dataclass(frozen=True)
class GoldFact:
    """A sentence or a whole passage that the answer needs.

    Attributes:
        sentence: Index from 0 in the benchmark's own sentences; None for the whole passage. The official scripts count
            a few that are out of range, so they are kept.
        unique_title: The title alone identifies the passage (HotpotQA, 2WikiMultihopQA), in any edition of the corpus.
    """

    title: str  # of the passage, exactly as in the benchmark, for official prediction files
    sentence: int | None = None
    passage_id: str | None = None  # the passage's id, if its text is known
    unique_title: bool = False
    text: str | None = None  # the words of the fact, if the benchmark quotes them (MultiHop-RAG)

    def matches(self, passage: Passage) -> bool:
        """Whether the fact is in a passage.

        Compares the first of these that is known: the quoted text (white space ignored), the title if it is unique or
        there is no id, the id.
        """
        if self.text is not None:
            return _squeezed(self.text) in _squeezed(passage.text)
        if self.unique_title or self.passage_id is None:
            return passage.title == clean(self.title).strip()
        return self.passage_id in (passage.id, passage.document)

    def counts_as(self, passage: Passage) -> str | None:
        """The id that a passage counts as: its document's, or its own if the fact is in this passage alone; None if the
        fact is not in it."""
        if not self.matches(passage):
            return None
        return passage.id if self.text is not None or self._is_own(passage) else passage.document

    def _is_own(self, passage: Passage) -> bool:
        """Whether the fact names the passage, and not its document."""
        return self.passage_id == passage.id

    @property
    def passage(self) -> GoldFact:
        """The same address without the sentence: ``{fact.passage for fact in gold}`` are the gold passages."""
        return self if self.sentence is None else replace(self, sentence=None)


def _squeezed(text: str) -> str:
    return "".join(text.split())


@dataclass(frozen=True)
class QuestionRecord:
    """A question and what its benchmark says about it; unknown attributes have their defaults.

    Attributes:
        answerable: False if the contexts do not contain the answer (MuSiQue-Full, null queries of MultiHop-RAG).
        sub_questions: MuSiQue and the sample: the decomposition; "#1" is the answer to the first.
        paragraph_idx: MuSiQue: the official ``idx`` of each context, by passage id.
    """

    id: str  # unique within the dataset
    question: str
    answers: tuple[str, ...]  # the main answer, then its distinct aliases
    gold: tuple[GoldFact, ...] = ()  # the facts that the answer needs, in the benchmark's order; empty if unknown
    pool: tuple[Passage, ...] | None = None  # the question's own contexts; None without them or in the setting `open`
    hops: int | None = None  # number of passages that the answer needs; for reports only, never shown to a program
    kind: str | None = None  # the benchmark's type of question: `bridge`, `comparison_query`, `3hop1`, ...
    answerable: bool = True
    official_id: str = ""  # the benchmark's id; the two questions of a MuSiQue-Full pair share it
    level: str | None = None  # HotpotQA: `easy`, `medium` or `hard`
    article: str | None = None  # SQuAD: the title of the article
    evidences: tuple[tuple[str, str, str], ...] = ()  # 2WikiMultihopQA: (subject, relation, object) triples
    answer_id: str | None = None  # 2WikiMultihopQA: the answer's Wikidata id, for the official alias file
    sub_questions: tuple[SubQuestion, ...] = ()
    paragraph_idx: Mapping[str, int] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)  # other fields of the user's own questions, for metrics
    where: str = ""  # the record it was read from: `"dev.jsonl:17"`

    def __post_init__(self) -> None:
        if not self.official_id:
            object.__setattr__(self, "official_id", self.id)

    def to_example(self) -> dspy.Example:
        """A DSPy example with all attributes and the first ``answer``. Its inputs are ``question`` and any ``pool``."""
        import dspy

        attributes = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "more"}
        inputs = ("question",) if self.pool is None else ("question", "pool")  # most programs of DSPy take no pool
        return dspy.Example(**{"answer": self.answers[0], **attributes, **self.more}).with_inputs(*inputs)


def distinct(*answers: str) -> tuple[str, ...]:
    """The distinct answers that are not blank, in order."""
    return tuple(dict.fromkeys(answer for answer in answers if answer.strip()))


def question_id(question: str) -> str:
    """The id of a question without one: 16 hex digits, a hash of its words, which does not depend on its position."""
    return blake2b(" ".join(question.split()).encode(), digest_size=8).hexdigest()
