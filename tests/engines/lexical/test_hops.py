"""Answers to sub-questions, and those that are open."""

from __future__ import annotations

from polyhop.data.passages import Passage
from polyhop.engines.lexical.hops import Answer, Gap, SubGoal, fill_references, find_gaps, resolve, sub_goals, support
from polyhop.engines.lexical.prompt import ParsedPassage, parse_passages
from polyhop.programs.candidates import Candidates

FILM = Passage.of("Stalker (1979 film)", "Stalker is a Soviet film directed by Andrei Tarkovsky.")
DIRECTOR = Passage.of("Andrei Tarkovsky", "Andrei Tarkovsky was a Soviet director. He was born in Zavrazhye.")
QUESTION = "Where was the director of Stalker (1979 film) born?"
STEPS = ["Who is the director of Stalker (1979 film)?", "Where was #1 born?"]


def pages(*passages: Passage) -> tuple[ParsedPassage, ...]:
    return parse_passages(Candidates(passages).show().format())


def test_a_gap_is_asked_for_with_the_answers_so_far() -> None:
    assert find_gaps(QUESTION, STEPS, pages(FILM)) == [Gap(1, "Where was Andrei Tarkovsky born?", True)]


def test_what_waits_for_an_answer_is_not_ready() -> None:
    assert find_gaps(QUESTION, STEPS, pages()) == [Gap(0, STEPS[0], True), Gap(1, "Where was #1 born?", False)]


def test_nothing_is_missing_in_a_complete_chain() -> None:
    assert find_gaps(QUESTION, STEPS, pages(FILM, DIRECTOR)) == []


def test_without_sub_questions_the_question_is_the_gap() -> None:
    assert find_gaps(QUESTION, [], pages()) == [Gap(0, QUESTION, True)]


def test_only_known_answers_are_put_in() -> None:
    answers = [Answer("Rome", 2.0), Answer("", 0.0)]
    assert fill_references("Is #1 in #2, #3 or #12?", answers) == "Is Rome in #2, #3 or #12?"


def test_sub_questions_are_answered_in_order() -> None:
    passages = pages(FILM, DIRECTOR, Passage.of("Tom Fox", "Tom Fox is an Irish cyclist who was born in Cork."))
    answers = resolve(STEPS, passages)
    assert [answer.text for answer in answers] == ["Andrei Tarkovsky", "Zavrazhye"]
    assert all(0 < answer.score <= 1 for answer in answers)
    supported = support(STEPS, passages)
    assert set(supported) == {"1s1", "2s1", "2s2", "3s1"}
    assert max(supported, key=supported.__getitem__) in ("1s1", "2s2")
    assert supported["2s2"] > supported["3s1"]


def test_sub_goals_reached_and_open() -> None:
    film, director = pages(FILM, DIRECTOR)
    assert list(sub_goals(STEPS, (director,), 0.3)) == [SubGoal(STEPS[0], "")]  # that passage is about something else
    first, second = sub_goals(STEPS, (film,), 0.3)
    assert first == SubGoal(STEPS[0], "Andrei Tarkovsky")
    assert second.question == "Where was Andrei Tarkovsky born?"
    assert [goal.answer for goal in sub_goals(STEPS, (film, director), 0.3)] == ["Andrei Tarkovsky", "Zavrazhye"]
    assert list(sub_goals(STEPS, (), 0.3)) == [SubGoal(STEPS[0], "")]  # the second needs the first
    assert list(sub_goals(["Where is #7?"], (), 0.3)) == [SubGoal("Where is #7?", "")]  # there is no seventh
