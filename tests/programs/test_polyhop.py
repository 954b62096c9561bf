"""polyhop's own program: the cheap paths, the rounds and why they end, the review, the confidence."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest

from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import PolyHop, tunables
from polyhop.programs.trace import Judged, Revised, Weighed

from .scripted import ADAPTERS, ALBUM, FILM, MAN, QUESTION, Script, answer, facts, playing, queries, scripted, steps

SUB_QUESTIONS = ["Who directed Vertigo?", "Where was #1 born?"]
PLAN = {"route": "plan", "sub_questions": SUB_QUESTIONS}
TOWN = Passage.of("Leytonstone", sentences=["Leytonstone lies in London."], id="town")
POOL = [FILM, ALBUM, MAN, TOWN]


FOUND: dict[str, Any] = {"answers": ["Alfred Hitchcock [1s2]", "Leytonstone [3s2]"], "keep": [], "required": []}
HALF: dict[str, Any] = {
    "answers": ["Alfred Hitchcock [1s2]", "unknown"],
    "keep": [],
    "required": ["Where was Alfred Hitchcock born?"],
}
REST: dict[str, Any] = {"answers": ["Alfred Hitchcock [1s2]", "Leytonstone [3s2]"], "keep": [], "required": []}


def play(
    adapter: Any = None,
    *,
    program: PolyHop | None = None,
    question: str = QUESTION,
    pool: list[Passage] | None = None,
    k: int = 20,
    settings: dict[str, Any] | None = None,
    **replies: Any,
) -> tuple[Script, dspy.Prediction]:
    """One question, with exact numbers of candidates: 1 film, 2 album, then what is found later."""
    program = program or PolyHop(PassagePool(POOL if pool is None else pool), k=k)
    program.exemplars.mode.value = "none"
    program.least_single_hop.value = 1.0
    program.abstain_below.value = 0.1  # so that what is hardly likely is told, too
    known = tunables(program)
    for name, value in (settings or {}).items():
        known[name].value = value
    replies = {"planner": PLAN, "gatherer": FOUND, "answerer": cited("Leytonstone")} | replies
    with playing(scripted(**replies), adapter) as script:
        return script, program(question=question)


def cited(text: str, confidence: float = 0.9, ids: tuple[str, ...] = ("1s2", "3s2")) -> dict[str, Any]:
    return answer(text, confidence) | {"citations": list(ids)}


# --- one round is enough ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_common_case_takes_three_calls(adapter: Any) -> None:
    script, prediction = play(adapter, gatherer={**FOUND, "keep": ["2s1"]})
    assert script.order == ["planner", "gatherer", "answerer"]
    assert script.asked("planner")[0].inputs == {"question": QUESTION}
    task = {"question": QUESTION, "sub_questions": json.dumps(SUB_QUESTIONS)}
    gatherer = script.asked("gatherer")[0].inputs
    shown = gatherer.pop("passages")
    assert gatherer == {**task, "kept": "[]", "answers_so_far": "[]", "searched": "[]"}
    assert [line for line in shown.splitlines() if line.startswith("[")] == [
        "[1] Vertigo (film)", "[2] Vertigo (album)", "[3] Alfred Hitchcock", "[4] Leytonstone",
    ]  # fmt: skip
    # The answerer reads the evidence's passages whole, with the selected sentences marked, and nothing else.
    answerer = script.asked("answerer")[0].inputs
    assert answerer.pop("passages").split("\n", 1)[1] == (
        "[1] Vertigo (film)\n1s1 Vertigo is a film.\n>1s2 Its director was Alfred Hitchcock.\n"
        "[2] Vertigo (album)\n>2s1 Vertigo is an album.\n2s2 It was produced by Dan.\n"
        "[3] Alfred Hitchcock\n3s1 Hitchcock made films.\n>3s2 He came from Leytonstone."
    )
    assert answerer == {**task, "answers_so_far": '["#1 Alfred Hitchcock [1s2]", "#2 Leytonstone [3s2]"]'}
    assert (prediction.answer, prediction.confidence, prediction.stop_reason) == ("Leytonstone", 0.9, "complete")
    assert facts(prediction) == [("film", 1), ("man", 1), ("album", 0)]  # what is cited first
    assert [passage.id for passage in prediction.ranking] == ["film", "man", "album", "town"]
    assert (prediction.trace.lm_calls, prediction.trace.searches) == (3, 1)


def test_a_round_shows_good_candidates_and_no_near_duplicates() -> None:
    text = "Vertigo is a film whose director was the famous Alfred Hitchcock of Leytonstone in London"
    twin = Passage.of("Vertigo (film)", sentences=[f"{text} now."], id="twin")
    long = Passage.of("Vertigo (film)", sentences=[f"{text}."], id="long")
    noise = [Passage.of(f"Noise {n}", sentences=[f"Some vertigo number {n}."], id=f"n{n}") for n in range(30)]
    script, prediction = play(pool=[long, twin, *noise], k=30, settings={"first_passages": 9, "new_passages": 7})
    shown = script.asked("gatherer")[0].inputs["passages"]
    assert (shown.count("["), shown.count("Vertigo (film)")) == (7, 1)
    assert len(prediction.ranking) == 30


# --- the cheap paths -------------------------------------------------------------------------------------------------


def test_an_easy_question_takes_one_call() -> None:
    script, prediction = play(settings={"least_single_hop": 0.0}, answerer=cited("Leytonstone", ids=("3s2", "1s1")))
    assert script.order == ["answerer"]
    assert script.asked("answerer")[0].inputs["sub_questions"] == json.dumps([QUESTION])
    assert script.asked("answerer")[0].inputs["passages"].count("[") == 4
    assert facts(prediction) == [("man", 1), ("film", 0)]
    assert prediction.stop_reason == "single pass"


@pytest.mark.parametrize(
    "unsure",
    [
        cited("Leytonstone", 0.7),
        cited("Leytonstone", ids=()),
        cited("Leytonstone", ids=("99s1",)),
        cited("Atlantis"),
        cited("Leytonstone", ids=("3s2",)),
    ],
    ids=["low confidence", "no citation", "a citation of nothing", "not in what was read", "nothing on Vertigo"],
)
def test_a_single_pass_that_is_not_certain_goes_on_to_the_plan(unsure: dict[str, Any]) -> None:
    script, prediction = play(settings={"least_single_hop": 0.0}, answerer=[unsure, cited("Leytonstone")])
    assert script.order == ["answerer", "planner", "gatherer", "answerer"]
    assert facts(prediction) == [("film", 1), ("man", 1)]
    assert prediction.answer == "Leytonstone"


def test_the_route_decides_what_is_read() -> None:
    single: Any = {"route": "single", "sub_questions": [QUESTION]}
    direct: Any = {"route": "direct", "sub_questions": []}
    found = {"answers": ["Leytonstone [3s2]"], "keep": [], "required": []}
    script, prediction = play(planner=single)
    assert (script.order, prediction.stop_reason) == (["planner", "answerer"], "single pass")
    script, _ = play(
        settings={"least_single_hop": 0.0}, planner=single, answerer=[cited("Leytonstone", 0.1)] * 2, gatherer=found
    )
    assert script.order[:4] == ["answerer", "planner", "gatherer", "answerer"]  # a single pass is not made twice
    script, prediction = play(question="Thank you!", planner=direct, answerer=answer("You are welcome."))
    assert "passages" not in script.asked("answerer")[0].inputs
    assert (prediction.answer, prediction.evidence, prediction.stop_reason) == ("You are welcome", (), "no retrieval")
    script, prediction = play(planner=direct, answerer=[answer("unknown", 0), cited("Leytonstone")], gatherer=found)
    assert script.order == ["planner", "answerer", "gatherer", "answerer"]
    assert prediction.answer == "Leytonstone"


# --- rounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_missing_hop_is_searched_for_and_found_at_default_settings(adapter: Any) -> None:
    """With two candidates a search, round 1 knows the film and the album, round 2 the man."""
    script, prediction = play(adapter, k=2, gatherer=[HALF, REST])
    assert script.order == ["planner", "gatherer", "gatherer", "answerer"]
    assert queries(prediction) == [QUESTION, "Where was Alfred Hitchcock born?"]
    first, second = (request.inputs for request in script.asked("gatherer"))
    assert first["passages"].count("[") == 2
    assert "[1] Vertigo (film)" in second["passages"]
    assert second["passages"].startswith(first["passages"] + "\n")  # what was read is not read again by a server
    assert (first["kept"], second["kept"]) == ("[]", '["1s2"]')
    assert "3s2 He came from Leytonstone." in second["passages"]
    assert second["answers_so_far"] == '["#1 Alfred Hitchcock [1s2]", "#2 unknown"]'
    assert second["searched"] == '["Where was Alfred Hitchcock born?"]'
    assert facts(prediction) == [("film", 1), ("man", 1)]
    assert prediction.stop_reason == "complete"


def test_a_chain_is_read_from_both_ends() -> None:
    """What the last step names is read though its answer waits for the first; what was found once is not lost."""
    asked = ["Who directed Vertigo?", "When did #1 meet Ann Lee?"]
    last = Passage.of("Ann Lee", sentences=["Ann Lee met the director of Vertigo in 1950."], id="last")
    noise = [Passage.of(f"Vertigo {n}", sentences=["The director of Vertigo met Lee."], id=f"n{n}") for n in range(3)]
    unknown = {"answers": ["unknown", "unknown"], "keep": [], "required": []}
    play_it = {
        "planner": {"route": "plan", "sub_questions": asked},
        "gatherer": unknown,
        "settings": {"first_passages": 1},
    }
    script, prediction = play(question="When did the director of Vertigo meet her?", pool=[*noise, last], **play_it)  # type: ignore[arg-type]
    assert "] Ann Lee" in script.asked("gatherer")[0].inputs["passages"]  # found by the question, not among the first
    _, prediction = play(question="Vertigo?", pool=[FILM, last], k=1, **play_it)  # type: ignore[arg-type]
    assert queries(prediction)[1:] == ["Who directed Vertigo?", "When did meet Ann Lee?"]


@pytest.mark.parametrize(
    ("claimed", "doubtful", "is_open"),
    [
        ("Leytonstone [3s2]", [], False),
        ("in the east of London [3s2]", [], False),  # in whatever words: the gatherer has read it
        ("Leytonstone [3s2]", [2], True),
        ("Leytonstone [3s2] | London [4s1]", [], False),
        ("yes", [], False),
        ("Atlantis", [], True),  # cites nothing
        ("Atlantis [99s1]", [], True),
        ("I don't know", [], True),
        ("", [], True),
    ],
)
def test_what_is_open_is_searched_for(claimed: str, doubtful: list[int], is_open: bool) -> None:
    reply = {"answers": ["Alfred Hitchcock [1s2]", claimed], "doubtful": doubtful, "keep": [], "required": []}
    script, prediction = play(gatherer=[reply, REST])
    assert (queries(prediction)[1:] == ["Where was Alfred Hitchcock born?"]) == is_open
    if doubtful:
        told = script.asked("gatherer")[1].inputs["answers_so_far"] if len(script.asked("gatherer")) > 1 else "not"
        assert "not" in told


def test_a_doubtful_answer_that_stays_is_not_searched_for_again() -> None:
    found = ["Alfred Hitchcock [1s2]", "Leytonstone [1s1]"]
    doubtful = {**FOUND, "answers": found, "doubtful": [2], "required": ["Hitchcock birthplace", "Hitchcock cradle"]}
    script, prediction = play(k=2, gatherer=[doubtful, {**doubtful, "required": ["Hitchcock family"]}])
    assert len(script.asked("gatherer")) == 2
    assert queries(prediction)[1:] == ["Hitchcock birthplace", "Hitchcock cradle"]
    assert prediction.stop_reason == "stable"
    assert "Leytonstone" in script.asked("answerer")[0].inputs["answers_so_far"]


def test_what_cannot_be_searched_for_is_not_and_nothing_twice() -> None:
    """Numbers, dates, "yes", and steps that wait for an unknown answer and name nothing."""
    junk = ["1970s", "4 May 1929", "yes", "unknown", "none", "Where was #2 buried?", QUESTION]
    plan = {"route": "plan", "sub_questions": [*SUB_QUESTIONS, "Where was #2 founded?"]}
    reply = {"answers": ["Alfred Hitchcock [1s2]", "unknown", "unknown"], "keep": [], "required": junk}
    _, prediction = play(planner=plan, gatherer=reply)
    assert queries(prediction)[1:] == ["Where was Alfred Hitchcock born?"]
    again = ["Hitchcock's birthplace", "hitchcock's birthplace!", "#1"]
    _, prediction = play(planner=plan, gatherer={**reply, "required": again}, settings={"rounds": 3})
    assert queries(prediction)[1:] == ["hitchcock's birthplace!", "Alfred Hitchcock"]


# --- review ----------------------------------------------------------------------------------------------------------


def verdict(
    attribution: str = "attributable", accuracy: Any = 0.9, correction: str = "Leytonstone", missing: str = "none"
) -> dict[str, Any]:
    return {"attribution": attribution, "accuracy": accuracy, "correction": correction, "missing": missing}


def test_an_answer_in_doubt_is_verified() -> None:
    script, prediction = play(answerer=cited("Leytonstone", 0.3), verifier=verdict())
    assert script.order == ["planner", "gatherer", "answerer", "verifier"]
    asked = script.asked("verifier")[0].inputs
    assert (asked["proposed_answer"], asked["searched"]) == ("Leytonstone", "[]")
    assert asked["passages"] == script.asked("answerer")[0].inputs["passages"]
    weighed = steps(prediction, Weighed)[0]
    assert (weighed.passed, weighed.answer) == (True, "Leytonstone")
    assert prediction.confidence == pytest.approx(weighed.alpha * 0.9 + (1 - weighed.alpha) * 1.0)
    assert steps(prediction, Judged) == [Judged("verification", 0.9, "attributable")]


@pytest.mark.parametrize(
    ("replies", "status"),
    [
        ({"answerer": cited("Leytonstone", 0.9)}, "not checked"),
        ({"answerer": cited("Leytonstone", 0.3), "verifier": verdict("attributable", 0.9)}, "verified"),
        (  # the evidence states it, but the verifier takes it for wrong
            {
                "answerer": cited("Leytonstone", 0.3),
                "verifier": verdict("attributable", 0.55),
                "settings": {"confidence.adaptive": False},
            },
            "in doubt",
        ),
        ({"answerer": cited("Leytonstone", 0.3), "verifier": verdict("extrapolatory", 0.1)}, "not supported"),
        ({"answerer": cited("Leytonstone", 0.3), "verifier": verdict("contradictory", 0.4)}, "contradicted"),
        ({"answerer": cited("Leytonstone", 0.3), "verifier": verdict("contradictory", 0.0)}, "no answer"),
        ({"answerer": cited("Leytonstone", 0.3), "verifier": "no verdict"}, "not checked"),
        ({"answerer": cited("unknown", 0.3)}, "no answer"),
        ({"planner": {"route": "direct", "sub_questions": []}, "answerer": answer("Paris")}, "model knowledge"),
    ],
)
def test_the_status_says_how_an_answer_was_checked(replies: dict[str, Any], status: str) -> None:
    assert play(**replies)[1].status == status


@pytest.mark.parametrize(
    ("review", "reply", "verified"),
    [
        ("doubt", cited("Leytonstone", 0.9), False),
        ("doubt", cited("yes", 0.9), False),
        ("doubt", cited("Atlantis", 0.9), True),  # not in the evidence
        ("doubt", cited("unknown", 0.9), False),  # there is nothing to verify
        ("always", cited("Leytonstone", 0.9), True),
        ("never", cited("Atlantis", 0.1), False),
    ],
)
def test_when_an_answer_is_verified(review: str, reply: dict[str, Any], verified: bool) -> None:
    script, _ = play(settings={"review": review}, answerer=reply, verifier=verdict())
    assert bool(script.asked("verifier")) == verified


def test_a_correction_is_verified_before_it_is_taken() -> None:
    first = verdict("contradictory", 0.3, "Alfred Hitchcock")
    for second, expected in ((verdict("attributable", 0.9), "Alfred Hitchcock"), (first, "Leytonstone")):
        script, prediction = play(answerer=cited("Leytonstone", 0.3), verifier=[first, second])
        taken = expected != "Leytonstone"
        asked = [request.inputs["proposed_answer"] for request in script.asked("verifier")]
        assert asked == ["Leytonstone", "Alfred Hitchcock"]
        assert prediction.answer == expected
        assert prediction.confidence == pytest.approx(steps(prediction, Weighed)[taken].confidence)
        assert [step.answer for step in steps(prediction, Revised)] == [expected] * taken
        assert prediction.status == ("verified" if taken else "contradicted")
    script, prediction = play(answerer=cited("Leytonstone", 0.3), verifier=verdict("contradictory", 0.3, "Atlantis"))
    assert len(script.asked("verifier")) == 1  # no passage has it


def test_what_the_verifier_misses_is_searched_for() -> None:
    early = {"answers": ["Alfred Hitchcock [1s2]", "Vertigo [1s1]"], "keep": [], "required": []}
    missing = verdict("extrapolatory", 0.2, "Vertigo", "Alfred Hitchcock birthplace")
    for second, expected in ((verdict(), "Leytonstone"), (verdict("contradictory", 0.0), "Vertigo")):
        script, prediction = play(
            k=2, gatherer=[early, REST], answerer=[cited("Vertigo", 0.3), cited("Leytonstone", 0.8)],
            verifier=[missing, second],
        )  # fmt: skip
        assert script.order == ["planner", "gatherer", "answerer", "verifier", "gatherer", "answerer", "verifier"]
        assert queries(prediction)[-1] == "Alfred Hitchcock birthplace"
        assert prediction.answer == expected


# --- confidence ------------------------------------------------------------------------------------------------------


def test_it_abstains_only_if_asked_to() -> None:
    sure, unsure = ("Leytonstone", "", "complete"), ("unknown", "Leytonstone", "abstained")
    for below, expected in ((0.0, sure), (0.95, unsure)):
        _, prediction = play(settings={"abstain_below": below})
        assert (prediction.answer, prediction.guess, prediction.stop_reason) == expected
        assert prediction.confidence == 0.9
        assert prediction.evidence
    assert str(prediction).startswith("unknown (perhaps: Leytonstone)\n- ")
    assert steps(prediction, Revised)[0].reason == "Leytonstone is not sure enough"
