"""Citations found, and cut off what cites."""

from __future__ import annotations

import pytest

from polyhop.programs.candidates import cited_in, cut_citations, split_citations


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("He came from there [3s2]. He made it [1s2, 9s9] [2].", ["3s2", "1s2", "9s9", "2"]),
        ("See [1; 2s1 and 3], [2s1].", ["1", "2s1", "3"]),
        ("(2s1) 2s1 [s1] [a2s1] [] [1,000]", ["1", "000"]),  # what addresses nothing is for others to find out
        ("[" + "1 " * 5000, []),
    ],
)
def test_ids_in_brackets(text: str, ids: list[str]) -> None:
    assert cited_in(text) == ids


@pytest.mark.parametrize(
    ("text", "rest", "ids"),
    [
        ("Paris [2s1]", "Paris", ["2s1"]),
        ("x [1s1] [1s2][2s1] [1s1].", "x.", ["1s1", "1s2", "2s1"]),
        ("Paris (2s1, 3s2) or Rome [1s1 and 2s1]", "Paris or Rome", ["2s1", "3s2", "1s1"]),
        ("Mambo No. 5 (1999) [2]", "Mambo No. 5 (1999) [2]", []),
        ("2s1", "2s1", []),
    ],
)
def test_citations_of_sentences_are_cut(text: str, rest: str, ids: list[str]) -> None:
    assert cut_citations(text) == (rest, ids)


@pytest.mark.parametrize(
    ("text", "rest", "ids"),
    [
        ("Ann Lee wrote Dust. (2s1)", "Ann Lee wrote Dust.", ["2s1"]),
        ("Ann Lee [1s1] wrote Dust [2s1, 3].", "Ann Lee [1s1] wrote Dust", ["2s1", "3"]),
        ("Ann Lee wrote Dust. (sources: 2s1 and 1s3) 2s2", "Ann Lee wrote Dust.", ["2s1", "1s3", "2s2"]),
        ("Ann Lee wrote Dust (1941)", "Ann Lee wrote Dust (1941)", []),
    ],
)
def test_citations_at_the_end_are_split_off(text: str, rest: str, ids: list[str]) -> None:
    assert split_citations(text) == (rest, ids)
