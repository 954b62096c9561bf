"""The simulated model: deterministic, honest about what it is, and only for the questions that it knows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import LMError

from polyhop.scripts.studies.simulation import Rates, SimulatedEngine, simulated_lm
from polyhop.signatures import AnalyzeQuestion

from .world import add, ask, hotpotqa, select

NOISY = Rates.alike(0.3)


def replies(folder: Path) -> list[list[str]]:
    """Many replies; also printed by a process of its own."""
    examples = hotpotqa(folder, 20)
    lm = simulated_lm(examples, NOISY, seed=5)
    return [select(lm, example) for example in examples] + [add(lm, example, ["10s1"]) for example in examples]


def test_replies_do_not_depend_on_threads_and_order(tmp_path: Path) -> None:
    examples = hotpotqa(tmp_path, 20)
    lm = simulated_lm(examples, NOISY, seed=5)
    with ThreadPoolExecutor(4) as pool:
        kept = list(pool.map(lambda example: select(lm, example), reversed(examples)))
    assert kept[::-1] == replies(tmp_path)[:20]
    assert len({tuple(ids) for ids in kept}) > 10


# --- what it refuses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signature", "question", "said"),
    [
        (AnalyzeQuestion, "Who knows?", "built without this question: 'Who knows"),
        ("query -> sub_questions", "Who knows?", "the prompt has no field 'question'"),
        ("question -> mood", "Where does the river of town 0 rise?", "no agent is simulated that fills mood; known"),
        ("question -> accuracy", "Where does the river of town 0 rise?", "a judge needs the field proposed_answer or"),
    ],
)
def test_what_it_does_not_know_is_an_error(signature: Any, question: str, said: str, tmp_path: Path) -> None:
    if isinstance(signature, str):
        signature = dspy.Signature(signature)
    name = next(iter(signature.input_fields))
    with pytest.raises(LMError, match=said) as raised:
        ask(simulated_lm(hotpotqa(tmp_path)), signature, **{name: question})
    assert isinstance(raised.value.__cause__, ValueError)


def test_questions_without_gold_evidence_cannot_be_simulated(tmp_path: Path) -> None:
    (example,) = hotpotqa(tmp_path)
    with pytest.raises(ValueError, match="no gold evidence, so nothing can be simulated: 'Where does"):
        SimulatedEngine([example.copy(gold=())], Rates())


def test_a_question_has_one_truth(tmp_path: Path) -> None:
    (example,) = hotpotqa(tmp_path)
    SimulatedEngine([example, example], Rates())
    with pytest.raises(ValueError, match="two questions read alike and have different gold evidence"):
        SimulatedEngine([example, example.copy(gold=example.gold[:1])], Rates())


# --- what it says of itself ------------------------------------------------------------------------------------------


def test_the_name_of_the_model_carries_rates_and_seed(tmp_path: Path) -> None:
    lm = simulated_lm(hotpotqa(tmp_path), Rates(miss=0.05, wrong_verdict=0.125), seed=7)
    assert (
        lm.model == "simulated/miss=0.05,false_keep=0,wrong_verdict=0.125,wrong_answer=0,lucky=0.1,wrong_plan=0,seed=7"
    )
