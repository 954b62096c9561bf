"""polyhop's own program: two readings that agree, what follows otherwise, the evidence, status and confidence."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from polyhop.data.passages import Hit, Passage
from polyhop.programs import PolyHop, tunables
from polyhop.programs.complexity import Complexity
from polyhop.programs.trace import Judged, Revised, Selected, Weighed

from .scripted import ADAPTERS, ALBUM, FILM, MAN, QUESTION, Script, facts, playing, queries, scripted, steps

TOWN = Passage.of("Leytonstone", sentences=["Leytonstone lies in London."], id="town")
CAFE = Passage.of("Cafe", sentences=["A cafe in Paris was photographed in 1960."], id="cafe")
POOL = [FILM, MAN, ALBUM, TOWN, CAFE]
PLAN = {"thought": "", "sub_questions": ["Who directed Vertigo?", "Where was #1 born?"]}


class Ranked:
    """A retriever with a fixed answer to each query; to others, nothing."""

    def __init__(self, found: dict[str, list[Passage]]) -> None:
        self.found = found

    def search(self, query: str, k: int = 10, offset: int = 0) -> Any:
        hits = [Hit(passage, 1.0, rank) for rank, passage in enumerate(self.found.get(query, []), 1)]
        return hits[offset : offset + k]


def read(
    text: str, *cited: str, confidence: float = 0.9, missing: str = "none", reasoning: str = "Because."
) -> dict[str, Any]:
    return {
        "reasoning": reasoning, "answer": text, "confidence": confidence, "citations": list(cited), "missing": missing
    }  # fmt: skip


def seen(text: str, attribution: str = "attributable") -> dict[str, Any]:
    return {"reasoning": "", "answer": text, "attribution": attribution}


RIGHT = read("Leytonstone", "1s2", "2s2")
UNTIED = {"found": [FILM, TOWN], "reader": read("London", "1s2", "2s1"), "verifier": seen("London")}
NAMESAKE = {
    "question": "Who was the father of Alfred, the director of Vertigo?",
    "reader": read("Alfred Hitchcock", "1s2", "2s2"),
    "verifier": seen("Alfred Hitchcock"),
}


def play(
    adapter: Any = None,
    *,
    program: PolyHop | None = None,
    question: str = QUESTION,
    found: list[Passage] | None = None,
    settings: dict[str, Any] | None = None,
    **replies: Any,
) -> tuple[Script, dspy.Prediction]:
    """One question over the film, its director, an album and others, in this order."""
    known = found or POOL
    program = program or PolyHop(Ranked({question: known} | dict.fromkeys(PLAN["sub_questions"], known)))
    program.exemplars.mode.value = "none"
    for name, value in {"abstain_below": 0.1, **(settings or {})}.items():
        tunables(program)[name].value = value
    with playing(
        scripted(**{"planner": PLAN, "reader": RIGHT, "verifier": seen("Leytonstone"), **replies}), adapter
    ) as script:
        return script, program(question=question)


# --- one round -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_two_readings_that_agree_take_two_calls(adapter: Any) -> None:
    script, prediction = play(adapter)
    assert script.order == ["reader", "verifier"]
    reader, verifier = (request.inputs for request in script.requests)
    assert reader["passages"] == (
        "[1] Vertigo (film)\n1s1 Vertigo is a film.\n1s2 Its director was Alfred Hitchcock.\n"
        "[2] Alfred Hitchcock\n2s1 Hitchcock made films.\n2s2 He came from Leytonstone."
    )
    assert verifier == reader == {"passages": reader["passages"], "question": QUESTION}  # it sees no answer
    assert script.requests[0].demos == 3
    assert (prediction.answer, prediction.status, prediction.stop_reason) == ("Leytonstone", "verified", "agreed")
    assert facts(prediction) == [("film", 1), ("man", 1)]
    assert [passage.id for passage in prediction.ranking] == ["film", "man", "album", "town", "cafe"]
    assert (prediction.trace.lm_calls, prediction.trace.searches) == (2, 1)


def test_a_round_reads_a_passage_for_each_hop_and_no_near_duplicates() -> None:
    text = "Vertigo is a film whose director was the famous Alfred Hitchcock of Leytonstone in London"
    twin = Passage.of("Vertigo (film)", sentences=[f"{text} now."], id="twin")
    long = Passage.of("Vertigo (film)", sentences=[f"{text}."], id="long")
    for hops, ids in ((1, 2), (2, 2), (4, 4)):
        program = PolyHop(Ranked({QUESTION: [long, twin, *POOL]}), estimator=lambda _, n=hops: Complexity.of(n))  # type: ignore[arg-type]
        script, _ = play(program=program)
        shown = script.requests[0].inputs["passages"]
        assert (shown.count("\n[") + 1, "now." in shown) == (ids, False)


def test_the_first_passage_with_a_name_that_the_others_lack_is_read_too() -> None:
    question = "Was Vertigo made before the Cafe in Paris?"
    film, man = (Passage.of(f"Vertigo {n}", sentences=[f"Vertigo {n} is a film."], id=str(n)) for n in (1, 2))
    other = Passage.of("Cafe", sentences=["Another cafe in Paris."], id="other")
    script, _ = play(question=question, found=[film, man, TOWN, CAFE, other])
    assert script.requests[0].inputs["passages"].endswith("\n[3] Cafe\n3s1 A cafe in Paris was photographed in 1960.")


def test_a_county_that_no_passage_calls_so_is_looked_for_in_another_round() -> None:
    county = Passage.of("Leytonstone", sentences=["Leytonstone lies in Kent County."], id="county")
    found = [FILM, MAN, county]
    question = "In which county was the director of Vertigo born?"
    script, prediction = play(question=question, found=found, reader=[RIGHT, read("Kent", "1s2", "3s1")])
    assert script.order == ["reader", "verifier", "planner", "reader", "verifier"]
    assert (prediction.answer, prediction.status) == ("Kent", "supported")
    _, prediction = play(question=question, found=[FILM, MAN])
    assert (prediction.answer, prediction.status) == ("Leytonstone", "not supported")


def test_without_review_an_answer_is_read_once() -> None:
    script, prediction = play(settings={"review": "never"})
    assert script.order == ["reader"]
    assert (prediction.status, prediction.stop_reason) == ("supported", "sure")


def test_nothing_is_asked_where_nothing_is_found() -> None:
    script, prediction = play(program=PolyHop(Ranked({})))
    assert (script.order, prediction.answer, prediction.stop_reason) == ([], "unknown", "nothing found")


# --- further rounds --------------------------------------------------------------------------------------------------


def test_readings_that_differ_are_settled_by_another_round() -> None:
    """The plan's steps and the last fact that was cited are searched for, and the first passages are read again in
    front of what is new; an answer that agrees with any earlier one ends the rounds."""
    thought = "Vertigo is a film [1s1]. Its director was Alfred Hitchcock [1s2]. So he is the answer."
    first = read("Alfred Hitchcock", "1s2", reasoning=thought)
    script, prediction = play(reader=[first, RIGHT], verifier=seen("Leytonstone"), question="Where did it begin?")
    assert script.order == ["reader", "verifier", "planner", "reader"]
    assert queries(prediction) == [
        "Where did it begin?",
        "Where did it begin? Its director was Alfred Hitchcock.",
        "Who directed Vertigo?",
    ]
    before, after = (request.inputs["passages"] for request in script.asked("reader"))
    assert after.startswith(before)
    assert "[3] Vertigo (album)" in after
    assert "[4] Leytonstone" in after
    assert "[5]" not in after
    assert (prediction.answer, prediction.stop_reason) == ("Leytonstone", "agreed")
    assert [step.round for step in steps(prediction, Selected)] == [1, 2]


def test_what_the_reader_misses_is_searched_for_and_an_unknown_answer_is_not_verified() -> None:
    unknown = read("unknown", "1s2", missing="Hitchcock birthplace")
    program = PolyHop(Ranked({QUESTION: [FILM, ALBUM], "Hitchcock birthplace": [FILM, MAN]}))
    script, prediction = play(program=program, reader=[unknown, read("Leytonstone", "1s2", "3s2")])
    assert script.order == ["reader", "planner", "reader", "verifier"]
    assert "Hitchcock birthplace" in queries(prediction)
    assert "[3] Alfred Hitchcock" in script.asked("reader")[1].inputs["passages"]
    assert (prediction.answer, facts(prediction)) == ("Leytonstone", [("film", 1), ("man", 1)])


def test_an_unsure_answer_is_read_again_beside_more_passages() -> None:
    unsure = read("Leytonstone", "2s2", confidence=0.5)
    script, prediction = play(reader=[unsure, RIGHT])
    assert script.order == ["reader", "verifier", "planner", "reader"]
    assert (prediction.answer, prediction.status, prediction.stop_reason) == ("Leytonstone", "verified", "agreed")
    assert facts(prediction) == [("film", 1), ("man", 1)]  # of the sure reading
    other = read("London", "4s1", confidence=0.9)
    script, prediction = play(reader=[unsure, other], verifier=[seen("Leytonstone"), seen("London")])
    assert script.order == ["reader", "verifier", "planner", "reader", "verifier"]
    assert (prediction.answer, prediction.stop_reason) == ("London", "agreed")


def test_rounds_end_where_nothing_new_is_found_and_at_their_limit() -> None:
    script, prediction = play(reader=read("unknown"), found=[FILM, MAN])
    assert (script.order, prediction.stop_reason) == (["reader", "planner"], "stable")
    assert (prediction.answer, prediction.status) == ("unknown", "no answer")
    known = {QUESTION: [FILM, ALBUM], "a": [MAN], "b": [TOWN]}
    repeating = [read("unknown", "1s2", missing="a"), read("unknown", "1s1", missing="b"), RIGHT]
    script, prediction = play(program=PolyHop(Ranked(known)), reader=repeating)
    assert (script.order, prediction.stop_reason) == (["reader", "planner", "reader"], "stable")  # said before
    program = PolyHop(Ranked(known))
    getting_on = [read("unknown", "1s2", missing="a"), read("unknown", "3s1", missing="b"), RIGHT]
    script, prediction = play(program=program, reader=getting_on)
    assert script.order == ["reader", "planner", "reader", "reader", "verifier"]
    differing = [read("Leytonstone"), read("London"), read("Paris")]
    for rounds, order in ((1, "reader verifier"), (2, "reader verifier planner reader verifier")):
        script, prediction = play(reader=differing, verifier=seen("unknown"), settings={"rounds": rounds})
        assert (" ".join(script.order), prediction.stop_reason) == (order, "rounds")


# --- the answer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("readings", "verdicts", "expected"),
    [
        (["London", "Paris"], ["Paris", "Rome"], "Paris"),  # two of four
        (["London", "Paris"], ["Rome", "Oslo"], "London"),  # the first of all that differ
        (["unknown", "Paris"], ["Paris"], "Paris"),
        (["Vertigo", "Paris", "Paris"], ["Vertigo", "Rome", "Oslo"], "Paris"),  # the question names Vertigo itself
    ],
)
def test_the_answer_is_what_most_readings_give(readings: list[str], verdicts: list[str], expected: str) -> None:
    _, prediction = play(reader=[read(text, "1s1") for text in readings], verifier=[seen(text) for text in verdicts])
    assert prediction.answer == expected


def test_lists_agree_however_they_are_joined() -> None:
    script, prediction = play(reader=read("Ann Lee, Bo Lee", "1s1"), verifier=seen("Ann Lee and Bo Lee"))
    assert (script.order, prediction.answer) == (["reader", "verifier"], "Ann Lee, Bo Lee")


def test_of_answers_that_differ_the_stated_one_is_taken() -> None:
    readings = [read("Rome", "1s1"), read("Leytonstone", "2s2"), read("Oslo")]
    _, prediction = play(reader=readings, verifier=[seen("Paris"), seen("London"), seen("Turin")])
    assert (prediction.answer, prediction.status, prediction.stop_reason) == ("Leytonstone", "supported", "rounds")


def test_evidence_is_what_is_cited_and_for_more_hops_at_least_two_passages() -> None:
    _, prediction = play(reader=read("Leytonstone", "2s2"))
    assert facts(prediction) == [("man", 1), ("film", None)]
    _, prediction = play(reader=read("Leytonstone", "99s1"))
    assert facts(prediction) == [("film", None), ("man", None)]


@pytest.mark.parametrize(
    ("replies", "status"),
    [
        ({}, "verified"),
        ({"verifier": seen("Leytonstone", "extrapolatory")}, "supported"),
        ({"verifier": seen("London")}, "supported"),  # the third reading agrees with the first only
        ({"verifier": "no verdict"}, "supported"),
        ({"reader": read("Leytonstone", "2s2")}, "supported"),  # one of two hops; no passage on Vertigo
        ({"question": "Where was the director of Marnie born?"}, "supported"),  # a name that no passage has
        (UNTIED, "supported"),  # no document names the town
        (NAMESAKE, "supported"),  # the answer has a name of the question
        ({"reader": read("Leytonstone", "1s1")}, "not supported"),  # no cited sentence has it
        ({"reader": read("Leytonstone")}, "not supported"),
        ({"reader": read("Vertigo", "1s1", "2s1"), "verifier": seen("Vertigo")}, "not supported"),
        ({"reader": read("unknown")}, "no answer"),
        ({"reader": read("Leytonstone", "1s2", "2s2", confidence=0.2)}, "supported"),  # they agree, unsure
        ({"settings": {"least_sure": 0.95}}, "supported"),
    ],
)
def test_the_status_says_how_an_answer_was_checked(replies: dict[str, Any], status: str) -> None:
    assert play(**replies)[1].status == status


def test_yes_no_and_what_is_offered_need_two_passages_and_are_never_verified() -> None:
    question = "Is Vertigo a film or an album?"
    for text in ("yes", "film"):
        for cited, status in ((["1s1", "2s1"], "supported"), (["1s1"], "not supported")):
            _, prediction = play(question=question, reader=read(text, *cited), verifier=seen(text))
            assert prediction.status == status


# --- confidence ------------------------------------------------------------------------------------------------------


def test_confidence_is_the_share_of_readings_weighed_with_what_the_citations_state() -> None:
    _, prediction = play()
    weighed = steps(prediction, Weighed)[0]
    assert (weighed.accuracy, weighed.credibility, weighed.answer) == (0.9, 1.0, "Leytonstone")
    assert prediction.confidence == pytest.approx(weighed.alpha * 0.9 + (1 - weighed.alpha))
    assert steps(prediction, Judged) == [Judged("verification", 1.0, "attributable: Leytonstone")]
    _, prediction = play(reader=[read("Leytonstone"), read("Rome"), read("Oslo")], verifier=[seen("Paris")] * 3)
    weighed = steps(prediction, Weighed)[0]
    assert (weighed.accuracy, weighed.credibility) == (2 / 4, 0.5)
    assert prediction.answer == steps(prediction, Revised)[0].answer == "Paris"  # the last word of the trace
    _, prediction = play(reader=[read("Rome", "2s2"), read("Oslo", "2s2")], verifier=[seen("Paris")] * 2)
    assert facts(prediction) == [("film", None), ("man", None)]  # not what is cited for another answer
    _, prediction = play(question="Is it a film of 1958?", reader=read("yes", "1s1", "1s2"), verifier=seen("yes"))
    assert prediction.status == "not supported"  # one passage


def test_it_abstains_only_if_asked_to() -> None:
    sure, unsure = ("Leytonstone", "", "agreed"), ("unknown", "Leytonstone", "abstained")
    for below, expected in ((0.0, sure), (0.99, unsure)):
        _, prediction = play(settings={"abstain_below": below})
        assert (prediction.answer, prediction.guess, prediction.stop_reason) == expected
        assert prediction.evidence
    assert str(prediction).startswith("unknown (perhaps: Leytonstone)\n- ")
    assert steps(prediction, Revised)[0].reason == "Leytonstone is not sure enough"
