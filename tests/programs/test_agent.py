"""Agents: what they ask again with where a prompt is too long for its model, and under which name they cost."""

from __future__ import annotations

import re
from threading import Lock
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import ContextWindowExceededError

from polyhop.data.chain import ChainRetriever
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.costs import Ledger
from polyhop.engines.lexical import LexicalEngine
from polyhop.engines.models import roles
from polyhop.engines.requests import read_request
from polyhop.programs import PROGRAMS, new_program
from polyhop.programs.agent import Agent, ChatAdapter
from polyhop.signatures import AnswerFromPassages, NumberedPassage, NumberedPassages

from .scripted import Request, answer, playing, scripted

TOO_LONG = lm15.ContextLengthError("This model's maximum context length is 4096 tokens.")


def passages(*sentences: int, words: int = 5) -> NumberedPassages:
    """Passages of so many sentences each."""
    return NumberedPassages(
        passages=[
            NumberedPassage(number=n, title=f"Title {n}", sentences={s + 1: "word " * words for s in range(many)})
            for n, many in enumerate(sentences, 1)
        ]
    )


def shown(request: Request) -> list[str]:
    """The ids of the sentences in a prompt."""
    return re.findall(r"^(\d+s\d+) ", request.prompt, re.MULTILINE)


def demo(n: int) -> dspy.Example:
    return dspy.Example(question=f"Earlier {n}?", passages=passages(1), reasoning="", answer="x", confidence=1.0)


def refuse(limit: int) -> Any:
    """Refuses prompts that show more sentences, or any demo if the limit is negative."""

    def reply(request: Request) -> dict[str, Any]:
        if len(shown(request)) > abs(limit) or (limit < 0 and request.demos):
            raise TOO_LONG
        return answer(f"saw {', '.join(shown(request))}")

    return reply


@pytest.mark.parametrize("adapter", [ChatAdapter(), dspy.ChatAdapter(), dspy.JSONAdapter()])
@pytest.mark.parametrize(
    ("sentences", "limit", "asked"),
    [
        ((2, 2, 2, 2), 8, ["1s1 1s2 2s1 2s2 3s1 3s2 4s1 4s2"]),
        ((1, 1, 1, 1, 1), 2, ["1s1 2s1 3s1 4s1 5s1", "1s1 2s1"]),
        ((4, 1), 1, ["1s1 1s2 1s3 1s4 2s1", "1s1 1s2 1s3 1s4", "1s1 1s2", "1s1"]),
    ],
)
def test_half_of_the_passages_until_they_fit(
    sentences: tuple[int, ...], limit: int, asked: list[str], adapter: Any
) -> None:
    ledger = Ledger()
    with playing(scripted(answerer=refuse(limit)), adapter) as script, dspy.context(usage_tracker=ledger):
        reply = Agent(AnswerFromPassages)(question="Who?", passages=passages(*sentences))
    assert [" ".join(shown(request)) for request in script.requests] == asked
    # The answer is the one to what was shown, and is paid once.
    assert reply.answer == f"saw {', '.join(asked[-1].split())}"
    assert ledger.costs()["lm_calls"] == 1
    assert ledger.incidents == ({"prompt shortened": len(asked) - 1} if len(asked) > 1 else {})


def test_demos_go_last() -> None:
    agent = Agent(AnswerFromPassages)
    agent.demos = [demo(1), demo(2)]
    with playing(scripted(answerer=refuse(-1))) as script:
        assert agent(question="Who?", passages=passages(1, 1)).answer == "saw 1s1"
    assert [(len(shown(request)), request.demos) for request in script.requests] == [(2, 2), (1, 2), (1, 0)]
    assert len(agent.demos) == 2  # for the next question


def test_demos_of_one_call_go_too() -> None:
    with playing(scripted(answerer=refuse(-1))) as script:
        Agent(AnswerFromPassages)(question="Who?", passages=passages(1), demos=[demo(1)])
    assert [request.demos for request in script.requests] == [1, 0]


def test_the_error_is_raised_where_nothing_is_left() -> None:
    agent = Agent(AnswerFromPassages)
    agent.demos = [demo(1)]
    with playing(scripted(answerer=TOO_LONG)) as script, pytest.raises(ContextWindowExceededError):
        agent(question="Who?", passages=passages(2, 2))
    assert [(len(shown(each)), each.demos) for each in script.requests] == [(4, 1), (2, 1), (1, 1), (1, 0)]
    with playing(scripted(answerer=TOO_LONG)) as script, pytest.raises(ContextWindowExceededError):
        Agent(AnswerFromPassages)(question="Who?", passages=NumberedPassages(passages=[]))
    assert len(script.requests) == 1


def test_of_two_lists_the_longer_one_that_can_be_halved() -> None:
    class Two(dspy.Signature):
        """Compare."""

        kept: NumberedPassages = dspy.InputField()
        found: NumberedPassages = dspy.InputField()
        answer: str = dspy.OutputField()

    with playing(scripted(answerer=[TOO_LONG, TOO_LONG, {"answer": "x"}])) as script:
        Agent(Two)(kept=passages(1, words=500), found=passages(1, 1, 1, 1))
    assert [len(shown(request)) for request in script.requests] == [5, 3, 2]
    with playing(scripted(answerer=[TOO_LONG, {"answer": "x"}])) as script:
        Agent(Two)(kept=passages(1, 1), found=passages(1, 1, 1, 1))
    assert [len(shown(request)) for request in script.requests] == [6, 4]


def test_other_errors_shorten_nothing() -> None:
    with playing(scripted(answerer=lm15.InvalidRequestError("no"))) as script, pytest.raises(Exception, match="no"):
        Agent(AnswerFromPassages)(question="Who?", passages=passages(2, 2))
    assert len(script.requests) == 1


# --- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_agents_are_called_what_their_program_calls_them(name: str) -> None:
    for role, agents in roles(new_program(name)).items():
        assert [agent.role for agent in agents] == [role]


class Small:
    """The embedded engine with a context of so many characters."""

    def __init__(self, limit: int) -> None:
        self.limit, self.engine, self.refused, self._lock = limit, LexicalEngine(), 0, Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        system, messages = read_request(request)
        if len(system) + sum(len(message.text) for message in messages) > self.limit:
            with self._lock:
                self.refused += 1
            raise lm15.ContextLengthError(f"the prompt has more than {self.limit} characters")
        return self.engine.complete(request)


POOL = PassagePool(sample_passages())
QUESTIONS = [example.question for example in load_sample("dev")[:6]]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "direct"])
@pytest.mark.parametrize("limit", [3_500, 4_500])
def test_every_program_ends_with_an_answer_in_a_small_context(name: str, limit: int) -> None:
    program, engine, ledger = new_program(name, ChainRetriever(POOL), POOL), Small(limit), Ledger()
    program.set_lm(dspy.LM("small", engine=engine, cache=False, num_retries=0))
    for question in QUESTIONS:
        with dspy.context(usage_tracker=ledger):
            prediction = program(question=question)
        assert prediction.answer
        assert prediction.stop_reason
        assert all(item.text for item in prediction.evidence)
    assert ledger.incidents.get("prompt shortened", 0) == engine.refused
    if limit == 3_500:
        assert engine.refused
    assert set(ledger.by_agent()) <= set(roles(program))
