"""What a question asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.engines.lexical.question import ANSWER_KINDS, answer_type


@pytest.mark.parametrize(
    ("question", "kind", "head"),
    [
        ("Who directed Solaris?", "who", ""),
        ("Which actor plays the bandit in Rashomon?", "person", "actor"),
        ("Where was Milan Kundera born?", "where", ""),
        ("What is the place of birth of Kurt Weill?", "where", "place"),
        ("In which city does it lie?", "city", "city"),
        ("The bridge stands in what Nevada city?", "city", "city"),
        ("Brno lies in which region of the Czech Republic?", "region", "region"),
        ("What is the nationality of Kurt Weill?", "nationality", "nationality"),
        ("Which countries border Chad?", "country", "country"),
        ("When did Boyacá fall?", "when", ""),
        ("What is the date of death of Kurt Weill?", "when", "date"),
        ("In which year was it opened?", "year", "year"),
        ("How many people live in Mirow?", "number", ""),
        ("What is the population of Brno?", "measure", "population"),
        ("How tall is Nanda Devi?", "measure", ""),
        ("What position did Jana Novotna's brother play?", "occupation", "position"),
        ("What type of forum did he start?", "kind", "forum"),
        ("What was the name of the fanzine that interviewed the bassist?", "name", "fanzine"),
        ("Which magazine did she edit?", "work", "magazine"),
        ("Kara Thrace plays for what team?", "organisation", "team"),
        ("Which river flows through Brno?", "noun", "river"),
        ("At which university did she study?", "organisation", "university"),
        ("Which film came out first, Solaris or Stalker?", "either", "film"),
        ("Is Brno or Prague larger?", "either", ""),
        ("Are Brno and Prague in the same country?", "yes/no", ""),
        ("Why did the tower fall?", "reason", ""),
    ],
)
def test_asked(question: str, kind: str, head: str) -> None:
    found = answer_type(question)
    assert (found.kind, found.head) == (kind, head)


def test_modifiers_stand_before_the_head() -> None:
    assert answer_type("Which fantasy novel did she write?").modifiers == ("fantasy",)


@given(st.text(max_size=120))
def test_any_text_asks_for_something(text: str) -> None:
    assert answer_type(text).kind in ANSWER_KINDS
