"""The words of a collection: titles, frequencies, and names among words."""

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

from polyhop.data.chain.arrays import (
    find_names,
    hash_names,
    hash_runs,
    place_numbers,
    spanned,
)
from polyhop.data.chain.reading import (
    LONGEST_NAME,
    Reading,
    anchor_number,
    document_number,
    folded,
    record_of,
    texts_of,
)
from polyhop.data.chain.store import Store, StoreWriter
from polyhop.data.chain.titles import title_rows
from polyhop.data.errors import IndexFault
from polyhop.data.links import address
from polyhop.data.passages import Link, Passage, Place

PASSAGES = [
    Passage.of("Help! (film)", "Help! is a film with the Beatles."),
    Passage.of("Help!", "Help is assistance to others."),
    Passage.of("The Beatles", "They made films, and a film about films."),
    Passage.of("", "A text without a title."),
]


def write(folder: Path, *batches: list[Passage], before: Sequence[Path] = (), live: Any = None) -> Path:
    writer = StoreWriter(folder)
    if live is not None:
        writer.copy(before, live)
    for passages in batches:
        writer.add(passages)
    writer.finish()
    return folder


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


def test_damaged_tables_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "store", PASSAGES)
    for name, table, message in (
        ("documents", np.zeros(3, np.uint64), "do not fit together"),
        ("titled", np.full(len(np.load(folder / "titled.npy")), 4, np.uint32), "do not fit together"),
        ("titles", np.load(folder / "titles.npy").astype(np.int64), "titles.npy is damaged"),
        ("starts", np.array([0, 9, 3, 20, 30]), "do not fit together"),
        ("starts", np.load(folder / "starts.npy") + np.array([0, 0, 0, 0, 1]), "words is cut off"),
        ("counts", np.array([{}]), "allow_pickle"),
    ):
        before = (folder / f"{name}.npy").read_bytes()
        np.save(folder / f"{name}.npy", table)
        with pytest.raises(ValueError, match=message):
            Store.open([folder])
        (folder / f"{name}.npy").write_bytes(before)
    with pytest.raises(ValueError, match="other passages"):
        Store.open([folder], np.ones(5, bool))
    words = np.fromfile(folder / "words", np.uint32)
    words[0] |= 255 << 24  # more names than words
    words.tofile(folder / "words")
    with pytest.raises(IndexFault, match="is damaged"):
        Store.open([folder]).records([0])


# --- what a record keeps ---------------------------------------------------------------------------------------------

SENTENCES = st.lists(
    st.lists(st.sampled_from("Anna Berg met os.urandom in Paris, (1999) the é 東京 x".split()), min_size=1, max_size=6),
    max_size=4,
).map(lambda sentences: [f"{' '.join(words)}." for words in sentences])
PAGES = [f"docs/{name}" for name in ("a.html", "b/index.md", "c#.md", "Anna Berg.md")] + ["q1"]
TARGETS = st.sampled_from([*(page.replace("#", "%23") for page in PAGES), "[[Moons]]"])
FRAGMENTS = ["", "x", "y z", "#"]


@st.composite
def passages_with_links(draw: st.DrawFn) -> Passage:
    title = draw(st.sampled_from(["", "Help! (film)", "2.1 Moons: a list", "Paris, Texas", "word " * 130]))
    sentences = draw(SENTENCES)
    links = st.builds(
        Link,
        target=st.tuples(TARGETS, st.sampled_from(FRAGMENTS)).map(lambda parts: "#".join(filter(None, parts))),
        text=st.sampled_from(["Anna Berg", "met os.urandom in", "missing", "", "é"]),
        sentence=st.integers(0, max(len(sentences) - 1, 0)),
        kind=st.sampled_from(["text", "contents", "see"]),
    )
    return replace(
        Passage.of(title, sentences=sentences),
        place=Place(draw(st.sampled_from(PAGES)), draw(st.sampled_from([0, 7]))),
        links=tuple(draw(st.lists(links, max_size=4))) if sentences else (),
        anchors=tuple(draw(st.lists(st.sampled_from(FRAGMENTS[1:]), max_size=2))),
    )


def places_of(document: str, anchor: str = "") -> np.ndarray:
    numbers = [document_number(document)], [anchor_number(f"#{anchor}" if anchor else "")]
    return place_numbers(*(np.array(number, np.uint64) for number in numbers))


def check_record(store: Store, row: int, passage: Passage) -> None:
    """A record against the passage: words, names of the file, links and their words, document."""
    record, texts = store.records([row]), texts_of(passage)
    reading = Reading(texts)
    assert record.words.tolist() == [*reading.numbers, 0]
    assert record.titles.tolist() == [list(reading.title)]
    assert record.short.tolist() == [list(reading.short)]
    assert record.later.tolist() == [bool(passage.place and passage.place.sentence)]
    assert store.documents(np.array([row])).tolist() == [document_number(passage.document.replace("#", "%23"))]
    own = address(passage.document.replace("#", "%23"))
    links = [link for link in passage.links if address(link.target) != own]
    assert record.linked.tolist() == [len(links)]
    assert record.targets.tolist() == [document_number(link.target) for link in links]
    assert record.anchors.tolist() == [anchor_number(link.target) for link in links]
    assert record.kinds.tolist() == [("text", "see", "contents").index(link.kind) for link in links]
    for link, (start, end) in zip(links, record.links.tolist(), strict=True):
        wanted, sentence = folded(link.text), folded(passage.sentences[link.sentence])
        stands = any(sentence[at : at + len(wanted)] == wanted for at in range(len(sentence)))
        assert reading.forms[start:end] == (wanted if stands else [])
        # It is in its sentence, also if its words are not.
        assert reading.forms[:start].count("") == link.sentence + len(texts) - len(passage.sentences)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(passages_with_links(), st.booleans()), min_size=1, max_size=5))
def test_what_is_read_back_is_what_the_passages_say(drawn: list[tuple[Passage, bool]]) -> None:
    """In memory, on disk, in parts, with deleted passages, and after these were dropped."""
    passages, alive = [passage for passage, _ in drawn], np.array([live for _, live in drawn])
    with TemporaryDirectory() as folder:
        root = Path(folder)
        half = len(passages) // 2
        whole, parts = (
            write(root / "whole", passages),
            [
                write(root / "first", passages[:half]),
                write(root / "others", passages[half:]),
            ],
        )
        more = write(root / "more", passages[:1])
        dropped = write(root / "dropped", passages[:1], before=parts, live=alive)
        left = [passage for passage, live in drawn if live]
        every = [True] * len(passages)
        for store, rows, live in (
            (Store.of(map(record_of, passages)), passages, every),
            (Store.open([whole]), passages, every),
            (Store.open(parts), passages, every),
            (Store.open([*parts, more], np.append(alive, True)), [*passages, passages[0]], [*alive, True]),
            (Store.open([dropped]), [*left, passages[0]], [True] * (len(left) + 1)),
        ):
            assert len(store) == len(rows)
            there = [(row, passage) for row, passage in enumerate(rows) if live[row]]
            for row, passage in there:
                check_record(store, row, passage)
            opening = len({passage.document for _, passage in there})
            assert store.pages == pytest.approx(1 - opening / len(there))
            titles = [passage.title for passage in passages if title_rows(store, passage.title)]
            assert sorted(titles) == sorted(
                passage.title for passage in passages
                if folded(passage.title) and passage.title in {each.title for _, each in there}
            )  # fmt: skip
            for page, fragment in product(PAGES, FRAGMENTS):
                expected = [
                    row
                    for row, passage in there
                    if passage.document == page
                    and (fragment in passage.anchors if fragment else not (passage.place and passage.place.sentence))
                ]
                assert store.placed(places_of(page.replace("#", "%23"), fragment))[0].tolist() == expected
