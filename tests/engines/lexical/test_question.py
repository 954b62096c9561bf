"""The names in a question, what it asks for, its sub-questions and their answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Passage
from polyhop.engines.lexical.decompose import decompose
from polyhop.engines.lexical.hops import NONE, sub_goals
from polyhop.engines.lexical.prompt import ParsedPassage, parse_passages
from polyhop.engines.lexical.question import ANSWER_KINDS, answer_type, mask
from polyhop.programs.candidates import Candidates


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who made the film Kiss and Tell?", ("Kiss and Tell",)),
        ("Are the films Solaris and Stalker Soviet?", ("Solaris", "Stalker Soviet")),
        ('Who wrote "Death of Samantha"?', ('"Death of Samantha"',)),
        ("Who directed My First Love (1945 Film)?", ("My First Love (1945 Film)",)),
        ("Is Hajjiabad, Jask in Iran?", ("Hajjiabad, Jask", "Iran")),
    ],
)
def test_names_are_masked_whole(question: str, names: tuple[str, ...]) -> None:
    assert mask(question).names == names


def test_a_digit_behind_a_name_is_not_of_its_number() -> None:
    masked = mask('Who said "A b"9 and "C d"٣?')
    assert masked.names == ('"A b"', '"C d"')
    assert masked.unmask(masked.text) == 'Who said "A b" 9 and "C d" ٣?'


@pytest.mark.parametrize(
    ("question", "sub_questions"),
    [
        ("Who directed Solaris?", ""),
        ("In which department of Colombia does Cali lie?", ""),
        (
            "Where was the director of film Human Flow born?",
            "Who is the director of film Human Flow? Where was #1 born?",
        ),
        (
            "When did the country of Izgoy's performer invade Manchuria?",
            "Who is Izgoy's performer? What is the country of #1? When did #2 invade Manchuria?",
        ),
        (
            "Who is the mayor of the town where Pelen Foods has its seat?",
            "In which town Pelen Foods has its seat? Who is the mayor of #1?",
        ),
        (
            "Which film came out first, Waltz of Love or Everybody's Old Man?",
            "When was Waltz of Love released? When was Everybody's Old Man released?",
        ),
        (
            "Which film has the director who was born earlier, Megham or Das Boot?",
            "Who is the director of Megham? Who is the director of Das Boot? When was #1 born? When was #2 born?",
        ),
        (
            "Are Nantong and Jingdezhen located in the same country?",
            "In which country is Nantong? In which country is Jingdezhen?",
        ),
        (
            "Which river flows through the native city of the founder of the football club that plays at Camp Nou?",
            "Which football club plays at Camp Nou? Who is the founder of #1? What is the native city of #2? "
            "Which river flows through #3?",
        ),
        (
            "What is the least delay of the filter that the Fern relay runs?",
            "Which filter the Fern relay runs? What is the least delay of #1?",
        ),
        (
            "Who designed the hall that Dun is modelled on?",
            "Which hall Dun is modelled on? Who designed #1?",
        ),
    ],
)
def test_decomposition(question: str, sub_questions: str) -> None:
    assert " ".join(decompose(question)) == (sub_questions or question)


@pytest.mark.parametrize(
    ("question", "kind", "head"),
    [
        ("Who directed Solaris?", "who", ""),
        ("What is the place of birth of Kurt Weill?", "where", "place"),
        ("The bridge stands in what Nevada city?", "city", "city"),
        ("Brno lies in which region of the Czech Republic?", "region", "region"),
        ("What is the nationality of Kurt Weill?", "nationality", "nationality"),
        ("What is the date of death of Kurt Weill?", "when", "date"),
        ("In which year was it opened?", "year", "year"),
        ("How many people live in Mirow?", "number", ""),
        ("What is the population of Brno?", "measure", "population"),
        ("What position did Jana Novotna's brother play?", "occupation", "position"),
        ("What type of forum did he start?", "kind", "forum"),
        ("What was the name of the fanzine that interviewed the bassist?", "name", "fanzine"),
        ("Which magazine did she edit?", "work", "magazine"),
        ("Which river flows through Brno?", "noun", "river"),
        ("At which university did she study?", "organisation", "university"),
        ("Which film came out first, Solaris or Stalker?", "either", "film"),
        ("Are Brno and Prague in the same country?", "yes/no", ""),
        ("The founder of the band that made Gift of Game is older than Ada Berg.", "yes/no", ""),
        ("The club takes part in an activity with this 4-letter acronym name.", "what", ""),
        ("Why did the tower fall?", "reason", ""),
    ],
)
def test_asked(question: str, kind: str, head: str) -> None:
    found = answer_type(question)
    assert (found.kind, found.head) == (kind, head)


@given(st.text(min_size=1, max_size=120))
def test_any_text_is_analyzed(text: str) -> None:
    assert answer_type(text).kind in ANSWER_KINDS
    steps = decompose(text)
    assert 1 <= len(steps) <= 10
    assert all(step.endswith("?") for step in steps)


FILM = Passage.of("Stalker (1979 film)", "Stalker is a Soviet film directed by Andrei Tarkovsky.")
DIRECTOR = Passage.of("Andrei Tarkovsky", "Andrei Tarkovsky was a Soviet director. He was born in Zavrazhye.")
STEPS = ["Who is the director of Stalker (1979 film)?", "Where was #1 born?"]
BORN = "Where was Andrei Tarkovsky born?"


def pages(*passages: Passage) -> tuple[ParsedPassage, ...]:
    return parse_passages(Candidates(passages).show().format())


@pytest.mark.parametrize(
    ("passages", "goals"),
    [
        ((FILM,), [(STEPS[0], "Andrei Tarkovsky", True), (BORN, "", True)]),
        ((DIRECTOR,), [(STEPS[0], "", True), (STEPS[1], "", False)]),  # that passage is about something else
        ((), [(STEPS[0], "", True), (STEPS[1], "", False)]),
        ((FILM, DIRECTOR), [(STEPS[0], "Andrei Tarkovsky", True), (BORN, "Zavrazhye", True)]),
    ],
)
def test_sub_goals_reached_and_open(passages: tuple[Passage, ...], goals: list[tuple[str, str, bool]]) -> None:
    found = sub_goals(STEPS, pages(*passages))
    assert [(goal.question, goal.answer.text, goal.is_ready) for goal in found] == goals


def test_what_is_known_is_not_asked_and_what_is_not_likely_is_open() -> None:
    known = sub_goals(STEPS, pages(FILM, DIRECTOR), known={1: "Andrei Tarkovsky"})
    assert [goal.answer.text for goal in known] == ["Andrei Tarkovsky", "Zavrazhye"]
    assert known[0].answer.sentence is None
    refused = sub_goals(STEPS, pages(FILM, DIRECTOR), least=1.1)
    assert all(goal.answer is NONE for goal in refused)
