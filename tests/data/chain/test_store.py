"""The words of a collection, in memory and on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data.chain.store import Store, StoreWriter, hashes_of
from polyhop.data.chain.words import place_key, place_of
from polyhop.data.passages import Passage, Place

PASSAGES = [
    Passage.of("Help! (film)", "Help! is a film with the Beatles."),
    Passage.of("Help!", "Help is assistance to others."),
    Passage.of("The Beatles", "They made films, and a film about films."),
    Passage.of("", "A text without a title."),
]


def hashed(*folders: Path) -> dict[Path, dict[str, str]]:
    return {folder: hashes_of(folder) for folder in folders}


def write(folder: Path, *batches: list[Passage], before: Sequence[Path] = (), live: Any = None) -> Path:
    writer = StoreWriter(folder)
    if live is not None:
        writer.copy(hashed(*before), live)
    for passages in batches:
        writer.add(passages)
    assert writer.finish() == hashes_of(folder)
    return folder


def test_damaged_tables_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "store", PASSAGES)
    hashes = hashed(folder)
    counts = (folder / "counts.npy").read_bytes()
    (folder / "counts.npy").write_bytes(counts[:-4] + bytes([counts[-4] ^ 1]) + counts[-3:])
    with pytest.raises(ValueError, match="has changed"):
        Store.open(hashes)
    (folder / "counts.npy").write_bytes(counts)
    for name, table in (
        ("documents", np.zeros(2, np.uint64)),
        ("rows", np.zeros(2, np.uint32)),
        ("keys", np.load(folder / "keys.npy").astype(np.int64)),
        ("counts", np.array([{}])),
    ):
        before = (folder / f"{name}.npy").read_bytes()
        np.save(folder / f"{name}.npy", table)
        with pytest.raises(ValueError, match=r"do not fit together|allow_pickle"):
            Store.open(hashed(folder))  # as in an index that somebody made so
        (folder / f"{name}.npy").write_bytes(before)
    with pytest.raises(ValueError, match="other passages"):
        Store.open(hashed(folder), np.ones(5, bool))


# --- what is found ----------------------------------------------------------------------------------------------------

PAGES = [f"docs/{name}" for name in ("a.html", "b/index.md", "c#.md", "Anna Berg.md")] + ["q1"]
FRAGMENTS = ["", "x", "y z", "#"]
TITLES = ["", "Help! (film)", "2.1 Moons: a list", "Paris, Texas", "word " * 130]


@st.composite
def drawn_passages(draw: st.DrawFn) -> Passage:
    return replace(
        Passage.of(draw(st.sampled_from(TITLES)), "Anna Berg met the others."),
        place=Place(draw(st.sampled_from(PAGES)), draw(st.sampled_from([0, 7]))),
        anchors=tuple(draw(st.lists(st.sampled_from(FRAGMENTS[1:]), max_size=2))),
    )


def check_finds(store: Store, rows: list[tuple[int, Passage]]) -> None:
    """What a store finds, against its passages that are not deleted."""
    for title in TITLES:
        assert store.titled(title) == [row for row, passage in rows if title and passage.title == title.strip()]
    for page, fragment in product(PAGES, FRAGMENTS):
        expected = [
            row
            for row, passage in rows
            if passage.document == page
            and (fragment in passage.anchors if fragment else not (passage.place and passage.place.sentence))
        ]
        place = place_of(f"{page.replace('#', '%23')}#{fragment}")
        assert [row for _, row in store.find([place_key(*place)])] == expected


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(drawn_passages(), st.booleans()), min_size=1, max_size=5))
def test_what_is_found_is_what_the_passages_say(drawn: list[tuple[Passage, bool]]) -> None:
    """In memory, on disk, in parts, with deleted passages, and after these were dropped."""
    passages, alive = [passage for passage, _ in drawn], np.array([live for _, live in drawn])
    with TemporaryDirectory() as folder:
        root = Path(folder)
        half = len(passages) // 2
        whole = write(root / "whole", passages)
        parts = [write(root / "first", passages[:half]), write(root / "others", passages[half:])]
        more = write(root / "more", passages[:1])
        dropped = write(root / "dropped", passages[:1], before=parts, live=alive)
        left = [passage for passage, live in drawn if live]
        everything = list(enumerate(passages))
        living = [(row, passage) for row, passage in everything if alive[row]]
        check_finds(Store.of(passages), everything)
        check_finds(Store.open(hashed(whole)), everything)
        check_finds(Store.open(hashed(*parts)), everything)
        joined = Store.open(hashed(*parts, more), np.append(alive, True))
        assert len(joined) == len(passages) + 1
        check_finds(joined, [*living, (len(passages), passages[0])])
        check_finds(Store.open(hashed(dropped)), list(enumerate([*left, passages[0]])))


def test_frequencies_are_those_of_all_parts_and_fall_with_deleted_passages(tmp_path: Path) -> None:
    parts = write(tmp_path / "one", PASSAGES[:2]), write(tmp_path / "two", PASSAGES[2:])
    whole, joined = Store.of(PASSAGES), Store.open(hashed(*parts))
    for word in ("film", "beatl", "help", "unknown"):
        assert joined.idf(word) == pytest.approx(whole.idf(word))
    assert whole.idf("titl") == pytest.approx(1)
    assert whole.idf("titl") > whole.idf("film") > whole.idf("unknown") == 0
    left = write(tmp_path / "left", before=parts, live=np.array([True, False, True, True]))
    assert 0 < Store.open(hashed(left)).idf("film") < 1
