"""KAIR's state: the worth of a query, which sentences a fact or a gap accepts, and gaps that belong together."""

from __future__ import annotations

import math

import pytest

from polyhop.data.passages import Evidence, Passage
from polyhop.programs.knowledge import KairState, KnownFact, nearest, read_known

LEE = Passage.of("Ann Lee", sentences=["She wrote the novel Dust.", "She lived in Cork.", "It rained."], id="lee")
LIVED, RAINED = Evidence(LEE, 1), Evidence(LEE, 2)


def state(*known: KnownFact, required: tuple[str, ...] = (), queries: tuple[str, ...] = ()) -> KairState:
    return KairState("Who?", "all", known, required, queries)


def test_the_cosine_of_topic_words() -> None:
    assert nearest("Ann Lee Cork", ["Cork"]) == pytest.approx(1 / math.sqrt(3))
    assert nearest("Ann Lee Cork", ["Cork", "the Lee of Ann", "Dust"]) == pytest.approx(2 / math.sqrt(6))
    assert nearest("lived in Cork", ["living in Cork"]) == pytest.approx(1.0)  # stems
    assert nearest("Cork", []) == 0.0
    assert nearest("who", ["which"]) == 0.0
    assert nearest("the who", ["The Who"]) == 1.0  # no topic word: alike or not


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


def test_a_sentence_is_supported_by_a_fact_that_cites_it() -> None:
    assert state(KnownFact("Precipitation.", (RAINED,))).cites(RAINED)
    assert state(KnownFact("Precipitation.", (Evidence(LEE),))).cites(RAINED)
    assert not state(KnownFact("Precipitation.", (LIVED,))).cites(RAINED)


# --- contradictions --------------------------------------------------------------------------------------------------


def test_a_disputed_fact_is_one_that_is_known() -> None:
    known = [KnownFact("Ann Lee wrote Dust."), KnownFact("Bob Ray wrote Ash.")]
    found, invalid = read_known(["ann lee wrote  Dust (2s1)", "Eve Orr wrote Ash."], known)
    assert found == known[:1]
    assert invalid == ("Eve Orr wrote Ash.",)
