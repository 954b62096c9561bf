"""The spans in a text: names, dates, numbers, countries, and candidate answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.engines.lexical.spans import (
    SPAN_KINDS,
    candidate_spans,
    code,
    countries,
    dates,
    is_adjective,
    names,
    numbers,
    quoted,
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The film was shot by Robby Müller in Salem, Oregon.", ["Robby Müller", "Salem, Oregon", "Salem", "Oregon"]),
        ("It opened on 4 May 1932.", ["4 May 1932", "1932"]),
        ("It ran from 1969 to 1974.", ["1969 to 1974", "1969", "1974"]),
        ("He was a professor of physics.", ["professor", "physics", "professor of physics"]),
        ("She is an Austrian mezzo soprano.", ["Austrian", "mezzo soprano"]),
        ('He wrote "Slow Glass" in Ghent.', ["Slow Glass", '"Slow Glass"', "Ghent"]),
        ("It was founded by Ann Lee and Tom Fox.", ["Ann Lee", "Tom Fox", "Ann Lee and Tom Fox"]),
        ("She left the University of Ghent.", ["University of Ghent", "Ghent"]),
    ],
)
def test_candidates(line: str, expected: list[str]) -> None:
    assert set(expected) <= {span.text for span in candidate_spans(line)}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Version: v2.14.1; Changes: a ledger.", "v2.14.1"),
        ("It needs 3.0.0-beta.2 or newer.", "3.0.0-beta.2"),
        ("Release date: 2031-05-23.", "2031-05-23"),
        ("It listens on 127.0.0.1:7431.", "127.0.0.1"),
        ("Edit file2.conf first.", "file2.conf"),
        ("Call ledger:sign/2 first.", "ledger:sign/2"),
        ("It speaks HTTP/2 now.", "HTTP/2"),
        ("It keeps 10,000 files.", "10,000"),
        ("It needs the Seal::Wax module.", "Seal::Wax"),
        ("Ask https://seals.example/wax-kinds, please.", "https://seals.example/wax-kinds"),
        ("The option -dry uses no wax.", "-dry"),
    ],
)
def test_no_candidate_is_a_part_of_a_version_a_date_or_a_dotted_name(line: str, value: str) -> None:
    found = [span for span in candidate_spans(line) if span.kind != "year"]
    at, end = line.index(value), line.index(value) + len(value)
    assert value in [span.text for span in found]
    assert not [s.text for s in found if at < s.start < end or at < s.end < end]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("4.11. Closing Books", {"Closing Books"}),
        ("Chapter 12. Closing Books", {"Closing Books"}),
        ("F.4. Closing Books", {"Closing Books"}),
        ("See Section 4.11.", {"See"}),
        ("Item: bookings; Upper Limit: 32", {"bookings", "32"}),
        ("Note: The seals are in seal_book(4).", {"seals", "seal_book"}),
    ],
)
def test_no_candidate_is_the_number_of_a_section_the_name_of_a_column_or_a_label(line: str, expected: set[str]) -> None:
    found = {span.text for span in candidate_spans(line)}
    assert expected <= found
    assert not [
        text for text in found if "4" in text or "12" in text or text in ("Item", "Limit", "Upper Limit", "Note")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I. V. Sasi was a director.", ["I. V. Sasi"]),
        ("He met Ludwig van Beethoven.", ["Ludwig van Beethoven"]),
        ("In May he left the University of Oxford for good.", ["University of Oxford"]),
        ("Apollo 11 landed.", ["Apollo 11"]),
        ("Maureen O'Sullivan's husband", ["Maureen O'Sullivan"]),
        ("Его написал Станислав Лем", ["Его", "Станислав Лем"]),
    ],
)
def test_names(text: str, expected: list[str]) -> None:
    assert [span.text for span in names(text)] == expected


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


def test_names_of_code() -> None:
    text = "Call os.environ, compile() or text:trim/1 with --quiet, max_size, FORCE, minidom2, RLock, 0xDD or %A."
    text += " I am e.g. a Cat, NOT a dog."
    assert [span.text for span in code(text)] == [
        "os.environ", "compile()", "text:trim/1", "--quiet", "max_size", "FORCE", "minidom2", "RLock", "0xDD", "%A"
    ]  # fmt: skip


def test_numbers_leave_dates_alone() -> None:
    assert [n.text for n in numbers("On 3 May 1990 it had 2,345 people, three lakes and 4.5 million visitors.")] == [
        "2,345",
        "three",
        "4.5 million",
    ]


def test_countries_are_found_under_their_adjectives() -> None:
    assert [mention.country for mention in countries("an Austrian-born British director from Texas")] == [
        "Austria",
        "United Kingdom",
        "United States",
    ]
    assert [mention.written for mention in countries("he went to polish the US")] == ["US"]
    assert is_adjective("Canadian-American")
    assert not is_adjective("Canada")


@given(st.text(max_size=200))
def test_spans_have_the_text_at_their_place(text: str) -> None:
    candidates = candidate_spans(text)
    for span in (*names(text), *dates(text), *numbers(text), *quoted(text), *code(text), *candidates):
        assert text[span.start : span.end] == span.text
    assert all(span.kind in SPAN_KINDS for span in candidates)
    assert len({(span.start, span.end) for span in candidates}) == len(candidates)
