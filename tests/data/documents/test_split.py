"""Passages of a document: their lengths, places and headings."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.documents.split import Document, Href, Line, count_words, split
from polyhop.data.passages import Link, Passage, Place

TEAM = Document(
    "team.md",
    "Team",
    [
        Line("We build things."),
        Line("On call", ("On call",), is_heading=True),
        Line("Tollgate is on call.", ("On call",)),
        Line("Leave", ("Leave",), is_heading=True),
        Line("Sick", ("Leave", "Sick"), is_heading=True),
        Line("Tell Ada Berg.", ("Leave", "Sick")),
        Line("Vacation", ("Leave", "Vacation"), is_heading=True),
        Line("It has 25 days.", ("Leave", "Vacation")),
    ],
    {"author": "Ada"},
)


def test_short_sections_are_joined_below_the_headings_that_they_share() -> None:
    first, second = split(TEAM, 11)
    assert (first.id, first.text, first.heading) == (
        "team.md#1",
        "We build things. On call Tollgate is on call.",
        "Team",
    )
    assert second.place == Place("team.md", 4, ("Leave",))
    assert second.text == "Sick Tell Ada Berg. Vacation It has 25 days."
    assert second.heading == "Team > Leave"
    assert second.searched.startswith("Team > Leave\nteam\nSick")


def test_a_document_of_headings_keeps_them() -> None:
    lines = [Line("One", ("One",), True), Line("Two", ("Two",), True)]
    assert [passage.text for passage in split(Document("d", "T", lines), 1)] == ["Two"]
    assert [passage.text for passage in split(Document("d", "T", lines))] == ["One Two"]


def test_code_is_kept_apart_and_in_lines() -> None:
    lines = [
        Line("Run this:"),
        Line("    if ready:", apart=1),
        Line("        run()", apart=1),
        Line("Then that:"),
        Line("  ls", apart=2),
        Line("  pwd", apart=3),
    ]
    document = Document("d", "T", lines)
    first, code, *others = split(document)
    assert (code.text, code.sentences) == ("if ready:\n    run()", ("if ready:", "    run()"))
    assert [passage.text for passage in (first, *others)] == ["Run this:", "Then that:", "ls", "pwd"]
    whole = document.whole()
    assert whole.text == "Run this:\nif ready:\n    run()\nThen that:\nls\npwd"
    assert len(whole.sentences) == len(lines)
    for passage in (code, whole):
        assert Passage.from_record(passage.to_record()) == passage


@pytest.mark.parametrize(
    ("text", "most", "count"),
    [("霧の港町には灯台がある" * 200, 240, 11), ("x" * 5000, 720, 8), ("word " * 719, 601, 7), ("ก" * 3000, 240, 14)],
    ids=["Japanese", "one word", "one sentence", "Thai"],
)
def test_what_has_no_end_is_cut(text: str, most: int, count: int) -> None:
    passages = split(Document("d", "T", [Line("Before."), Line(text), Line("After.")]))
    assert max(len(passage.text) for passage in passages) <= most
    assert len(passages) == count  # the last part, if it is short, with what follows
    assert "".join("".join(passage.text for passage in passages).split()) == "".join(f"Before.{text}After.".split())
    assert [passage.fact_of(0).sentence for passage in passages][1:-1] == [1] * (len(passages) - 2)


def test_words_that_are_not_marked_are_counted_and_only_small_metadata_is_kept() -> None:
    texts = ("Donaudampfschifffahrt ist ein langes Wort.", "北京" * 20, "x" * 600)
    assert [*map(count_words, texts)] == [5, 20, 100]


@pytest.mark.parametrize(("most", "texts"), [(4, ["a b term one", "c d e"]), (5, ["a b", "term one c d e"])])
def test_a_term_goes_with_its_definition_where_both_fit(most: int, texts: list[str]) -> None:
    lines = [Line("a b"), Line("term one", is_term=True), Line("c d e")]
    assert [passage.text for passage in split(Document("d", "T", lines), most)] == texts


def test_links_and_anchors_go_with_their_lines() -> None:
    document = Document(
        "a/b.md",
        "T",
        [
            Line("One two.", (), links=(Href(0, "c.md", "One"), Href(3, "mailto:x", "two"), Href(3, "#x", "two"))),
            Line("Leave:", ("Leave",), True, anchors=("leave",)),
            Line("Three four.", ("Leave",), anchors=("three",), links=(Href(5, "../d.md", "four", "see"),)),
            Line("w " * 30 + "end", ("Long",), anchors=("long",), links=(Href(0, "e", "w"), Href(30, "f", "end"))),
        ],
    )
    whole = split(document)[0]
    assert whole.links == (
        ("a/c.md", "One", 0, "text"),
        ("a/b.md#x", "two", 0, "text"),
        ("d.md", "four", 2, "see"),
        *(("a/e", "w", 3, "text"), ("a/f", "end", 3, "text")),
    )
    assert whole.anchors == ("leave", "three", "long")
    first, second, third, *_, last = split(document, 2)
    assert (first.links, first.anchors) == (whole.links[:2], ())
    assert (second.text, second.links) == ("Three four.", (Link("d.md", "four", 0, "see"),))
    assert second.anchors == ("leave", "three")  # also those of the heading above it
    assert (third.links, third.anchors, last.links, last.anchors) == (
        (Link("a/e", "w", 0),),
        ("long",),
        (Link("a/f", "end", 0),),
        (),
    )


def test_links_are_bounded() -> None:
    many = tuple(Href(0, f"{n}.md", "x") for n in range(500))
    line = Line("x", links=many, anchors=tuple(map(str, range(500))))
    [passage] = split(Document("a", "T", [line]))
    assert (len(passage.links), len(passage.anchors)) == (200, 200)
    assert Passage.from_record(passage.to_record()) == passage


HEADINGS = st.sampled_from(["A", "B", "C c"])
PATHS = st.lists(HEADINGS, max_size=2).map(tuple)
LINES = st.lists(
    st.builds(
        lambda text, path, kind, apart: Line(text, path, bool(path) and kind == 1, apart, is_term=kind == 2),
        st.text(st.sampled_from("ab 北."), min_size=1, max_size=80).map(str.strip).filter(bool),
        PATHS,
        st.integers(0, 2),  # a sentence, a heading or a term
        st.sampled_from([0, 0, 0, 1]),
    ),
    min_size=1,
    max_size=12,
)


@given(LINES, st.integers(1, 20))
def test_every_sentence_is_in_its_place(lines: list[Line], max_words: int) -> None:
    passages = split(Document("d", "T", lines), max_words)
    assert len({passage.id for passage in passages}) == len(passages)
    seen: dict[int, str] = {}
    for passage in passages:
        assert len(passages) == 1 or count_words(passage.text) <= max_words
        assert Passage.from_record(passage.to_record()) == passage
        for own, text in enumerate(passage.sentences):
            number = passage.fact_of(own).sentence or 0
            seen[number] = seen.get(number, "") + text
    squeezed = {number: "".join(text.split()) for number, text in seen.items()}
    for number, line in enumerate(lines):
        if not line.is_heading or number in squeezed:
            assert squeezed[number] == "".join(line.text.split())
    places = [passage.place.sentence for passage in passages if passage.place]
    assert all(one <= other for one, other in pairwise(places))
