"""Short ids out, evidence back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import Evidence, Passage
from polyhop.programs.candidates import Candidates

A = Passage.of("A", sentences=["a one", "a two", "a three"], id="a")
B = Passage.of("B", sentences=["b one"], id="b")
LONG = Passage.of("Long", sentences=[f"sentence {n}" for n in range(1, 13)], id="long")
CANDIDATES = Candidates([A, B, LONG])


def facts(evidence: list[Evidence]) -> list[tuple[str, int | None]]:
    return [tuple(item.fact) for item in evidence]  # type: ignore[misc]


def test_shows_all_passages_in_order() -> None:
    assert Candidates([B, A]).show().format() == "[1] B\n1s1 b one\n[2] A\n2s1 a one\n2s2 a two\n2s3 a three"


def test_shows_what_the_evidence_names_under_the_same_numbers() -> None:
    evidence = [Evidence(LONG, 9), Evidence(A, 2), Evidence(LONG, 1), Evidence(A, 0), Evidence(B)]
    shown = CANDIDATES.show(evidence).format()
    assert shown == (
        "[3] Long\n3s2 sentence 2\n3s10 sentence 10\n"  # sentences in the order of the text
        "[1] A\n1s1 a one\n1s3 a three\n"
        "[2] B\n2s1 b one"
    )
    assert CANDIDATES.show([]).format() == "(none)"


def test_a_whole_passage_and_one_of_its_sentences_show_the_passage_once() -> None:
    assert CANDIDATES.show([Evidence(A, 1), Evidence(A)]).format() == "[1] A\n1s1 a one\n1s2 a two\n1s3 a three"


def test_a_passage_given_twice_is_one_candidate() -> None:
    candidates = Candidates([A, B, A, LONG])
    assert [passage.id for passage in candidates.passages] == ["a", "b", "long"]
    evidence, _ = candidates.resolve(["1s1", "3s1"])
    assert candidates.ids(evidence) == ["1s1", "3s1"]


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
        "the first", "in 1", None, True, [], {"id": "1s1"}, "9" * 5000, "1." + "9" * 5000, "1e3", "1a",
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


def test_a_number_before_prose_is_no_passage() -> None:
    candidates = Candidates([Passage.of("Rome", "A city."), Passage.of("Oslo", "Another.")])
    kept, invalid = candidates.resolve(["2 passages are relevant", "[1] Rome", "**2s1**"])
    assert [item.fact for item in kept] == [
        (candidates.passages[0].id, None),
        (candidates.passages[1].id, 0),
    ]
    assert invalid == ("2 passages are relevant",)


def test_what_a_later_search_finds_is_numbered_on() -> None:
    first, second = Passage.of("A", "One.", id="a"), Passage.of("B", "Two.", id="b")
    candidates = Candidates([first])
    assert candidates.extend([first, second, second]) == [second]
    assert candidates.ids([Evidence(first), Evidence(second, 0)]) == ["1", "2s1"]
