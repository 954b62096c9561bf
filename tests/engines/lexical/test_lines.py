"""Which lines of the chosen pages carry the chain."""

from __future__ import annotations

from polyhop.data.passages import Passage
from polyhop.engines.lexical.chain import _SentenceSelection
from polyhop.engines.lexical.prompt import parse_passages
from polyhop.programs.candidates import Candidates

FILM = Passage.of(
    "Stalker (1979 film)",
    sentences=["Stalker is a Soviet film.", "It was directed by Andrei Tarkovsky.", "It lasts for 162 minutes."],
)
DIRECTOR = Passage.of(
    "Andrei Tarkovsky",
    sentences=["Andrei Tarkovsky was a Soviet director.", "He was born in Zavrazhye.", "He died in Paris."],
)
STEPS = ["Who is the director of Stalker (1979 film)?", "Where was #1 born?"]
PAGES = parse_passages(Candidates([FILM, DIRECTOR]).show().format())
LINES = _SentenceSelection("Where was the director of Stalker (1979 film) born?", STEPS, PAGES)


def test_the_lines_that_lead_on_and_that_answer_are_chosen() -> None:
    assert [line.id for line in LINES(PAGES, PAGES)] == ["1s2", "2s2"]


def test_only_the_pages_asked_for_give_lines() -> None:
    assert [line.id for line in LINES(PAGES[1:], PAGES)] == ["2s2"]


def test_every_page_gives_a_line() -> None:
    other = parse_passages(Candidates([Passage.of("Lake", sentences=["It is cold.", "It is deep."])]).show().format())
    assert len(_SentenceSelection("Who wrote it?", [], other)(other, other)) >= 1
