"""KAIR's state and rules, one by one, with hand-worked numbers."""

from __future__ import annotations

import math

import pytest

from polyhop.data.passages import Evidence, Passage
from polyhop.programs.kair import KairState, KnownFact, distinct, joined, nearest, relevance

LEE = Passage.of("Ann Lee", sentences=["She wrote the novel Dust.", "She lived in Cork.", "It rained."], id="lee")
WROTE, LIVED, RAINED = (Evidence(LEE, n) for n in range(3))


def state(*known: KnownFact, required: tuple[str, ...] = (), queries: tuple[str, ...] = ()) -> KairState:
    return KairState("Who?", "all", known, required, queries)


def test_the_cosine_of_topic_words() -> None:
    assert nearest("Ann Lee Cork", ["Cork"]) == pytest.approx(1 / math.sqrt(3))
    assert nearest("Ann Lee Cork", ["Cork", "the Lee of Ann", "Dust"]) == pytest.approx(2 / math.sqrt(6))
    assert nearest("lived in Cork", ["living in Cork"]) == pytest.approx(1.0)  # stems
    assert nearest("Cork", []) == 0.0
    assert nearest("who", ["which"]) == 0.0
    assert nearest("the who", ["The Who"]) == 1.0  # no topic word: alike or not


def test_a_fact_is_compared_by_its_own_size() -> None:
    assert relevance("A very long sentence on Ann and on Lee from Cork", ["Ann Lee", "Dust"]) == 1.0
    assert relevance("Ann Dust", ["Ann Lee Cork"]) == pytest.approx(1 / 2)
    assert relevance("Ann", []) == 0.0


# --- rule (2) --------------------------------------------------------------------------------------------------------

ASKED = state(required=("Where is Cork?",), queries=("Ann Lee",))


@pytest.mark.parametrize(
    ("query", "alpha", "worth"),
    [
        ("Ann Lee", 1.0, 0.0),
        ("Cork", 1.0, 1.0),
        ("Cork", 0.0, 1.0),
        ("Cork", 0.5, 1.0),
        ("Ann Lee", 0.0, 0.0),
        ("Ann Lee", 0.5, 0.0),
        ("Dust", 0.5, 0.5),
        ("Ann Cork", 0.5, 0.5 * (1 - 1 / 2) + 0.5 / math.sqrt(2)),
        ("Ann Cork", 0.25, 0.25 * (1 - 1 / 2) + 0.75 / math.sqrt(2)),
    ],
)
def test_the_worth_of_a_query(query: str, alpha: float, worth: float) -> None:
    assert ASKED.score(query, alpha) == pytest.approx(worth)


def test_at_first_no_query_is_worth_more_than_the_question() -> None:
    first = KairState("Who wrote Dust?", "all", required=("Who wrote Dust?",))
    assert first.score("Who wrote Dust?", 0.5) == 1.0 == max(first.score(q, 0.5) for q in ("Dust", "Ann", "wrote Dust"))


# --- rules (3) and (4) -----------------------------------------------------------------------------------------------


def test_a_sentence_is_supported_by_a_fact_that_is_close_to_it() -> None:
    knows = state(KnownFact("Ann Lee wrote Dust."))  # of its 4 topic words the title brings 2
    assert knows.supports(WROTE, 0.99)
    assert knows.supports(LIVED, 0.49)
    assert not knows.supports(LIVED, 0.5)  # greater than, not at least
    assert not state().supports(WROTE, 0.0)


def test_a_sentence_is_supported_by_a_fact_that_cites_it() -> None:
    assert state(KnownFact("Precipitation.", (RAINED,))).supports(RAINED, 0.99)
    assert state(KnownFact("Precipitation.", (Evidence(LEE),))).supports(RAINED, 0.99)
    assert not state(KnownFact("Precipitation.", (LIVED,))).supports(RAINED, 0.1)


def test_a_sentence_may_bear_on_a_gap() -> None:
    asks = state(required=("Where did she live?", "Why?"))
    assert asks.asks_for(LIVED, 0.3)
    assert not asks.asks_for(RAINED, 0.3)
    assert not state().asks_for(LIVED, 0.0)


# --- the blackboard --------------------------------------------------------------------------------------------------


def test_distinct_facts() -> None:
    facts = [
        KnownFact("Ann Lee wrote Dust.", (WROTE,)),
        KnownFact("ann lee wrote dust"),
        KnownFact("It rained."),
        KnownFact("Old."),
    ]
    assert distinct(facts, [KnownFact("old")]) == [facts[0], facts[2]]


def test_what_agents_wrote_is_joined_in_their_order() -> None:
    dealt = [state(required=("v?",)), state(required=("w?",))]
    one = state(KnownFact("A."), KnownFact("B."), required=("x?", "y?"), queries=("q", "r"))
    two = state(KnownFact("A."), KnownFact("C."), required=("y?", "z?"), queries=("q", "s"))
    board = joined(state(KnownFact("A."), required=("v?", "w?")), dealt, [one, two])
    assert [fact.text for fact in board.known] == ["A.", "B.", "C."]
    assert board.required == ("x?", "y?", "z?")
    assert board.queries == ("q", "r", "s")


def test_only_who_was_dealt_a_gap_can_keep_it_open() -> None:
    dealt = [state(required=("v?",)), state(required=("w?",))]
    agents = [state(required=("w?", "x?")), state(required=("v?", "w?"))]
    board = joined(state(required=("v?", "w?")), dealt, agents)
    assert board.required == ("x?", "w?")  # v? was closed by the first, who was dealt it
