"""Samples depend on ids and seeds only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.benchmarks import QuestionRecord, sample

IDS = [f"question-{number}" for number in range(1000)]
UNIQUE = st.lists(st.text(max_size=8), unique=True, max_size=30)


def test_samples_are_the_same_everywhere() -> None:
    assert sample(IDS, 3, seed=0) == ["question-457", "question-600", "question-697"]


@given(ids=UNIQUE, sizes=st.tuples(st.integers(1, 40), st.integers(1, 40)), seed=st.integers(), data=st.data())
def test_a_sample_is_part_of_a_larger_one_in_any_order(
    ids: list[str], sizes: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    large = sample(ids, max(sizes), seed)
    assert set(sample(data.draw(st.permutations(ids)), min(sizes), seed)) <= set(large)
    assert len(large) == min(len(ids), max(sizes))
    assert [id for id in ids if id in set(large)] == large


def test_pairs_stay_together() -> None:
    pairs = [QuestionRecord(f"{id}{suffix}", "?", ("a",), official_id=id) for id in IDS for suffix in ("", "/x")]
    assert len({item.official_id for item in sample(pairs, 20, seed=3)}) == 10
