"""Which passages form a chain, and which of their sentences carry it."""

from __future__ import annotations

import pytest

from polyhop.data.chain import ChainRetriever
from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.data.sample import load_sample, sample_passages
from polyhop.engines.lexical.chain import LONGEST, EvidenceChain
from polyhop.engines.lexical.decompose import decompose
from polyhop.engines.lexical.prompt import ParsedPassage, parse_passages
from polyhop.programs.candidates import Candidates

WORLD = {
    "Stalker (1979 film)": "Stalker is a Soviet film directed by Andrei Tarkovsky.",
    "Stalker (novel)": "Stalker is a novel by Faye Kellerman.",
    "Andrei Tarkovsky": "Andrei Tarkovsky was a Soviet film director. He was born in Zavrazhye in 1932.",
    "Contact (1997 film)": "Contact is an American film directed by Robert Zemeckis.",
    "Robert Zemeckis": "Robert Zemeckis is an American film director. He was born in Chicago in 1952.",
    "Werner Herzog": "Werner Herzog is a German film director. He was born in Munich in 1942.",
    "Munich": "Munich is a city in Germany. Many a film director was born there.",
    "Lake Stalker": "Lake Stalker is a lake in Canada.",
}
PAGES = [Passage.of(title, text) for title, text in WORLD.items()]


def chain_of(question: str, passages: list[Passage]) -> EvidenceChain:
    return EvidenceChain(question, tuple(decompose(question)), parse_passages(Candidates(passages).show().format()))


def titles(pages: list[ParsedPassage]) -> set[str]:
    return {page.title for page in pages}


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Where was the director of the film Stalker born?", {"Stalker (1979 film)", "Andrei Tarkovsky"}),
        ("Who was born first, Andrei Tarkovsky or Werner Herzog?", {"Andrei Tarkovsky", "Werner Herzog"}),
        (
            "Which film has the director who was born earlier, Stalker (1979 film) or Contact (1997 film)?",
            {"Stalker (1979 film)", "Andrei Tarkovsky", "Contact (1997 film)", "Robert Zemeckis"},
        ),
    ],
    ids=["bridge", "comparison", "two bridges"],
)
@pytest.mark.parametrize("order", [1, -1], ids=["in order", "backwards"])
def test_a_chain_has_its_bridges_and_both_sides_and_no_more(question: str, wanted: set[str], order: int) -> None:
    assert titles(chain_of(question, PAGES[::order]).extend([])) == wanted


def test_what_is_missing_is_added_whatever_is_there() -> None:
    chain = chain_of("Where was the director of the film Stalker born?", PAGES)
    film, director = (next(p for p in chain.passages if p.title == title) for title in titles(chain.extend([])))
    assert chain.extend([film]) == [director]
    assert chain.extend([director]) == [film]
    assert chain.extend([film, director]) == []


def test_the_adder_has_nothing_to_add_to_what_the_selector_chose() -> None:
    retriever = ChainRetriever(PassagePool(sample_passages()))
    for example in list(load_sample("train"))[::15]:
        chain = chain_of(example.question, [hit.passage for hit in retriever.search(example.question, 20)])
        chosen = chain.extend([])
        assert 1 <= len(chosen) <= LONGEST
        assert chain.extend(chosen) == []
        assert {line.id.partition("s")[0] for line in chain.sentences(chosen, chosen)} == {
            page.number for page in chosen
        }


def test_nothing_is_chosen_of_pages_that_have_no_word_of_the_question() -> None:
    assert chain_of("Quis custodiet ipsos custodes?", PAGES).extend([]) == []
    assert "Munich" in titles(chain_of("Quis custodiet Munich?", PAGES).extend([]))


def test_pages_without_text_and_questions_without_words_are_borne() -> None:
    empty = [Passage.of("", sentences=[]), Passage.of("Stalker", sentences=[]), Passage.of("", "Text only.")]
    for question in ("", "?", "Who?", "Where is Stalker?"):
        for pages in (empty, []):
            chain = chain_of(question, pages)
            chain.sentences(chosen := chain.extend([]), chosen)


def test_the_lines_that_lead_on_and_that_answer_are_chosen() -> None:
    film = ["Stalker is a Soviet film.", "It was directed by Andrei Tarkovsky.", "It lasts for 162 minutes."]
    man = ["Andrei Tarkovsky was a Soviet director.", "He was born in Zavrazhye.", "He died in Paris."]
    told = [Passage.of("Stalker (1979 film)", sentences=film), Passage.of("Andrei Tarkovsky", sentences=man)]
    chain = chain_of("Where was the director of Stalker (1979 film) born?", told)
    assert [line.id for line in chain.sentences(chain.passages, chain.passages)] == ["1s2", "2s2"]
