"""Test questions that a model drafts from pairs of passages, and checks by answering them.

    drafter = Drafter()
    drafter.set_lm(dspy.LM("openai/gpt-4o-mini"))
    for example in islice(examples(BM25Index("indexes/mine"), seed=0), 50):
        draft = ask(drafter, example)  # of polyhop.programs.program
        print(draft.stop_reason, draft.question, draft.answer)

A question is usable ("needs both") if both passages together prove its answer and none of them alone does: otherwise
one search was enough. That a reader of one passage guesses right does not count: a strong one does so for most good
questions, since a passage tells about one thing. Nor does what the model knows without a passage, which is most of
public documentation: such questions are marked, since they test what is retrieved, but not whether it is read. A
comparison names both sides, so it is only answered from both.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import dspy
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..data.benchmarks.own import named_facts
from ..data.benchmarks.question import question_id
from ..data.chain.pairs import Kind, Pair, pairs
from ..data.chain.store import ChainSource
from ..data.passages import Evidence, Passage
from ..programs.agent import Agent, Part
from ..programs.candidates import Candidates
from ..programs.prediction import decomposed
from ..programs.run import record, together
from ..programs.trace import Judged, StepAnswered
from ..signatures import AnswerDirectly, VerifyAnswer, WriteQuestion
from .folder import RunRecord
from .scoring import answer_scores, mentions

Question = Mapping[str, Any]
"""A question of one's own, as a file has it."""

USABLE = "needs both"
KNOWN = "needs both, known without"
"""The checks of questions that are."""

_SAME = 0.6  # F1 of two answers that count as the same

TASKS: dict[Kind, str] = {
    "bridge": 'Passage [1] names "{name}", and passage [2] tells about it. Ask for a fact that passage [2] states '
    'about it. Do not write "{name}": say instead which one is meant, by what passage [1] states of it and passage [2] '
    "does not. Best is a fact that differs between several things that passage [2] tells about, of which passage [1] "
    "means one.",
    "comparison": "Compare the two things that the passages tell about, by a value that each passage states of its "
    "own and that differs, such as a date, a number or a kind. Name both things. The answer is the name of one of "
    "them, or yes or no.",
}
"""How a question of each kind needs both passages."""


class Drafter(Part):
    """A program that writes a question for a `Pair` and checks it: at most 5 LM calls, 3 in sequence.

    The prediction has ``question``, ``answer``, ``sub_questions`` and, as ``stop_reason``, what the check says: "needs
    both", or what is wrong.
    """

    def __init__(self) -> None:
        super().__init__()
        self.writer = Agent(WriteQuestion)
        self.reader = Agent(VerifyAnswer)
        self.closed_book = Agent(AnswerDirectly)

    def forward(self, pair: Pair) -> dspy.Prediction:
        both = Candidates([pair.first, pair.second])
        named = [] if pair.sentence is None else [Evidence(pair.first, pair.sentence)]
        task = TASKS[pair.kind].format(name=pair.name)
        reply = self.writer(passages=both.show(selected=named), task=task)
        # "None" may be an answer about Python.
        question, answer = " ".join(reply.question.split()), " ".join(reply.answer.split()).removesuffix(".")
        sub_questions = decomposed(reply.sub_questions)
        record(StepAnswered(1, question, answer))
        check = self._check(pair, question, answer)
        return dspy.Prediction(question=question, answer=answer, sub_questions=sub_questions, stop_reason=check)

    def _check(self, pair: Pair, question: str, answer: str) -> str:
        if question.casefold().strip('."') in ("", "none") or not answer:
            return "no question"
        if pair.kind != "comparison" and mentions(question, [answer]):
            return "has its answer"
        name = re.escape(pair.name.removesuffix("()"))
        if name and re.search(rf"(?<![\w-]){name}s?(?![\w-])", question, re.IGNORECASE):
            return "names what it is to describe"  # so one search finds the second passage
        if not self._is_answered(question, answer, [pair.first, pair.second]):
            return "not answered from both"
        if pair.kind == "comparison":
            return USABLE
        shown = {"the first is enough": [pair.first], "the second is enough": [pair.second], KNOWN: []}
        asked = [partial(self._is_answered, question, answer, passages) for passages in shown.values()]
        enough = zip(shown, together(asked), strict=True)
        return next((check for check, is_answered in enough if is_answered), USABLE)

    def _is_answered(self, question: str, answer: str, passages: Sequence[Passage]) -> bool:
        """Whether a reader of some passages gives the answer and finds every part of the question stated there, or
        whether one of none gives it."""
        if passages:
            reply = self.reader(passages=Candidates(passages).show(), question=question)
            proves = reply.attribution == "attributable"
            record(Judged("attribution", float(proves), f"{reply.attribution}: {reply.answer}"))
        else:
            reply, proves = self.closed_book(question=question), True
        text = str(reply.answer)
        return proves and (answer_scores(text, [answer]).f1 >= _SAME or bool(mentions(answer, [text])))


def examples(source: ChainSource, seed: int = 0) -> Iterator[dspy.Example]:
    """The pairs of a collection as questions for a `Drafter`."""
    for pair in pairs(source, seed):
        yield dspy.Example(id=_id(pair), question=pair.tie, pair=pair, answers=()).with_inputs("pair")


def written(pair: Pair, question: str = "", answer: str = "", sub_questions: Sequence[str] = ()) -> dict[str, Any]:
    """A question of one's own, as `polyhop.data.benchmarks.own` reads it, with what it is written from."""
    return {
        "id": _id(pair),
        "question": question,
        "answer": answer,
        "gold": [pair.first.document, pair.second.document],
        "type": pair.kind,
        "sub_questions": list(sub_questions),
        "tie": pair.tie,
        "read": [_shown(pair.first, pair.sentence), _shown(pair.second, None)],
    }


def _shown(passage: Passage, naming: int | None) -> dict[str, Any]:
    """A passage as the page of a review shows it, with the number of the sentence with the name."""
    shown = {"document": passage.document, "title": passage.heading, "sentences": passage.sentences}
    return {**shown, "naming": naming}


def drafted(pair: Pair, record: RunRecord) -> dict[str, Any]:
    """`written` by a `Drafter`, from the record of its run."""
    [step] = [step for step in record.trace if step["step"] == "stepanswered"]
    [plan] = [step for step in record.trace if step["step"] == "decomposed"]
    known = {"known": True} if record.stop_reason == KNOWN else {}
    return written(pair, step["question"], step["answer"], plan["sub_questions"]) | known


def _id(pair: Pair) -> str:
    return question_id(f"{pair.first.id}\n{pair.second.id}")


def split(questions: Sequence[Question], seed: int = 0) -> tuple[list[Question], list[Question]]:
    """Questions for training and for testing, about half each, with no gold document in both.

    Questions that share a document stay together, so that one large group can make the halves unequal.
    """
    names = dict.fromkeys(name for question in questions for name in _gold(question))
    documents = {name: n for n, name in enumerate(names)}
    tied = [(documents[one], documents[other]) for question in questions for one, other in pairwise(_gold(question))]
    rows, columns = zip(*tied, strict=True) if tied else ((), ())
    graph = coo_array((np.ones(len(tied)), (rows, columns)), (len(documents), len(documents)))
    _, group_of = connected_components(graph, directed=False)
    groups: dict[int, list[Question]] = defaultdict(list)
    for n, question in enumerate(questions):
        gold = _gold(question)
        groups[group_of[documents[gold[0]]] if gold else -1 - n].append(question)
    ordered = list(groups.values())
    random.Random(seed).shuffle(ordered)
    train, test = list[Question](), list[Question]()
    for group in sorted(ordered, key=len, reverse=True):
        smaller = train if len(train) < len(test) else test
        smaller.extend(group)
    return train, test


def _gold(question: Question) -> list[str]:
    """The names of a question's gold documents."""
    return [fact.title for fact in named_facts(question.get("gold") or [])]
