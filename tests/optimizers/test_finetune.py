"""Training agents: a provider gets the calls that were sent on questions answered well, and its model plays on."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.data.errors import PolyhopError
from polyhop.engines.limits import LimitedLM, RateLimit
from polyhop.engines.models import roles
from polyhop.eval.metrics import answer_f1
from polyhop.optimizers.finetune import finetune
from polyhop.programs import C3PO

from ..programs.scripted import Request, Script, answer, lm, scripted
from .prompts.world import TOWNS, questions
from .school import School

PROXY = C3PO.role_groups["proxy"]


def decide(request: Request) -> dict[str, Any]:
    """Two searches, then an answer."""
    done = request.inputs["queries"].count(" - ")
    action = "retrieve" if done < 2 else "answer"
    return {"thought": "Next.", "action": action, "query": f"Book [[ ## query ## ]] {done}"}


def reader(request: Request) -> dict[str, Any]:
    """Right about the first question only."""
    return answer(TOWNS[0] if "Book 0" in request.inputs["question"] else "unknown")


def team(guard: bool = False) -> tuple[C3PO, School, Script]:
    """C-3PO with a proxy that can be trained, and the proxy's script."""
    school, script, program = School(), scripted(decider=decide), C3PO()
    program.set_lm(lm(scripted(answerer=reader)))
    plain = dspy.LM("openai/small", engine=script, cache=False, provider=school)
    model = LimitedLM(plain, RateLimit()) if guard else plain
    for role in PROXY:
        for predictor in roles(program)[role]:
            predictor.lm = model
    return program, school, script


@pytest.mark.parametrize("guard", [False, True])
def test_a_proxy_learns_the_calls_that_were_sent_on_questions_answered_well(guard: bool) -> None:
    program, school, script = team(guard)
    trained = finetune(program, questions(2, 0), answer_f1, PROXY, train_kwargs={"n_epochs": 2})
    ((model, data, form, settings),) = school.lessons
    assert (model, form, settings) == ("openai/small", "chat", {"n_epochs": 2})
    sent = [
        [("system", request.system), *((each.role, each.text) for each in request.messages)]
        for request in script.requests
        if "Book 0" in str(request.inputs)
    ]
    learned = [[(each["role"], each["content"]) for each in line["messages"]] for line in data]
    assert sorted(line[:-1] for line in learned) == sorted(sent)  # not those on the question answered wrong
    asked = [request.agent for request in script.requests if "Book 0" in str(request.inputs)]
    assert asked.count("decider") == 3
    assert set(asked) == {"router", "filter", "decider"}
    assert all(role == "assistant" for role, _ in (line[-1] for line in learned))
    assert sum("[[ ## action ## ]]\nretrieve" in text for line in learned for _, text in line[-1:]) == 2

    assert {role: predictor.lm.model for role, (predictor,) in roles(trained).items()} == {
        role: "trained" if role in PROXY else "scripted" for role in roles(program)
    }
    assert isinstance(trained.router.lm, LimitedLM) == guard
    assert program.router.lm.model == "openai/small"
    example = questions(1, 0)[0]
    assert trained(**example.inputs()).answer == TOWNS[0]
    assert script.requests[-1].agent == "decider"


def test_what_cannot_be_trained() -> None:
    program, school, _ = team()
    for agents, message in (
        ([], "cannot train no agent: the agents are router, "),
        (["chef"], "cannot train chef: the agents are router, "),
        (["router", "answerer"], "router, answerer have different models"),
        (["answerer"], "scripted cannot be trained: its provider does not offer it"),
    ):
        with pytest.raises(PolyhopError, match=message):
            finetune(program, questions(1, 0), answer_f1, agents)
    assert not school.lessons


def test_nothing_is_trained_without_a_question_answered_well() -> None:
    program, school, _ = team()
    with pytest.raises(PolyhopError, match="no question was answered well enough"):
        finetune(program, questions(2, 0)[1:], answer_f1, PROXY)
    assert not school.lessons


def test_a_failed_question_is_no_lesson_and_a_failed_training_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    program, school, _ = team()
    pair = questions(2, 0)
    finetune(program, [pair[0], pair[1].copy(question="")], answer_f1, PROXY)
    assert len(school.lessons) == 1

    def refuse(**given: Any) -> str:
        raise ConnectionError("no such job")

    monkeypatch.setattr(school, "finetune", refuse)
    with pytest.raises(ConnectionError, match="no such job"):
        finetune(program, pair[:1], answer_f1, PROXY)
