"""Queries and thoughts on one line: nothing of them is lost without being counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.programs.prediction import MAX_LINE, one_line, read_query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("population of Paris", "population of Paris"),
        (" population\n of  Paris ", "population of Paris"),
        ("'population of Paris'", "population of Paris"),
        ("<population of Paris>", "population of Paris"),
        ("“Vertigo”", "Vertigo"),
        ('"Vertigo" or "Psycho"', '"Vertigo" or "Psycho"'),
        ("'Tis Pity", "'Tis Pity"),
        ("", ""),
        ("None", ""),
        ("(none)", ""),
        ("n/a", ""),
        (None, ""),
        ('""', ""),
        ("None But the Lonely Heart", "None But the Lonely Heart"),
    ],
)
def test_queries(text: object, query: str) -> None:
    assert read_query(text) == (query, ())


@given(st.text(max_size=1000))
def test_a_line_is_one_short_line_and_what_is_cut_is_counted(text: str) -> None:
    line, cut = one_line(text)
    assert len(line) <= MAX_LINE
    assert len(line.splitlines()) <= 1
    assert bool(cut) == (len(" ".join(text.split())) > MAX_LINE)
    assert " ".join(text.split()).startswith(line)
