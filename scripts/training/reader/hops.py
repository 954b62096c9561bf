"""Sub-questions whose answers a benchmark annotates: MuSiQue's decompositions and 2WikiMultihopQA's triples.

A triple becomes a question in one of the forms that decompositions have; a country answers in any of its names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from ....data.benchmarks import Question
from ....data.references import references, replace_references

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
class Hop:
    """A sub-question with earlier answers put in, those answers, its own, and whether that is a country."""

    question: str
    bound: tuple[str, ...]
    answers: tuple[str, ...]
    is_country: bool = False


def annotated_hops(question: Question, rng: Random) -> Iterator[Hop]:
    """The sub-questions of a question that its benchmark answers; the question itself where it is a single one."""
    steps = question.sub_questions
    for n, step in enumerate(steps):
        known = {number: earlier.answer for number, earlier in enumerate(steps[:n], 1)}
        text = step.question
        if " >> " in text:  # "The Age of Reason >> author"
            subject, relation = text.rsplit(" >> ", 1)
            text = rng.choice(_RELATION_FORMS).format(relation, subject)
        bound = tuple(known[number] for number in references(step.question) if number in known)
        answers = question.answers if n == len(steps) - 1 else (step.answer,)
        yield Hop(replace_references(text, known.get), bound, answers)
    for subject, relation, answer in question.evidences:
        if relation in _FORMS:
            text = rng.choice(_FORMS[relation]).format(subject)
            yield Hop(text, (subject,), (answer,), relation in _COUNTRIES)
