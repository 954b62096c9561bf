"""Questions with the passages that a program would read for them, under four conditions.

gold       the gold passages, if the questions bring their contexts
retrieved  the first five passages of the chain retriever, if there is an index
evidence   what `Prism` selects, from the question's own contexts or else from the index
mixed      the gold passages among others, as read for a single step of a plan
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import dspy

from ....data.benchmarks import QuestionRecord, load_questions
from ....data.chain import ChainRetriever
from ....data.lucene.bm25 import BM25Index
from ....data.passages import Evidence, Passage, Retriever
from ....data.references import references, replace_references
from ....engines.lexical.decompose import decompose
from ....engines.models import language_model
from ....programs import Prism
from ....programs.candidates import Candidates
from ..command import QuestionFile

READ = 5  # passages of the condition "retrieved"
OTHERS, STRANGERS = 3, 1  # passages that "mixed" adds: of the question's own contexts, and of another question's
GOLD, RETRIEVED, EVIDENCE, MIXED = "gold", "retrieved", "evidence", "mixed"

# Questions for the relations of triples, in the forms that decompositions have.
_FORMS = {
    "director": ("Who is the director of film {}?", "Who is the director of {}?", "Who directed {}?"),
    "date of birth": ("When was {} born?", "What is the date of birth of {}?"),
    "date of death": ("When did {} die?", "What is the date of death of {}?"),
    "country of citizenship": (
        "What is the nationality of {}?",
        "In which country is {}?",
        "Which country is {} from?",
    ),
    "country": ("In which country is {}?", "What is the country of {}?"),
    "country of origin": ("What is the country of origin of {}?", "In which country is {}?"),
    "father": ("Who is {}'s father?", "Who is the father of {}?"),
    "mother": ("Who is {}'s mother?", "Who is the mother of {}?"),
    "spouse": ("Who is the spouse of {}?", "Who is {}'s wife?", "Who is {}'s husband?"),
    "publication date": ("When was {} released?", "When was {} published?"),
    "place of birth": ("Where was {} born?", "What is the place of birth of {}?"),
    "place of death": ("Where did {} die?", "Where was the place of death of {}?"),
    "performer": ("Who is the performer of song {}?", "Who is the performer of {}?"),
    "composer": ("Who is the composer of film {}?", "Who is the composer of {}?"),
    "educated at": ("Where did {} study?", "Where was {} educated?"),
    "cause of death": ("What is the cause of death of {}?",),
    "child": ("Who is the child of {}?", "Who is {}'s child?"),
    "inception": ("When was {} founded?", "When was {} founded or opened?"),
    "award received": ("Which award did {} receive?",),
    "sibling": ("Who is {}'s sibling?", "Who is the sibling of {}?"),
    "employer": ("Where does {} work?",),
    "founded by": ("Who is the founder of {}?",),
    "producer": ("Who is the producer of {}?",),
    "place of burial": ("Where was {} buried?",),
    "publisher": ("Who is the publisher of {}?",),
}
_COUNTRIES = ("country of citizenship", "country", "country of origin")
_RELATION_FORMS = ("What is the {} of {}?", "Who is the {} of {}?", "{1} {0}?")


@dataclass(frozen=True)
class AnnotatedHop:
    """A sub-question with earlier answers filled in, those answers, and its own answers."""

    question: str
    bound: tuple[str, ...]
    answers: tuple[str, ...]
    is_country: bool = False  # then any of the country's names is an answer


@dataclass(frozen=True)
class Example:
    """A question with its sub-questions, and the passages by condition, as prompts show them."""

    source: str
    gold: str  # the same for all questions on the same gold passages: their titles, or else the question
    question: str
    answers: tuple[str, ...]
    sub_questions: tuple[str, ...]
    hops: tuple[AnnotatedHop, ...]
    passages: dict[str, str]

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Example:
        hops = tuple(
            AnnotatedHop(h["question"], tuple(h["bound"]), tuple(h["answers"]), h["is_country"]) for h in record["hops"]
        )
        lists = {name: tuple(record[name]) for name in ("answers", "sub_questions")}
        return cls(**{**record, **lists, "hops": hops})

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def examples(file: QuestionFile, seed: int = 0) -> Iterator[Example]:
    """The examples of a file. Reads with the embedded engine, about 0.1 s per question."""
    retriever = ChainRetriever(BM25Index(file.index)) if file.index else None
    rng, limit = Random(seed), int(file.number) if file.number else None
    with dspy.context(lm=language_model("lexical")):
        prism = Prism(retriever)
        questions = list(load_questions(file.dataset, file.questions, limit=limit, seed=seed))
        for question in questions:
            passages = dict(_conditions(question, retriever, prism))
            hops = tuple(annotated_hops(question, rng))
            if GOLD in passages and (hops or question.hops == 1):
                passages[MIXED] = _mixed(question, rng.choice(questions), rng)
            steps = tuple(decompose(question.question))
            if passages and question.answers:
                gold = " | ".join(sorted({fact.title for fact in question.gold})) or question.question
                yield Example(file.name, gold, question.question, question.answers, steps, hops, passages)


def _conditions(question: QuestionRecord, retriever: Retriever | None, prism: Prism) -> Iterator[tuple[str, str]]:
    pool = question.pool or ()
    if gold := _gold(question):
        yield GOLD, _shown(gold)
    if retriever is not None:
        yield RETRIEVED, _shown([hit.passage for hit in retriever.search(question.question, READ)])
    if question.hops != 1 and (pool or retriever is not None):
        found = prism(question=question.question, pool=pool or None)
        yield EVIDENCE, _shown([item.passage for item in found.evidence], found.evidence)


def _gold(question: QuestionRecord) -> list[Passage]:
    return [passage for passage in question.pool or () if any(fact.matches(passage) for fact in question.gold)]


def _mixed(question: QuestionRecord, another: QuestionRecord, rng: Random) -> str:
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


def annotated_hops(question: QuestionRecord, rng: Random) -> Iterator[AnnotatedHop]:
    """The sub-questions that the benchmark annotates with answers: MuSiQue's decompositions, 2Wiki's triples."""
    steps = question.sub_questions
    for n, step in enumerate(steps):
        known = {number: earlier.answer for number, earlier in enumerate(steps[:n], 1)}
        text = step.question
        if " >> " in text:  # "The Age of Reason >> author"
            subject, relation = text.rsplit(" >> ", 1)
            text = rng.choice(_RELATION_FORMS).format(relation, subject)
        bound = tuple(known[number] for number in references(step.question) if number in known)
        answers = question.answers if n == len(steps) - 1 else (step.answer,)
        yield AnnotatedHop(replace_references(text, known.get), bound, answers)
    for subject, relation, answer in question.evidences:
        if relation in _FORMS:
            text = rng.choice(_FORMS[relation]).format(subject)
            yield AnnotatedHop(text, (subject,), (answer,), relation in _COUNTRIES)
