"""Samples and splits depend on ids and seeds only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.benchmarks import QuestionRecord, in_dev, sample, split_by_id

IDS = [f"question-{number}" for number in range(1000)]
UNIQUE = st.lists(st.text(max_size=8), unique=True, max_size=30)


def test_splits_are_the_same_everywhere() -> None:
    assert [id for id in IDS[:40] if in_dev(id, 0.1, seed=0)] == [
        "question-1",
        "question-7",
        "question-8",
        "question-26",
        "question-37",
    ]
    assert sample(IDS, 3, seed=0) == ["question-457", "question-600", "question-697"]


def test_shares_and_seeds() -> None:
    train, dev = split_by_id(IDS, 0.25, seed=1)
    assert 200 < len(dev) < 300
    assert sorted(train + dev) == sorted(IDS)
    assert dev != split_by_id(IDS, 0.25, seed=2)[1]
    assert split_by_id(IDS, 0)[1] == split_by_id(IDS, 1)[0] == []
    # A sample is no part of the split with the same seed.
    assert 5 < len(set(sample(IDS, 40, seed=1)) & set(dev)) < 20


@given(ids=UNIQUE, seed=st.integers(), data=st.data())
def test_splits_do_not_depend_on_the_order(ids: list[str], seed: int, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(ids))
    assert [set(part) for part in split_by_id(ids, 0.5, seed)] == [
        set(part) for part in split_by_id(shuffled, 0.5, seed)
    ]
    assert set(sample(ids, 4, seed)) == set(sample(shuffled, 4, seed))


@given(ids=UNIQUE, sizes=st.tuples(st.integers(1, 40), st.integers(1, 40)), seed=st.integers())
def test_a_smaller_sample_is_part_of_a_larger(ids: list[str], sizes: tuple[int, int], seed: int) -> None:
    small, large = (sample(ids, size, seed) for size in sorted(sizes))
    assert set(small) <= set(large)
    assert len(large) == min(len(ids), max(sizes))
    assert [id for id in ids if id in set(large)] == large


def test_pairs_stay_together() -> None:
    pairs = [QuestionRecord(f"{id}{suffix}", "?", ("a",), official_id=id) for id in IDS for suffix in ("", "/x")]
    train, dev = split_by_id(pairs, 0.3)
    assert not {item.official_id for item in train} & {item.official_id for item in dev}
    assert len({item.official_id for item in sample(pairs, 20, seed=3)}) == 10
