"""Passages, evidence and hits: what goes in comes out, and what is malformed says so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import PAGE, Evidence, Link, Passage, Place, content_id

SAFE = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=9)
ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=30)  # with NULs and lone surrogates


def test_given_sentences_keep_their_boundaries_and_their_count() -> None:
    passage = Passage.of("T", sentences=["One. Two.", "", " Three "])
    assert passage.sentences == ("One. Two.", "", "Three")  # gold facts count empty sentences too
    assert passage.text == "One. Two.  Three"


@pytest.mark.parametrize("given", [False, True])
def test_of_a_book_the_first_page_is_read(given: bool) -> None:
    sentences = [f"Sentence {n} is short." for n in range(3_000)]
    book = Passage.of("Book", sentences=sentences) if given else Passage.of("Book", " ".join(sentences))
    assert len(book.text) > 2 * PAGE
    assert PAGE - 100 < len(" ".join(book.sentences)) <= PAGE + len(book.sentences)
    assert list(book.sentences[:-1]) == sentences[: len(book.sentences) - 1]
    assert sentences[len(book.sentences) - 1].startswith(book.sentences[-1])
    assert Evidence(book).text == book.text[:PAGE]
    assert Passage.from_record(book.to_record()) == book  # nothing of it is lost


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "expected an object with 'title' and 'text', got NoneType"),
        ({"title": "T"}, "neither 'text' nor 'sentences' is given"),
        ({"title": 3, "text": "x"}, "'title' must be a string, got int"),
        ({"title": "T", "sentences": ["x", 3]}, "'sentences' must be a list of strings"),
        ({"id": True, "text": "x"}, "'id' must be a string or an integer, got bool"),
    ],
)
def test_a_malformed_record_says_what_is_wrong(record: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 the whole message is compared
        Passage.from_record(record)
    assert str(caught.value) == message


def test_content_ids_are_the_same_on_every_machine() -> None:
    # printf 'Paris\nParis is the capital of France.' | b2sum -l 64
    # Another value would mean that no index and no prediction file written before matches any more.
    assert content_id("Paris", "Paris is the capital of France.") == "0f089563341cc4e7"
    assert content_id("", "") != content_id("", "x")
    # White space and the boundaries of sentences do not count.
    assert Passage.of(" Paris ", sentences=["Paris is the", " capital of  France."]).id == "0f089563341cc4e7"


@st.composite
def passages(draw: st.DrawFn) -> Passage:
    """Of a text, of sentences, or of lines; in a document or not, with links and anchors or without."""
    id, title = draw(st.one_of(st.none(), ANY_TEXT)), draw(ANY_TEXT)
    sentences = draw(st.lists(ANY_TEXT, max_size=5))
    if draw(st.booleans()):
        passage = Passage.of(title, " ".join(sentences), id=id)
    else:
        breaks = draw(st.sets(st.integers(1, 4).filter(lambda number: number < len(sentences)))) if sentences else ()
        passage = Passage.of(title, sentences=sentences, breaks=breaks, id=id)
        assert len(passage.sentences) == len(sentences)
    most = len(passage.sentences) - 1
    link = st.builds(Link, SAFE, SAFE, st.integers(0, max(most, 0)), st.sampled_from(["text", "contents", "see"]))
    return replace(
        passage,
        place=draw(st.none() | st.builds(Place, SAFE, st.integers(0, 9), st.lists(SAFE, max_size=2).map(tuple))),
        links=tuple(draw(st.lists(link, max_size=2))) if most >= 0 else (),
        anchors=tuple(draw(st.lists(SAFE, max_size=2))),
    )


@given(passages())
def test_a_passage_survives_its_record(passage: Passage) -> None:
    line = json.dumps(passage.to_record(), ensure_ascii=False).encode("utf-8")
    again = Passage.from_record(json.loads(line))
    assert again == passage
    assert again.sentences == passage.sentences


def test_a_sentence_is_numbered_as_in_the_document() -> None:
    whole = Passage.of("T", "One. Two.", id="p")
    part = replace(whole, place=Place("d", 7))
    assert [each.fact_of(number) for each in (whole, part) for number in (1, None)] == [
        *(("p", 1), ("p", None), ("d", 8), ("d", None)),
    ]
