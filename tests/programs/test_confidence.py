"""PAR-RAG's confidence: simple questions weigh accuracy, complex ones credibility."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.programs import Trace
from polyhop.programs.confidence import CREDIBILITY, Confidence
from polyhop.programs.trace import Weighed

SHARE = st.floats(0, 1)


@pytest.mark.parametrize(("hops", "alpha"), [(1, 0.817574), (2, 0.622459), (2.5, 0.5), (3, 0.377541), (4, 0.182426)])
def test_alpha_by_hand(hops: float, alpha: float) -> None:
    assert Confidence().alpha(hops) == pytest.approx(alpha, abs=1e-6)


def test_the_ablation_has_a_fixed_alpha() -> None:
    assert {Confidence(adaptive=False).alpha(hops) for hops in (1, 2, 3, 4)} == {0.5}


def test_weighing_is_recorded() -> None:
    trace = Trace()
    weighed = Confidence(threshold=0.75)(2.5, 0.9, CREDIBILITY["extrapolatory"], trace)
    assert weighed == Weighed(0.5, pytest.approx(0.7), False)  # type: ignore[arg-type]
    assert trace.steps == [weighed]
    assert Confidence(threshold=0.7)(2.5, 0.9, 0.5, trace).passed  # the threshold itself passes


@given(st.floats(1, 4), SHARE, SHARE)
def test_confidence_lies_between_its_parts(hops: float, accuracy: float, credibility: float) -> None:
    confidence = Confidence()(hops, accuracy, credibility, Trace()).confidence
    assert min(accuracy, credibility) - 1e-9 <= confidence <= max(accuracy, credibility) + 1e-9
