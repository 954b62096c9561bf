"""What the reader learns from: questions, and the pages that a program would read for them, under four conditions.

gold       the gold passages, whole, where the questions bring their contexts
retrieved  the five passages of the chain retriever, whole, where there is an index
evidence   what `Prism` selects, from the question's own contexts or else from the index
mixed      the gold passages among others: what a program that goes step by step reads for a single step
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from ....data.benchmarks import Question, find_benchmark, load_questions
from ....data.passages import Evidence, Passage, Retriever
from ....engines.lexical.decompose import decompose
from ....programs.candidates import Candidates
from .hops import Hop, annotated_hops

READ = 5  # passages of the condition "retrieved"
OTHERS, STRANGERS = 3, 1  # passages that "mixed" adds: of the question's own contexts, and of another question's
GOLD, RETRIEVED, EVIDENCE, MIXED = "gold", "retrieved", "evidence", "mixed"


@dataclass(frozen=True)
class Source:
    """DATASET:QUESTIONS[:INDEX[:N]] of the command line: N random questions, read over an index where one is named."""

    dataset: str
    questions: Path
    index: Path | None = None
    limit: int | None = None

    @classmethod
    def parse(cls, text: str) -> Source:
        """Raises ValueError where the form is another."""
        dataset, questions, index, limit, *rest = [*text.split(":"), "", ""]
        if any(rest):
            raise ValueError(text)
        return cls(
            find_benchmark(dataset).name, Path(questions), Path(index) if index else None, int(limit) if limit else None
        )

    @property
    def name(self) -> str:
        """Of the file, without its endings."""
        return self.questions.name.split(".")[0]


@dataclass(frozen=True)
class Example:
    """A question as the reader meets it: its sub-questions, and pages as prompts show them, by condition.

    Questions that stand on the same passages share what ``gold`` says: the titles of these, or else the question.
    """

    source: str
    gold: str
    question: str
    answers: tuple[str, ...]
    sub_questions: tuple[str, ...]
    hops: tuple[Hop, ...]
    pages: dict[str, str]

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Example:
        """Read what `to_record` wrote."""
        hops = tuple(
            Hop(h["question"], tuple(h["bound"]), tuple(h["answers"]), h["is_country"]) for h in record["hops"]
        )
        lists = {name: tuple(record[name]) for name in ("answers", "sub_questions")}
        return cls(**{**record, **lists, "hops": hops})

    def to_record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def examples(source: Source, seed: int = 0) -> Iterator[Example]:
    """The examples of a source. Reads with the embedded engine; takes some 0.1 s a question."""
    import dspy

    from ....data.chain import ChainRetriever
    from ....data.lucene.bm25 import BM25Index
    from ....engines.models import language_model
    from ....programs import Prism

    retriever = ChainRetriever(BM25Index(source.index)) if source.index else None
    rng = Random(seed)
    with dspy.context(lm=language_model("lexical")):
        prism = Prism(retriever)
        questions = list(load_questions(source.dataset, source.questions, limit=source.limit, seed=seed))
        for question in questions:
            pages = dict(_conditions(question, retriever, prism))
            hops = tuple(annotated_hops(question, rng))
            if GOLD in pages and (hops or question.hops == 1):
                pages[MIXED] = _mixed(question, rng.choice(questions), rng)
            steps = tuple(decompose(question.question))
            if pages and question.answers:
                gold = " | ".join(sorted({fact.title for fact in question.gold})) or question.question
                yield Example(source.name, gold, question.question, question.answers, steps, hops, pages)


def _conditions(question: Question, retriever: Retriever | None, prism: Any) -> Iterator[tuple[str, str]]:
    pool = question.pool or ()
    if gold := _gold(question):
        yield GOLD, _shown(gold)
    if retriever is not None:
        yield RETRIEVED, _shown([hit.passage for hit in retriever.search(question.question, READ)])
    if question.hops != 1 and (pool or retriever is not None):
        found = prism(question=question.question, pool=pool or None)
        yield EVIDENCE, _shown([item.passage for item in found.evidence], found.evidence)


def _gold(question: Question) -> list[Passage]:
    return [passage for passage in question.pool or () if any(fact.matches(passage) for fact in question.gold)]


def _mixed(question: Question, another: Question, rng: Random) -> str:
    gold, own = _gold(question), question.pool or ()
    others = [passage for passage in own if passage not in gold]
    strangers = [passage for passage in another.pool or () if passage not in own]
    passages = [
        *gold,
        *rng.sample(others, min(OTHERS, len(others))),
        *rng.sample(strangers, min(STRANGERS, len(strangers))),
    ]
    rng.shuffle(passages)
    return _shown(passages)


def _shown(passages: Sequence[Passage], evidence: Sequence[Evidence] | None = None) -> str:
    return str(Candidates(passages).show(evidence).format())
