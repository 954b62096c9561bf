"""The form of a question: counts that do not see style, and names masked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.form import FEATURES, features, fits, is_called, masked, references, replace_references


def counts(question: str) -> dict[str, float]:
    return dict(zip(FEATURES, features(question), strict=True))


def test_what_is_counted() -> None:
    question = "Who is the wife of the director of the film that Élan's presenter saw in 1999, and when did he die?"
    found = {name: count for name, count in counts(question).items() if count}
    assert {name: found.pop(name) for name in ("words", "the")} == {"words": 21, "the": 3}
    twice = {name for name, count in found.items() if count == 2}
    assert twice == {
        *("wh words", "relative words", "auxiliaries", "of", "agents", "a relation of", "described relations"),
    }
    assert found.keys() - twice == {
        *("prepositions", "and", "makers", "kin", "works", "pronouns", "possessives", "possessed relations", "numbers"),
        *("nested of", "described by a clause", "asks inside", "commas", "begins with who"),
    }


@given(st.text())
def test_any_text_has_counts(text: str) -> None:
    found = features(text)
    assert len(found) == len(FEATURES)
    assert all(count >= 0 for count in found)
    assert isinstance(masked(text), str)


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("Where was the director of Solaris born?", "where was the director of @ born"),
        ("Who wrote The Sound and the Fury?", "who wrote @ and the @"),
        ("Who wrote War of the Worlds?", "who wrote @"),
        ('Who sang "Let it be"?', "who sang @"),
        ("Where was Hank Snow's wife born?", "where was @'s wife born"),
        ("Kafka was born in 1883 where?", "@ was born in @ where"),
        ("Are Lake Como and Lake Garda in Italy?", "are @ and @ in @"),
        ("who wrote emma", "who wrote emma"),
        ("", ""),
    ],
)
def test_names_are_masked(question: str, form: str) -> None:
    assert masked(question) == form


@pytest.mark.parametrize(
    ("question", "answer", "is_fit"),
    [
        # whether
        ("Is Lake Como in Italy?", "yes", True),
        ("Is Lake Como in Italy?", "No.", True),
        ("Is Lake Como in Italy?", "Italy", False),
        ("Are Lake Como and Lake Garda in the same country?", "Switzerland", False),
        ("Lake Como is deep. Is it in Italy?", "Italy", False),
        ("Who directed Solaris?", "yes", False),
        ("Where is the lake that is in Italy?", "no", False),
        ("Is it known who directed Solaris?", "Andrei Tarkovsky", True),
        # one of two
        ("Is Lake Como or Lake Garda deeper?", "Lake Como", True),
        ("Is it a lake or not?", "yes", True),
        ("Which is deeper, Lake Como or Lake Garda?", "Lake Garda", True),
        ("Between Lake Como and Lake Garda, which is deeper?", "Lake Garda", True),
        ("Who lived between Lake Como and Lake Garda?", "Lake Garda", False),
        # not what the question names itself
        ("Who directed Solaris?", "Solaris", False),
        ("Who directed The Sound and the Fury?", "the sound and the fury", False),
        ("Who directed Solaris?", "Sol", True),
        # dates and numbers
        ("When was Ann Lee born?", "4 May 1929", True),
        ("When was Ann Lee born?", "Calder", False),
        ("In which year was Ann Lee born?", "1929", True),
        ("What date was it?", "the fourth of May", True),
        ("How many films did she make?", "12", True),
        ("How many films did she make?", "Twenty two", True),
        ("How many films did she make?", "many", False),
        ("What is the population of Calder?", "Dorne", False),
        # people
        ("Who wrote Emma?", "Jane Austen", True),
        ("Who wrote Emma?", "1815", False),
        ("Who sang it?", "Blink-182", True),
        ("Which book came first?", "Ash 2", True),
        # other languages
        ("Wann wurde Ann Lee geboren?", "Calder", True),
        ("", "Calder", True),
    ],
)
def test_an_answer_is_of_the_kind_that_is_asked_for(question: str, answer: str, is_fit: bool) -> None:
    assert fits(question, answer) is is_fit


@pytest.mark.parametrize(
    ("answer", "text", "called"),
    [
        ("Kent", "Dover is a port in Kent County.", True),
        ("Kent", "Dover lies in the County of Kent.", True),
        ("Kent County", "", True),
        ("Kent", "It is the County of the Kent.", True),
        ("Dover", "Dover is the seat of Kent County.", False),
        ("Kent", "The county borders Kent.", False),
    ],
)
def test_a_county_is_called_so(answer: str, text: str, called: bool) -> None:
    assert is_called("Which county is the port in?", answer, text) is called
    assert is_called("In what English county is it?", answer, text) is called
    assert is_called("Who owns the county?", answer, text)


@given(st.text(), st.text())
def test_any_answer_fits_or_not(question: str, answer: str) -> None:
    assert isinstance(fits(question, answer), bool)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Where was #1 born?", [1]),
        ("Is #2's mother older than #1, or than #2?", [2, 1]),
        ("Is it #12?", [12]),
        ("Who sang #1s and C#?", []),  # names
        ("Who is # 1?", []),
        ("Who is #0?", [0]),  # whether there is such a sub-question is for others to say
        (f"Who is #{'9' * 5000}?", []),
    ],
)
def test_which_answers_a_text_refers_to(text: str, numbers: list[int]) -> None:
    assert references(text) == numbers


def test_answers_take_the_place_of_references() -> None:
    answers = {1: "Ann", 2: "", 12: "#1"}
    assert replace_references("Is #1 older than #12?", answers.get) == "Is Ann older than #1?"  # each is replaced once
    assert replace_references("#2, #3 and #1s", answers.get) == ", #3 and #1s"
    assert replace_references("#1?", {1: r"\1"}.get) == r"\1?"  # an answer is no pattern
