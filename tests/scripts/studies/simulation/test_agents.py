"""Every agent plays its part, and errs as often as is said."""

from __future__ import annotations

import math
from pathlib import Path

import dspy
import pytest

from polyhop.programs.candidates import Candidates
from polyhop.scripts.studies.simulation import Rates, simulated_lm
from polyhop.scripts.studies.simulation.annotations import LOST, lock
from polyhop.signatures import (
    AnswerFromContext,
    AnswerWithCitations,
    VerifyAnswer,
)

from .world import OTHERS, ask, hotpotqa, musique, select, shown

TOWN, RIVER = "10s1", "5s3"  # the gold sentences in the candidates of `hotpotqa`
MANY = 150


def near(count: int, of: int, rate: float) -> bool:
    """Whether a count is within four standard deviations of what a rate makes likely."""
    return abs(count - of * rate) <= 4 * math.sqrt(of * rate * (1 - rate))


# --- without errors --------------------------------------------------------------------------------------------------


def test_a_later_hop_is_found_only_by_what_leads_to_it(tmp_path: Path) -> None:
    for example, locked, key in (
        (musique(tmp_path)[0], "Land 0", "Land 0"),
        (hotpotqa(tmp_path)[0], "River 0", "River 0"),
    ):
        pool = lock(example).pool
        found = {query: [hit.passage.title for hit in pool.search(query, 50)] for query in (example.question, key)}
        assert len(pool.search(example.question, 50)) == len(found[example.question]) < len(pool)
        assert locked not in found[example.question]
    pools = [lock(example).pool for example in musique(tmp_path, 60)]
    seen = [
        any(hit.passage.title == f"Land {n}" for hit in pool.search(f"Land {n}", 50)) for n, pool in enumerate(pools)
    ]
    assert near(len(seen) - sum(seen), len(seen), LOST)  # some are never found


def verify(lm: dspy.LM, example: dspy.Example, answer: str, *ids: str) -> dspy.Prediction:
    evidence = shown(example, ids)
    return ask(lm, VerifyAnswer, question=example.question, sub_questions=[], passages=evidence, proposed_answer=answer)


@pytest.mark.parametrize(
    ("answer", "ids", "attribution", "right", "correction"),
    [
        ("mount 0.", [TOWN, RIVER], "attributable", True, "mount 0."),
        ("Mount 7", [TOWN, RIVER], "contradictory", False, "Mount 0"),
        ("Mount 0", [TOWN], "extrapolatory", True, "Mount 0"),
        ("Mount 7", [TOWN], "extrapolatory", False, "Town 0"),
    ],
)
def test_the_verifier_knows_what_is_right_and_what_the_evidence_carries(
    answer: str, ids: list[str], attribution: str, right: bool, correction: str, tmp_path: Path
) -> None:
    (example,) = hotpotqa(tmp_path)
    reply = verify(simulated_lm([example], Rates(lucky=0.0)), example, answer, *ids)
    assert (reply.attribution, reply.accuracy > 0.5, reply.correction) == (attribution, right, correction)


# --- errors at their rates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_the_selector_misses_and_keeps_at_the_stated_rates(rate: float, tmp_path: Path) -> None:
    examples = hotpotqa(tmp_path, MANY)
    lm = simulated_lm(examples, Rates(miss=rate, false_keep=rate))
    kept = [id for example in examples for id in select(lm, example)]
    gold = sum(id in (TOWN, RIVER) for id in kept)
    assert near(2 * MANY - gold, 2 * MANY, rate)
    assert near(len(kept) - gold, OTHERS * MANY, rate)
    assert len(set(kept)) == 2 + OTHERS  # each of them at times
    assert all(id.endswith("s1") for id in kept if id != RIVER)


def test_answers_are_wrong_or_lucky_at_the_stated_rates(tmp_path: Path) -> None:
    examples = hotpotqa(tmp_path, MANY)
    lm = simulated_lm(examples, Rates(wrong_answer=0.2, lucky=0.3))

    def right(*ids: str) -> int:
        replies = [ask(lm, AnswerFromContext, question=each.question, evidence=shown(each, ids)) for each in examples]
        return sum(reply.answer == f"Mount {n}" for n, reply in enumerate(replies))

    assert near(right(TOWN, RIVER), MANY, 0.8)
    assert near(right(TOWN), MANY, 0.3)


def test_citations_are_missed_and_replaced_at_the_stated_rate(tmp_path: Path) -> None:
    examples = hotpotqa(tmp_path, MANY)

    def cited(rate: float) -> list[str]:
        lm = simulated_lm(examples, Rates(miss=rate))
        asked = [
            ask(
                lm, AnswerWithCitations, question=each.question, sub_questions=[], passages=Candidates(each.pool).show()
            )
            for each in examples
        ]
        return [id for reply in asked for id in reply.citations]

    assert cited(0.0) == [TOWN, RIVER] * MANY
    found = cited(0.2)
    right = sum(id in (TOWN, RIVER) for id in found)
    assert near(2 * MANY - right, 2 * MANY, 0.2)
    assert near(len(found) - right, 2 * MANY - right, 0.5)
