"""Passages, evidence and hits: what goes in comes out, and what is malformed says so."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.passages import PAGE, Evidence, Link, Passage, content_id

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=30)  # with NULs and lone surrogates


@given(ANY_TEXT, ANY_TEXT, st.one_of(st.none(), ANY_TEXT))
def test_a_text_passage_survives_its_record(title: str, text: str, id: str | None) -> None:
    passage = Passage.of(title, text, id=id)
    line = json.dumps(passage.to_record(), ensure_ascii=False).encode("utf-8")
    assert Passage.from_record(json.loads(line)) == passage


@given(ANY_TEXT, st.lists(ANY_TEXT, max_size=5), st.one_of(st.none(), ANY_TEXT))
def test_a_passage_of_sentences_survives_its_record(title: str, sentences: list[str], id: str | None) -> None:
    passage = Passage.of(title, sentences=sentences, id=id)
    line = json.dumps(passage.to_record(), ensure_ascii=False).encode("utf-8")
    again = Passage.from_record(json.loads(line))
    assert again == passage
    assert again.sentences == passage.sentences


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
    "arguments",
    [{}, {"text": "x", "sentences": ["x"]}, {"text": None, "sentences": None}],
    ids=["neither", "both", "none"],
)
def test_a_passage_needs_a_text_or_sentences(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either text or sentences"):
        Passage.of("T", **arguments)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "expected an object with 'title' and 'text', got NoneType"),
        (["T", "x"], "expected an object with 'title' and 'text', got list"),
        ("text", "expected an object with 'title' and 'text', got str"),
        ({}, "neither 'text' nor 'sentences' is given"),
        ({"title": "T"}, "neither 'text' nor 'sentences' is given"),
        ({"title": "T", "text": None}, "neither 'text' nor 'sentences' is given"),
        ({"title": 3, "text": "x"}, "'title' must be a string, got int"),
        ({"title": "T", "text": 3}, "'text' must be a string, got int"),
        ({"title": "T", "text": ["x"]}, "'text' must be a string, got list"),
        ({"title": "T", "sentences": "x"}, "'sentences' must be a list of strings"),
        ({"title": "T", "sentences": ["x", 3]}, "'sentences' must be a list of strings"),
        ({"title": "T", "sentences": [["x"]]}, "'sentences' must be a list of strings"),
        ({"id": 1.5, "text": "x"}, "'id' must be a string or an integer, got float"),
        ({"id": True, "text": "x"}, "'id' must be a string or an integer, got bool"),
        ({"id": ["a"], "text": "x"}, "'id' must be a string or an integer, got list"),
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


def test_content_ids_ignore_white_space_and_boundaries() -> None:
    one = Passage.of("The  Title", "One.\nTwo.")
    assert one.id == Passage.of(" The Title ", sentences=["One.", " Two."]).id
    assert one.id == content_id("The Title", "One. Two.")


def test_passages_are_values() -> None:
    passage = Passage.of("T", "One. Two.", id="p")
    assert passage.sentences  # cached in the instance
    twin = Passage.of("T", "One. Two.", id="p")
    assert passage == twin
    assert hash(passage) == hash(twin)
    assert pickle.loads(pickle.dumps(passage)) == passage
    with pytest.raises(AttributeError):
        passage.title = "U"  # type: ignore[misc]


@given(st.lists(ANY_TEXT, min_size=1, max_size=5), st.sets(st.integers(1, 4)))
def test_lines_survive_their_record(sentences: list[str], breaks: set[int]) -> None:
    breaks = {number for number in breaks if number < len(sentences)}
    passage = Passage.of("T", sentences=sentences, breaks=breaks)
    assert len(passage.sentences) == len(sentences)
    assert Passage.from_record(json.loads(json.dumps(passage.to_record()))) == passage


@pytest.mark.parametrize("breaks", ["1", [0], [2], [True], [1.0], [-1], {"1": 1}])
def test_what_others_call_breaks_is_left_out(breaks: object) -> None:
    assert Passage.from_record({"sentences": ["One.", " Two."], "breaks": breaks}).text == "One. Two."


LINK = ["docs/b.md#x", "b", 1]


def test_links_are_read_back() -> None:
    passage = Passage(
        *("a", "T", "One. Two.", ("One.", "Two.")),
        links=(Link("docs/b.md#x", "b", 1), Link("c.md", "", 0, "see")),
        anchors=("x",),
    )
    record = passage.to_record()
    assert record["links"] == [LINK, ["c.md", "", 0, "see"]]
    assert Passage.from_record(json.loads(json.dumps(record))) == passage
    assert not {"links", "anchors"} & Passage("a", "T", "x").to_record().keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("links", "x"), ("links", {"x": 1}), ("links", ["b.md"])),
        *(("links", [link]) for link in (LINK[:2], [*LINK, "x"], [*LINK, "see", 1])),
        *(("links", [link]) for link in ([1, "b", 1], ["b", None, 1], ["b", "b", True], ["b", "b", 2], ["b", "b", -1])),
        *(("anchors", value) for value in ("x", {"x": 1}, [1], [None], ["x" * 501])),
    ],
)
def test_what_others_call_links_is_left_out(name: str, value: object) -> None:
    passage = Passage.from_record({"title": "T", "sentences": ["One.", "Two."], name: value})
    assert (passage.links, passage.anchors) == ((), ())
