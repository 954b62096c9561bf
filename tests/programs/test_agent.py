"""Agents: what they ask again with where a prompt is too long for its model, and under which name they cost."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils.callback import BaseCallback

from polyhop.engines.costs import Ledger
from polyhop.programs import current, record
from polyhop.programs.agent import Agent, shown_demos
from polyhop.programs.run import Run, running, together
from polyhop.programs.trace import Decided, Shortened
from polyhop.signatures import AnswerFromPassages, NumberedPassage, NumberedPassages

from .scripted import ADAPTERS, Request, answer, playing, scripted

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


class Listening(BaseCallback):
    """Notes what models are asked."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.asked.append(str(inputs))


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(("sentences", "limit"), [((2, 2, 2, 2), 8), ((1, 1, 1, 1, 1), 2), ((4, 1), 1)])
def test_the_first_half_until_it_fits(sentences: tuple[int, ...], limit: int, adapter: Any) -> None:
    ledger, whole = Ledger(), [f"{n}s{s + 1}" for n, many in enumerate(sentences, 1) for s in range(many)]
    with playing(scripted(answerer=refuse(limit)), adapter) as script, dspy.context(usage_tracker=ledger):
        reply = Agent(AnswerFromPassages)(question="Who?", passages=passages(*sentences, words=50))
    asked = [shown(request) for request in script.requests]
    assert asked[0] == whole
    for before, after in pairwise(asked):
        assert after == whole[: len(after)]
        assert len(after) <= max(1, len(before) // 2)
    # The answer is the one to what was shown, and is paid once.
    assert reply.answer == f"saw {', '.join(asked[-1])}"
    assert ledger.costs()["lm_calls"] == 1
    assert ledger.incidents == ({"prompt shortened": len(asked) - 1} if len(asked) > 1 else {})


def test_demos_go_last() -> None:
    agent = Agent(AnswerFromPassages)
    agent.demos = [demo(1), demo(2)]
    with playing(scripted(answerer=refuse(-1))) as script:
        assert agent(question="Who?", passages=passages(1, 1)).answer == "saw 1s1"
    assert [request.demos for request in script.requests if request.demos == 0 or len(shown(request)) == 2] == [2, 0]
    assert len(agent.demos) == 2  # for the next question


def test_of_equal_passages_the_last_are_left_out_where_they_exceed_the_tokens_of_a_prompt() -> None:
    run = Run(prompt_tokens=2_000)
    with running(run), playing(scripted()) as script:
        Agent(AnswerFromPassages)(question="Who?", passages=passages(2, 2, 2, words=400))
        Agent(AnswerFromPassages)(question="Who?", passages=passages(2, 2, words=40))
        Agent(AnswerFromPassages)(question="Who?", passages=passages(1, words=100_000))
        Agent(AnswerFromPassages)(question="Wer hat die Mühle gebaut?", passages=passages(2, 2, 2, words=380))
    long, short, endless, german = script.requests
    assert shown(long) == shown(german) == ["1s1", "1s2", "2s1"]
    assert shown(short) == ["1s1", "1s2", "2s1", "2s2"]
    assert shown(endless) == ["1s1"]
    assert all(len(each.prompt) < 4 * 2_000 for each in script.requests)
    cut = [step for step in run.trace.steps if isinstance(step, Shortened)]
    assert {(step.agent, step.needed > 2_000, step.shown < 2_000) for step in cut} == {
        ("AnswerFromPassages", True, True)
    }
    assert (len(cut), run.trace.lm_calls) == (3, 4)


def test_of_long_passages_the_sentences_about_the_question_are_shown() -> None:
    long = passages(300, 300, 300, words=20)
    for n, told in enumerate(("Its owner is Greta Lund.", "Lund has a house.", "It is a town."), 1):
        long.passages[n - 1].sentences[250] = told
    long.passages[1].title = "Greta Lund"
    with running(Run(prompt_tokens=1_500)), playing(scripted()) as script:
        Agent(AnswerFromPassages)(question="In which town does the owner of Kiln 7 live?", passages=long)
    ids = shown(script.requests[0])
    assert {f"{n}s{at}" for n in (1, 2, 3) for at in (249, 250, 251)} < set(ids)  # with what stands beside them
    assert len(ids) < 60
    assert ids == sorted(ids, key=lambda id: [int(part) for part in id.split("s")])  # in their order


def test_a_question_that_is_asked_again_does_not_get_the_cached_reply() -> None:
    asked = list[str]()
    for attempt in (1, 2):
        with playing(scripted()), dspy.context(usage_tracker=Ledger(attempt), callbacks=[Listening(asked)]):
            for config in ({}, {"rollout_id": 1}, {"rollout_id": 2}):  # of agents that share no reply
                Agent(AnswerFromPassages)(question="Who?", passages=passages(1), config=config)
    assert ["rollout_id" in each for each in asked] == [False, *[True] * 5]
    assert len(set(asked)) == 6


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Wer hat die alte Mühle am Fluss gebaut?", True),
        ("水車小屋は誰が建てたのですか。", True),
        ("Who built the old mill by the river?", False),
        ("Gauß?", False),
    ],
)
def test_answers_are_asked_for_in_the_language_of_the_question(question: str, told: bool) -> None:
    prompts = list[str]()
    with playing(scripted()), dspy.context(callbacks=[Listening(prompts)]):
        Agent(AnswerFromPassages)(question=question, passages=passages(1), config={"rollout_id": 7})
    assert ("Answer in the language of the question." in prompts[-1]) == told


# --- together -------------------------------------------------------------------------------------------------------


def test_a_failure_is_raised_when_all_are_done_and_their_steps_are_kept() -> None:
    run, done = Run(), []

    def fails() -> None:
        record(Decided("failing"))
        current().trace.calls += 1
        raise ValueError("first")

    def works() -> None:
        record(Decided("working"))
        current().trace.calls += 2
        done.append(1)

    with running(run), pytest.raises(ValueError, match="first"):
        together([fails, works])
    assert done == [1]
    assert [step.action for step in run.trace.flat() if isinstance(step, Decided)] == ["failing", "working"]
    assert (run.trace.lm_calls, run.trace.lm_calls_critical_path) == (3, 2)


def test_a_demo_with_a_class_of_the_users_own_is_shown_as_it_is() -> None:
    class Own:
        pass

    signature = dspy.Signature("question -> answer, numbers: list[int]").append("extra", dspy.OutputField(), object)
    own = Own()
    demos = [{"question": "q", "answer": "a", "numbers": ("x",), "extra": own, "gold": 1}, {"question": "q"}]
    assert [dict(demo) for demo in shown_demos(signature, demos)] == [{"question": "q", "answer": "a", "extra": own}]
