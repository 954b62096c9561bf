"""KAIR's state: the worth of a query, which sentences a fact or a gap accepts, and gaps that belong together."""

from __future__ import annotations

import math

import pytest

from polyhop.data.passages import Evidence, Passage
from polyhop.programs.knowledge import (
    KairState,
    KnownFact,
    Rarity,
    dependent,
    joined,
    nearest,
    read_known,
    relevance,
)

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


# --- rules (3) and (4) -----------------------------------------------------------------------------------------------

NOLAN = Passage.of(
    "Christopher Nolan",
    sentences=["He was born in London.", "The weather was fine.", "Jonathan Nolan is his brother."],
)
RAY = Passage.of("Bob Ray", sentences=["He was born in Cork.", "Ray met Christopher Nolan, who was born in London."])
BIRTH = "Where was Christopher Nolan born?"
RARITY = Rarity([NOLAN, RAY, LEE])


@pytest.mark.parametrize(
    ("item", "accepted"),
    [
        (Evidence(NOLAN, 0), True),  # the title tells who "he" is
        (Evidence(NOLAN, 1), False),  # on his page, but of something else
        (Evidence(NOLAN, 2), False),  # names him once more, but not his birth
        (Evidence(RAY, 0), False),  # the birth of another man
        (Evidence(RAY, 1), True),  # another page, but the sentence names him
    ],
)
def test_a_sentence_must_say_what_is_asked_of_the_entity_that_is_asked_about(item: Evidence, accepted: bool) -> None:
    assert state(required=(BIRTH,)).asks_for(item, 0.3, RARITY) == accepted
    assert state(KnownFact("Christopher Nolan was born in London.")).supports(item, 0.3, RARITY) == accepted


def test_words_count_by_their_rarity() -> None:
    gap = ["Which writer likes rain?"]  # "writer" is in each of three passages, "rain" in one
    pages = [Passage.of(f"Page {n}", sentences=["A writer.", "Rain." if n == 0 else "Sun."]) for n in range(3)]
    rarity = Rarity(pages)
    common, rare = (relevance(Evidence(pages[0], n), gap, rarity) for n in (0, 1))
    writer, rain = math.log(2), math.log(4)  # ln(1 + 3 / 3) and ln(1 + 3 / 1); no passage has "likes"
    assert common == pytest.approx(writer / (writer + 2 * rain))
    assert rare == pytest.approx(rain / (writer + 2 * rain))


def test_texts_without_topic_words_are_not_relevant() -> None:
    assert relevance(RAINED, [], RARITY) == 0.0
    assert relevance(RAINED, ["Who was it?"], RARITY) == 0.0
    assert not state().supports(WROTE, 0.0, RARITY)


def test_a_sentence_is_supported_by_a_fact_that_cites_it() -> None:
    assert state(KnownFact("Precipitation.", (RAINED,))).supports(RAINED, 0.99, RARITY)
    assert state(KnownFact("Precipitation.", (Evidence(LEE),))).supports(RAINED, 0.99, RARITY)
    assert not state(KnownFact("Precipitation.", (LIVED,))).supports(RAINED, 0.1, RARITY)


# --- contradictions --------------------------------------------------------------------------------------------------


def test_a_disputed_fact_is_one_that_is_known() -> None:
    known = [KnownFact("Ann Lee wrote Dust."), KnownFact("Bob Ray wrote Ash.")]
    found, invalid = read_known(["ann lee wrote  Dust (2s1)", "Eve Orr wrote Ash."], known)
    assert found == known[:1]
    assert invalid == ("Eve Orr wrote Ash.",)


# --- gaps that depend on each other ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gaps", "groups"),
    [
        (["Who directed Vertigo?", "Who directed Dust?"], [[0], [1]]),
        (["Who directed Vertigo?", "Where was the director of Vertigo born?"], [[0, 1]]),
        (["Who directed Vertigo?", "Who directed Dust?", "Where was #1 born?"], [[0, 2], [1]]),
        (["Who directed Vertigo?", "Who directed Dust?", "Where was #7 born?"], [[0], [1, 2]]),
        (["Who directed Vertigo?", "Where was he born?", "Who wrote Dust?"], [[0, 1], [2]]),
        (["Who is Ann?", "Who is Bob?", "Did Ann meet Bob?"], [[0, 1, 2]]),
        ([], []),
    ],
)
def test_gaps_are_grouped_by_references_names_and_pronouns(gaps: list[str], groups: list[list[int]]) -> None:
    assert dependent(gaps) == [tuple(gaps[n] for n in group) for group in groups]


# --- the blackboard --------------------------------------------------------------------------------------------------


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


def test_a_fact_that_one_agent_dropped_is_gone() -> None:
    board = state(KnownFact("A."), KnownFact("B."), required=("v?", "w?"))
    dealt = [state(required=("v?",)), state(required=("w?",))]
    agents = [state(KnownFact("A."), KnownFact("C.")), state(KnownFact("A."), KnownFact("B."))]
    assert [fact.text for fact in joined(board, dealt, agents).known] == ["A.", "C."]
