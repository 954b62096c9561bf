"""Exemplars from train questions: MuSiQue's gold decompositions, and the successes of evaluation runs.

`polyhop.scripts.training.exemplars` writes them to a file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..eval.folder import read_manifest, read_records
from ..programs.complexity import HOPS
from ..programs.exemplars import Exemplar, ExemplarMemory

if TYPE_CHECKING:
    import dspy

MIN_F1 = 0.8
"""Evidence F1, in passages, from which a correct answer counts as a success."""


def from_musique(questions: Iterable[dspy.Example]) -> Iterator[Exemplar]:
    """The gold decompositions of MuSiQue as plans in words (`readable`)."""
    for question in questions:
        if question.sub_questions and question.hops in HOPS:
            yield Exemplar(
                question.question,
                tuple(_capitals(readable(step.question), question.question) for step in question.sub_questions),
                question.hops,
                "musique",
            )


def from_run(run: Path, min_f1: float = MIN_F1) -> Iterator[Exemplar]:
    """The last plan of each question of a run that was answered correctly (exact match) from the right passages, with
    the benchmark's number of hops, or else that of sub-questions. Plans with invalid references are left out."""
    source = read_manifest(run).program.name
    for record in read_records(run):
        plans = [step["sub_questions"] for step in record.trace if step["step"] == "decomposed"]
        scores = record.scores
        if not plans or scores.get("answer_em") != 1 or scores.get("evidence_f1", 0.0) < min_f1:
            continue
        try:
            yield Exemplar(record.question, tuple(plans[-1]), record.hops or min(len(plans[-1]), HOPS[-1]), source)
        except ValueError:
            continue


def at_most(count: int, exemplars: Iterable[Exemplar]) -> list[Exemplar]:
    """The first so many exemplars for each number of hops."""
    by_hops: defaultdict[int, list[Exemplar]] = defaultdict(list)
    for each in ExemplarMemory(()).joined(list(exemplars)).exemplars:
        by_hops[each.hops].append(each)
    return [each for hops in sorted(by_hops) for each in by_hops[hops][:count]]


def in_words(question: dspy.Example) -> dspy.Example:
    """The question with `readable` sub-questions."""
    steps = tuple(step._replace(question=readable(step.question)) for step in question.get("sub_questions") or ())
    return question.copy(sub_questions=steps)


# --- MuSiQue's steps in words ----------------------------------------------------------------------------------------

# Wikidata relations for which "What is the ... of X?" does not read well.
_ASKED_AS = {
    "applies to jurisdiction": "To which jurisdiction does {} apply?",
    "award received": "Which award did {} receive?",
    "capital of": "What is {} the capital of?",
    "conflict": "In which conflict did {} take part?",
    "contains administrative territorial entity": "Which administrative territorial entity does {} contain?",
    "country": "In which country is {}?",
    "crosses": "What does {} cross?",
    "educated at": "Where was {} educated?",
    "followed by": "What followed {}?",
    "follows": "What does {} follow?",
    "has part": "What is a part of {}?",
    "instance of": "What is {} an instance of?",
    "licensed to broadcast to": "Where is {} licensed to broadcast to?",
    "located in or next to body of water": "In or next to which body of water is {} located?",
    "located in the administrative territorial entity": "In which administrative territorial entity is {} located?",
    "located on terrain feature": "On which terrain feature is {} located?",
    "location": "Where is {} located?",
    "location of formation": "Where was {} formed?",
    "member of": "What is {} a member of?",
    "member of political party": "Of which political party is {} a member?",
    "member of sports team": "Of which sports team is {} a member?",
    "named after": "What is {} named after?",
    "owned by": "By whom is {} owned?",
    "part of": "What is {} a part of?",
    "participant in": "In what did {} take part?",
    "place of birth": "Where was {} born?",
    "place of death": "Where did {} die?",
    "position held": "Which position did {} hold?",
    "shares border with": "With what does {} share a border?",
    "work location": "Where did {} work?",
}
_PERSONS = frozenset(
    "architect author chairperson characters child composer creator designer developer director editor employer "
    "father founder inventor lyricist manufacturer mother occupant operator performer producer publisher screenwriter "
    "sibling spouse uncle winner".split()
)
_SHORT = re.compile(r"^(?P<subject>.+?)\s*>>\s*(?P<relation>[^>]+?)\s*$")


def readable(step: str) -> str:
    """A step of MuSiQue as a question: ``"#1 >> place of birth"`` becomes ``"Where was #1 born?"``."""
    if match := _SHORT.match(step):
        relation = match["relation"].lower()
        plain = f"{'Who' if relation in _PERSONS else 'What'} is the {relation} of {{}}?"
        return _ASKED_AS.get(relation, plain).replace("{}", _closed_up(match["subject"]))
    text = _closed_up(step).rstrip("?. ")
    return f"{text[:1].upper()}{text[1:]}?"


def _closed_up(text: str) -> str:
    return re.sub(r"(\S)\s+(?=['’]s\b|[?.,)])", r"\1", " ".join(text.split()))


def _capitals(step: str, question: str) -> str:
    """The step with capitals ("italy", "publix") where the question always has them."""
    written: dict[str, set[str]] = {}
    for word in re.findall(r"[^\W\d_]+", question.partition(" ")[2]):
        written.setdefault(word.lower(), set()).add(word)
    names = {lower: next(iter(forms)) for lower, forms in written.items() if len(forms) == 1 and lower not in forms}
    return re.sub(r"[^\W\d_]+", lambda match: names.get(match.group(), match.group()), step)
