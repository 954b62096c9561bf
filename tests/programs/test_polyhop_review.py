"""polyhop's answers in doubt: verified, corrected, looked for again; confidence, and when it abstains."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.programs.trace import Judged, Replaced, Weighed

from .polyhop_script import (
    cited,
    facts,
    play,
    steps,
)
from .scripted import answer

DOUBTFUL: dict[str, Any] = {"selector": {"keep": ["1s2", "3s2"]}, "answerer": cited("Leytonstone", 0.3)}


def verdict(attribution: str = "attributable", accuracy: Any = 0.9, correction: str = "Leytonstone") -> dict[str, Any]:
    return {"attribution": attribution, "accuracy": accuracy, "correction": correction}


def test_an_answer_in_doubt_is_verified() -> None:
    script, prediction = play(**DOUBTFUL, verifier=verdict())
    assert script.order == ["planner", "selector", "adder", "answerer", "verifier"]
    asked = script.asked("verifier")[0].inputs
    assert asked["proposed_answer"] == "Leytonstone"
    assert asked["evidence"] == script.asked("answerer")[0].inputs["evidence"]
    weighed = steps(prediction, Weighed)[0]
    assert weighed.passed
    assert prediction.confidence == pytest.approx(weighed.alpha * 0.9 + (1 - weighed.alpha) * 1.0)
    assert steps(prediction, Judged) == [Judged("verification", 0.9, "attributable")]


@pytest.mark.parametrize(
    ("review", "reply", "verified"),
    [
        ("doubt", cited("Leytonstone", 0.9), False),
        ("doubt", cited("yes", 0.9), False),
        ("doubt", cited("Atlantis", 0.9), True),  # not in the evidence
        ("doubt", cited("unknown", 0.9), True),
        ("always", cited("Leytonstone", 0.9), True),
        ("never", cited("Atlantis", 0.1), False),
    ],
)
def test_when_an_answer_is_verified(review: str, reply: dict[str, Any], verified: bool) -> None:
    script, _ = play(settings={"review": review}, selector={"keep": ["1s2", "3s2"]}, answerer=reply, verifier=verdict())
    assert bool(script.asked("verifier")) == verified


def test_the_verifier_may_correct_from_the_evidence() -> None:
    script, prediction = play(**DOUBTFUL, verifier=verdict("contradictory", 0.1, "Alfred Hitchcock"))
    assert script.order[-1] == "verifier"  # no further call
    assert prediction.answer == "Alfred Hitchcock"
    assert prediction.confidence == pytest.approx(0.7)  # (0.9 + 0.5) / 2: the correction was not judged
    assert steps(prediction, Replaced)[0].answer == "Alfred Hitchcock"


@pytest.mark.parametrize(("proposed", "confidence"), [("Leytonstone", 0.75), ("unknown", 0.25)])
def test_a_correction_is_never_certain(proposed: str, confidence: float) -> None:
    _, prediction = play(
        selector={"keep": ["1s2", "3s2"]},
        answerer=cited(proposed, 0.3),
        verifier=verdict("contradictory", 0.0, "Vertigo"),
    )
    assert (prediction.answer, prediction.confidence) == ("Vertigo", confidence)


def test_who_does_not_know_after_all_looks_it_up() -> None:
    script, prediction = play(
        planner={"route": "direct", "sub_questions": []}, answerer=[answer("unknown", 0), cited("Leytonstone")],
        selector={"keep": ["3"]},
    )  # fmt: skip
    assert script.order == ["planner", "answerer", "selector", "adder", "answerer"]
    assert prediction.answer == "Leytonstone"


def test_a_correction_from_nowhere_is_not_taken() -> None:
    _, prediction = play(**DOUBTFUL, verifier=verdict("extrapolatory", 0.1, "Atlantis"))
    assert prediction.answer == "Leytonstone"
    assert prediction.confidence < 0.5


def test_an_answer_that_lacks_a_step_is_looked_for_again() -> None:
    """The answer is the query; what it finds completes the evidence, and the question is answered anew."""
    script, prediction = play(
        k=2, selector={"keep": ["1s2"]}, adder=[{"add": [], "required": []}, {"add": ["3s2"], "required": []}],
        answerer=[cited("Hitchcock", 0.3), cited("Leytonstone", 0.8)],
        verifier=verdict("extrapolatory", 0.2, "unknown"),
    )  # fmt: skip
    assert script.order == ["planner", "selector", "adder", "answerer", "verifier", "adder", "answerer"]
    assert [record["query"] for record in prediction.trace.to_records() if record["step"] == "searched"][
        -1
    ] == "Hitchcock"
    assert (prediction.answer, prediction.confidence) == ("Leytonstone", 0.8)
    assert facts(prediction) == [("film", 1), ("man", 1)]


def test_a_second_answer_must_be_surer() -> None:
    _, prediction = play(
        k=2, selector={"keep": ["1s2"]}, adder=[{"add": [], "required": []}, {"add": ["3s2"], "required": []}],
        answerer=[cited("Hitchcock", 0.3), cited("Dan", 0.2)], verifier=verdict("extrapolatory", 0.2, "unknown"),
    )  # fmt: skip
    assert prediction.answer == "Hitchcock"


def test_nothing_is_looked_for_where_nothing_is_missing_or_new() -> None:
    for attribution in ("attributable", "extrapolatory"):  # all four passages are candidates already
        script, prediction = play(**DOUBTFUL, verifier=verdict(attribution, 0.1, "unknown"))
        assert script.order[-1] == "verifier"
        assert prediction.answer == "Leytonstone"


def test_an_unreadable_verdict_speaks_against_the_answer() -> None:
    script, prediction = play(**DOUBTFUL, verifier="Well, who knows?")
    assert [request.as_json for request in script.asked("verifier")] == [False, True]
    assert steps(prediction, Judged)[0] == Judged("verification", 0.0, "", ("the verdict could not be read",))
    assert prediction.answer == "Leytonstone"
    assert prediction.confidence < 0.5


def test_an_error_of_the_model_is_not_a_verdict() -> None:
    with pytest.raises(Exception, match="gone"):
        play(**DOUBTFUL, verifier=ConnectionError("gone"))


def test_a_correction_in_other_letters_is_the_same_answer() -> None:
    _, prediction = play(**DOUBTFUL, verifier=verdict("attributable", 0.2, "leytonstone."))
    assert prediction.answer == "Leytonstone"


def test_unknown_is_looked_for_again_even_if_the_verifier_agrees() -> None:
    script, _ = play(
        k=2, selector={"keep": ["1s2"]}, adder=[{"add": [], "required": []}, {"add": ["3s2"], "required": []}],
        answerer=[cited("unknown", 0.0), cited("Leytonstone", 0.8)], verifier=verdict("attributable", 1.0, "unknown"),
    )  # fmt: skip
    assert script.order[-2:] == ["adder", "answerer"]


# --- confidence ------------------------------------------------------------------------------------------------------


def test_it_abstains_only_if_asked_to() -> None:
    for below, expected, stop in ((0.0, "Leytonstone", "complete"), (0.95, "unknown", "abstained")):
        _, prediction = play(settings={"abstain_below": below}, selector={"keep": ["1s2", "3s2"]})
        assert (prediction.answer, prediction.confidence, prediction.stop_reason) == (expected, 0.9, stop)
    assert steps(prediction, Replaced)[0].reason == "Leytonstone is not sure enough"


def test_confidence_is_calibrated_before_it_is_compared() -> None:
    settings = {"calibration.offset": -3.0, "abstain_below": 0.5}
    _, prediction = play(settings=settings, selector={"keep": ["1s2", "3s2"]})
    assert prediction.confidence == pytest.approx(0.309, abs=1e-3)  # sigmoid(logit(0.9) - 3)
    assert prediction.answer == "unknown"
