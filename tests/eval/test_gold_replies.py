"""What an agent should have replied to what it saw: each kind of field, with and without the evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dspy
import pytest

from polyhop import signatures
from polyhop.data.passages import Evidence
from polyhop.eval.oracle import CONFIDENT, GoldReplies
from polyhop.programs.candidates import Candidates
from polyhop.signatures.fields import NumberedPassages

from .small import DIRECTOR, FILM, NOISE, SOLARIS

EXAMPLE = SOLARIS.copy(pool=[NOISE, FILM, DIRECTOR])
ALL = Candidates([NOISE, FILM, DIRECTOR])
FIRST = ALL.show([Evidence(FILM), Evidence(NOISE)])
QUESTION = {"question": EXAMPLE.question}


def told(signature: type[dspy.Signature], own: Any = None, **inputs: Any) -> dict[str, Any]:
    return dict(GoldReplies(EXAMPLE).reply(signature, {**QUESTION, **inputs}, own or {}).told)


def test_plans_and_routes() -> None:
    plan = ["Who directed Solaris?", "Where was #1 born?"]
    assert told(signatures.AnalyzeQuestion) == {"sub_questions": plan}
    assert told(signatures.DrawRoadmap) == {"roadmap": plan}
    assert told(signatures.RouteQuestion) == {"route": "plan", "query": "none"}
    assert told(signatures.PlanResearch) == {"route": "plan", "sub_questions": plan}
    assert [step["question"] for step in told(signatures.PlanSteps)["steps"]] == plan
    refined = told(signatures.RefineQuestion, trajectory=[], next_question="Where was #1 born?")
    assert refined == {"refined_question": "Where was Andrei Tarkovsky born?"}


def test_agents_that_choose_evidence() -> None:
    shown = ALL.show()
    assert told(signatures.SelectEvidence, candidates=shown, selected=[]) == {"keep": ["2s2", "3s2"]}
    assert told(signatures.AddEvidence, candidates=shown, selected=["2"]) == {"add": ["3s2"]}
    assert told(signatures.FilterPassages, passages=shown) == {"useful": ["2", "3"]}
    chosen = {"requirements": [step.question for step in EXAMPLE.sub_questions], "chosen": ["2", "3"]}
    assert told(signatures.SelectSet, candidates=shown) == chosen
    assert told(signatures.FilterPassages, passages=FIRST) == {"useful": ["2"]}
    spans = told(signatures.FilterSpans, passages=FIRST, known=[], required=[])["spans"]
    assert spans == ["2s2 Andrei Tarkovsky directed it."]


def test_the_gatherer_answers_what_is_shown_and_asks_for_what_follows() -> None:
    inputs = {"sub_questions": ["a", "b"], "answers_so_far": [], "searched": []}
    assert told(signatures.GatherEvidence, **inputs, passages=FIRST) == {
        "answers": ["Andrei Tarkovsky [2s2]", "unknown"],
        "doubtful": [],
        "keep": ["2s2"],
        "required": ["Where was Andrei Tarkovsky born?"],
    }
    nothing = told(signatures.GatherEvidence, **inputs, passages=ALL.show([Evidence(NOISE)]))
    assert nothing["required"] == ["Who directed Solaris?"]  # the other waits for it
    alone = {**inputs, "sub_questions": ["Who was the director of Solaris, directed?"]}
    assert told(signatures.GatherEvidence, **alone, passages=FIRST)["answers"] == ["Andrei Tarkovsky [2s2]"]
    other = {**inputs, "sub_questions": ["What is the weather?"]}
    assert "answers" not in told(signatures.GatherEvidence, **other, passages=FIRST)


@pytest.mark.parametrize(
    ("own", "passages", "answer", "confidence"),
    [
        ("Moscow", ALL.show(), "Zavrazhye", CONFIDENT),
        ("zavrazhye", ALL.show(), "zavrazhye", CONFIDENT),
        ("Moscow", FIRST, "Moscow", 1 - CONFIDENT),  # no reply is better
        ("Zavrazhye", FIRST, "Zavrazhye", CONFIDENT),
    ],
)
def test_an_answer_is_right_where_the_evidence_is(
    own: str, passages: NumberedPassages, answer: str, confidence: float
) -> None:
    found = told(signatures.AnswerFromPassages, {"answer": own}, passages=passages)
    assert found == {"answer": answer, "confidence": pytest.approx(confidence)}


def test_an_answer_to_a_step() -> None:
    step = {"question": "Who directed the film Solaris?"}
    assert told(signatures.AnswerStep, {"answer": "Lem"}, **step, sources=FIRST) == {
        "cited": ["2s2"],
        "answer": "Andrei Tarkovsky",
    }
    assert told(signatures.AnswerStep, {"answer": "Lem"}, question="What is the weather?", sources=FIRST) == {}


def test_judges_and_revisers() -> None:
    shown, judged = ALL.show(), dict[str, Any](sub_questions=[])
    right = told(signatures.VerifyAnswer, passages=shown, proposed_answer="Zavrazhye", **judged)
    assert (right["attribution"], right["accuracy"], right["correction"]) == ("attributable", CONFIDENT, "Zavrazhye")
    assert right["missing"] == "none"
    half = told(signatures.VerifyAnswer, passages=FIRST, proposed_answer="Zavrazhye", **judged)
    assert half["missing"] == "Where was Andrei Tarkovsky born?"
    wrong = told(signatures.VerifyAnswer, passages=shown, proposed_answer="Moscow", **judged)
    assert (wrong["attribution"], wrong["correction"]) == ("contradictory", "Zavrazhye")
    without = told(signatures.JudgeAttribution, evidence=FIRST, answer="Zavrazhye")
    assert without == {"attribution": "extrapolatory"}
    revised = told(signatures.ReviseAnswer, sources=shown, draft="Moscow")
    assert revised == {"decision": "revised", "answer": "Zavrazhye", "cited": ["2s2", "3s2"]}
    assert told(signatures.ReviseAnswer, sources=FIRST, draft="Moscow") == {
        "decision": "unconfident",
        "answer": "Moscow",
    }


def test_agents_that_go_on_or_stop() -> None:
    inputs: dict[str, Any] = {"roadmap": [], "queries": []}
    assert told(signatures.DecideNext, passages=ALL.show(), **inputs) == {"action": "answer", "query": "none"}
    assert told(signatures.DecideNext, passages=FIRST, **inputs) == {
        "action": "retrieve",
        "query": "Where was Andrei Tarkovsky born?",
    }
    tried = {**inputs, "queries": ['"Where was Andrei Tarkovsky born?" - nothing useful']}
    assert told(signatures.DecideNext, passages=FIRST, **tried)["query"] == "Andrei Tarkovsky"
    for own, query in (
        ("Andrei Tarkovsky's town", "Andrei Tarkovsky's town"),  # as good
        ("Where was Andrei Tarkovsky born?", "Andrei Tarkovsky"),  # tried
        ("Tarkovsky", "Andrei Tarkovsky"),
    ):
        reply = {"action": "retrieve", "query": own}
        assert told(signatures.DecideNext, reply, passages=FIRST, **tried)["query"] == query
    tried["queries"] += ['"Andrei Tarkovsky" - no results']
    assert told(signatures.DecideNext, passages=FIRST, **tried) == {}


def test_a_title_that_the_agent_has_not_seen_is_no_query() -> None:
    """It would make up for a search that failed, and charge the agent for it."""
    oracle = GoldReplies(EXAMPLE.copy(pool=[NOISE, FILM, replace(DIRECTOR, title="Tarkovsky, Andrei")]))
    tried: dict[str, Any] = {"roadmap": [], "queries": ["Where was Andrei Tarkovsky born?"]}
    inputs = {**QUESTION, "passages": FIRST, **tried}
    for own in ({"action": "retrieve", "query": "Tarkovsky's town"}, {"action": "answer", "query": "none"}):
        assert oracle.reply(signatures.DecideNext, inputs, own).fields == own
    gathered = {**QUESTION, "sub_questions": ["a", "b"], "answers_so_far": [], "passages": FIRST}
    reply = oracle.reply(signatures.GatherEvidence, {**gathered, "searched": tried["queries"]}, {"required": ["x"]})
    assert reply.fields["required"] == ["x"]


def test_agents_that_assess_and_reason() -> None:
    assert told(signatures.AssessEvidence, evidence=FIRST) == {"sufficiency": 0.5}
    said: dict[str, Any] = {"thoughts": ["Andrei Tarkovsky directed it."]}
    assert told(signatures.ReasonOn, passages=ALL.show(), **said) == {"next_thought": "He was born in Zavrazhye."}
    said["thoughts"].append("He was born in Zavrazhye.")
    assert told(signatures.ReasonOn, passages=ALL.show(), **said) == {"next_thought": "So the answer is: Zavrazhye"}


def test_knowledge() -> None:
    state = {"focus": "", "known": ["Andrei Tarkovsky directed it."], "required": []}
    assert told(signatures.UpdateKnowledge, passages=ALL.show(), **state) == {
        "new_facts": ["He was born in Zavrazhye. (3s2)"],
        "gaps": [],
    }
    asked = {**state, "count": 2, "earlier": [], "evidence": ALL.show([Evidence(NOISE)])}
    assert told(signatures.ProposeQueries, **asked)["queries"] == ["Where was Andrei Tarkovsky born?"]
    statements = ["1. Andrei Tarkovsky directed it.", "2. The weather was fine."]
    checked = told(signatures.CheckFacts, {"supported": ["2"]}, required=[], passages=FIRST, statements=statements)
    assert checked["supported"] == ["2", "1"]


def test_benchmarks_without_sub_questions_tell_less() -> None:
    plain = GoldReplies(EXAMPLE.copy(sub_questions=()))
    assert plain.reply(signatures.AnalyzeQuestion, QUESTION, {}).told == {}
    assert plain.reply(signatures.RouteQuestion, QUESTION, {}).told == {"route": "plan", "query": "none"}
    inputs = {**QUESTION, "sub_questions": [], "answers_so_far": [], "searched": [], "passages": FIRST}
    found = plain.reply(signatures.GatherEvidence, inputs, {}).told
    assert found == {"keep": ["2s2"], "required": ["Andrei Tarkovsky"]}


def test_the_whole_reply_has_the_agents_own_fields_too() -> None:
    reply = GoldReplies(EXAMPLE).reply(signatures.AnswerDirectly, QUESTION, {"reasoning": "So.", "answer": "?"})
    assert reply.fields == {"reasoning": "So.", "answer": "?", "confidence": pytest.approx(1 - CONFIDENT)}
