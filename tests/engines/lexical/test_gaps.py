"""What the evidence does not tell yet."""

from __future__ import annotations

from polyhop.data.passages import Passage
from polyhop.engines.lexical.hops import Answer, Gap, fill_references, find_gaps
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
