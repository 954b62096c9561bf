"""What the engine sees in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Evidence, Passage
from polyhop.engines.lexical.prompt import parse_passages
from polyhop.engines.lexical.spans import dates, names, numbers, quoted
from polyhop.engines.lexical.vocabulary import countries, is_adjective
from polyhop.programs.candidates import Candidates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I. V. Sasi was a director.", ["I. V. Sasi"]),
        ("The film was shot by Robby Müller in Paris.", ["Robby Müller", "Paris"]),
        ("He met Ludwig van Beethoven.", ["Ludwig van Beethoven"]),
        ("In May he left the University of Oxford for good.", ["University of Oxford"]),
        ("Apollo 11 landed.", ["Apollo 11"]),
        ("Maureen O'Sullivan's husband", ["Maureen O'Sullivan"]),
        ("nothing here", []),
        ("Его написал Станислав Лем", ["Его", "Станислав Лем"]),
    ],
)
def test_names(text: str, expected: list[str]) -> None:
    assert [span.text for span in names(text)] == expected


@given(st.text(max_size=200))
def test_spans_stand_where_they_say(text: str) -> None:
    for span in (*names(text), *dates(text), *numbers(text), *quoted(text)):
        assert text[span.start : span.end] == span.text


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("born 12 May 1901, died June 3, 1980", [(1901, 5, 12), (1980, 6, 3)]),
        ("in March 1845", [(1845, 3, 0)]),
        ("from 1999 to 2003", [(1999, 0, 0), (2003, 0, 0)]),
        ("1,999 people and 1500 metres", []),
    ],
)
def test_dates_are_ordered_by_their_key(text: str, keys: list[tuple[int, int, int]]) -> None:
    assert [date.key for date in dates(text)] == keys


def test_numbers_leave_dates_alone() -> None:
    assert [n.text for n in numbers("On 3 May 1990 it had 2,345 people, three lakes and 4.5 million visitors.")] == [
        "2,345",
        "three",
        "4.5 million",
    ]


def test_pages_are_read_back_as_the_agents_are_shown_them() -> None:
    first = Passage.of("Solaris", sentences=["One of\nthem.", "1s2 is a number, [3] a note."])
    second = Passage.of("", "Untitled text. More of it.")
    pages = parse_passages(Candidates([first, second]).show([Evidence(first, 1), Evidence(second)]).format())
    assert [(page.number, page.title) for page in pages] == [("1", "Solaris"), ("2", "")]
    assert [line.id for page in pages for line in page.sentences] == ["1s2", "2s1", "2s2"]
    assert pages[0].sentences[0].text == "1s2 is a number, [3] a note."


def test_a_line_that_is_no_sentence_is_read_in_pieces() -> None:
    words = " ".join(f"word{number}" for number in range(1000))
    (page,) = parse_passages(f"[1] Solaris\n1s1 {words}\n1s2 {'x' * 5000}\n1s3 A novel\nof 1961.")
    pieces = [line for line in page.sentences if line.id == "1s1"]
    assert "".join(piece.text for piece in pieces) == words
    assert all(piece.text.split(" ")[0] in words.split() for piece in pieces)
    assert [len(line.text) for line in page.sentences if line.id == "1s2"] == [2000, 2000, 1000]
    assert page.sentences[-1].text == "A novel of 1961."


def test_of_a_prompt_without_end_every_page_is_read_up_to_its_share() -> None:
    endless = "\n".join(f"1s{number} The river runs through meadow {number}." for number in range(1, 20_000))
    long, short = parse_passages(f"[1] River\n{endless}\n[2] Brook\n2s1 A brook is short.")
    assert 40_000 < sum(len(line.text) for line in long.sentences) <= 50_000
    assert long.sentences[0].text == "The river runs through meadow 1."
    assert [line.text for line in short.sentences] == ["A brook is short."]


def test_countries_are_found_under_their_adjectives() -> None:
    assert [mention.country for mention in countries("an Austrian-born British director from Texas")] == [
        "Austria",
        "United Kingdom",
        "United States",
    ]
    assert [mention.written for mention in countries("he went to polish the US")] == ["US"]
    assert is_adjective("Canadian-American")
    assert not is_adjective("Canada")
