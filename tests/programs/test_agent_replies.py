"""How replies are read: thinking, prose, blocks of code and several answers, by one rule for all adapters."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import AdapterParseError
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data.pool import PassagePool
from polyhop.data.sample import sample_passages
from polyhop.engines.costs import Ledger
from polyhop.engines.replies import explain
from polyhop.programs import new_program
from polyhop.programs.agent import ChatAdapter, JSONAdapter, XMLAdapter

from .scripted import answer, playing, scripted


class Planned(dspy.Signature):
    """Plan."""

    question: str = dspy.InputField()
    reasoning: str = dspy.OutputField()
    steps: list[str] = dspy.OutputField()
    answer: str = dspy.OutputField()


ADAPTERS: dict[str, Any] = {"chat": ChatAdapter(), "json": JSONAdapter(), "xml": XMLAdapter()}
RIGHT = {"reasoning": "Because.", "steps": ["a", "b"], "answer": "Paris"}
DRAFT = {"reasoning": "Perhaps.", "steps": ["c"], "answer": "Rome"}


def said(kind: str, values: dict[str, Any]) -> str:
    """The values in the form of an adapter."""
    if kind == "json":
        return json.dumps(values)
    if kind == "xml":
        items = "".join(f"<item>{step}</item>" for step in values["steps"])
        return (
            f"<reasoning>{values['reasoning']}</reasoning>\n<steps>{items}</steps>\n<answer>{values['answer']}</answer>"
        )
    parts = [f"[[ ## {k} ## ]]\n{v if isinstance(v, str) else json.dumps(v)}" for k, v in values.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def read(kind: str, reply: str) -> Any:
    """What an adapter reads; None for a reply that it cannot read."""
    try:
        return ADAPTERS[kind].parse(Planned, reply)
    except AdapterParseError:
        return None


THINKING = [
    "<think>{}</think>",
    "<think>\n{}\n</think>\n\n",
    "<THINK>{}</Think>",
    "<thinking>{}</thinking>",
    "<think><think>x</think>{}</think>",
    "<think>{0}</think> <think>{0}</think>",
    "<think id='1'>{}</think >",
    "<think/><think>{}</think>",
    "<think><thinking></reasoning>{}</think>",
    "{}</think>",  # the template of the model's prompt opens it
    "So: {}\n</think>\n",
    "[THINK]{}[/THINK]",
    "\n[THINK]It says [/THINK] {}[/THINK]",
    "<seed:think>{}</seed:think>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
]


@pytest.mark.parametrize("kind", ADAPTERS)
@pytest.mark.parametrize("written", THINKING)
@pytest.mark.parametrize("drafted", ADAPTERS)
def test_a_draft_is_never_an_answer(kind: str, written: str, drafted: str) -> None:
    thinking = written.replace("{}", said(drafted, DRAFT)).replace("{0}", said(drafted, DRAFT))
    assert read(kind, thinking + said(kind, RIGHT)) == RIGHT
    assert read(kind, thinking) is None


@pytest.mark.parametrize("kind", ["chat", "json"])
def test_reasoning_is_thinking_where_tags_are_no_fields(kind: str) -> None:
    thinking = f"<reasoning>{said(kind, DRAFT)}</reasoning>"
    assert read(kind, thinking + said(kind, RIGHT)) == RIGHT
    assert read(kind, thinking) is None


@pytest.mark.parametrize("kind", ADAPTERS)
@pytest.mark.parametrize("drafted", ADAPTERS)
def test_thinking_that_does_not_end_is_no_answer(kind: str, drafted: str) -> None:
    draft = said(drafted, DRAFT)
    for opening in ("[THINK]", "<seed:think>", "<|channel|>analysis<|message|>"):
        assert read(kind, f"{opening}{draft}") is None
    for reply in (f"<think>{draft}", f"<think>a <think>b</think>{draft}", f"Well. <thinking>{draft}\n\n{draft}"):
        assert read(kind, reply) is None
    with pytest.raises(AdapterParseError, match="no answer after its thinking") as caught:
        ADAPTERS[kind].parse(Planned, f"<think>{draft}")
    assert explain(caught.value).endswith("Raise max_tokens in a profile, or try a model that thinks less.")
    assert "Rome" not in explain(caught.value)


@pytest.mark.parametrize("kind", ADAPTERS)
def test_thinking_in_the_middle_and_at_the_end(kind: str) -> None:
    middle = {"chat": "\n\n[[ ## answer", "json": ', "answer"', "xml": "<answer>"}[kind]
    reply = said(kind, RIGHT)
    assert read(kind, reply.replace(middle, f"<think>{said(kind, DRAFT)}</think>{middle}")) == RIGHT
    assert read(kind, f"{reply}\n<think>{said(kind, DRAFT)}</think>") == RIGHT
    assert read(kind, f"{reply}\n<think>{said(kind, DRAFT)}") == RIGHT


@pytest.mark.parametrize("kind", ADAPTERS)
def test_prose_and_blocks_of_code_around_an_answer(kind: str) -> None:
    fits = [said(kind, RIGHT), said("json", RIGHT), json.dumps(RIGHT, indent=2)]
    for reply in fits:
        for block in ("```json\n{}\n```", "```\n{}\n```"):
            assert read(kind, block.replace("{}", reply)) == RIGHT
            assert read(kind, f"Sure {{you}}!\n\n{block.replace('{}', reply)}\n") == RIGHT
        assert read(kind, f"Here it is:\n{reply}\n") == RIGHT
        assert read(kind, f"{reply}\n\n{reply}") == RIGHT  # twice the same


@pytest.mark.parametrize("kind", ADAPTERS)
@pytest.mark.parametrize("form", ["own", "json"])
def test_two_answers_are_none(kind: str, form: str) -> None:
    first, second = (said(kind if form == "own" else "json", values) for values in (DRAFT, RIGHT))
    for reply in (f"{first}\n\n{second}", f"Not {first}\nbut {second}", f"{second}\n```\n{first}\n```"):
        assert read(kind, reply) is None


def test_a_field_that_is_given_twice() -> None:
    assert read("json", '{"reasoning": "x", "steps": [], "answer": "Rome", "answer": "Paris"}') is None
    assert read("json", "{'reasoning': 'x', 'steps': [], 'answer': 'Rome'} {'reasoning': 'x', 'answer': 'a'}") is None
    assert read("json", "{'reasoning': 'x', 'steps': [], 'answer': 'Rome', 'answer': 'Paris'}") is None
    quoted = '"answer": "Rome" } {"reasoning": "x", "steps": [], "answer": "Rome"}'
    assert read("json", f"{{'reasoning': 'It says {quoted}', 'steps': [], 'answer': 'Paris'}}") is None
    assert read("chat", f"[[ ## answer ## ]]\nRome\n{said('chat', RIGHT)}") is None
    assert read("xml", f"<answer>Rome</answer>{said('xml', RIGHT)}") is None
    assert read("xml", f"<entry key='answer'>Rome</entry>{said('xml', RIGHT)}") is None


MARKED = 'It says [[ ## answer ## ]] Rome, and {"answer": "Rome"} & 3 < 4.'


def test_markers_inside_a_value_are_text() -> None:
    values = {**RIGHT, "reasoning": MARKED}
    for kind in ADAPTERS:
        assert read(kind, said(kind, values)) == values
        assert read(kind, said("json", values)) == values
    # A line that begins with a marker begins a field, so these are two answers.
    assert read("chat", said("chat", {**RIGHT, "reasoning": f"It says\n{MARKED[8:]}"})) is None
    assert read("json", json.dumps({**RIGHT, "reasoning": MARKED}, indent=2).replace("It says ", "It\nsays ")) == {
        **RIGHT,
        "reasoning": MARKED.replace("It ", "It\n"),
    }


def test_an_indented_field_is_whole() -> None:
    reply = f"  [[ ## answer ## ]] Paris\n{said('chat', {**RIGHT})}".replace("\n\n[[ ## answer ## ]]\nParis", "")
    assert read("chat", reply) == RIGHT


TEXT = st.text(st.characters(codec="utf-8", categories=["L", "N", "Zs", "P"]), max_size=20)
THOUGHT = st.recursive(TEXT.map(lambda text: f"<think>{text}</think>"), lambda inner: st.tuples(
    st.sampled_from(["think", "thinking"]), st.lists(inner | TEXT)
).map(lambda pair: f"<{pair[0]}>{''.join(pair[1])}{said('chat', DRAFT)}</{pair[0]}>"), max_leaves=4)  # fmt: skip


@settings(max_examples=60)
@given(
    before=st.lists(THOUGHT, max_size=3), after=st.lists(THOUGHT, max_size=2), kind=st.sampled_from(sorted(ADAPTERS))
)
def test_whatever_a_model_thinks(before: list[str], after: list[str], kind: str) -> None:
    assert read(kind, "".join([*before, said(kind, RIGHT), *after])) == RIGHT


PIECES = ["<think>", "</think>", "<answer>", "</answer>", "<reasoning>", "</reasoning>", "{", "}", '"', "'", ":", ",",
          '"answer"', "[[ ## answer ## ]]", "[[ ## steps ## ]]", "\n", "```", "Rome", "[", "]", "&", "\\", "\x00",
          "\ud800", *(said(kind, DRAFT) for kind in ADAPTERS), "<![CDATA[", "<!DOCTYPE a>"]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.sampled_from(sorted(ADAPTERS)))
def test_any_reply_is_read_or_refused(reply: str, kind: str) -> None:
    fields = read(kind, reply)
    assert fields is None or list(fields) == list(RIGHT)
    if "think>" not in reply:
        assert read(kind, f"<think>{reply}") is None
        assert read(kind, f"<think>{reply}</think>") is None


@pytest.mark.parametrize(
    "unit", ["<a>", "<steps>", "<steps>[", "<item>", "<answer>", "<entry key='steps'>[[", "&", "<", "<think>"]
)
def test_endless_xml_is_refused_at_once(unit: str) -> None:
    for length in (5_000, 1 << 18):
        many = unit * (length // len(unit))
        for reply in (many, f"<reasoning>x</reasoning><steps>{many}</steps><answer>x</answer>"):
            assert unit in "&<" or read("xml", reply) is None
            read("xml", reply)
    brackets = "[" * 65_536
    assert read("xml", f"<reasoning>x</reasoning><steps>{brackets}</steps><answer>x</answer>") is None
    assert read("xml", f"<reasoning>{brackets}</reasoning><steps></steps><answer>x</answer>")["steps"] == []


# --- whole calls -----------------------------------------------------------------------------------------------------


def thinking(text: str, *thoughts: str) -> lm15.Response:
    parts = [*map(lm15.ThinkingPart, thoughts), *([lm15.TextPart(text)] if text else [])]
    message = lm15.Message.assistant(parts)
    return lm15.Response(id="1", model="m", message=message, usage=lm15.Usage(), finish_reason="stop")


class Thinker:
    def __init__(self, *replies: lm15.Response) -> None:
        self.replies = list(replies)

    def complete(self, request: lm15.Request) -> lm15.Response:
        return self.replies.pop(0)


@pytest.mark.parametrize("kind", ADAPTERS)
def test_what_a_model_thinks_in_a_field_of_its_own_is_not_read(kind: str) -> None:
    replies = thinking(said(kind, RIGHT), said(kind, DRAFT)), thinking("", said(kind, DRAFT)), thinking("", "x")
    lm = dspy.LM("m", engine=Thinker(*replies), cache=False)
    with dspy.context(lm=lm, adapter=ADAPTERS[kind]):
        assert dspy.Predict(Planned)(question="?").toDict() == RIGHT
        with pytest.raises(AdapterParseError, match="empty or null"):
            dspy.Predict(Planned)(question="?")


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.XMLAdapter()])
def test_a_reply_that_is_only_thinking_is_an_incident(adapter: Any) -> None:
    program, ledger = new_program("naive", PassagePool(sample_passages())), Ledger()
    script = scripted(answerer=[f"<think>{said('chat', answer('Rome'))}", answer("Paris")])
    with playing(script, adapter), dspy.context(usage_tracker=ledger):
        assert program(question="Who?").answer == "Paris"
    assert ledger.incidents == {"asked again as JSON": 1}
    script = scripted(answerer=[f"<think>{said('chat', answer('Rome'))}"])
    with playing(script, adapter), pytest.raises(AdapterParseError, match="no answer after its thinking"):
        program(question="Who?")


@pytest.mark.parametrize("kind", ["chat", "xml"])
def test_an_awaited_reply_is_read_by_the_same_rule(kind: str) -> None:
    ledger = Ledger()
    script = scripted(answerer=["<think>x", {"answer": "Paris"}])
    with playing(script, ADAPTERS[kind]), dspy.context(usage_tracker=ledger):
        assert asyncio.run(dspy.Predict("question -> answer").acall(question="?")).answer == "Paris"
    assert ledger.incidents == {"asked again as JSON": 1}
