"""Answers that are concluded from what two sub-questions find."""

from __future__ import annotations

import pytest

from polyhop.engines.lexical.decompose import decompose
from polyhop.engines.lexical.hops import read_hops, same
from polyhop.engines.lexical.prompt import ParsedPassage, Sentence
from polyhop.engines.lexical.ranker import shipped_models
from polyhop.engines.lexical.reader import compare, magnitude, options
from polyhop.engines.lexical.span_table import span_table


def pages(**texts: str) -> tuple[ParsedPassage, ...]:
    """One page for each title, with underscores for spaces; a line for each sentence."""
    return tuple(
        ParsedPassage(
            str(n),
            title.replace("_", " "),
            tuple(Sentence(f"{n}s{m}", f"{text}.") for m, text in enumerate(said.split(". "), 1)),
        )
        for n, (title, said) in enumerate(texts.items(), 1)
    )


PEOPLE = pages(
    Ann_Lee="Ann Lee (4 March 1901 – 2 May 1950) was a Scottish painter",
    Tom_Fox="Tom Fox (9 June 1911 – 1 July 1999) was an Irish painter",
)
MOUNTAINS = pages(Mount_Alpha="Mount Alpha is 300 metres high", Mount_Beta="Mount Beta is 900 feet high")
TOWNS = pages(
    Alphaville="Alphaville is a town in France",
    Betaton="Betaton is a village in France",
    Gamma="Gamma is a city in Chile",
)
BANDS = pages(
    Quill="Quill is a rock band. The band has three members", Slate="Slate is a pop band. The band has 5 members"
)


@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        (PEOPLE, "Who was born first, Ann Lee or Tom Fox?", "Ann Lee"),
        (PEOPLE, "Who was born later, Ann Lee or Tom Fox?", "Tom Fox"),
        (PEOPLE, "Who is younger, Ann Lee or Tom Fox?", "Tom Fox"),
        (PEOPLE, "Who is older, Tom Fox or Ann Lee?", "Ann Lee"),
        (PEOPLE, "Who died first, Tom Fox or Ann Lee?", "Ann Lee"),
        (PEOPLE, "Who lived longer, Ann Lee or Tom Fox?", "Tom Fox"),
        (PEOPLE, "Do Ann Lee and Tom Fox have the same nationality?", "no"),
        (MOUNTAINS, "Which is higher, Mount Alpha or Mount Beta?", "Mount Alpha"),
        (TOWNS, "Are Alphaville and Betaton located in the same country?", "yes"),
        (TOWNS, "Are Betaton and Gamma located in the same country?", "no"),
        (BANDS, "Which band has more members, Quill or Slate?", "Slate"),
        (BANDS, "Which is a pop band, Quill or Slate?", "Slate"),
        (BANDS, "Are Quill and Slate both bands?", "yes"),
        (BANDS, "Are Quill and Slate both painters?", "no"),
    ],
)  # fmt: skip
def test_verdicts(told: tuple[ParsedPassage, ...], question: str, answer: str) -> None:
    book, ranker = span_table(told), shipped_models().hop
    verdict = compare(question, read_hops(decompose(question), book, ranker), book, ranker)
    assert verdict is not None
    assert verdict.ranked()[0][0] == answer


def test_what_is_not_compared_has_no_verdict() -> None:
    book, ranker = span_table(PEOPLE), shipped_models().hop
    assert (
        compare("Where was Ann Lee born?", read_hops(["Where was Ann Lee born?"], book, ranker), book, ranker) is None
    )


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("Which film came out first, Solaris or Stalker?", ("Solaris", "Stalker")),
        ("Who is older, Ann Lee or the painter Tom Fox?", ("Ann Lee", "Tom Fox")),
        ("Which battle, the Battle of Brno or the Battle of Ghent, was first?", ("Battle of Brno", "Battle of Ghent")),
        ("Is Brno or Ghent larger?", ("Brno", "Ghent")),
        ("Where is Brno?", None),
    ],
)
def test_options(question: str, sides: tuple[str, str] | None) -> None:
    assert options(question) == sides


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4 March 1901", ("date", (1901, 3, 4))),
        ("2 km", ("length", (2000,))),
        ("three", ("number", (3,))),
        ("4.5 million", ("number", (4_500_000,))),
        ("blue", ("", ())),
    ],
)
def test_magnitude(text: str, expected: tuple[str, tuple[float, ...]]) -> None:
    kind, value = magnitude(text)
    assert kind == expected[0]
    assert value == pytest.approx(expected[1])


def test_same() -> None:
    assert same("Ghent", "Ghent, Belgium")
    assert same("an Austrian painter", "Austria", as_country=True)
    assert not same("Ghent", "Brno")
