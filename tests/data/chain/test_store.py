"""The words of a collection: titles, frequencies, and names among words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyhop.data.chain.arrays import counted, find_names, hash_names, hash_runs, locate, occurrences, spanned
from polyhop.data.chain.reading import LONGEST_NAME, Reading, read, record_of, stems_of, texts_of, without_flags
from polyhop.data.chain.store import Store, StoreWriter
from polyhop.data.passages import Passage

PASSAGES = [
    Passage.of("Help! (film)", "Help! is a film with the Beatles."),
    Passage.of("Help!", "Help is assistance to others."),
    Passage.of("The Beatles", "They made films, and a film about films."),
    Passage.of("", "A text without a title."),
]


def numbers(text: str) -> np.ndarray:
    return np.array([number for word in read(text) for number in word.numbers], np.uint32)


def title_hash(title: str) -> np.ndarray:
    words = without_flags(numbers(title))
    return hash_names(spanned(words, np.array([[0, len(words)]])))


@pytest.fixture(params=["memory", "disk", "parts"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return Store.of(record_of(passage) for passage in PASSAGES)
    if request.param == "parts":
        folders = [tmp_path / name for name in ("none", "first", "others")]
        for folder, passages in zip(folders, ([], PASSAGES[:1], PASSAGES[1:]), strict=True):
            with StoreWriter(folder) as writer:
                writer.add(passages)
        return Store.open(folders)
    with StoreWriter(tmp_path / "store") as writer:
        writer.add(PASSAGES[:1])
        writer.add(PASSAGES[1:])
    return Store.open([tmp_path / "store"])


@pytest.mark.parametrize(
    ("title", "expected"),
    [("help", [0, 1]), ("HELP film", [0]), ("the Beatles", [2]), ("Beatles", []), ("assistance", [])],
)
def test_titles_are_found_whole_and_without_disambiguation(store: Store, title: str, expected: list[int]) -> None:
    rows, which = store.titled(title_hash(title))
    assert sorted(rows.tolist()) == expected
    assert which.tolist() == [0] * len(expected)


def test_the_frequency_of_a_stem_is_that_of_its_passages(store: Store) -> None:
    film, assistance, beatles, elephant = store.idf(stems_of(numbers("films assistance Beatles elephant"))).tolist()
    assert assistance == pytest.approx(1)
    assert 1 > film == beatles > elephant == 0


def test_records_come_in_the_order_of_the_rows(store: Store) -> None:
    records = store.records([2, 0])
    both = [*Reading(texts_of(PASSAGES[2])).numbers, 0, *Reading(texts_of(PASSAGES[0])).numbers, 0]
    assert records.words.tolist() == both
    assert len(store) == 4
    assert store.checksum(0) != store.checksum(1)


def test_an_empty_store_has_nothing(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store"):
        pass
    for store in (Store.open([tmp_path / "store"]), Store.of([])):
        assert len(store) == 0
        assert store.titled(title_hash("Help!"))[0].tolist() == []
        assert store.idf(stems_of(numbers("film"))).tolist() == [0]


WORDS = st.lists(st.integers(0, 6), max_size=40).map(lambda words: np.array(words, np.uint32))
NAMES = st.lists(st.lists(st.integers(1, 6), max_size=4), min_size=1, max_size=8)


def padded(names: list[list[int]]) -> np.ndarray:
    return np.array([name + [0] * (LONGEST_NAME - len(name)) for name in names], np.uint32)


@given(NAMES, WORDS)
def test_names_are_found_wherever_their_words_stand(names: list[list[int]], words: np.ndarray) -> None:
    text = words.tolist()
    expected = {
        (which, at) for which, name in enumerate(names) if name for at in range(len(text))
        if text[at : at + len(name)] == name
    }  # fmt: skip
    which, place = find_names(padded(names), words)
    assert set(zip(which.tolist(), place.tolist(), strict=True)) == expected


@given(WORDS, st.integers(1, 5))
def test_the_hash_of_a_run_is_that_of_the_name(words: np.ndarray, longest: int) -> None:
    for length, found in enumerate(hash_runs(words, longest), 1):
        starts = np.arange(len(words))
        names = spanned(words, np.stack([starts, np.minimum(starts + length, len(words))], axis=1))
        assert found.tolist() == hash_names(names).tolist()


@given(WORDS, st.lists(st.integers(0, 9), unique=True, max_size=6))
def test_values_among_keys_are_located(values: np.ndarray, keys: list[int]) -> None:
    known = np.array(keys, np.uint32)
    places, which = locate(values, known, np.argsort(known))
    expected = [(at, keys.index(value)) for at, value in enumerate(values.tolist()) if value in keys]
    assert list(zip(places.tolist(), which.tolist(), strict=True)) == expected


def test_occurrences_count_at_least_one() -> None:
    names = np.array([7, 8, 9], np.uint64)
    assert occurrences(names, counted(np.array([8, 9, 8], np.uint64))).tolist() == [1, 2, 1]
    assert occurrences(names, counted(np.zeros(0, np.uint64))).tolist() == [1, 1, 1]


def test_a_store_continues_the_file_of_another_and_leaves_it_readable(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "first") as writer:
        writer.add(PASSAGES[:2])
    first, everything = Store.open([tmp_path / "first"]), np.ones(2, bool)
    with (tmp_path / "first" / "words").open("ab") as file:
        file.write(b"what a killed update has written")
    for name, of in (("second", "first"), ("third", "second")):
        with StoreWriter(tmp_path / name) as writer:
            writer.copy(tmp_path / of, everything, drop=False)
            writer.add(PASSAGES[len(everything) : len(everything) + 1])
        everything = np.ones(len(everything) + 1, bool)
        whole = Store.of(record_of(passage) for passage in PASSAGES[: len(everything)])
        opened, rows = Store.open([tmp_path / name]), range(len(everything))
        assert opened.records(rows).words.tolist() == whole.records(rows).words.tolist()
    # The second shares its file with the first, so the third has a file of its own.
    inodes = [(tmp_path / name / "words").stat().st_ino for name in ("first", "second", "third")]
    assert inodes[0] == inodes[1] != inodes[2]
    for store in (first, Store.open([tmp_path / "first"])):
        assert store.records([0, 1]).words.tolist() == opened.records([0, 1]).words.tolist()
