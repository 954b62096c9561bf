"""What an agent should have replied to what it saw, field by field; and feedback that names what was missed."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import dspy
import pytest

from polyhop import signatures
from polyhop.data.passages import Evidence, Passage
from polyhop.eval import metrics
from polyhop.eval.oracle import CALIBRATION, CONFIDENT, GoldReplies, explain
from polyhop.optimizers.gepa import feedback_metric
from polyhop.programs import PROGRAMS, new_program
from polyhop.programs.candidates import Candidates
from polyhop.programs.trace import Trace

from .small import DIRECTOR, FILM, NOISE, SOLARIS

EXAMPLE = SOLARIS.copy(pool=[NOISE, FILM, DIRECTOR])
CANDIDATES = Candidates([NOISE, FILM, DIRECTOR])
ALL = CANDIDATES.show()
FIRST = CANDIDATES.show([Evidence(FILM), Evidence(NOISE)])  # without the second gold passage
NONE = CANDIDATES.show([Evidence(NOISE)])
PLAN, BORN = ["Who directed Solaris?", "Where was #1 born?"], "Where was Andrei Tarkovsky born?"
SURE, UNSURE = CONFIDENT, pytest.approx(1 - CONFIDENT)

DECIDE: dict[str, Any] = {"roadmap": [], "queries": [], "passages": FIRST}
KNOWN: dict[str, Any] = {"focus": "", "known": ["Andrei Tarkovsky directed it."], "required": []}
STATEMENTS = ["1. Andrei Tarkovsky directed it.", "2. The weather was fine."]
THOUGHTS = ["Andrei Tarkovsky directed it.", "He was born in Zavrazhye."]


def annotated(signature: str, inputs: dict[str, Any], reply: Any = None, example: dspy.Example = EXAMPLE) -> Any:
    """The fields that the annotations tell."""
    asked = {"question": example.question, **inputs}
    return dict(GoldReplies(example).reply(getattr(signatures, signature), asked, reply or {}).annotated)


@pytest.mark.parametrize(
    ("signature", "inputs", "expected"),
    [
        # plans
        ("AnalyzeQuestion", {}, {"sub_questions": PLAN}),
        ("DrawRoadmap", {}, {"roadmap": PLAN}),
        ("RouteQuestion", {}, {"route": "plan", "query": "none"}),
        ("PlanSteps", {}, {"sub_questions": PLAN}),
        ("RefineQuestion", {"trajectory": [], "next_question": PLAN[1]}, {"refined_question": BORN}),
        # evidence
        ("SelectEvidence", {"candidates": ALL, "selected": []}, {"keep": ["2s2", "3s2"]}),
        ("AddEvidence", {"candidates": ALL, "selected": ["2"]}, {"add": ["3s2"]}),
        ("FilterPassages", {"passages": ALL}, {"useful": ["2", "3"]}),
        ("FilterPassages", {"passages": FIRST}, {"useful": ["2"]}),
        ("SelectSet", {"candidates": ALL}, {"requirements": PLAN, "chosen": ["2", "3"]}),
        ("FilterSpans", {"passages": FIRST, "known": [], "required": []}, {"spans": ["2s2"]}),
        ("AssessEvidence", {"evidence": FIRST}, {"sufficiency": 0.5}),
        (
            "UpdateKnowledge",
            {**KNOWN, "passages": ALL},
            {"new_facts": ["He was born in Zavrazhye. (3s2)"], "gaps": []},
        ),
        # searches
        ("DecideNext", {**DECIDE, "passages": ALL}, {"action": "answer", "query": "none"}),
        ("DecideNext", DECIDE, {"action": "retrieve", "query": BORN}),
        (
            "DecideNext",
            {**DECIDE, "queries": [f'"{BORN}" - nothing useful']},
            {"action": "retrieve", "query": "Andrei Tarkovsky"},
        ),
        ("DecideNext", {**DECIDE, "queries": [BORN, "Andrei Tarkovsky"]}, {}),
        ("ProposeQueries", {**KNOWN, "earlier": [], "evidence": NONE}, {"queries": [BORN]}),
        # judgements
        ("JudgeAttribution", {"evidence": FIRST, "answer": "Zavrazhye"}, {"attribution": "extrapolatory"}),
        (
            "ReviseAnswer",
            {"sources": ALL, "draft": "Moscow"},
            {"decision": "revised", "answer": "Zavrazhye", "cited": ["2s2", "3s2"]},
        ),
        ("ReviseAnswer", {"sources": FIRST, "draft": "Moscow"}, {"decision": "unconfident", "answer": "Moscow"}),
        # thoughts
        ("ReasonOn", {"passages": ALL, "thoughts": THOUGHTS[:1]}, {"next_thought": THOUGHTS[1]}),
        ("ReasonOn", {"passages": ALL, "thoughts": THOUGHTS}, {"next_thought": "So the answer is: Zavrazhye"}),
    ],
)
def test_what_the_annotations_tell(signature: str, inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    assert annotated(signature, inputs) == expected


@pytest.mark.parametrize(
    ("signature", "inputs", "own", "expected"),
    [
        ("AnswerFromPassages", {"passages": ALL}, {"answer": "Moscow"}, {"answer": "Zavrazhye", "confidence": SURE}),
        ("AnswerFromPassages", {"passages": ALL}, {"answer": "zavrazhye"}, {"answer": "zavrazhye", "confidence": SURE}),
        ("AnswerFromPassages", {"passages": FIRST}, {"answer": "Moscow"}, {"answer": "Moscow", "confidence": UNSURE}),
        (
            "AnswerFromPassages",
            {"passages": FIRST},
            {"answer": "Zavrazhye"},
            {"answer": "Zavrazhye", "confidence": SURE},
        ),
        (
            "AnswerStep",
            {"question": "Who directed the film Solaris?", "sources": FIRST},
            {"answer": "Lem"},
            {"cited": ["2s2"], "answer": "Andrei Tarkovsky"},
        ),
        ("AnswerStep", {"question": "What is the weather?", "sources": FIRST}, {"answer": "Lem"}, {}),
        (  # what no passage states is asked for
            "AnswerWithCitations",
            {"passages": FIRST},
            {"answer": "Moscow"},
            {"answer": "Moscow", "confidence": UNSURE, "missing": BORN},
        ),
        (
            "AnswerWithCitations",
            {"passages": ALL},
            {"answer": "Moscow"},
            {"answer": "Zavrazhye", "confidence": SURE, "citations": ["2s2", "3s2"], "missing": "none"},
        ),
        *(  # an agent judges its own answer, as it should be
            ("VerifyAnswer", {"passages": ALL}, {"answer": own}, {"answer": "Zavrazhye", "attribution": "attributable"})
            for own in ("Zavrazhye", "Moscow")
        ),
        (
            "VerifyAnswer",
            {"passages": FIRST},
            {"answer": "Moscow"},
            {"answer": "Moscow", "attribution": "extrapolatory"},
        ),
        ("JudgeAttribution", {"evidence": ALL, "answer": "Moscow"}, {}, {"attribution": "contradictory"}),
        (
            "CheckFacts",
            {"required": [], "passages": FIRST, "statements": STATEMENTS},
            {"supported": ["2"]},
            {"supported": ["2", "1"], "relevant": ["2", "1"]},
        ),
        *(
            (
                "DecideNext",
                {**DECIDE, "queries": [BORN]},
                {"action": "retrieve", "query": own},
                {"action": "retrieve", "query": query},
            )
            for own, query in (
                ("Andrei Tarkovsky's town", "Andrei Tarkovsky's town"),  # as good
                (BORN, "Andrei Tarkovsky"),  # tried
                ("Tarkovsky", "Andrei Tarkovsky"),
            )
        ),
    ],
)
def test_a_reply_that_is_as_good_stays(signature: str, inputs: Any, own: Any, expected: dict[str, Any]) -> None:
    assert annotated(signature, inputs, own) == expected


def test_a_title_that_the_agent_has_not_seen_is_no_query() -> None:
    """It would make up for a search that failed, and charge the agent for it."""
    oracle = GoldReplies(EXAMPLE.copy(pool=[NOISE, FILM, replace(DIRECTOR, title="Tarkovsky, Andrei")]))
    inputs = {"question": EXAMPLE.question, **DECIDE, "queries": [BORN]}
    for reply in ({"action": "retrieve", "query": "Tarkovsky's town"}, {"action": "answer", "query": "none"}):
        assert oracle.reply(signatures.DecideNext, inputs, reply).fields == reply
    inputs = {"question": EXAMPLE.question, "earlier": [BORN], "evidence": FIRST}
    assert oracle.reply(signatures.ProposeQueries, inputs, {"queries": ["x"]}).fields["queries"] == ["x"]


def test_benchmarks_without_sub_questions_tell_less() -> None:
    plain = EXAMPLE.copy(sub_questions=())
    assert annotated("AnalyzeQuestion", {}, example=plain) == {}
    assert annotated("RouteQuestion", {}, example=plain) == {"route": "plan", "query": "none"}
    read = annotated("AnswerWithCitations", {"passages": FIRST}, {"answer": "unknown"}, example=plain)
    assert read == {"answer": "unknown", "confidence": UNSURE, "missing": "Andrei Tarkovsky"}


# --- feedback --------------------------------------------------------------------------------------------------------


def prediction(
    answer: str = "Zavrazhye",
    evidence: tuple[Evidence, ...] = (Evidence(FILM, 1), Evidence(DIRECTOR, 1)),
    ranking: tuple[Passage, ...] = (FILM, DIRECTOR, NOISE),
) -> dspy.Prediction:
    return dspy.Prediction(answer=answer, evidence=evidence, ranking=ranking, trace=Trace())


def of_call(signature: Any, reply: dict[str, Any], predicted: dspy.Prediction | None = None, **inputs: Any) -> str:
    """The feedback on one call, as GEPA asks for it."""
    call = [(dspy.Predict(signature), {"question": SOLARIS.question, **inputs}, dspy.Prediction(**reply))]
    metric: Any = feedback_metric(metrics.answer_f1)
    return str(metric(SOLARIS, predicted or prediction(), call, "agent", call).feedback)


def test_an_agent_of_which_the_annotations_tell_nothing_hears_how_the_program_did() -> None:
    assert of_call("question -> mood", {"mood": "good"}) == explain(metrics.attempt_of(SOLARIS, prediction()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_agent_of_every_program_hears_of_its_own_faults(name: str) -> None:
    shown = dict.fromkeys(("passages", "candidates", "evidence", "sources"), ALL)
    texts = {"question": SOLARIS.question, "next_question": PLAN[1]}
    texts |= dict.fromkeys(("answer", "draft"), "Moscow")
    special: dict[str, Any] = {"querier": {"evidence": NONE}, "checker": {"statements": STATEMENTS}}
    for agent, predictor in new_program(name).named_predictors():
        signature = predictor.signature
        inputs = {field: {**shown, **texts}.get(field, []) for field in signature.input_fields} | special.get(agent, {})
        reply: dict[str, Any] = {field: "Moscow" if "answer" in field else [] for field in signature.output_fields}
        reply |= dict.fromkeys(CALIBRATION & reply.keys(), 0.7) | (
            {"sufficiency": 0.0} if "sufficiency" in reply else {}
        )
        text = of_call(signature, reply, prediction("Moscow"), **inputs)
        assert "This reply has no fault." not in text, agent
        assert "The evidence is complete" not in text, agent  # the text for the whole program


def test_the_metric_is_what_gepa_wants() -> None:
    metric: Any = feedback_metric(metrics.answer_em)
    inspect.signature(metric).bind(None, None, None, None, None)
    result = metric(SOLARIS, prediction("Moscow"), [], "answerer", [])
    assert isinstance(result, dspy.Prediction)
    assert result.score == 0.0
    assert "expected" in result.feedback
    assert metric(SOLARIS, prediction(), []) is True  # exemplars are collected: a verdict
    assert metric(SOLARIS, prediction()).score == 1.0
