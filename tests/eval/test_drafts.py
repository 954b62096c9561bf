"""Questions that a model drafts from two passages: what is kept, and how they are split."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.data.chain.pairs import Pair
from polyhop.eval.drafts import Drafter, split
from polyhop.programs.program import ask

from ..programs.scripted import FILM, MAN, Request, answer, scripted

BRIDGE = Pair("bridge", FILM, MAN, "", "Alfred Hitchcock", 1)
QUESTION = "Where did the director of Vertigo come from?"


def check(pair: Pair, who_answers: set[str], question: str = QUESTION, right: str = "Leytonstone") -> dspy.Prediction:
    """The draft of a pair whose question readers of some passages answer: "both", "film", "man" or "none"."""

    def read(request: Request) -> dict[str, Any]:
        shown = request.inputs.get("passages", "")
        film, man = FILM.sentences[1] in shown, MAN.sentences[1] in shown
        seen = "both" if film and man else "film" if film else "man" if man else "none"
        if not shown:
            return answer(right if seen in who_answers else "unknown")
        return {"answer": right, "attribution": "attributable" if seen in who_answers else "extrapolatory"}

    drafted = {"question": question, "answer": right, "sub_questions": ["Who directed Vertigo?", "Where is #1 from?"]}
    program = Drafter()
    program.set_lm(
        dspy.LM(
            "script", engine=scripted(writer={"first_fact": "", **drafted}, verifier=read, answerer=read), cache=False
        )
    )
    return ask(program, dspy.Example(question="", pair=pair).with_inputs("pair"))


@pytest.mark.parametrize(
    ("who_answers", "told"),
    [
        ({"both"}, "needs both"),
        ({"film", "man", "none"}, "not answered from both"),
        ({"both", "film"}, "the first is enough"),
        ({"both", "man"}, "the second is enough"),
        ({"both", "none"}, "needs both, known without"),
    ],
)
def test_a_question_is_kept_that_only_both_passages_answer(who_answers: set[str], told: str) -> None:
    draft = check(BRIDGE, who_answers)
    assert draft.stop_reason == told
    assert (draft.question, draft.answer, len(draft.sub_questions)) == (QUESTION, "Leytonstone", 2)
    assert draft.trace.lm_calls == (2 if told == "not answered from both" else 5)


def test_a_question_that_gives_its_answer_away_is_not_checked() -> None:
    draft = check(BRIDGE, {"both"}, "Is the director of Vertigo from Leytonstone?")
    assert (draft.stop_reason, draft.trace.lm_calls) == ("has its answer", 1)
    draft = check(BRIDGE, {"both"}, "Where is Alfred Hitchcock from?")
    assert (draft.stop_reason, draft.trace.lm_calls) == ("names what it is to describe", 1)
    call = BRIDGE._replace(name="read()")
    assert check(call, {"both"}, "Which read-only place is it?").stop_reason == "needs both"
    assert [check(BRIDGE, {"both"}, said).stop_reason for said in ("none", "None.", "")] == ["no question"] * 3
    assert check(BRIDGE, {"both"}, right="None").stop_reason == "needs both"


def test_a_comparison_names_its_answer_and_who_sees_one_side_may_guess() -> None:
    pair = BRIDGE._replace(kind="comparison", sentence=None, name="")
    draft = check(pair, {"both", "film", "man", "none"}, "Which is older, Vertigo or Hitchcock?", "Vertigo")
    assert (draft.stop_reason, draft.trace.lm_calls) == ("needs both", 2)


def test_no_document_is_in_both_halves() -> None:
    tied = [{"id": n, "gold": [f"d{n}", f"d{n + 1}"]} for n in range(6)]
    others = [{"id": 10 + n, "gold": [f"a{n}", {"title": f"b{n}", "sentence": 0}]} for n in range(9)]
    train, test = split([*tied, *others, {"id": 20}], seed=3)
    assert sorted(question["id"] for question in (*train, *test)) == [*range(6), *range(10, 19), 20]
    assert abs(len(train) - len(test)) <= 1
    names = [{str(gold[0])[:1] + str(gold[0])[1:] for q in half if (gold := q.get("gold"))} for half in (train, test)]
    assert not names[0] & names[1]
    assert {question["id"] for question in train} >= set(range(6)) or {q["id"] for q in test} >= set(range(6))
    assert split([*tied, *others], seed=3) == split([*tied, *others], seed=3)
