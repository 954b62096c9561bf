"""Feedback names what was missed, agent by agent."""

from __future__ import annotations

import inspect
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Evidence, Passage
from polyhop.eval import metrics
from polyhop.eval.oracle import CALIBRATION, Call, explain
from polyhop.eval.scoring import exact_match
from polyhop.optimizers.gepa import feedback_metric
from polyhop.programs import PROGRAMS, new_program
from polyhop.programs.candidates import Candidates
from polyhop.programs.trace import Trace
from polyhop.signatures import AnswerFromPassages, SelectEvidence

from .small import DIRECTOR, FILM, NOISE
from .small import SOLARIS as EXAMPLE


def prediction(
    answer: str = "Zavrazhye",
    evidence: tuple[Evidence, ...] = (Evidence(FILM, 1), Evidence(DIRECTOR, 1)),
    ranking: tuple[Passage, ...] = (FILM, DIRECTOR, NOISE),
    steps: tuple[Any, ...] = (),
) -> dspy.Prediction:
    return dspy.Prediction(answer=answer, evidence=evidence, ranking=ranking, trace=Trace(list(steps)))


def of_program(example: dspy.Example, given: dspy.Prediction, call: Call | None = None) -> str:
    return explain(metrics.attempt_of(example, given), call)


ONE = (Evidence(FILM, 1),)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (prediction(), "The evidence is complete, and nothing in it is irrelevant."),
        (
            prediction("Moscow"),
            """The answer "Moscow" is wrong: expected 'Zavrazhye' or 'Zavrazhye village'. The evidence""",
        ),
        (prediction("Zavrazhye in Russia"), "'Zavrazhye village'. It shares words with that: give exactly the name"),
        (prediction(evidence=ONE), 'The final evidence misses "Andrei Tarkovsky".'),
        (
            prediction(evidence=(*ONE, Evidence(NOISE))),
            'It contains what the answer does not need: "Solaris (novel)".',
        ),
        (prediction(evidence=ONE, ranking=(FILM,)), 'The search did not find "director"'),  # the id is all there is
    ],
)
def test_the_program_hears_what_it_missed(given: dspy.Prediction, told: str) -> None:
    assert told in of_program(EXAMPLE, given)
    right = exact_match(given.answer, EXAMPLE.answers)
    assert ('The answer "Zavrazhye" is right. ' in of_program(EXAMPLE, given)) == right


def test_what_is_known_of_a_question_names_what_was_not_found() -> None:
    pool = of_program(EXAMPLE.copy(pool=[FILM, DIRECTOR]), prediction(evidence=(), ranking=(FILM,)))
    assert 'The search did not find "Andrei Tarkovsky"' in pool
    unanswerable, nothing = dspy.Example(question="q", answers=("unknown",)), prediction("Paris", (), ())
    assert of_program(unanswerable, nothing) == """The answer "Paris" is wrong: expected 'unknown'."""


def of_call(signature: Any, own: dict[str, Any], given: dspy.Prediction | None = None, **inputs: Any) -> str:
    """The feedback on one call, as GEPA asks for it."""
    predictor = dspy.Predict(signature)
    call = [(predictor, {"question": EXAMPLE.question, **inputs}, dspy.Prediction(**own))]
    metric: Any = feedback_metric(metrics.answer_f1)
    return str(metric(EXAMPLE, given or prediction(), call, "agent", call).feedback)


CANDIDATES = Candidates([NOISE, FILM, DIRECTOR])
ALL, SOME = CANDIDATES.show(), CANDIDATES.show([Evidence(NOISE), Evidence(FILM)])


def test_agents_that_choose_hear_what_they_left_out_and_chose_in_vain() -> None:
    text = of_call(SelectEvidence, {"keep": ["1s1", "2s2"]}, candidates=ALL, selected=[])
    assert text == (
        'keep left out [3s2] "Andrei Tarkovsky" (He was born in Zavrazhye.). '
        'keep has what is not needed: [1s1] "Solaris (novel)" (A novel by Lem.). '
        'The answer "Zavrazhye" is right.'
    )
    without = of_call(SelectEvidence, {"keep": ["2s2"]}, candidates=SOME, selected=[])
    assert without.startswith(
        "This reply has no fault. It was not shown all that the answer needs of Andrei Tarkovsky."
    )


def test_answerers_are_judged_by_what_they_saw() -> None:
    wrong = {"answer": "Moscow", "confidence": 0.9}
    text = of_call(AnswerFromPassages, wrong, prediction("Moscow"), passages=ALL)
    assert text.startswith('answer should be "Zavrazhye", not "Moscow".')
    text = of_call(AnswerFromPassages, wrong, prediction("Moscow"), passages=SOME)
    assert text.startswith("confidence 0.9 is too high: 0.05 would be right.")
    assert "It was not shown all that the answer needs of Andrei Tarkovsky." in text


def test_an_agent_of_which_the_annotations_tell_nothing_hears_how_the_program_did() -> None:
    assert of_call("question -> mood", {"mood": "good"}) == of_program(EXAMPLE, prediction())


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_agent_of_every_program_hears_of_its_own_faults(name: str) -> None:
    shown = dict.fromkeys(("passages", "candidates", "evidence", "sources"), ALL)
    texts = {
        "question": EXAMPLE.question,
        "answer": "Moscow",
        "proposed_answer": "Moscow",
        "draft": "Moscow",
        "next_question": "Where was #1 born?",
    }
    for agent, predictor in new_program(name).named_predictors():
        signature = predictor.signature
        inputs = {field: {**shown, **texts}.get(field, []) for field in signature.input_fields}
        if agent == "querier":
            inputs["evidence"] = SOME
        if agent == "checker":
            inputs["statements"] = ["1. Andrei Tarkovsky directed it."]
        own: dict[str, Any] = {field: "Moscow" if "answer" in field else [] for field in signature.output_fields}
        own |= {
            field: 0.7 if field != "sufficiency" else 0.0 for field in CALIBRATION if field in signature.output_fields
        }
        text = of_call(signature, own, prediction("Moscow"), **inputs)
        assert "This reply has no fault." not in text, agent
        assert "The evidence is complete" not in text, agent  # the text for the whole program


def test_the_metric_is_what_gepa_wants() -> None:
    metric: Any = feedback_metric(metrics.answer_em)
    inspect.signature(metric).bind(None, None, None, None, None)
    result = metric(EXAMPLE, prediction("Moscow"), [], "answerer", [])
    assert isinstance(result, dspy.Prediction)
    assert result.score == 0.0
    assert "expected" in result.feedback
    assert metric(EXAMPLE, prediction(), []) is True  # exemplars are collected: a verdict
    assert metric(EXAMPLE, prediction()).score == 1.0
