"""Replies in the forms that models write, and what is read of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop import signatures as agents
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.programs import Naive
from polyhop.programs.adapter import schema_of
from polyhop.programs.reading import Reading, read
from polyhop.programs.trace import Unread
from polyhop.signatures import NumberedPassage, NumberedPassages

from .scripted import playing, scripted, steps
from .weak import FORMS, Weak, clean, play

AGENTS = [each for each in vars(agents).values() if isinstance(each, dspy.SignatureMeta)]
ANSWERER = agents.AnswerWithCitations.delete("missing")
"""An agent with a text, a short text, a number and a list."""
ANSWER = {"reasoning": "It is told.", "answer": "Paris", "confidence": 0.9, "citations": ["2s1", "3s2"]}
WRITTEN = [
    "[[ ## reasoning ## ]]\nIt is told.\n\n[[ ## answer ## ]]\nParis\n\n[[ ## confidence ## ]]\n90%\n\n"
    '[[ ## citations ## ]]\n["2s1", "3s2"]\n\n[[ ## completed ## ]]',
    "[[## reasoning ##]] It is told.\n[[## answer ##]] Paris\n[[## confidence ##]] 0.9 # note: the value you produce "
    "must be a single float value\n[[## citations ##]] 2s1, 3s2",
    "**[[ ## reasoning ## ]]**\nIt is told.\n**[[ ## answer ## ]]**\nParis\n**[[ ## confidence ## ]]**\nhigh\n"
    "**[[ ## citations ## ]]**\n- 2s1\n- 3s2",
    "Reasoning: It is told.\n**Answer:** Paris\nConfidence: 9/10\nCitations: [2s1], [3s2]",
    "### Reasoning\nIt is told.\n### Answer\nParis\n### Confidence\n0.9 (high)\n### Citations\n1. 2s1\n2. 3s2",
    "<reasoning>It is told.</reasoning><answer>Paris</answer><confidence>0,9</confidence>"
    "<citations>2s1 3s2</citations>",
    'Sure:\n```json\n{"reasoning": "It is told.", "answer": "Paris", "confidence": "90 %", "citations": "2s1 and 3s2"}'
    "\n```",
    "{'reasoning': 'It is told.', 'answer': 'Paris', 'confidence': .9, 'citations': ['2s1', '3s2',]}",
    "[[ ## answer ## ]]\n{answer}\n[[ ## reasoning ## ]]\nIt is told.\n[[ ## answer ## ]]\nParis\n"
    "[[ ## confidence ## ]]\nvery high, 0.9\n[[ ## citations ## ]]\n['2s1', '3s2']\n[[ ## question ## ]]\nAnother?",
]


@pytest.mark.parametrize("reply", WRITTEN)
def test_one_answer_in_many_forms(reply: str) -> None:
    assert read(ANSWERER, reply) == Reading(ANSWER, {}, is_object=reply.startswith("{"))


IDS, TEXTS, NUMBER = agents.SelectEvidence, agents.AnalyzeQuestion, agents.AssessEvidence
LABEL = agents.JudgeAttribution


@pytest.mark.parametrize(
    ("agent", "text", "value"),
    [
        (IDS, '["2s1", "3"]', ["2s1", "3"]),
        (IDS, "[2s1, 3]", ["2s1", "3"]),
        (IDS, '["2s1" "3s2"]', ["2s1", "3s2"]),
        (IDS, "2s1, 3; 4s2 and 5", ["2s1", "3", "4s2", "5"]),
        (IDS, "[2s1]", ["2s1"]),
        (IDS, "- [2s1]\n- 3: it names the man", ["[2s1]", "3: it names the man"]),
        (IDS, '```json\n["2s1"]\n```', ["2s1"]),
        (IDS, "[2]", ["2"]),
        *((IDS, text, []) for text in ("[]", "none", "None", "-", "", "N/A", "null", '["none"]', "[[]]"[1:3])),
        (agents.SelectSet, "[] (passages 1 and 2 are off topic)", []),
        (agents.SelectSet, "None of the 5 passages helps.", []),
        (agents.SelectSet, "[3.0, 1.0]", [3, 1]),
        (TEXTS, "1. Who wrote Dust?\n2. Where was #1 born?", ["Who wrote Dust?", "Where was #1 born?"]),
        (TEXTS, "Who wrote Dust?\nWhere was #1 born?", ["Who wrote Dust?", "Where was #1 born?"]),
        (TEXTS, "The parts:\n* Who wrote Dust,\n  the novel?\n* By whom?", ["Who wrote Dust, the novel?", "By whom?"]),
        (TEXTS, '"Who wrote Dust?", "Where was #1 born?"', ["Who wrote Dust?", "Where was #1 born?"]),
        (TEXTS, "Who wrote Dust?, Where was #1 born?", ["Who wrote Dust?", "Where was #1 born?"]),
        (TEXTS, "['Who wrote \"Dust\"?', 'Where was #1 born?']", ['Who wrote "Dust"?', "Where was #1 born?"]),
        (TEXTS, "Who wrote Dust, the novel?", ["Who wrote Dust, the novel?"]),
        (TEXTS, '["Who is Zoë \\u00c9mile?"]', ["Who is Zoë Émile?"]),
        (TEXTS, '["Who?"]\n\nThat is all [1].', ["Who?"]),
        (TEXTS, '"Dust" author?\n"Ash" author?', ['"Dust" author?', '"Ash" author?']),
        # Texts stay aligned with others, and are not taken apart.
        (TEXTS, '["none", "Ann Lee"]', ["none", "Ann Lee"]),
        (TEXTS, "1. None\n2. Ann Lee [2s1]", ["None", "Ann Lee [2s1]"]),
        (TEXTS, "Ann Lee [2s1, 4s3], unknown", ["Ann Lee [2s1, 4s3]", "unknown"]),
        (TEXTS, '["Ann Lee [2s1, 4s3]", "unknown"]', ["Ann Lee [2s1, 4s3]", "unknown"]),
        (agents.RefineQuestion, "[#1] was born where?", "[#1] was born where?"),
        (agents.AnswerStep, "Paris", "Paris"),
        (NUMBER, "0.9", 0.9),
        (NUMBER, "90%", 0.9),
        (NUMBER, "0.9 (high)", 0.9),
        (NUMBER, "high", 0.9),
        (NUMBER, "Very high.", 0.95),
        (NUMBER, "low", 0.1),
        (NUMBER, "not high", 0.1),
        (NUMBER, "9/10", 0.9),
        (NUMBER, "medium", 0.5),
        (NUMBER, ".5", 0.5),
        (NUMBER, "1", 1.0),
        (NUMBER, "I am 80% sure", 0.8),
        (NUMBER, "Step 2 is stated, so 0.9", 0.9),
        (NUMBER, "who knows", None),
        (NUMBER, "", None),
        (LABEL, "Attributable", "attributable"),
        (LABEL, '"attributable".', "attributable"),
        (LABEL, "**Contradictory** - it says so", "contradictory"),
        (LABEL, "It is extrapolatory.", "extrapolatory"),
        (LABEL, "not attributable but extrapolatory", "extrapolatory"),
        (LABEL, "attributable or contradictory? Neither", "attributable"),
        (LABEL, "it is not attributable", None),
        (LABEL, "yes", None),
    ],
)
def test_the_main_field_of_a_reply(agent: Any, text: str, value: Any) -> None:
    name = next(name for name, field in agent.output_fields.items() if field.is_required())
    found = read(agent, f"[[ ## {name} ## ]]\n{text}").values.get(name)
    assert found == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("agent", "reply", "values"),
    [
        (agents.AnswerStep, "Answer: 1941\nCited: [2], [5s1]", {"answer": "1941", "cited": [2, 5]}),
        (
            agents.PlanSteps,
            "Thought: One needs the other.\nSub-questions:\n- Who?\n- Where was #1?",
            {"thought": "One needs the other.", "sub_questions": ["Who?", "Where was #1?"]},
        ),
        (agents.AnswerWithCitations, '{"answer": "Paris", "confidence": {"value": 0.9}}', {"confidence": 0.5}),
        (agents.AnswerWithCitations, '{"answer": "Paris", "confidence": [0.9]}', {"confidence": 0.9}),
        (agents.AnswerWithCitations, "[[ ## answer ## ]] Paris [[ ## completed ## ]]", {"answer": "Paris"}),
        (agents.AnswerWithCitations, "1. Reasoning: So.\n2. Final Answer: Paris", {"answer": "Paris"}),
        (agents.AnswerWithCitations, "### Answer\r\nParis", {"answer": "Paris"}),
        (TEXTS, "**Sub-Questions:**\n1. Who?\n2. Where?", {"sub_questions": ["Who?", "Where?"]}),
    ],
)
def test_fields_in_their_forms(agent: Any, reply: str, values: dict[str, Any]) -> None:
    assert values.items() <= read(agent, reply).values.items()


# --- recorded replies -------------------------------------------------------------------------------------------------

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "recorded.jsonl").read_text().splitlines()]
"""Of Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, SHA-256 cc324af0...) over llama.cpp, asked on the sample corpus: with a
schema and without."""


@pytest.mark.parametrize("record", RECORDED, ids=range(len(RECORDED)))
def test_replies_of_a_real_model(record: dict[str, Any]) -> None:
    agent = next(each for each in [*AGENTS, ANSWERER] if list(each.output_fields) == record["outputs"])
    reading = read(agent, record["reply"], cut=record["finish"] == "length")
    if record["finish"] == "length":  # it ran on in its reasoning, before the answer
        assert reading.values.keys() == {"reasoning", "confidence", "citations"}
    else:
        assert reading.unread == {}
        assert reading.is_object is record["schema"]


# --- what is missing or cut -------------------------------------------------------------------------------------------


def test_each_field_is_read_for_itself() -> None:
    reading = read(ANSWERER, "Answer: Paris\nConfidence: who knows?\nCitations: 2s1")
    assert reading.values == {"reasoning": "", "answer": "Paris", "confidence": 0.5, "citations": ["2s1"]}
    assert reading.unread == {"reasoning": "", "confidence": "who knows?"}


@pytest.mark.parametrize(
    "reply", ["I cannot help with that.", "", "{}", "[[ ## reasoning ## ]]\nParis.", '{"answer": null}']
)
def test_a_reply_without_its_main_field_is_none(reply: str) -> None:
    assert "answer" not in read(agents.AnswerWithCitations, reply).values


def test_a_cut_reply_keeps_its_complete_fields_and_items() -> None:
    start = "[[ ## answer ## ]]\nParis\n\n[[ ## confidence ## ]]\n0.9\n\n[[ ## citations ## ]]\n"
    for text, items in [
        ('["3s1", "3s2", "3s8', ["3s1", "3s2"]),
        ('["3s1", "3s2", ', ["3s1", "3s2"]),
        ("- 3s1\n- 3s2\n- 3s", ["3s1", "3s2"]),
        ("3s1, 3s2, 3s", ["3s1", "3s2"]),
        ('["3s1", "3s2", "3s2", "3s2", "3s', ["3s1", "3s2"]),  # it runs on
        ("", []),
    ]:
        reading = read(ANSWERER, start + text, cut=True)
        assert reading.values == {"reasoning": "", "answer": "Paris", "confidence": 0.9, "citations": items}
    as_json = '{"answer": "Paris", "confidence": 0.9, "citations": ["3s1", "3s2", "3s'
    assert read(agents.AnswerWithCitations, as_json, cut=True).values["citations"] == ["3s1", "3s2"]


def test_an_empty_thought_before_a_list_that_was_cut_is_not_what_was_cut() -> None:
    reply = '[[ ## thought ## ]]\n\n\n[[ ## sub_questions ## ]]\n["Who?", "Where?", "Where?", "Wh'
    assert read(agents.PlanSteps, reply, cut=True).values == {"thought": "", "sub_questions": ["Who?", "Where?"]}


def test_what_was_cut_within_is_not_taken_for_a_value() -> None:
    assert "answer" not in read(agents.AnswerWithCitations, "[[ ## answer ## ]]\nPar", cut=True).values
    reading = read(agents.AnswerWithCitations, "[[ ## answer ## ]]\nParis\n[[ ## confidence ## ]]\n0.", cut=True)
    assert (reading.values["answer"], reading.values["confidence"]) == ("Paris", 0.5)
    whole = "[[ ## answer ## ]]\nParis\n[[ ## confidence ## ]]\n0.9\n[[ ## completed ## ]]\nand so on"
    assert read(agents.AnswerFromPassages, whole, cut=True).values["confidence"] == 0.9


@pytest.mark.parametrize(
    "text", ["1.1" * 3_000 + "x", "\n" * 19_000, '["' * 5_000, "[" * 5_000, "- " * 9_000, "1, " * 6_000]
)
def test_a_runaway_reply_takes_no_time(text: str) -> None:
    for agent in (agents.SelectEvidence, agents.AnswerWithCitations, agents.PlanSteps):
        read(agent, text)
        read(agent, f"[[ ## {next(iter(agent.output_fields))} ## ]]\n{text}", cut=True)


@given(st.data())
def test_no_reply_is_an_exception(data: st.DataObject) -> None:
    agent = data.draw(st.sampled_from(AGENTS))
    names = [f"[[ ## {name} ## ]]\n" for name in agent.output_fields] + [f'"{name}": ' for name in agent.output_fields]
    pieces = st.sampled_from([*names, *"[]{}\"',:-\n", "2s1", "none", "```json\n", "0.9", "# note: x", "é"]) | st.text(
        max_size=4
    )
    reading = read(agent, "".join(data.draw(st.lists(pieces, max_size=30))), data.draw(st.booleans()))
    required = {name for name, field in agent.output_fields.items() if field.is_required()}
    assert reading.values.keys() >= agent.output_fields.keys() - required
    json.dumps(reading.values)


# --- whole programs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cut", [False, True])
def test_weak_forms_fail_no_question(form: str, cut: bool) -> None:
    """The same answers as with clean replies, and as many calls, unless a lost field decides what is searched for."""
    for name in ("naive", "par_rag", "polyhop", "prism", "kair"):
        weak = play(name, Weak(form, cut))
        if form != "last field missing" and not (name == "kair" and cut):
            assert weak == clean(name)


def test_the_trace_says_what_was_not_read() -> None:
    pool = PassagePool(sample_passages())
    with playing(scripted(answerer="[[ ## answer ## ]]\nSteel\n[[ ## confidence ## ]]\nwho knows?")):
        prediction = Naive(pool)(question=load_sample("dev")[0].question)
    assert prediction.answer == "Steel"
    assert steps(prediction, Unread) == [Unread("answerer", ("reasoning", "confidence"), ("who knows?",))]
    assert prediction.trace.dropped == 1


# --- schemas ----------------------------------------------------------------------------------------------------------

SHOWN = NumberedPassages(passages=[NumberedPassage(number=2, title="T", sentences={1: "One.", 3: "Three."})])


def test_a_schema_bounds_lists_and_names_ids() -> None:
    schema = schema_of(agents.AnswerWithCitations, {"passages": SHOWN, "question": "Who?"})
    names = ["reasoning", "answer", "confidence", "citations", "missing"]
    assert list(schema["properties"]) == schema["required"] == names
    assert schema["properties"]["citations"]["items"] == {"type": "string", "enum": ["2", "2s1", "2s3"]}
    assert schema["properties"]["citations"]["maxItems"] == 24
    lengths = [
        each["maxLength"]
        for agent in AGENTS
        for form in schema_of(agent, {})["properties"].values()
        for each in (form, form.get("items", {}))
        if "maxLength" in each
    ]
    assert max(lengths) == 1_000  # with 4,000 the server crashes
    assert schema_of(agents.JudgeAttribution, {})["properties"]["attribution"]["enum"][0] == "attributable"
    many = NumberedPassages(
        passages=[
            NumberedPassage(number=n, title="T", sentences=dict.fromkeys(range(1, 9), "One.")) for n in range(1, 20)
        ]
    )
    assert "pattern" in schema_of(agents.SelectEvidence, {"candidates": many})["properties"]["keep"]["items"]
