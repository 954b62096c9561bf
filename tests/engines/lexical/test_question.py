"""The names in a question, what it asks for, its sub-questions and their answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Passage
from polyhop.data.references import references
from polyhop.data.sample import load_sample
from polyhop.engines.lexical.decompose import decompose
from polyhop.engines.lexical.hops import NONE, read_hops, sub_goals, support
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


DECOMPOSED = [
    ("Who directed Solaris?", ["Who directed Solaris?"]),
    (
        "Where was the director of film Human Flow born?",
        ["Who is the director of film Human Flow?", "Where was #1 born?"],
    ),
    (
        "When did the country of Izgoy's performer invade Manchuria?",
        ["Who is Izgoy's performer?", "What is the country of #1?", "When did #2 invade Manchuria?"],
    ),
    (
        "What is the date of death of the composer of film Shakespeare Wallah?",
        ["Who is the composer of film Shakespeare Wallah?", "What is the date of death of #1?"],
    ),
    (
        "Where does the Merrimack River start in the state where the Kraus House is located?",
        ["In which state the Kraus House is located?", "Where does the Merrimack River start in #1?"],
    ),
    (
        "Who is the mayor of the town where Pelen Foods has its seat?",
        ["In which town Pelen Foods has its seat?", "Who is the mayor of #1?"],
    ),
    (
        "Which river flows through the city in which Ada Berg had her first studio and a shop?",
        ["In which city Ada Berg had her first studio?", "Which river flows through #1 and a shop?"],
    ),
    (
        "Which film came out first, Waltz of Love or Everybody's Old Man?",
        ["When was Waltz of Love released?", "When was Everybody's Old Man released?"],
    ),
    (
        "Which film has the director who was born earlier, Megham or Das Boot?",
        [
            "Who is the director of Megham?",
            "Who is the director of Das Boot?",
            "When was #1 born?",
            "When was #2 born?",
        ],
    ),
    (
        "Who is older, the creator of C++ or the creator of Python?",
        ["Who is the creator of C++?", "Who is the creator of Python?", "When was #1 born?", "When was #2 born?"],
    ),
    (
        "Are Nantong and Jingdezhen located in the same country?",
        ["In which country is Nantong?", "In which country is Jingdezhen?"],
    ),
    (
        "Which river flows through the native city of the founder of the football club that plays at Camp Nou?",
        [
            "Which football club plays at Camp Nou?",
            "Who is the founder of #1?",
            "What is the native city of #2?",
            "Which river flows through #3?",
        ],
    ),
    ("In which department of Colombia does Cali lie?", ["In which department of Colombia does Cali lie?"]),
]


@pytest.mark.parametrize(("question", "sub_questions"), DECOMPOSED)
def test_decomposition(question: str, sub_questions: list[str]) -> None:
    assert decompose(question) == sub_questions


@pytest.mark.parametrize(
    ("question", "kind", "head"),
    [
        ("Who directed Solaris?", "who", ""),
        ("Which actor plays the bandit in Rashomon?", "person", "actor"),
        ("Where was Milan Kundera born?", "where", ""),
        ("What is the place of birth of Kurt Weill?", "where", "place"),
        ("In which city does it lie?", "city", "city"),
        ("The bridge stands in what Nevada city?", "city", "city"),
        ("Brno lies in which region of the Czech Republic?", "region", "region"),
        ("What is the nationality of Kurt Weill?", "nationality", "nationality"),
        ("Which countries border Chad?", "country", "country"),
        ("When did Boyacá fall?", "when", ""),
        ("What is the date of death of Kurt Weill?", "when", "date"),
        ("In which year was it opened?", "year", "year"),
        ("How many people live in Mirow?", "number", ""),
        ("What is the population of Brno?", "measure", "population"),
        ("How tall is Nanda Devi?", "measure", ""),
        ("What position did Jana Novotna's brother play?", "occupation", "position"),
        ("What type of forum did he start?", "kind", "forum"),
        ("What was the name of the fanzine that interviewed the bassist?", "name", "fanzine"),
        ("Which magazine did she edit?", "work", "magazine"),
        ("Kara Thrace plays for what team?", "organisation", "team"),
        ("Which river flows through Brno?", "noun", "river"),
        ("At which university did she study?", "organisation", "university"),
        ("Which film came out first, Solaris or Stalker?", "either", "film"),
        ("Is Brno or Prague larger?", "either", ""),
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


def test_references_point_backwards() -> None:
    for example in load_sample():
        for number, step in enumerate(decompose(example.question), 1):
            assert all(reference < number for reference in references(step))


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


def test_what_is_known_is_not_asked_and_what_is_not_accepted_is_open() -> None:
    known = sub_goals(STEPS, pages(FILM, DIRECTOR), known={1: "Andrei Tarkovsky"})
    assert [goal.answer.text for goal in known] == ["Andrei Tarkovsky", "Zavrazhye"]
    assert known[0].answer.sentence is None
    refused = sub_goals(STEPS, pages(FILM, DIRECTOR), lambda question, answer: False)
    assert all(goal.answer is NONE for goal in refused)


def test_sub_questions_are_answered_in_order() -> None:
    passages = pages(FILM, DIRECTOR, Passage.of("Tom Fox", "Tom Fox is an Irish cyclist who was born in Cork."))
    answers = [hop.best for hop in read_hops(STEPS, passages)]
    assert [answer.text for answer in answers] == ["Andrei Tarkovsky", "Zavrazhye"]
    assert all(0 < answer.probability <= 1 for answer in answers)
    supported = support(STEPS, passages)
    assert set(supported) == {"1s1", "2s1", "2s2", "3s1"}
    assert max(supported, key=supported.__getitem__) in ("1s1", "2s2")
    assert supported["2s2"] > supported["3s1"]
