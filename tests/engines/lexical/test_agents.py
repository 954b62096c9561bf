"""The agents that the engine plays, one by one, on a small world in which the right thing to do is plain."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.passages import Passage
from polyhop.programs.candidates import Candidates
from polyhop.signatures import (
    AnswerDirectly,
    AnswerFromTrajectory,
    AnswerStep,
    AssessEvidence,
    CheckFacts,
    DecideNext,
    FilterForObjective,
    FilterSpans,
    JudgeAccuracy,
    JudgeAttribution,
    PlanSteps,
    ProposeQueries,
    ReasonOn,
    RefineQuestion,
    ReviseAnswer,
    RouteQuestion,
    UpdateKnowledge,
)

from .play import play

FILM = Passage.of("Solaris (1972 film)", sentences=["Solaris is a film directed by Andrei Tarkovsky.", "It is long."])
MAN = Passage.of("Andrei Tarkovsky", sentences=["Andrei Tarkovsky was a director.", "He was born in Zavrazhye."])
OTHER = Passage.of("Vertigo", "Vertigo was directed by Alfred Hitchcock.")
VILLAGE = Passage.of("Zavrazhye", "Zavrazhye is a village on the Volga.")
HITCHCOCK = Passage.of("Alfred Hitchcock", "Alfred Hitchcock was born in Leytonstone in 1899.")
LAKE = Passage.of("Lake Solaris", "Lake Solaris is a lake in Canada where a park director was born.")
QUESTION = "Where was the director of Solaris (1972 film) born?"
WHO, WHERE = "Who is the director of Solaris (1972 film)?", "Where was Andrei Tarkovsky born?"
STEPS = [WHO, "Where was #1 born?"]
DIRECTED, BORN = f"{WHO} Andrei Tarkovsky.", f"{WHERE} Zavrazhye."
DIRECTOR = "Who directed Solaris?"


def show(*passages: Passage) -> str:
    return Candidates(passages).show().format()


def lines(*ids: str) -> str:
    """Sentences of all pages but the lake."""
    world = Candidates([FILM, MAN, OTHER, VILLAGE, HITCHCOCK])
    return world.show(world.resolve(ids)[0]).format()


# --- planning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "route"),
    [
        ("Thank you!", "direct"),
        ("When did Andrei Tarkovsky die?", "single"),
        ("who painted the starry night", "single"),
        (QUESTION, "plan"),
        ("Which film came out first, Solaris or Stalker?", "plan"),
        ("Who is the paternal grandfather of Andrei Tarkovsky?", "plan"),
        ("Who painted the ceiling of the chapel in which popes are elected by the cardinals?", "plan"),
    ],
)
def test_routes(question: str, route: str) -> None:
    reply = play(RouteQuestion, question=question)
    assert reply == {"route": route, "query": question if route == "single" else ""}


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Okay, thank you so much for your help!", "You are welcome."),
        ("good morning everyone", "Hello!"),
        ("see you later", "Goodbye!"),
        ("How are you?", "I am well, thank you."),
        ("Who wrote the song Thank You?", "unknown"),
        ("Good Night, and Good Luck", "unknown"),
    ],
)
def test_small_talk_is_answered_and_of_the_world_nothing_is_known(text: str, reply: str) -> None:
    said = play(AnswerDirectly, question=text)
    assert (said["answer"], said["confidence"]) == (reply, float(reply != "unknown"))


def test_a_plan_says_what_each_step_needs() -> None:
    asked = "Who was born first, the director of Solaris or the director of Vertigo?"
    steps = play(PlanSteps, question=asked)["steps"]
    nothing = "Needs nothing before it."
    needed = [nothing, nothing, "Needs the answer of step 1.", "Needs the answer of step 2."]
    assert [step["thought"] for step in steps] == needed
    assert "Solaris" in steps[0]["question"]
    assert "#1" in steps[2]["question"]


def test_known_answers_take_the_place_of_references() -> None:
    known = ["#1 Who directed Solaris? -> Andrei Tarkovsky", "#2 Who sang it? -> unknown"]
    reply = play(RefineQuestion, question="Q?", trajectory=known, next_question="Is #1 older than #2?")
    assert reply["refined_question"] == "Is Andrei Tarkovsky older than #2?"


def decide(passages: str, *queries: str) -> dict[str, Any]:
    return play(DecideNext, question=QUESTION, roadmap=STEPS, passages=passages, queries=list(queries))


def test_the_decision_maker_asks_the_question_and_then_each_open_sub_goal_once() -> None:
    asked = f'"{QUESTION}" - nothing useful'
    first, second = decide(""), decide("", asked)
    assert (first["action"], first["query"]) == ("retrieve", QUESTION)
    assert (second["action"], second["query"]) == ("retrieve", WHO)
    assert second["thought"].endswith(WHO)
    assert decide("", asked, f'"{WHO}" - no results')["action"] == "answer"
    assert decide(show(FILM, MAN), asked)["action"] == "answer"


def reason(passages: str, *thoughts: str) -> str:
    said: str = play(ReasonOn, question=QUESTION, passages=passages, thoughts=list(thoughts))["next_thought"]
    return said


def test_the_reasoner_states_one_answer_after_the_other() -> None:
    told, first, second = show(FILM, MAN, LAKE), f"{WHO[:-1]}: Andrei Tarkovsky.", f"{WHERE[:-1]}: Zavrazhye."
    assert [reason(told), reason(told, first)] == [first, second]
    assert reason(told, first, second) == "So the answer is: Zavrazhye."
    missing = reason(show(VILLAGE))
    assert missing == f"It is missing here: {WHO[:-1]}."
    assert reason(show(VILLAGE), missing).startswith("So the answer is: ")


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer", "cited"),
    [
        (DIRECTOR, "Andrei Tarkovsky", ["1"]),
        (WHERE, "Zavrazhye", ["2"]),
        ("Who directed Stalker?", "unknown", []),
    ],
)
def test_a_step_is_answered_and_cites_its_line(question: str, answer: str, cited: list[str]) -> None:
    reply = play(AnswerStep, question=question, sources=show(FILM, MAN, OTHER, VILLAGE))
    assert (reply["answer"], reply["cited"]) == (answer, cited)


def test_the_accuracy_of_what_another_reading_gives_is_higher() -> None:
    right, wrong, absent = (
        play(JudgeAccuracy, question=DIRECTOR, evidence=show(FILM, MAN, OTHER), answer=answer)["accuracy"]
        for answer in ("Andrei Tarkovsky", "Alfred Hitchcock", "Nobody Known")
    )
    assert right > 0.4 > wrong >= absent == 0.0


@pytest.mark.parametrize(
    ("evidence", "answer", "verdict"),
    [
        (("1s1",), "Andrei Tarkovsky", "attributable"),
        (("1s1",), "Steven Soderbergh", "contradictory"),
        (("1s2",), "Andrei Tarkovsky", "extrapolatory"),
        (("2s1", "2s2"), "Andrei Tarkovsky", "extrapolatory"),
    ],
)
def test_attribution(evidence: tuple[str, ...], answer: str, verdict: str) -> None:
    reply = play(JudgeAttribution, question=DIRECTOR, evidence=lines(*evidence), answer=answer)
    assert reply["attribution"] == verdict


@pytest.mark.parametrize(
    ("sources", "draft", "decision", "answer"),
    [
        ((OTHER, FILM), "unknown", "revised", "Andrei Tarkovsky"),  # a source was missing
        ((OTHER, FILM), "Alfred Hitchcock", "revised", "Andrei Tarkovsky"),  # another reading is clearly surer
        ((OTHER, FILM), "Andrei Tarkovsky", "unconfident", "Andrei Tarkovsky"),  # it stands
        ((OTHER, VILLAGE), "Alfred Hitchcock", "unconfident", "Alfred Hitchcock"),  # nothing better
    ],
)
def test_a_draft_is_revised_where_the_sources_tell_better(
    sources: tuple[Passage, ...], draft: str, decision: str, answer: str
) -> None:
    reply = play(ReviseAnswer, question=DIRECTOR, sources=show(*sources), draft=draft)
    assert (reply["decision"], reply["answer"]) == (decision, answer)
    assert reply["cited"] == (["2"] if decision == "revised" else [])


@pytest.mark.parametrize(
    ("question", "trajectory", "evidence", "answer"),
    [
        (
            "Were the directors of Solaris and Vertigo born in the same place?",
            [f"#1 {WHERE} -> Zavrazhye", "#2 Where was Alfred Hitchcock born? -> Leytonstone"],
            ("2s2", "5s1"),
            "no",
        ),
        ("Where was Napoleon born?", ["#1 Where was Napoleon born? -> unknown"], (), "unknown"),
    ],
)
def test_the_answer_is_concluded_from_the_steps(
    question: str, trajectory: list[str], evidence: tuple[str, ...], answer: str
) -> None:
    reply = play(AnswerFromTrajectory, question=question, trajectory=trajectory, evidence=lines(*evidence))
    assert reply["answer"] == answer
    assert all(step.partition(" ")[2].split(" -> ")[0] in reply["reasoning"] for step in trajectory)


# --- evidence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "passages", "useful"),
    [
        (WHERE, (FILM, MAN, VILLAGE), ["2"]),
        (WHO, (FILM, MAN, VILLAGE), ["1"]),
        (WHERE, (VILLAGE,), []),
        (WHERE, (), []),
    ],
)
def test_the_filter_keeps_the_passage_of_a_sub_goal(
    goal: str, passages: tuple[Passage, ...], useful: list[str]
) -> None:
    reply = play(FilterForObjective, question=QUESTION, objective=goal, passages=show(*passages))
    assert reply["useful"] == useful


def update(known: list[str], required: list[str], *passages: Passage) -> tuple[list[str], list[str]]:
    """New facts and gaps."""
    reply = play(UpdateKnowledge, question=QUESTION, known=known, required=required, passages=show(*passages))
    return reply["new_facts"], reply["gaps"]


def test_what_is_answered_becomes_a_fact_and_the_rest_a_gap_into_which_it_is_put() -> None:
    facts, gaps = update([], [QUESTION], FILM, LAKE)
    assert facts[0] == f"{DIRECTED} (1s1)"
    assert f"{FILM.sentences[0]} (1s1)" in facts  # the lines of the chain as they stand
    assert gaps == [WHERE]
    facts, gaps = update([DIRECTED], [WHERE], MAN, LAKE)
    assert (facts[0], gaps) == (f"{BORN} (1s2)", [])
    assert update([DIRECTED, BORN], [], MAN)[1] == []


def propose(focus: str = "all", earlier: list[str] | None = None, count: int = 3, **state: Any) -> list[str]:
    state = {"known": [DIRECTED], "required": [WHERE], "focus": focus, "earlier": earlier or [QUESTION]} | state
    found: list[str] = play(ProposeQueries, question=QUESTION, count=count, **state)["queries"]
    return found


def test_queries_aim_at_the_gaps_follow_the_focus_and_are_new() -> None:
    assert propose()[:2] == ["Where was Andrei Tarkovsky born", "Andrei Tarkovsky"]
    assert [len(propose(count=n)) for n in (1, 3)] == [1, 3]
    assert propose(required=[WHERE, "When was #1 built?"])[0] == "Where was Andrei Tarkovsky born"
    assert propose(required=["Where was #1 born?"])[0] == "Where was Andrei Tarkovsky born"  # by what is known
    assert propose("entities: who")[0] == "Andrei Tarkovsky"
    assert propose("constraints: when")[0].startswith("Where was the director of Solaris")
    asked = [QUESTION, "born Andrei Tarkovsky", "Andrei Tarkovsky"]
    assert propose(earlier=asked) == [f"{QUESTION.rstrip('?')} Andrei Tarkovsky"]
    assert propose(earlier=[*asked, propose(earlier=asked)[0]]) == []


def test_facts_are_checked_against_lines() -> None:
    invented = "3. Solaris is a novel written by Stanislaw Lem in Poland."
    statements = [f"1. {DIRECTED}", f"2. {FILM.sentences[0]}", invented, "4. It is long.", "5. "]
    reply = play(CheckFacts, required=[QUESTION], passages=show(FILM, MAN), statements=statements)
    assert reply["supported"] == ["1", "2", "4"]
    assert set(reply["relevant"]) == {"1", "2", "3"}


def test_the_filter_copies_the_lines_of_the_chain() -> None:
    reply = play(FilterSpans, question=QUESTION, known=[DIRECTED], required=[WHERE], passages=show(LAKE, FILM, MAN))
    assert set(reply["spans"]) == {f"2s1 {FILM.sentences[0]}", f"3s2 {MAN.sentences[1]}"}
    assert reply["supported"] == ["2s1"]


@pytest.mark.parametrize(("passages", "sufficiency"), [((FILM, MAN), 1.0), ((FILM,), 0.5), ((), 0.0)])
def test_the_moderator_counts_answered_sub_questions(passages: tuple[Passage, ...], sufficiency: float) -> None:
    assert play(AssessEvidence, question=QUESTION, evidence=show(*passages))["sufficiency"] == sufficiency
