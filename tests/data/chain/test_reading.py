"""What a passage says: its words as numbers, and the names that it mentions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyhop.data.chain.reading import (
    Reading,
    read,
    texts_of,
    wording,
)
from polyhop.data.passages import PAGE, Passage, Place


def says(text: str, title: str = "") -> Reading:
    return Reading(texts_of(Passage.of(title, text)))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 4, "time.perf_counter"),  # the whole word, and its parts "time", "perf" and "counter"
        (1, 2, "time"),
        (4, 7, "of python 3.3"),
        (7, 8, "klm"),
        (0, 0, ""),
    ],
)
def test_words_of_code_and_numbers_are_told_as_written(start: int, end: int, expected: str) -> None:
    assert wording(read("time.perf_counter of Python 3.3 K.L.M."), start, end) == expected


def mentioned(text: str, title: str = "") -> list[str]:
    reading = says(text, title)
    return [" ".join(reading.forms[start:end]) for start, end in reading.names]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He studied at the University of Amsterdam.", ["university of amsterdam"]),
        ("It was made by Moore, Smith.", ["moore", "smith"]),
        ("It was made by Moore (Smith) and others.", ["moore", "smith"]),
        ("She sang. The Beatles listened.", ["beatles"]),
        ("The Beatles' song is McCartney's.", ["beatles", "mccartney"]),
        ("the house is Zola’s and stands in Médan", ["zola", "medan"]),
        ("the house of Ludwig van Beethoven in Bonn", ["ludwig van beethoven in bonn"]),
        ("it is the Rimsky-Korsakov conservatory", ["rimsky korsakov"]),
        ("When? Where? What!", []),
        ("Films are made in Rome. Painters live in Paris.", ["rome", "paris"]),
        ("где он жил: в городе Москва", ["москва"]),
        ("a film by I. V. Sasi", ["iv sasi"]),
    ],
)
def test_capitalized_names(text: str, expected: list[str]) -> None:
    assert mentioned(text) == expected


def test_the_name_of_the_title_is_no_other_name() -> None:
    assert mentioned("He met Anna Berg, then Zeno Quist.", "Anna Berg (painter)") == ["zeno quist"]


@pytest.mark.parametrize("glue", [". ", ", "])  # many sentences, or one
def test_of_a_very_long_passage_the_beginning_is_read(glue: str) -> None:
    text = "He met Anna Berg" + glue + glue.join(f"Word{n} Here" for n in range(9000)) + glue + "He met Zeno Quist"
    reading = says(text, "Page")
    assert "berg" in reading.forms
    assert "zeno" not in reading.forms
    assert len(" ".join(reading.forms)) <= PAGE + len(reading.forms)
    assert says(text + text, "Page").numbers == reading.numbers
    [header, *_] = reading.record().tolist()
    assert header >> 24 == len(reading.names) <= 255


def test_the_headings_above_a_passage_are_its_first_sentence() -> None:
    passage = replace(Passage.of("Guide", "It rained."), place=Place("guide.md", 3, ("Anna Berg", "Life")))
    assert Reading(texts_of(passage)).forms == ["guide", "", "guide", "", "anna", "berg", "life", "", "it", "rained"]
