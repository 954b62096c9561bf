"""Short ids out, evidence back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Evidence, Passage
from polyhop.programs.candidates import Candidates, cited_in, cut_citations, split_citations

A = Passage.of("A", sentences=["a one", "a two", "a three"], id="a")
B = Passage.of("B", sentences=["b one"], id="b")
LONG = Passage.of("Long", sentences=[f"sentence {n}" for n in range(1, 13)], id="long")
CANDIDATES = Candidates([A, B, LONG])


def facts(evidence: list[Evidence]) -> list[tuple[str, int | None]]:
    return [tuple(item.fact) for item in evidence]  # type: ignore[misc]


def test_shows_what_the_evidence_names_under_the_same_numbers() -> None:
    evidence = [Evidence(LONG, 9), Evidence(A, 2), Evidence(LONG, 1), Evidence(A, 0), Evidence(B)]
    shown = CANDIDATES.show(evidence).format()
    assert shown == (
        "[3] Long\n3s2 sentence 2\n3s10 sentence 10\n"  # sentences in the order of the text
        "[1] A\n1s1 a one\n1s3 a three\n"
        "[2] B\n2s1 b one"
    )
    assert CANDIDATES.show([]).format() == "(none)"


@pytest.mark.parametrize(
    ("entry", "fact"),
    [
        ("1s2", ("a", 1)),
        ("1", ("a", None)),
        (" 1s2 ", ("a", 1)),
        ("[1s2]", ("a", 1)),
        ("(1s2)", ("a", 1)),
        ('"1s2"', ("a", 1)),
        ("1.2.", ("a", 1)),
        ("1.2:", ("a", 1)),
        ("#1s2", ("a", 1)),
        ("[1]", ("a", None)),
        ("1.", ("a", None)),
        ("[1] A", ("a", None)),
        ("Passage 1", ("a", None)),
        ("sentence 1s2", ("a", 1)),
        ("id 1s2", ("a", 1)),
        ("1s2 a two, of 1941 and 3s5", ("a", 1)),
        ("3s10", ("long", 9)),
        ("3s12", ("long", 11)),
        (1, ("a", None)),
        (1.2, ("a", 1)),
    ],
)
def test_ids_in_any_form(entry: Any, fact: tuple[str, int | None]) -> None:
    evidence, invalid = CANDIDATES.resolve([entry])
    assert facts(evidence) == [fact]
    assert invalid == ()


@pytest.mark.parametrize(
    "entry",
    [
        "0", "4", "1.0", "1s4", "2s2", "0.1", "99s1", "-1s1", "1.1.1", "1.1-1s3", "1-3", "1s1, 1s2", "", "a", "A",
        "the first", "in 1",
        "1 passage is relevant", "3 of them help", None, True, [], {"id": "1s1"}, "9" * 5000, "1." + "9" * 5000,
        "1e3", "1a",
    ],
)  # fmt: skip
def test_ids_that_address_nothing_are_reported(entry: Any) -> None:
    evidence, invalid = CANDIDATES.resolve([entry, "1s1"])
    assert facts(evidence) == [("a", 0)]
    assert invalid == (str(entry)[:80],)


def test_order_is_the_agents_and_repetitions_are_reported() -> None:
    evidence, invalid = CANDIDATES.resolve(["3s2", "1s1", "[3s2]", "2", "2s1", "9", "1s1"])
    assert facts(evidence) == [("long", 1), ("a", 0), ("b", None)]
    assert invalid == ("[3s2]", "2s1", "9", "1s1")


def test_a_whole_passage_takes_the_place_of_its_first_sentence() -> None:
    evidence, invalid = CANDIDATES.resolve(["1s2", "2s1", "1s1", "1"])
    assert facts(evidence) == [("a", None), ("b", 0)]
    assert invalid == ()


@given(
    st.lists(
        st.one_of(st.text(max_size=8), st.integers(), st.floats(), st.from_regex(r"[0-4](\.[0-4])?", fullmatch=True))
    )
)
def test_whatever_the_reply_every_entry_is_found_or_reported(reply: list[Any]) -> None:
    evidence, invalid = CANDIDATES.resolve(reply)
    addressed = facts(evidence)
    assert len(set(addressed)) == len(addressed)
    whole = {id for id, sentence in addressed if sentence is None}
    assert not any(id in whole and sentence is not None for id, sentence in addressed)
    assert len(evidence) + len(invalid) <= len(reply)
    assert all(item.text for item in evidence)  # every one can be read
    again, repeated = CANDIDATES.resolve(CANDIDATES.ids(evidence))
    assert again == evidence
    assert repeated == ()


# --- citations ------------------------------------------------------------------------------------------------------


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
        ("Ann Lee [1s1] wrote Dust [2s1, 3].", "Ann Lee wrote Dust", ["1s1", "2s1", "3"]),
        ("Ann Lee wrote Dust. (2s1 and 1s3) 2s2", "Ann Lee wrote Dust.", ["2s1", "1s3", "2s2"]),
        ("Ann Lee wrote Dust (1941)", "Ann Lee wrote Dust (1941)", []),
    ],
)
def test_citations_at_the_end_are_split_off(text: str, rest: str, ids: list[str]) -> None:
    assert split_citations(text) == (rest, ids)
