"""What a passage says: the forms of its title, the names that it mentions, and how much of it is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.chain.features import NameKey, PassageFeatures
from polyhop.data.passages import PAGE, Passage
from polyhop.data.text import FUNCTION_WORDS, fold, title_key


def titled(title: str, text: str = "") -> PassageFeatures:
    return PassageFeatures(Passage.of(title, text))


def says(*sentences: str) -> PassageFeatures:
    return PassageFeatures(Passage.of("", sentences=sentences))


def forms(title: str) -> list[str]:
    """The forms of a title, the most certain first."""
    return [name.key.strip() for name, _ in sorted(titled(title).names, key=lambda pair: -pair[1])]


def mentioned(text: str) -> list[str]:
    return [name.key.strip() for name in titled("", text).mentioned]


# --- the forms of a title --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Solaris", ["solaris"]),
        ("Help! (film)", ["help film", "help"]),
        ("Paris, Texas", ["paris texas", "paris"]),
        ("Paris, Texas (film)", ["paris texas film", "paris texas", "paris"]),
        ("The Beatles", ["the beatles", "beatles"]),
        ("John Ronald Tolkien", ["john ronald tolkien", "john tolkien"]),
        ("Andrei Tarkovsky", ["andrei tarkovsky"]),
        ("J. R. R. Tolkien", ["jrr tolkien"]),
        ("Besançon", ["besancon"]),
        ("Valentine's Day", ["valentine day"]),
        ("Dmitri (footballer, born 1978)", ["dmitri footballer born 1978", "dmitri"]),
    ],
)
def test_a_title_has_several_forms(title: str, expected: list[str]) -> None:
    assert forms(title) == expected


@pytest.mark.parametrize("title", ["", "The Who", "It", "The The", "!!!", "?", "  "])
def test_a_title_without_a_telling_word_is_mentioned_nowhere(title: str) -> None:
    text = says("It was the who, and the the: !!! and ? are it.")
    assert not any(text.mentions(name) for name, _ in titled(title).names)


def test_a_name_is_found_as_whole_words_only() -> None:
    art = NameKey.of("art")
    assert says("They made art.").mentions(art)
    assert not says("The party was an artful start.").mentions(art)
    assert titled("Modern Art").is_about(art)
    assert not titled("Party").is_about(art)


def test_no_name_runs_across_two_sentences() -> None:
    name = NameKey.of("anna berg")
    assert says("There Anna Berg lives.").mentions(name)
    assert not says("There lives Anna", "Berg is a town.").mentions(name)


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Besançon", "He lives in Besancon."),
        ("Besancon", "He lives in Besançon."),
        ("Besançon", "He lives in Besanc\u0327on."),
        ("Help! (film)", "It was heard in Help!, a success."),
        ("Paris, Texas", "It was shot in Paris, Texas, and elsewhere."),
        ("Paris, Texas", "It was shot in Paris (Texas)."),
        ("J. R. R. Tolkien", "It is a book of J.R.R. Tolkien's."),
        ("J.R.R. Tolkien", "It is a book by J. R. R. Tolkien."),
        ("John Ronald Tolkien", "It is a book by John Tolkien."),
        ("The Beatles", "Their songs are the Beatles' own; a Beatles song."),
        ("Spider-Man", "There is Spider Man."),
        ("Zola", "It was Zola’s house."),
        ("Москва", "Столица — город Москва."),
        ("Αθήνα", "Πρωτεύουσα είναι η Αθηνα."),
        ("القاهرة", "عاصمة مصر هي القاهرة."),
        ("दिल्ली", "भारत की राजधानी दिल्ली है।"),
        ("東京都", "首都 は 東京都 です。"),
    ],
)
def test_a_title_is_recognised_as_texts_write_it(title: str, text: str) -> None:
    reading = titled("", text)
    assert any(reading.mentions(name) for name, _ in titled(title).names)
    assert set(forms(title)) & set(reading.title_candidates)


# --- names in a text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He studied at the University of Amsterdam.", ["university of amsterdam"]),
        ("It was made by Moore, Smith.", ["moore", "smith"]),
        ("It was made by Moore (Smith) and others.", ["moore", "smith"]),
        ("In Paris he sang.", ["paris"]),
        ("She sang. The Beatles listened.", ["beatles"]),
        ("The Beatles' song is McCartney's.", ["beatles", "mccartney"]),
        ("the house is Zola’s and stands in Médan", ["zola", "medan"]),
        ("the house of Ludwig van Beethoven in Bonn", ["ludwig van beethoven in bonn"]),
        ("he met Anna Berg and left", ["anna berg"]),
        ("he met Anna, and Anna met him", ["anna"]),
        ("it is the Rimsky-Korsakov conservatory", ["rimsky korsakov"]),
        ("nothing is capital here", []),
        ("When? Where? What!", []),
        ("Films are made in Rome. Painters live in Paris.", ["rome", "paris"]),
        ("Andrei Tarkovsky made films.", ["andrei tarkovsky"]),
        ("где он жил: в городе Москва", ["москва"]),
        ("He was directed by I. V. Sasi in Kerala.", ["iv sasi in kerala"]),
        ("a film by I. V. Sasi", ["iv sasi"]),
        ("the works of J. R. R. Tolkien", ["jrr tolkien"]),
        ("the works of J.R.R. Tolkien", ["jrr tolkien"]),
        ("the bureau of J. Edgar Hoover", ["j edgar hoover"]),
        ("he met John F. Kennedy there", ["john f kennedy"]),
    ],
)
def test_capitalised_names(text: str, expected: list[str]) -> None:
    assert mentioned(text) == expected


# --- runs of words that may be titles --------------------------------------------------------------------------------


WORDS = st.text("abcdeé", min_size=2, max_size=6).filter(lambda word: fold(word) not in FUNCTION_WORDS)


@given(st.lists(WORDS, min_size=1, max_size=6), st.sampled_from(["", ",", "'s"]))
def test_every_short_capitalised_title_is_a_candidate(title: list[str], after: str) -> None:
    written = " ".join(word.capitalize() for word in title)
    assert title_key(written) in titled("", f"xyz {written}{after} xyz.").title_candidates


# --- how much is read ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("glue", [". ", ", "])  # many sentences, or one
def test_of_a_very_long_passage_the_beginning_is_read(glue: str) -> None:
    text = "He met Anna Berg" + glue + glue.join(f"Word{n} Here" for n in range(9000)) + glue + "He met Zeno Quist"
    assert len(text) > 100_000
    reading = titled("Page", text)
    assert reading.mentions(NameKey.of("anna berg"))
    assert not reading.mentions(NameKey.of("zeno quist"))
    assert "anna berg" in reading.title_candidates
    assert "zeno quist" not in reading.title_candidates
    assert NameKey.of("zeno quist") not in reading.mentioned
    again = titled("Page", text + text)
    assert again.text_key == reading.text_key
    assert again.title_candidates == reading.title_candidates
    assert len(reading.text_key) <= PAGE + 2 * len(reading.sentences)


def test_the_stems_of_a_sentence_and_of_the_title() -> None:
    reading = PassageFeatures(Passage.of("The Flying Dutchman", "Émile was flying over the cities."))
    [(_, stems)] = reading.sentences
    assert {"emil", "fly", "citi"} <= stems
    assert not {"the", "was", "over"} & stems
    assert {"fly", "dutchman"} <= reading.subject


@pytest.mark.parametrize("text", ["", " \n", "?!"])
def test_a_passage_without_words_mentions_itself_only(text: str) -> None:
    reading = titled("Anna Berg", text)
    assert [name.key for name in reading.mentioned] == [" anna berg "]
    assert reading.title_candidates == ()
    assert not reading.mentions(NameKey.of("anna berg"))
    assert titled("", text).mentioned == ()
    assert titled("", text).names == ()
