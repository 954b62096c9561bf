"""What a passage says: its words, and the names that it mentions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.chain.words import END, PassageWords, place_of, read
from polyhop.data.passages import Passage


def names(text: str) -> list[str]:
    words = PassageWords(Passage.of("One Title", text))
    return [words.name(*span) for span in words.names]


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
    assert names(text) == expected


@pytest.mark.parametrize("glue", [". ", ", "])  # many sentences, or one
def test_of_a_very_long_passage_the_beginning_is_read(glue: str) -> None:
    text = "He met Anna Berg" + glue + glue.join(f"Word{n} Here" for n in range(9000)) + glue + "He met Zeno Quist"
    words = PassageWords(Passage.of("Page", text)).forms
    assert "berg" in words
    assert "zeno" not in words
    assert words == PassageWords(Passage.of("Page", text + text)).forms


@given(
    st.lists(st.sampled_from("anna berg met os.urandom é 東京 x".split()), min_size=1, max_size=3),
    st.lists(st.sampled_from("anna berg met os.urandom é 東京 x . ,".split()), max_size=30),
)
def test_names_are_found_wherever_their_words_stand(name: list[str], text: list[str]) -> None:
    words = PassageWords(Passage.of("", " ".join(text)))
    forms = [form for word in read(" ".join(name)) for form in word.forms]
    starts = range(len(words.forms) - len(forms) + 1)
    expected = [at for at in starts if words.forms[at : at + len(forms)] == forms]
    assert words.find(" ".join(forms)) == expected
    assert len(words.forms) == len(words.stems) == len(words.sentence) == len(words.cased) == len(words.starts)
    assert words.forms.count(END) == len(words.texts) == words.sentence[-1] + 1


def test_site_generators_agree_in_the_letters_of_a_fragment() -> None:
    names = ("max-backlog-n", "--max-backlogn", "Max backlog=N")
    assert {place_of(f"a.md#{name}") for name in names} == {(place_of("a.md")[0], "maxbacklogn")}
    assert len({place_of(target) for target in ("a.md", "#max", "#backlog", "#--", "#-", "#日本")}) == 6
