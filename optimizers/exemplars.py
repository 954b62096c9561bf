"""Exemplars from train questions: MuSiQue's gold decompositions, and the successes of evaluation runs.

`bench/exemplars.py` writes them to a file.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
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
    for exemplar in ExemplarMemory(()).joined(list(exemplars)).exemplars:
        by_hops[exemplar.hops].append(exemplar)
    return [exemplar for hops in sorted(by_hops) for exemplar in by_hops[hops][:count]]


def in_words(question: dspy.Example) -> dspy.Example:
    """The question with `readable` sub-questions."""
    steps = tuple(step._replace(question=readable(step.question)) for step in question.get("sub_questions") or ())
    return question.copy(sub_questions=steps)


# --- MuSiQue's steps in words ----------------------------------------------------------------------------------------

_RELATIONS = Path(__file__).with_name("relations.json")
"""Wikidata relations for which "What is the ... of X?" does not read well, and what is asked instead."""

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
        return _asked_as().get(relation, plain).replace("{}", _closed_up(match["subject"]))
    text = _closed_up(step).rstrip("?. ")
    return f"{text[:1].upper()}{text[1:]}?"


@cache
def _asked_as() -> dict[str, str]:
    asked: dict[str, str] = json.loads(_RELATIONS.read_text("utf-8"))
    return asked


def _closed_up(text: str) -> str:
    return re.sub(r"(\S)\s+(?=['’]s\b|[?.,)])", r"\1", " ".join(text.split()))


def _capitals(step: str, question: str) -> str:
    """The step with capitals ("italy", "publix") where the question always has them."""
    written: dict[str, set[str]] = {}
    for word in re.findall(r"[^\W\d_]+", question.partition(" ")[2]):
        written.setdefault(word.lower(), set()).add(word)
    names = {lower: next(iter(forms)) for lower, forms in written.items() if len(forms) == 1 and lower not in forms}
    return re.sub(r"[^\W\d_]+", lambda match: names.get(match.group(), match.group()), step)
